//! Journals of older versions are still read.

use journal::record::{FORMAT_VERSION, Figures, Latency, Measured, Outcome, Transfer};
use journal::{FILE_NAME, Journal, Record, Warning, Writer, read};
use std::fs;
use std::path::Path;

/// A run of a program before version 2, cut down to one repeat of four cells.
const FORMAT_1: &str = include_str!("../fixture/format-1.jsonl");

fn folder(text: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(FILE_NAME), text).unwrap();
    dir
}

fn measured(journal: &Journal) -> usize {
    let trials = journal.trials.iter();
    trials
        .filter(|trial| matches!(trial.outcome, Outcome::Measured(_)))
        .count()
}

#[test]
fn a_journal_of_version_1_is_read_with_none_for_missing_keys() {
    let dir = folder(FORMAT_1);
    let journal = read(dir.path()).unwrap();
    assert_eq!(journal.header.format, 1);
    assert_eq!((journal.trials.len(), measured(&journal)), (4, 4));
    assert_eq!(journal.header.plan.lab.link_bps, None);
    assert!(
        journal
            .header
            .plan
            .cells
            .iter()
            .all(|cell| !cell.calibration)
    );
    for trial in &journal.trials {
        let Outcome::Measured(found) = &trial.outcome else {
            panic!("{}", trial.cell)
        };
        assert_eq!(found.frames(), None);
        assert_eq!((found.cpu.steal_ns, found.cpu.foreign_ns), (0, 0));
        assert!(found.transfer().is_some() || found.latency().is_some());
    }
    assert!(journal.end.is_some());
    assert_eq!(journal.warnings, [Warning::NoChecksums { format: 1 }]);
}

#[test]
fn a_run_of_version_1_is_resumed_in_version_1() {
    // Without its last record, the end: an interrupted run.
    let end = FORMAT_1.trim_end().rfind('\n').unwrap() + 1;
    let dir = folder(&FORMAT_1[..end]);
    let (mut writer, journal) = Writer::append_to(dir.path()).unwrap();
    let again = Record::Trial(Box::new(journal.trials[0].clone()));
    writer.append(&again).unwrap();
    drop(writer);

    let text = fs::read_to_string(dir.path().join(FILE_NAME)).unwrap();
    assert!(
        text.starts_with(&FORMAT_1[..end]),
        "finished lines were changed"
    );
    // No key that a reader of version 1 would miss, and none that it does not know.
    assert!(!text[end..].contains("\"sum\""));
    assert!(!text[end..].contains("\"frames\":{"));
    let journal = read(Path::new(dir.path())).unwrap();
    assert_eq!((journal.header.format, journal.trials.len()), (1, 5));
}

#[test]
fn the_version_that_is_written_is_the_newest() {
    assert_eq!(FORMAT_VERSION, 8);
    let dir = tempfile::tempdir().unwrap();
    drop(Writer::create(dir.path(), &crate::fixture::header()).unwrap());
    assert_eq!(read(dir.path()).unwrap().header.format, 8);
}

#[test]
fn a_trial_with_figures_of_two_kinds_is_refused() {
    let latency = Figures::Latency(Latency::default());
    let measured = Measured {
        figures: latency,
        ..Measured::default()
    };
    let mut record = serde_json::to_value(&measured).unwrap();
    record["transfer"] = serde_json::to_value(Transfer::default()).unwrap();
    let error = serde_json::from_value::<Measured>(record).unwrap_err();
    assert!(
        error.to_string().contains("at most one of `transfer`"),
        "{error}"
    );
}
