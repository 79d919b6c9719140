//! Reading returns what was written, wherever the file is cut.

use crate::any::{records, text};
use crate::fixture::{failed, header, measured};
use journal::record::{Check, Explanation, Measured, Outcome};
use journal::{FILE_NAME, Journal, JournalError, Record, Warning, Writer, read};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Writes a journal as a run does.
fn write(dir: &Path, header: &journal::record::Header, records: &[Record]) {
    let mut writer = Writer::create(dir, header).unwrap();
    for record in records {
        writer.append(record).unwrap();
    }
}

/// Asserts that a journal of any records was read as expected. Records of any numbers contradict
/// themselves: trials keep their figures as invalid ones, others are not used.
fn assert_read(mut found: Journal, expected: &Journal) {
    for trial in &mut found.trials {
        if let Outcome::Invalid { reasons, measured } = &mut trial.outcome
            && reasons
                .first()
                .is_some_and(|reason| reason.starts_with("record-is-possible: "))
        {
            trial.outcome = Outcome::Measured(std::mem::take(measured));
        }
    }
    assert_eq!(found.trials, expected.trials);
    assert_eq!(
        (&found.header, &found.resumed, &found.end),
        (&expected.header, &expected.resumed, &expected.end)
    );
    let is_contradiction = |warning: &Warning| matches!(warning, Warning::Contradiction { .. });
    // Records that contradict themselves are left out, so the lists differ then.
    if !found.warnings.iter().any(is_contradiction) {
        let rest = (&expected.tuned, &expected.soaked, &expected.fatigued);
        assert_eq!((&found.tuned, &found.soaked, &found.fatigued), rest);
    }
}

/// What a reader must see of these records.
fn expected(header: journal::record::Header, records: &[Record]) -> Journal {
    let mut journal = Journal::new(header);
    for record in records {
        journal.accept(record.clone()).unwrap();
    }
    journal
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_read_is_what_was_written(records in records(), word in text()) {
        let dir = tempfile::tempdir().unwrap();
        let mut header = header();
        header.command.push(word.clone());
        header.plan.cells[1].dut.name = word;
        write(dir.path(), &header, &records);

        let bytes = fs::read(dir.path().join(FILE_NAME)).unwrap();
        // Line feeds in texts must be escaped, or a record would be two lines.
        prop_assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count(), records.len() + 1);
        assert_read(read(dir.path()).unwrap(), &expected(header, &records));
        for record in &records {
            let line = serde_json::to_string(record).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Record>(&line).unwrap(), record);
        }
    }

    #[test]
    fn a_resumed_journal_reads_as_if_it_had_been_written_at_once(
        before in records(), after in records(), torn in 1..40_usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &header(), &before);
        // The next line was begun when the run was killed.
        let path = dir.path().join(FILE_NAME);
        let mut bytes = fs::read(&path).unwrap();
        // Cut at any place, which may look like whole JSON but has no line feed.
        bytes.extend_from_slice(&br#"{"record":"trial","cell":"tcp/mtu=1500","repeat":1}"#[..torn]);
        fs::write(&path, &bytes).unwrap();

        let (mut writer, journal) = Writer::append_to(dir.path()).unwrap();
        let warning = Warning::UnfinishedLine { line: before.len() + 2, bytes: torn };
        prop_assert_eq!(journal.warnings.last(), Some(&warning));
        for record in &after {
            writer.append(record).unwrap();
        }
        drop(writer);

        let all: Vec<_> = before.into_iter().chain(after).collect();
        assert_read(read(dir.path()).unwrap(), &expected(header(), &all));
    }
}

#[test]
fn a_cut_at_any_byte_loses_no_finished_line_and_is_never_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let records = [
        measured(0, 1),
        failed(1, 1, "a reason\nof two lines, with é and \u{2028}"),
        Record::End(journal::record::End { at_unix_ns: 3 }),
    ];
    write(dir.path(), &header(), &records);
    let path = dir.path().join(FILE_NAME);
    let whole = fs::read(&path).unwrap();
    // Each length is tried, also inside of a character of several bytes.
    let header_bytes = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;

    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        if cut < header_bytes {
            // Nothing was finished, so there is nothing to lose: one clear error.
            assert!(
                matches!(read(dir.path()), Err(JournalError::NoHeader { .. })),
                "cut at {cut}"
            );
            continue;
        }
        let finished = whole[..cut].iter().filter(|&&byte| byte == b'\n').count() - 1;
        let mut wanted = expected(header(), &records[..finished]);
        if whole[cut - 1] != b'\n' {
            let start = whole[..cut]
                .iter()
                .rposition(|&byte| byte == b'\n')
                .unwrap()
                + 1;
            wanted.warnings.push(Warning::UnfinishedLine {
                line: finished + 2,
                bytes: cut - start,
            });
        }
        assert_eq!(read(dir.path()).unwrap(), wanted, "cut at {cut}");

        let (writer, taken_up) = Writer::append_to(dir.path()).unwrap();
        // The lock must end before the next cut is taken up.
        drop(writer);
        assert_eq!(taken_up, wanted, "taken up after a cut at {cut}");
        // The partial line is cut off, so a later reader has nothing to warn about.
        wanted.warnings.clear();
        assert_eq!(
            read(dir.path()).unwrap(),
            wanted,
            "repaired after a cut at {cut}"
        );
    }
}

#[test]
fn the_last_record_of_a_trial_counts_and_failed_ones_are_not_finished() {
    let records = [
        failed(0, 1, "the DUT died"),
        failed(1, 1, "the DUT died"),
        measured(0, 2),
        measured(1, 1),
        failed(0, 1, "again"),
    ];
    let journal = expected(header(), &records);
    let (first, second) = (crate::fixture::cell_id(0), crate::fixture::cell_id(1));

    // Two of the five records replace earlier ones of their trials.
    assert_eq!(journal.latest_trials().len(), 3);
    let latest = journal.latest_trials()[&(first.as_str(), 1)];
    assert!(matches!(&latest.outcome, Outcome::Failed { reason } if reason == "again"));
    assert_eq!(journal.finished_trials(), [(first, 2), (second, 1)].into());
}

#[test]
fn a_trial_is_invalid_by_its_last_record_and_finished() {
    let invalid = |cell, repeat| {
        crate::fixture::trial(
            cell,
            repeat,
            Outcome::Invalid {
                reasons: vec!["offered-as-intended: no".into()],
                measured: Box::default(),
            },
        )
    };
    let records = [
        invalid(0, 1),
        invalid(0, 2),
        measured(0, 1),
        measured(1, 1),
        invalid(1, 1),
        failed(1, 2, "the DUT died"),
    ];
    let journal = expected(header(), &records);
    let (first, second) = (crate::fixture::cell_id(0), crate::fixture::cell_id(1));
    let invalid = [(first.clone(), 2), (second, 1)].into();
    assert_eq!(journal.invalid_trials(), invalid);
    assert_eq!(journal.finished_trials(), &invalid | &[(first, 1)].into());
}

#[test]
fn a_reason_in_brief_is_the_name_of_its_check() {
    let of = journal::record::in_brief;
    assert_eq!(of("no-clear-text: 212 of 1000: too many"), "no-clear-text");
    for whole in [
        "gw1: ended before its time",
        "died-out",
        "It failed-over: 2",
    ] {
        assert_eq!(of(whole), whole);
    }
}

#[test]
fn a_failed_check_explains_its_reason_and_an_older_one_does_not() {
    let invalid = |check: Value| {
        let check: Check = serde_json::from_value(check).unwrap();
        let mut measured = Box::<Measured>::default();
        measured.evidence.checks.push(check);
        Outcome::Invalid {
            reasons: vec!["no-clear-text: 7 of 300 frames".into()],
            measured,
        }
    };
    let older = json!({"name": "no-clear-text", "passed": false, "detail": "7 of 300 frames"});
    let explanation =
        Explanation::new("7 frames were readable", "it fails to encrypt", "report it");
    let mut newer = older.clone();
    newer["explanation"] = serde_json::to_value(&explanation).unwrap();
    let reason = "no-clear-text: 7 of 300 frames";
    assert_eq!(invalid(older.clone()).explanation(reason), None);
    assert_eq!(
        invalid(newer.clone()).explanation(reason),
        Some(&explanation)
    );
    assert_eq!(
        invalid(newer).explanation("gw1: ended before its time"),
        None
    );
    // A key that older journals lack is not written without a value.
    let read: Check = serde_json::from_value(older.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), older);
}

#[test]
fn segments_of_a_soak_are_kept_until_its_trial_has_ended() {
    let segment = |cell: usize, repeat, load| {
        Record::Soaked(Box::new(journal::record::SoakProgress {
            cell: crate::fixture::cell_id(cell),
            repeat,
            load,
            throughput: None,
            trial: journal::record::FrameTrial::default(),
            segment: journal::record::SoakSegment::default(),
        }))
    };
    let mut records = vec![segment(0, 1, 1), segment(1, 1, 2), segment(0, 1, 3)];
    let left = |records: &[Record], repeat| -> Vec<u64> {
        let journal = expected(header(), records);
        let cell = crate::fixture::cell_id(0);
        let loads = journal
            .unfinished_soak(&cell, repeat)
            .map(|soaked| soaked.load);
        loads.collect()
    };
    assert_eq!(left(&records, 1), [1, 3]);
    assert!(left(&records, 2).is_empty());
    // With any outcome: a failed trial starts again.
    records.push(failed(0, 1, "the DUT died"));
    assert!(left(&records, 1).is_empty());
    records.push(segment(0, 1, 4));
    assert_eq!(left(&records, 1), [4]);
}

#[test]
fn the_last_snapshot_of_each_start_is_kept_until_the_fatigue_trial_has_ended() {
    let snapshot = |start, started_unix_ns| {
        Record::Fatigued(Box::new(journal::record::FatigueProgress {
            cell: crate::fixture::cell_id(0),
            repeat: 1,
            devices: Vec::new(),
            segment: journal::record::FatigueSegment {
                start,
                started_unix_ns,
                devices: Vec::new(),
            },
        }))
    };
    // The second snapshot of start 1 replaces the first one.
    let mut records = vec![snapshot(1, 10), snapshot(1, 11), snapshot(2, 20)];
    let left = |records: &[Record]| -> Vec<(u32, u64)> {
        let journal = expected(header(), records);
        let cell = crate::fixture::cell_id(0);
        let segments = journal.unfinished_fatigue(&cell, 1).map(|of| &of.segment);
        segments
            .map(|segment| (segment.start, segment.started_unix_ns))
            .collect()
    };
    assert_eq!(left(&records), [(1, 11), (2, 20)]);
    records.push(measured(0, 1));
    assert!(left(&records).is_empty());
}

#[test]
fn a_run_is_at_its_end_only_while_nothing_follows_the_end() {
    let end = || Record::End(journal::record::End { at_unix_ns: 9 });
    assert!(expected(header(), &[measured(0, 1), end()]).end.is_some());
    assert!(expected(header(), &[end(), measured(0, 1)]).end.is_none());
    assert!(
        expected(header(), &[end(), measured(0, 1), end()])
            .end
            .is_some()
    );
}
