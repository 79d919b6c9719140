//! Damaged journals: no document shows another number without a word, and nothing panics.
//!
//! Journals of made-up runs of every kind are damaged in some thousand places, each by a fixed
//! seed.

use crate::fixture;
use journal::record::{Header, Outcome};
use journal::{FILE_NAME, Journal, JournalError, Record, Warning, Writer, read};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;

/// Damages to each journal with checksums.
const DAMAGES: u64 = 300;
/// Damages to each journal without.
const DAMAGES_OLD: u64 = 40;

/// Runs with every kind of record and figure.
fn runs() -> [(&'static str, Journal); 6] {
    [
        ("quick", fixture::quick()),
        ("troubled", fixture::troubled()),
        ("cards", fixture::cards()),
        ("scaling", fixture::scaling()),
        ("frames", fewer(fixture::frame_tests())),
        ("soak", fixture::soak()),
    ]
}

/// Every fourth cell of a run, and the first repeat.
fn fewer(mut run: Journal) -> Journal {
    run.trials.retain(|trial| trial.repeat == 1);
    run.trials = run.trials.into_iter().step_by(4).collect();
    run.header.plan.repeats = 1;
    let is_left = |id: &String| run.trials.iter().any(|trial| trial.cell == *id);
    run.header.plan.cells.retain(|cell| is_left(&cell.id));
    run
}

/// Writes a run as the program does, in this version of the format.
fn write(dir: &Path, run: &Journal, format: u32) -> Vec<u8> {
    let header = Header {
        format,
        ..run.header.clone()
    };
    let mut writer = Writer::create(dir, &header).unwrap();
    for trial in &run.trials {
        let record = Record::Trial(Box::new(trial.clone()));
        writer.append(&record).unwrap();
    }
    writer
        .append(&Record::End(run.end.clone().unwrap()))
        .unwrap();
    fs::read(dir.join(FILE_NAME)).unwrap()
}

/// SplitMix64 (Steele, Lea, Flood 2014), deterministic.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % limit as u64) as usize
    }
}

/// What is done to a journal.
#[derive(Debug, Clone, Copy)]
enum Damage {
    FlippedBit,
    Byte,
    CutOut,
    CutOff,
    SwappedBytes,
    SwappedLines,
    RemovedLine,
    DuplicatedLine,
    Digit,
    Number,
}

const ALL: [Damage; 10] = [
    Damage::FlippedBit,
    Damage::Byte,
    Damage::CutOut,
    Damage::CutOff,
    Damage::SwappedBytes,
    Damage::SwappedLines,
    Damage::RemovedLine,
    Damage::DuplicatedLine,
    Damage::Digit,
    Damage::Number,
];

impl Damage {
    fn of(self, good: &[u8], random: &mut Random) -> Vec<u8> {
        let mut bytes = good.to_vec();
        let at = random.below(bytes.len());
        match self {
            Self::FlippedBit => bytes[at] ^= 1 << random.below(8),
            Self::Byte => bytes[at] = random.below(256) as u8,
            Self::CutOut => drop(bytes.drain(at..bytes.len().min(at + 1 + random.below(40)))),
            Self::CutOff => bytes.truncate(at),
            Self::SwappedBytes => {
                let other = random.below(bytes.len());
                bytes.swap(at, other);
            }
            Self::SwappedLines => {
                return lines(good, |lines| {
                    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
                    lines.swap(a, b);
                });
            }
            Self::RemovedLine => {
                return lines(good, |lines| {
                    lines.remove(random.below(lines.len()));
                });
            }
            Self::DuplicatedLine => {
                return lines(good, |lines| {
                    let line = lines[random.below(lines.len())];
                    lines.insert(random.below(lines.len()), line);
                });
            }
            Self::Digit => {
                let at = next_digit(&bytes, at);
                bytes[at] = b'0' + (bytes[at] - b'0' + 1 + random.below(9) as u8) % 10;
            }
            Self::Number => {
                let begin = next_digit(&bytes, at);
                let digits = bytes[begin..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit());
                let end = begin + digits.count();
                let extreme = [
                    "0",
                    "1",
                    "4294967295",
                    "9999999999999999",
                    "18446744073709551615",
                ];
                let extreme = extreme[random.below(extreme.len())];
                bytes.splice(begin..end, extreme.bytes());
            }
        }
        bytes
    }
}

/// The place of the next digit, from the beginning again if there is none.
fn next_digit(bytes: &[u8], at: usize) -> usize {
    let find = |from: usize| bytes[from..].iter().position(u8::is_ascii_digit);
    let next = find(at).map(|next| at + next);
    next.or_else(|| find(0)).unwrap()
}

fn lines(good: &[u8], change: impl FnOnce(&mut Vec<&[u8]>)) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = good.split_inclusive(|byte| *byte == b'\n').collect();
    change(&mut lines);
    lines.concat()
}

/// Every document of a run, in one text.
fn documents(run: &Journal) -> [String; 4] {
    let documents = report::build(run);
    let _ = &documents.csv; // It has no place for warnings.
    [
        documents.html,
        documents.markdown,
        documents.json,
        crate::terminal(run, None, 100, false),
    ]
}

/// What must be in each document of a run of which something is missing.
fn word(run: &Journal) -> Option<String> {
    let torn = run.warnings.iter().find_map(|warning| match warning {
        Warning::UnfinishedLine { line, .. } => {
            Some(format!("ine {line} of the journal is unfinished"))
        }
        _ => None,
    });
    torn.or_else(|| run.end.is_none().then(|| "did not come to its end".into()))
}

/// Asserts that an error says where, what, and what to do.
fn assert_clear(error: &JournalError, dir: &Path) {
    let text = error.to_string();
    let path = dir.join(FILE_NAME).display().to_string();
    assert!(
        text.starts_with(&path) && text.contains("\nhelp: "),
        "{text}"
    );
    let has_line = matches!(error, JournalError::Line { line, .. } if *line > 0);
    let other = matches!(
        error,
        JournalError::Version { .. } | JournalError::NoHeader { .. }
    );
    assert!(has_line || other, "{text}");
}

/// Asserts that resuming reads the same as reading, and changes nothing but a torn line.
fn assert_resumed_alike(dir: &Path, found: &Result<Journal, JournalError>, bytes: &[u8]) {
    match (Writer::append_to(dir), found) {
        (Ok((_, resumed)), Ok(read)) => assert!(resumed == *read),
        (Err(resumed), Err(read)) => assert_eq!(resumed.to_string(), read.to_string()),
        (resumed, read) => panic!("{} {}", resumed.is_ok(), read.is_ok()),
    }
    let left = fs::read(dir.join(FILE_NAME)).unwrap();
    assert!(bytes.starts_with(&left));
    assert!(left.len() == bytes.len() || bytes[left.len()..].iter().all(|byte| *byte != b'\n'));
}

/// Damages a journal with checksums; returns how many were refused, and how many were read as a
/// shorter run.
fn refused_and_shorter(name: &str, run: &Journal) -> (usize, usize) {
    let (mut refused, mut shorter) = (0, 0);
    let dir = tempfile::tempdir().unwrap();
    let good = write(dir.path(), run, journal::record::FORMAT_VERSION);
    let whole = read(dir.path()).unwrap();
    let trouble: Vec<String> = whole.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(trouble, Vec::<String>::new(), "{name}");
    assert!(
        whole.trials == run.trials,
        "{name}: a made-up run that cannot be"
    );
    let mut random = Random(1);
    for number in 0..DAMAGES {
        let damage = ALL[number as usize % ALL.len()];
        let bytes = damage.of(&good, &mut random);
        if bytes == good {
            continue;
        }
        fs::write(dir.path().join(FILE_NAME), &bytes).unwrap();
        let found = read(dir.path());
        match &found {
            Err(error) => {
                assert_clear(error, dir.path());
                refused += 1;
            }
            Ok(found) => {
                // What is read is a beginning of the run, and every document says so.
                assert!(
                    whole.trials.starts_with(&found.trials),
                    "{name}: {damage:?}"
                );
                assert_eq!(found.header, whole.header, "{name}: {damage:?}");
                let word = word(found);
                let word = word.unwrap_or_else(|| panic!("{name} {number}: {damage:?}"));
                for document in documents(found) {
                    let text = document.split_whitespace().collect::<Vec<_>>().join(" ");
                    assert!(text.contains(&word), "{name}: {damage:?}: no `{word}`");
                }
                shorter += 1;
            }
        }
        assert_resumed_alike(dir.path(), &found, &bytes);
    }
    (refused, shorter)
}

#[test]
fn no_damage_to_a_journal_changes_a_number_without_a_word() {
    let runs = runs();
    // At once: it is half of the time of these tests on one core.
    let counts = thread::scope(|scope| {
        let damaged = runs
            .each_ref()
            .map(|(name, run)| scope.spawn(|| refused_and_shorter(name, run)));
        damaged.map(|damaged| damaged.join().unwrap())
    });
    let refused: usize = counts.iter().map(|(refused, _)| refused).sum();
    let shorter: usize = counts.iter().map(|(_, shorter)| shorter).sum();
    assert!(
        refused + shorter > 1_500,
        "{refused} refused, {shorter} shorter"
    );
    assert!(
        refused > 1_300 && shorter > 50,
        "{refused} refused, {shorter} shorter"
    );
}

#[test]
fn no_damage_to_an_older_journal_panics_and_every_document_says_that_it_has_no_checksums() {
    let mut evaluated = 0;
    for (name, run) in runs() {
        let dir = tempfile::tempdir().unwrap();
        let good = write(dir.path(), &run, 5);
        let mut random = Random(2);
        for number in 0..DAMAGES_OLD {
            let damage = ALL[number as usize % ALL.len()];
            let bytes = damage.of(&good, &mut random);
            fs::write(dir.path().join(FILE_NAME), &bytes).unwrap();
            let found = read(dir.path());
            assert_resumed_alike(dir.path(), &found, &bytes);
            match found {
                Err(error) => assert_clear(&error, dir.path()),
                Ok(found) => {
                    evaluated += 1;
                    for document in documents(&found) {
                        let says = document.contains("checksums");
                        assert!(says, "{name}: {damage:?}");
                    }
                }
            }
        }
    }
    assert!(evaluated > 100, "{evaluated}");
}

/// Changes a text of an older journal, and returns the reasons of the invalid trial in it.
fn reasons(run: &Journal, old: &str, new: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let good = String::from_utf8(write(dir.path(), run, 5)).unwrap();
    assert_ne!(old, new);
    let bad = good.replacen(old, new, 1);
    assert_ne!(bad, good, "there is no {old}");
    fs::write(dir.path().join(FILE_NAME), bad).unwrap();
    let found = read(dir.path()).unwrap();
    let mut reasons = String::new();
    for (found, good) in found.trials.iter().zip(&run.trials) {
        match &found.outcome {
            Outcome::Invalid { reasons: why, .. } if found != good => {
                write!(reasons, "{}", why.join("; ")).unwrap();
            }
            _ => assert!(found == good, "{}", found.cell),
        }
    }
    // The cell has no figure in any document, but its reason.
    for document in documents(&found) {
        assert!(document.contains("record-is-possible"));
    }
    reasons
}

#[test]
fn a_changed_digit_in_an_older_journal_that_makes_an_impossible_record_leaves_no_figure() {
    let run = fixture::quick();
    let Outcome::Measured(first) = &run.trials[0].outcome else {
        panic!("not measured");
    };
    let received = first.transfer().unwrap().received_bytes.to_string();
    let digit = received.as_bytes()[0] - b'0';
    let more = format!("{}{}", digit % 9 + 1, &received[1..]);
    let key = |value: &str| format!("\"received_bytes\":{value}");
    let found = reasons(&run, &key(&received), &key(&more));
    assert!(found.contains(&format!(
        "{more} B received, but {received} B in the intervals"
    )));

    let run = fixture::frame_tests();
    let trials = run.trials.iter().filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) => measured.frames()?.throughput.as_ref(),
        _ => None,
    });
    let mut goals = trials.flat_map(|found| &found.goals);
    let goal = goals
        .find(|goal| goal.lower.is_some() && goal.upper.is_some())
        .unwrap();
    let (lower, upper) = (goal.lower.unwrap(), goal.upper.unwrap());
    let bounds = |lower, upper| format!("\"lower\":{lower},\"upper\":{upper}");
    let found = reasons(&run, &bounds(lower, upper), &bounds(upper, lower));
    assert!(
        found.contains(&format!("lower bound {upper} and the upper bound {lower}")),
        "{found}"
    );
}
