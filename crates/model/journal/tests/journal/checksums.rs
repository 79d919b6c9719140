//! A line that was changed, moved, duplicated or removed is never read as if it were whole.

use crate::fixture::{failed, header, measured};
use journal::record::{End, FORMAT_CHECKED, Header};
use journal::{FILE_NAME, Journal, Record, Warning, Writer, read};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// A complete run, and its lines.
fn run() -> (tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &header()).unwrap();
    let end = Record::End(End { at_unix_ns: 3 });
    for record in [measured(0, 1), failed(1, 1, "died"), measured(1, 1), end] {
        writer.append(&record).unwrap();
    }
    let lines = lines(dir.path());
    (dir, lines)
}

fn lines(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join(FILE_NAME)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Replaces the journal, and returns the error that reading and resuming report alike.
#[track_caller]
fn damaged(dir: &Path, lines: &[String]) -> String {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(dir.join(FILE_NAME), &text).unwrap();
    let error = read(dir).unwrap_err().to_string();
    assert_eq!(error, Writer::append_to(dir).unwrap_err().to_string());
    // A failed resume must not cut or repair anything: the evidence of the damage would be gone.
    let kept = fs::read_to_string(dir.join(FILE_NAME)).unwrap();
    assert_eq!(kept, text, "a damaged journal is left as it is");
    error
}

/// The checksum as `docs/journal.md` defines it.
fn sum(previous: &str, body: &str) -> String {
    let hash = Sha256::digest(format!("{previous}{body}"));
    base16ct::lower::encode_string(&hash[..16])
}

#[test]
fn each_line_ends_in_a_checksum_of_itself_and_the_line_before() {
    let (_dir, lines) = run();
    let mut previous = String::new();
    for line in &lines {
        let (body, rest) = line.split_once(",\"sum\":\"").unwrap();
        assert_eq!(rest, format!("{}\"}}", sum(&previous, body)));
        previous = rest[..32].to_owned();
        // It is a key like any other for programs that do not check it.
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(value["sum"], *previous);
    }
}

#[test]
fn a_resumed_run_continues_the_chain() {
    let (dir, before) = run();
    // Killed within the fourth line, which the resumed run writes again.
    let text = before[..3].join("\n") + "\n{\"record\":\"tri";
    fs::write(dir.path().join(FILE_NAME), text).unwrap();
    let (mut writer, journal) = Writer::append_to(dir.path()).unwrap();
    assert_eq!(
        journal.warnings,
        [Warning::UnfinishedLine { line: 4, bytes: 14 }]
    );
    writer.append(&measured(1, 1)).unwrap();
    drop(writer);
    assert_eq!(lines(dir.path()), before[..4]);
    assert_eq!(read(dir.path()).unwrap().warnings, []);
}

#[test]
fn every_changed_digit_is_an_error_with_its_line() {
    let (dir, good) = run();
    let mut changed = 0;
    for (index, line) in good.iter().enumerate() {
        // Digits, since a changed one leaves valid JSON with another figure: only the checksum
        // shows it.
        for (at, digit) in line.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
            let other = if digit == '9' { "1" } else { "9" };
            let mut bad = good.clone();
            bad[index].replace_range(at..=at, other);
            let error = damaged(dir.path(), &bad);
            let place = format!("{}:{}: ", dir.path().join(FILE_NAME).display(), index + 1);
            // The digit of the version is read before the checksum.
            let version = error.contains("has journal format 9");
            assert!(
                error.starts_with(&place) || version,
                "{line} at {at}: {error}"
            );
            assert!(error.contains("help: "), "{error}");
            changed += 1;
        }
    }
    assert!(changed > 300, "{changed}");
}

#[test]
fn what_happened_to_the_lines_is_said() {
    let (dir, good) = run();
    let changed = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = good.clone();
        change(&mut lines);
        damaged(dir.path(), &lines)
    };
    for (error, line, problem) in [
        (
            changed(&|lines| lines.swap(2, 3)),
            3,
            "the line belongs after line 4",
        ),
        (
            changed(&|lines| lines.insert(2, good[1].clone())),
            3,
            "the line belongs after line 1",
        ),
        (
            changed(&|lines| drop(lines.remove(2))),
            3,
            "changed or removed",
        ),
        (
            // Behind the checksum, so that no byte it covers has changed.
            changed(&|lines| lines[2].push(' ')),
            3,
            "does not end in its checksum",
        ),
        (
            changed(&|lines| lines[2] = lines[2].replace("died", "dyed")),
            3,
            "does not fit",
        ),
        (
            changed(&|lines| lines[0] = lines[0].replace("quick look", "slow look")),
            1,
            "does not fit",
        ),
        (
            changed(&|lines| drop(lines.remove(0))),
            1,
            "the first record is a `trial`",
        ),
        (
            // A second header fits its checksum, but no line can precede it.
            changed(&|lines| lines.insert(1, good[0].clone())),
            2,
            "the line belongs first",
        ),
    ] {
        let place = format!("{}:{line}: ", dir.path().join(FILE_NAME).display());
        assert!(
            error.starts_with(&place) && error.contains(problem),
            "{problem}: {error}"
        );
        // For line 2 the hint is in the singular, and line 1 has none.
        let keep = format!("keep the {} lines before it (head -n {0})", line - 1);
        assert_eq!(line > 2, error.contains(&keep), "{error}");
    }
}

#[test]
fn a_changed_version_does_not_switch_checksums_off() {
    let (dir, mut lines) = run();
    lines[0] = lines[0].replace("\"format\":8", "\"format\":5");
    let error = damaged(dir.path(), &lines);
    assert!(
        error.contains("the header's `format` was changed"),
        "{error}"
    );
    // A line of an older journal has none, whatever its header says now.
    let plain = Record::Header(Box::new(header()));
    let lines = [serde_json::to_string(&plain).unwrap()];
    assert!(damaged(dir.path(), &lines).contains("does not end in its checksum"));
}

#[test]
fn an_older_journal_is_read_with_a_warning_and_continued_without_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let older = Header {
        format: FORMAT_CHECKED - 1,
        ..header()
    };
    let mut writer = Writer::create(dir.path(), &older).unwrap();
    writer.append(&measured(0, 1)).unwrap();
    drop(writer);
    let (mut writer, _) = Writer::append_to(dir.path()).unwrap();
    writer.append(&measured(0, 2)).unwrap();
    assert!(
        lines(dir.path())
            .iter()
            .all(|line| !line.contains("\"sum\""))
    );
    let journal: Journal = read(dir.path()).unwrap();
    assert_eq!(journal.trials.len(), 2);
    assert_eq!(journal.warnings, [Warning::NoChecksums { format: 5 }]);
    assert!(journal.warnings[0].to_string().contains("no checksums"));
}

#[test]
fn the_lines_before_a_damaged_one_are_a_run_that_can_be_resumed() {
    let (dir, mut lines) = run();
    lines[2] = lines[2].replace("died", "dyed");
    damaged(dir.path(), &lines);
    fs::write(dir.path().join(FILE_NAME), lines[..2].join("\n") + "\n").unwrap();
    let (_, journal) = Writer::append_to(dir.path()).unwrap();
    assert_eq!((journal.trials.len(), journal.end), (1, None));
}
