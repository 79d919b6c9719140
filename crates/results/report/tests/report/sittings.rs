//! Repeats that `resume --invalid` made hours later are not ranked beside the others without a
//! word.

use crate::fixture;
use journal::Journal;
use journal::record::Resumed;

const HOUR_NS: u64 = 3_600_000_000_000;
const FOOTNOTE: &str = "†: with repeats that were measured after a resume";

/// A run whose third repeat of every TCP cell of a device was measured again three hours later.
fn made_again(device: &str) -> Journal {
    let mut journal = fixture::peers(5);
    let again: Vec<_> = journal
        .trials
        .iter()
        .filter(|trial| trial.repeat == 3 && trial.cell.starts_with("tcp/"))
        .filter(|trial| trial.cell.ends_with(&format!("/{device}")))
        .cloned()
        .collect();
    assert!(!again.is_empty());
    let end = journal.end.clone().unwrap();
    journal.resumed.push(Resumed {
        at_unix_ns: end.at_unix_ns + HOUR_NS,
        program: journal.header.program.clone(),
        environment: journal.header.environment.clone(),
    });
    for mut trial in again {
        trial.started_unix_ns += 3 * HOUR_NS;
        journal.trials.push(trial);
    }
    journal
}

#[test]
fn every_document_marks_late_repeats_and_its_rankings_say_how_far_apart_they_are() {
    let journal = made_again("boringtun");
    let documents = report::build(&journal);
    let full = crate::terminal(&journal, None, 120, false);
    for (name, text) in [
        ("terminal", &full),
        ("Markdown", &documents.markdown),
        ("HTML", &documents.html),
    ] {
        assert!(text.contains("boringtun †"), "{name}");
        assert!(text.contains(FOOTNOTE), "{name}");
        assert!(text.contains("repeats up to 3 h apart"), "{name}");
        assert!(!text.contains("openvpn †"), "{name}");
    }
    let brief = crate::brief(&journal, None, 120, false);
    let doubt = "- In 1 cell 1 repeat was measured after a resume, 3 h later than the same repeats of the baseline";
    let figure = "1.13 Gbit/s (2–3) †";
    for words in [figure, FOOTNOTE, "repeats up to 3 h apart", doubt] {
        assert!(brief.contains(words), "{words} is not in:\n{brief}");
    }
    assert!(brief.lines().count() <= 80, "{brief}");
    // The sentence about the device itself.
    let sentence = brief.lines().find(|line| line.starts_with("boringtun: "));
    let sentence = sentence.unwrap();
    assert!(
        sentence.contains("× direct, repeats up to 3 h apart"),
        "{sentence}"
    );
}

#[test]
fn a_run_in_one_sitting_has_no_mark() {
    let journal = fixture::peers(5);
    let documents = report::build(&journal);
    for text in [
        crate::terminal(&journal, None, 120, false),
        crate::brief(&journal, None, 120, false),
        documents.markdown,
        documents.html,
    ] {
        assert!(!text.contains('†'));
    }
}
