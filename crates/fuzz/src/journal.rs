//! Journals of runs: any bytes, and whole journals that were damaged.

use arbitrary::{Result, Unstructured};
use journal::record::{FORMAT_CHECKED, FORMAT_VERSION, Header};
use journal::{FILE_NAME, Journal, Record, Warning};
use std::path::Path;
use std::sync::LazyLock;

/// A run with records of every kind.
const SEED: &[u8] = include_bytes!("../../../fuzz/seeds/journal/every-record.jsonl");
/// Its header and records.
static RUN: LazyLock<(Header, Vec<Record>)> = LazyLock::new(|| {
    let run = read(SEED).expect("the seed is a journal");
    (run.header.clone(), records(run))
});
const RECORDS_MAX: usize = 4;
const DAMAGES_MAX: usize = 3;
const INSERTED_MAX: usize = 8;

/// Any bytes are a journal or an error; a damaged journal is read up to the damage at most.
pub(crate) fn body(data: &[u8]) {
    if data.starts_with(b"{") {
        if let Some(journal) = read(data) {
            check_round_trip(journal);
        }
    } else {
        // Too few bytes for a description.
        let _ = damaged(&mut Unstructured::new(data));
    }
}

/// Reads a journal; `None` if it is refused, with the file's name and advice.
fn read(bytes: &[u8]) -> Option<Journal> {
    match journal::from_bytes(Path::new(FILE_NAME), bytes) {
        Ok(journal) => Some(journal),
        Err(error) => {
            let shown = error.to_string();
            assert!(
                shown.contains(FILE_NAME) && shown.contains("\nhelp: "),
                "{shown}"
            );
            None
        }
    }
}

/// The records of a journal, ordered so that none replaces another.
fn records(journal: Journal) -> Vec<Record> {
    let resumed = journal.resumed.into_iter();
    let mut records: Vec<_> = resumed
        .map(|record| Record::Resumed(record.into()))
        .collect();
    // Before the trials that they allow.
    records.extend(journal.added.into_iter().map(Record::Added));
    records.extend(journal.tuned.into_iter().map(Record::Tuned));
    let trials = journal.trials.into_iter();
    records.extend(trials.map(|record| Record::Trial(record.into())));
    // A trial ends the segments before it.
    let soaked = journal.soaked.into_iter();
    records.extend(soaked.map(|record| Record::Soaked(record.into())));
    let fatigued = journal.fatigued.into_iter();
    records.extend(fatigued.map(|record| Record::Fatigued(record.into())));
    records.extend(journal.end.map(Record::End));
    records
}

/// A journal that is read and written again reads the same, except for warnings of damage.
fn check_round_trip(journal: Journal) {
    let mut expected = journal.clone();
    let stays = |warning: &Warning| matches!(warning, Warning::NoChecksums { .. });
    expected.warnings.retain(stays);
    let header = journal.header.clone();
    let bytes = journal::to_bytes(&header, &records(journal));
    assert_eq!(read(&bytes), Some(expected));
}

/// A journal of some records, damaged in a few places, compared with the original.
fn damaged(u: &mut Unstructured<'_>) -> Result<()> {
    let (header, known) = &*RUN;
    let mut header = header.clone();
    header.format = if u.ratio(1, 4)? {
        // Journals from before the checksums are read too.
        FORMAT_CHECKED - 1
    } else {
        FORMAT_VERSION
    };
    let mut records = Vec::new();
    for _ in 0..u.int_in_range(0..=RECORDS_MAX)? {
        let mut record = u.choose(known)?.clone();
        if let Record::Trial(trial) = &mut record {
            // A repeat of the plan, since the reader refuses others.
            trial.repeat = u.int_in_range(1..=header.plan.repeats)?;
        }
        records.push(record);
    }
    let whole = journal::to_bytes(&header, &records);
    let mut bytes = whole.clone();
    for _ in 0..u.int_in_range(1..=DAMAGES_MAX)? {
        damage(&mut bytes, u)?;
    }

    let found = read(&bytes);
    if let Some(found) = &found {
        check_round_trip(found.clone());
    }
    let checked = header.format >= FORMAT_CHECKED;
    let prefixes = prefixes(header, records);
    // Damages may undo each other.
    if bytes == whole {
        let mut found = found.expect("it is whole");
        assert_eq!(found.warnings.is_empty(), checked, "{:?}", found.warnings);
        found.warnings.clear();
        assert_eq!(Some(&found), prefixes.last());
        return Ok(());
    }
    let Some(mut found) = found else {
        return Ok(());
    };
    if checked {
        // With checksums damage can only end the journal early.
        let cut = |warning: &Warning| matches!(warning, Warning::UnfinishedLine { .. });
        assert!(found.warnings.iter().all(cut), "{:?}", found.warnings);
        found.warnings.clear();
        assert!(prefixes.contains(&found), "other records: {found:?}");
    } else {
        // Without them damage may go unnoticed: the warning says that.
        let unchecked = |warning: &Warning| matches!(warning, Warning::NoChecksums { .. });
        assert!(found.warnings.iter().any(unchecked), "no word of it");
    }
    Ok(())
}

/// The journals of the first records, from none to all, without a reader.
fn prefixes(header: Header, records: Vec<Record>) -> Vec<Journal> {
    let mut prefixes = vec![Journal::new(header)];
    for record in records {
        let mut next = prefixes[prefixes.len() - 1].clone();
        next.accept(record).expect("it is planned");
        prefixes.push(next);
    }
    prefixes
}

/// Changes bytes or lines in one place.
fn damage(bytes: &mut Vec<u8>, u: &mut Unstructured<'_>) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let at = u.choose_index(bytes.len())?;
    match u.int_in_range(0..=8)? {
        0 => bytes[at] ^= u.int_in_range(1..=255)?,
        1 => bytes.truncate(at),
        2 => {
            let other = u.choose_index(bytes.len())?;
            bytes.swap(at, other);
        }
        3 | 4 => {
            // Another digit leaves the line well-formed, so that only the checksum shows it.
            let digit = bytes[at..].iter().position(u8::is_ascii_digit);
            if let Some(digit) = digit {
                bytes[at + digit] = u.int_in_range(b'0'..=b'9')?;
            }
        }
        5 => {
            let count = u.int_in_range(1..=INSERTED_MAX)?;
            let inserted = u.bytes(count)?.to_vec();
            bytes.splice(at..at, inserted);
        }
        kind => {
            let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            let one = u.choose_index(lines.len())?;
            let two = u.choose_index(lines.len())?;
            match kind {
                6 => lines.swap(one, two),
                7 => lines.insert(two, lines[one]),
                _ => drop(lines.remove(one)),
            }
            *bytes = lines.concat();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_seed_has_records_of_every_kind_and_none_that_contradicts_itself() {
        assert_eq!(read(SEED).unwrap().warnings, []);
        let (header, records) = &*RUN;
        assert_eq!(journal::to_bytes(header, records), SEED);
        let kinds: BTreeSet<_> = records.iter().map(Record::name).collect();
        let every = ["end", "fatigued", "resumed", "soaked", "trial", "tuned"];
        assert_eq!(kinds, every.into());
    }
}
