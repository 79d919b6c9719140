//! Gates and limits as JUnit XML, which CI systems show as tests.

use crate::text::letter;
use crate::{Comparison, Outcome};
use maud::{PreEscaped, html};
use stats::Expected;

/// A gate or a limit.
struct Suite<'a> {
    name: &'a str,
    /// Name, outcome and reason of each cell.
    cases: Vec<(String, Outcome, &'a str)>,
    /// Why it applies to no cell.
    without: &'a str,
}

/// Writes one suite per gate and one test per cell. A violated gate is a failure, an undecided one
/// an error: neither is passed.
#[must_use]
pub fn junit(comparison: &Comparison) -> String {
    let suites = comparison.gates.iter().map(|gate| {
        let cases = gate.cells.iter().map(|cell| {
            let name = format!("{} {} {}", letter(cell.run), cell.cell, cell.quantity);
            (name, cell.outcome, cell.reason.as_str())
        });
        Suite {
            name: &gate.gate,
            cases: cases.collect(),
            without: gate.in_words(),
        }
    });
    document("cipherbench compare", suites)
}

/// Writes the limits of a run in the same form.
#[must_use]
pub fn junit_of_limits(expected: &Expected) -> String {
    let suites = expected.limits.iter().map(|limit| {
        let cases = limit.cells.iter().map(|cell| {
            let name = format!("{} {}", cell.cell, cell.quantity);
            (name, Outcome::from(cell.outcome), cell.reason.as_str())
        });
        Suite {
            name: &limit.limit,
            cases: cases.collect(),
            without: "it is about no cell that this run has",
        }
    });
    document("cipherbench run", suites)
}

fn document<'a>(name: &str, suites: impl Iterator<Item = Suite<'a>>) -> String {
    let suites = suites.map(|suite| {
        let of = |outcome| suite.cases.iter().filter(|case| case.1 == outcome).count();
        // One without cells also counts as a test that has not passed.
        let (tests, errors) = match suite.cases.len() {
            0 => (1, 1),
            tests => (tests, of(Outcome::Undecided)),
        };
        html! {
            testsuite name=(xml(suite.name)) tests=(tests) failures=(of(Outcome::Violated)) errors=(errors) {
                @if suite.cases.is_empty() {
                    testcase classname=(xml(suite.name)) name="applies to a cell" {
                        error message=(xml(suite.without)) {}
                    }
                }
                @for (name, outcome, reason) in &suite.cases {
                    testcase classname=(xml(suite.name)) name=(xml(name)) {
                        @match outcome {
                            Outcome::Passed => {},
                            Outcome::Undecided => { error message=(xml(reason)) {} },
                            Outcome::Violated => { failure message=(xml(reason)) {} },
                        }
                    }
                }
            }
        }
    });
    let suites: Vec<_> = suites.collect();
    let document = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name=(name) {
            @for suite in &suites { (suite) }
        }
    };
    document.into_string() + "\n"
}

/// Without characters that XML 1.0 §2.2 does not allow.
fn xml(text: &str) -> String {
    // Reasons quote tools: one escape sequence would make CI refuse the whole file.
    let allowed = |c: &char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}');
    text.chars().filter(allowed).collect()
}
