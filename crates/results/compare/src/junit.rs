//! Gates as JUnit XML, which CI systems show as tests.

use crate::text::letter;
use crate::{Comparison, Outcome};
use maud::{PreEscaped, html};

/// Writes one suite per gate and one test per cell. A violated gate is a failure, an undecided one
/// an error: neither is passed.
#[must_use]
pub fn junit(comparison: &Comparison) -> String {
    let suites = comparison.gates.iter().map(|gate| {
        let of = |outcome| gate.cells.iter().filter(|cell| cell.outcome == outcome).count();
        // A gate without cells also counts as a test that has not passed.
        let (tests, errors) = match gate.cells.len() {
            0 => (1, 1),
            tests => (tests, of(Outcome::Undecided)),
        };
        html! {
            testsuite name=(xml(&gate.gate)) tests=(tests) failures=(of(Outcome::Violated)) errors=(errors) {
                @if gate.cells.is_empty() {
                    testcase classname=(xml(&gate.gate)) name="applies to a cell" {
                        error message=(xml(gate.in_words())) {}
                    }
                }
                @for cell in &gate.cells {
                    testcase classname=(xml(&gate.gate))
                        name=(xml(&format!("{} {} {}", letter(cell.run), cell.cell, cell.quantity))) {
                        @match cell.outcome {
                            Outcome::Passed => {},
                            Outcome::Undecided => { error message=(xml(&cell.reason)) {} },
                            Outcome::Violated => { failure message=(xml(&cell.reason)) {} },
                        }
                    }
                }
            }
        }
    });
    let suites: Vec<_> = suites.collect();
    let document = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name="cipherbench compare" {
            @for suite in &suites { (suite) }
        }
    };
    document.into_string() + "\n"
}

/// Without characters that XML 1.0 §2.2 does not allow.
fn xml(text: &str) -> String {
    let allowed = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().filter(allowed).collect()
}
