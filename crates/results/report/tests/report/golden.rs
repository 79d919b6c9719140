//! Text documents, the schema and the documentation of columns, against files.

use crate::fixture;
use journal::Journal;
use std::fs;
use std::path::{Path, PathBuf};
use unicode_width::UnicodeWidthStr;

/// Compares with a golden file of the repository, or writes it where `UPDATE_GOLDEN` is set.
pub(crate) fn assert_golden(path: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, found).unwrap();
        return;
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    let differs = wanted
        .lines()
        .zip(found.lines())
        .position(|(wanted, found)| wanted != found);
    let line = differs.unwrap_or_else(|| wanted.lines().count().min(found.lines().count()));
    assert!(
        wanted == found,
        "{} differs from line {}:\n  wanted: {:?}\n  found:  {:?}\n\
         if the change is meant: UPDATE_GOLDEN=1 cargo test -p cipherbench-report",
        path.display(),
        line + 1,
        wanted.lines().nth(line),
        found.lines().nth(line),
    );
}

fn runs() -> [(&'static str, Journal); 19] {
    [
        ("limits", fixture::limits()),
        ("device", fixture::cards()),
        ("peers", fixture::peers(5)),
        ("suites", fixture::suites(Some(10_000_000_000))),
        ("frames", fixture::frame_tests()),
        ("round-trips", fixture::round_trips()),
        ("hostile-frames", fixture::hostile_frames()),
        ("insecure", fixture::insecure()),
        ("quick", fixture::quick()),
        ("http", fixture::http()),
        ("scaling", fixture::scaling()),
        ("troubled", fixture::troubled()),
        ("in-progress", fixture::in_progress()),
        ("monitored", fixture::monitored_frames()),
        ("empty", fixture::empty()),
        ("large", fixture::large()),
        ("hostile", fixture::hostile()),
        ("only-baseline", fixture::only(true)),
        ("no-baseline", fixture::only(false)),
    ]
}

/// The line under a table's name is for people; how its columns are computed is below the table.
#[test]
fn conditions_are_short() {
    for (name, journal) in runs() {
        let markdown = report::build(&journal).markdown;
        let titles = markdown.lines().filter(|line| line.starts_with("**"));
        for title in titles {
            let conditions = title
                .rsplit_once("** (")
                .map_or("", |(_, conditions)| conditions);
            assert!(conditions.width() <= 130, "{name}: {title}");
        }
    }
}

#[test]
fn markdown_is_as_it_was() {
    for (name, journal) in [
        ("limits", fixture::limits()),
        ("insecure", fixture::insecure()),
        ("quick", fixture::quick()),
        ("scaling", fixture::scaling()),
        ("troubled", fixture::troubled()),
        ("empty", fixture::empty()),
        ("hostile", fixture::hostile()),
        ("frames", fixture::frame_tests()),
        ("round-trips", fixture::round_trips()),
        ("peers", fixture::peers(5)),
        ("suites", fixture::suites(None)),
        ("monitored", fixture::monitored()),
        ("monitored-frames", fixture::monitored_frames()),
        ("http", fixture::http()),
    ] {
        let path = format!("crates/results/report/tests/golden/{name}.md");
        assert_golden(&path, &report::build(&journal).markdown);
    }
}

/// The sections of comparisons with a twin, each in a shipped campaign that has it.
#[test]
fn contrasts_are_as_they_were() {
    let mut text = String::new();
    for (campaign, title) in [
        ("keys", "Sources of keys compared with static keys"),
        (
            "baikal-gost",
            "Hybrids of engines compared with each engine alone",
        ),
    ] {
        let markdown = report::build(&fixture::shipped(campaign)).markdown;
        let caption = format!("**{title}** ");
        let (_, rest) = markdown
            .split_once(&caption)
            .unwrap_or_else(|| panic!("no table of {campaign}"));
        // Its caption, an empty line, and its rows.
        let table: Vec<&str> = rest.split("\n\n").take(2).collect();
        text.push_str(&format!("{caption}{}\n\n", table.join("\n\n")));
    }
    assert_golden("crates/results/report/tests/golden/contrasts.md", &text);
}

#[test]
fn the_terminal_shows_what_it_showed() {
    let files: PathBuf = ["runs", "20261120T113000Z-quick"].iter().collect();
    for (name, journal) in [
        ("insecure", fixture::insecure()),
        ("quick", fixture::quick()),
        ("scaling", fixture::scaling()),
        ("troubled", fixture::troubled()),
        ("in-progress", fixture::in_progress()),
        ("only-baseline", fixture::only(true)),
        ("no-baseline", fixture::only(false)),
        ("frames", fixture::frame_tests()),
        ("peers", fixture::peers(3)),
        ("suites", fixture::suites(None)),
    ] {
        let path = format!("crates/results/report/tests/golden/{name}.txt");
        assert_golden(
            &path,
            &crate::terminal(
                &journal,
                Some(report::Folders {
                    run: &files,
                    documents: &files,
                }),
                100,
                false,
            ),
        );
    }
    let narrow = crate::terminal(&fixture::troubled(), None, 80, true);
    assert_golden(
        "crates/results/report/tests/golden/troubled-80-color.txt",
        &narrow,
    );
}

/// A line for each chart: its sample and number, a hash of its SVG, and its title. Render the
/// sample before and after a change to see what differs: `cargo run -p cipherbench-report --example
/// render`.
#[test]
fn charts_are_as_they_were() {
    let mut list = String::new();
    for (name, journal) in [
        ("frames", fixture::frame_tests()),
        ("round-trips", fixture::round_trips()),
        ("disturbed", fixture::disturbed()),
        ("soak", fixture::soak()),
        ("device", fixture::cards()),
        ("peers", fixture::peers(5)),
        ("suites", fixture::suites(Some(10_000_000_000))),
        ("scaling", fixture::scaling()),
        ("troubled", fixture::troubled()),
        ("monitored", fixture::monitored()),
    ] {
        let html = report::build(&journal).html;
        let charts = html.split("<svg").skip(1);
        for (number, chart) in (1..).zip(charts) {
            let (svg, _) = chart.split_once("</svg>").expect("every chart ends");
            let title = svg.split_once("<title").and_then(|(_, rest)| {
                let (_, rest) = rest.split_once('>')?;
                Some(rest.split_once("</title>")?.0)
            });
            let title = title.unwrap_or("without a title");
            list.push_str(&format!("{name} {number} {:016x} {title}\n", fnv_1a(svg)));
        }
    }
    assert_golden("crates/results/report/tests/golden/charts.txt", &list);
}

/// FNV-1a of 64 bits: it need not withstand anybody, only differ.
fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn colour_changes_nothing_but_colour() {
    for (_, journal) in runs() {
        let plain = crate::terminal(&journal, None, 100, false);
        let color = crate::terminal(&journal, None, 100, true);
        let mut stripped = color.clone();
        for code in ["1", "2", "31", "36", "0"] {
            stripped = stripped.replace(&format!("\x1b[{code}m"), "");
        }
        let lines = |text: &str| {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(&stripped), lines(&plain));
        assert!(!plain.contains('\x1b'), "an escape got through");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, journal, widths) in [
        ("troubled", fixture::troubled(), &[72, 80, 100, 140][..]),
        ("scaling", fixture::scaling(), &[80, 100, 120]),
        ("limits", fixture::limits(), &[60, 72, 80, 100, 120]),
    ] {
        for &width in widths {
            for line in crate::terminal(&journal, None, width, false).lines() {
                // Commands and file names are never broken; nothing else may stick out.
                let columns = line.width();
                assert!(
                    columns <= width || line.starts_with("Command"),
                    "{name}: {columns} > {width}: {line}"
                );
            }
        }
    }
}

/// A table that is wider than the terminal is printed in parts, or with a line for each figure.
#[test]
fn the_full_form_is_as_it_was_at_every_width() {
    for width in [80, 120] {
        assert_golden(
            &format!("crates/results/report/tests/golden/scaling-{width}.txt"),
            &crate::terminal(&fixture::scaling(), None, width, false),
        );
    }
}

#[test]
fn documents_are_the_same_each_time() {
    for (name, journal) in runs() {
        assert_eq!(report::build(&journal), report::build(&journal), "{name}");
    }
}

#[test]
fn a_journal_read_back_gives_the_same_documents() {
    let dir = tempfile::tempdir().unwrap();
    let journal = fixture::quick();
    let mut writer = journal::Writer::create(dir.path(), &journal.header).unwrap();
    for trial in &journal.trials {
        writer
            .append(&journal::Record::Trial(Box::new(trial.clone())))
            .unwrap();
    }
    writer
        .append(&journal::Record::End(journal.end.clone().unwrap()))
        .unwrap();
    assert_eq!(
        report::build(&journal::read(dir.path()).unwrap()),
        report::build(&journal)
    );
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    assert_golden("docs/schema/result-1.json", &report::json_schema());
}

#[test]
fn the_documentation_of_columns_is_that_of_the_code() {
    assert_golden("docs/schema/results-csv.md", &report::csv_documentation());
}

/// The end of a run is a screen or two, at every width.
#[test]
fn the_short_form_is_as_it_was_and_short() {
    for (name, journal) in runs() {
        for width in [60, 80, 120] {
            let files = PathBuf::from("runs/20261120T113000Z-quick");
            let folders = report::Folders {
                run: &files,
                documents: &files,
            };
            let text = crate::brief(&journal, Some(folders), width, false);
            let lines = text.lines().count();
            // On a narrow terminal a table may be two, which name their rows again.
            let most = if width < 100 { 84 } else { 80 };
            assert!(lines <= most, "{name}, {width} columns: {lines} lines");
            if ["quick", "peers", "frames", "troubled", "limits"].contains(&name) {
                assert_golden(
                    &format!("crates/results/report/tests/golden/{name}-brief-{width}.txt"),
                    &text,
                );
            }
        }
    }
    let quick = crate::brief(&fixture::quick(), None, 80, false);
    assert!(quick.lines().count() <= 55, "{quick}");
}
