//! A run's progress, from its journal: read line by line while the run writes it.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

/// A run's progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Trials that have a record.
    pub done: u64,
    /// Trials of the whole run.
    pub planned: u64,
    /// The last trial that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastTrial>,
}

/// A trial that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTrial {
    /// The id of its cell.
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// `measured`, `invalid` or `failed`.
    pub outcome: String,
}

/// The fields that are read of a line; all others are skipped.
#[derive(Deserialize)]
struct Line {
    record: String,
    plan: Option<PlanSize>,
    cell: Option<String>,
    repeat: Option<u32>,
    outcome: Option<Outcome>,
}

#[derive(Deserialize)]
struct PlanSize {
    cells: Vec<IgnoredAny>,
    repeats: u64,
}

#[derive(Deserialize)]
struct Outcome {
    kind: String,
}

/// Counts the trials of a journal.
#[derive(Debug, Default)]
pub(crate) struct Count {
    trials: BTreeSet<(String, u32)>,
    progress: Progress,
}

impl Count {
    /// Counts a line. Lines of other kinds, and of later versions, are skipped.
    pub(crate) fn add(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return;
        };
        if let ("header", Some(plan)) = (&*line.record, &line.plan) {
            self.progress.planned = plan.repeats.saturating_mul(plan.cells.len() as u64);
        }
        if line.record != "trial" {
            return;
        }
        if let (Some(cell), Some(repeat), Some(outcome)) = (line.cell, line.repeat, line.outcome) {
            // A trial that is repeated after a resume counts once.
            self.trials.insert((cell.clone(), repeat));
            self.progress.done = self.trials.len() as u64;
            // A run may add repeats.
            self.progress.planned = self.progress.planned.max(self.progress.done);
            self.progress.last = Some(LastTrial {
                cell,
                repeat,
                outcome: outcome.kind,
            });
        }
    }

    /// Returns the progress; `None` until the plan is known.
    pub(crate) fn progress(&self) -> Option<Progress> {
        (self.progress.planned > 0).then(|| self.progress.clone())
    }
}

/// Finds the path of a journal; `None` while it does not exist.
pub(crate) type Find<'a> = &'a dyn Fn() -> Option<PathBuf>;

/// The complete lines of a journal, from the first one, while it grows.
pub(crate) struct Tail<'a> {
    find: Find<'a>,
    file: Option<BufReader<File>>,
    /// The beginning of a line that is not complete yet.
    begun: Vec<u8>,
    lines: u64,
}

impl<'a> Tail<'a> {
    pub(crate) const fn new(find: Find<'a>) -> Self {
        Self {
            find,
            file: None,
            begun: Vec::new(),
            lines: 0,
        }
    }

    /// Returns the next line with its number, from 1; `None` if it is not complete yet.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        if self.file.is_none() {
            let path = (self.find)();
            // Opened once, as the journal is only appended to.
            self.file = path.map(File::open).transpose()?.map(BufReader::new);
        }
        let Some(file) = &mut self.file else {
            return Ok(None);
        };
        file.read_until(b'\n', &mut self.begun)?;
        // Incomplete: the rest is appended at the next call.
        if self.begun.pop_if(|last| *last == b'\n').is_none() {
            return Ok(None);
        }
        self.lines += 1;
        Ok(Some((self.lines, std::mem::take(&mut self.begun))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_line_is_read_once_it_has_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let find = || path.exists().then(|| path.clone());
        let mut tail = Tail::new(&find);
        assert_eq!(tail.next().unwrap(), None);
        let mut file = File::create(&path).unwrap();
        let mut write = |text: &str| file.write_all(text.as_bytes()).unwrap();
        assert_eq!(tail.next().unwrap(), None);
        write("one\ntw");
        assert_eq!(tail.next().unwrap(), Some((1, b"one".to_vec())));
        assert_eq!(tail.next().unwrap(), None);
        write("o\n\n");
        assert_eq!(tail.next().unwrap(), Some((2, b"two".to_vec())));
        assert_eq!(tail.next().unwrap(), Some((3, Vec::new())));
        assert_eq!(tail.next().unwrap(), None);
    }

    #[test]
    fn trials_are_counted_once_whatever_else_a_journal_has() {
        let mut count = Count::default();
        let mut after = |lines: &[&str]| {
            lines.iter().for_each(|line| count.add(line.as_bytes()));
            count.progress()
        };
        assert_eq!(after(&["{\"line\":1}", "no JSON", ""]), None);
        let header = r#"{"record":"header","format":7,"plan":{"name":"x","cells":[{"id":"a"},{"id":"b"}],"repeats":3}}"#;
        let begun = after(&[header]).unwrap();
        assert_eq!((begun.done, begun.planned, begun.last), (0, 6, None));
        let trial = |cell: &str, repeat: u32, kind: &str| {
            format!(
                r#"{{"record":"trial","cell":"{cell}","repeat":{repeat},"outcome":{{"kind":"{kind}","x":[1]}},"sum":"0"}}"#
            )
        };
        let found = after(&[
            &trial("a", 1, "failed"),
            &trial("b", 1, "measured"),
            r#"{"record":"tuned","cell":"b","best":{}}"#,
            &trial("a", 1, "invalid"),
        ]);
        let last = LastTrial {
            cell: "a".to_owned(),
            repeat: 1,
            outcome: "invalid".to_owned(),
        };
        let expected = Progress {
            done: 2,
            planned: 6,
            last: Some(last),
        };
        assert_eq!(found, Some(expected));
    }
}
