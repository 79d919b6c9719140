//! A file's text and the places in it.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use yaml::{Mistake, Mistakes, Place, Spot};

/// A file that is read, and the mistakes found in it so far.
#[derive(Debug)]
pub(crate) struct Source {
    file: Arc<str>,
    pub(crate) text: String,
    /// The first byte of each line, and the line.
    lines: Vec<(usize, Arc<str>)>,
    mistakes: RefCell<Vec<Mistake>>,
    /// Whether the keys of the table that is read are no TOML.
    without_keys: Cell<bool>,
    /// Whether the keys of any table were no TOML.
    is_broken: Cell<bool>,
}

impl Source {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        let mut start = 0;
        let lines = text.split_inclusive('\n').map(|line| {
            let from = start;
            start += line.len();
            (from, line.trim_end_matches(['\n', '\r']).into())
        });
        Self {
            file: file.into(),
            text: text.to_owned(),
            lines: lines.collect(),
            mistakes: RefCell::default(),
            without_keys: Cell::default(),
            is_broken: Cell::default(),
        }
    }

    /// The number of the first line that is longer, from 1.
    pub(crate) fn longer_line(&self, bytes_max: usize) -> Option<usize> {
        let at = self
            .lines
            .iter()
            .position(|(_, line)| line.len() > bytes_max)?;
        Some(at + 1)
    }

    /// The place of a range of bytes.
    pub(crate) fn place(&self, range: &Range<usize>) -> Place {
        // The number of lines that begin at or before the range, and so the line's number from 1.
        let index = self
            .lines
            .partition_point(|(start, _)| *start <= range.start);
        let Some((start, line)) = index.checked_sub(1).and_then(|at| self.lines.get(at)) else {
            return Place::whole_file(&self.file);
        };
        // Columns count characters, as SARIF's `unicodeCodePoints` and terminals do, while ranges
        // count bytes.
        let characters = |from: usize, to: usize| {
            let inside = line.char_indices().map(|(at, _)| start + at);
            inside.filter(|at| (from..to).contains(at)).count()
        };
        Place {
            file: Arc::clone(&self.file),
            spot: Some(Spot {
                line: index,
                column: 1 + characters(0, range.start),
                length: characters(range.start, range.end).max(1),
                source_line: Some(Arc::clone(line)),
            }),
            path: String::new(),
        }
    }

    /// A place that is known by its path of keys alone.
    pub(crate) fn path(&self, path: String) -> Place {
        Place {
            path,
            ..Place::whole_file(&self.file)
        }
    }

    /// Reports a mistake, unless it may follow from keys that could not be read.
    pub(crate) fn mistake(&self, place: &Place, what: impl Into<String>, help: impl Into<String>) {
        if !self.without_keys.get() {
            self.cell_mistake(place, what, help);
        }
    }

    /// Reports a mistake of a row or cell, whatever the keys of its table are.
    pub(crate) fn cell_mistake(
        &self,
        place: &Place,
        what: impl Into<String>,
        help: impl Into<String>,
    ) {
        let mut mistakes = self.mistakes.borrow_mut();
        mistakes.push(place.mistake(what, help));
    }

    /// Reads a table whose keys are no TOML: only mistakes of its cells are reported.
    pub(crate) fn read_without_keys(&self, read: impl FnOnce()) {
        self.is_broken.set(true);
        self.without_keys.set(true);
        read();
        self.without_keys.set(false);
    }

    /// Whether the keys of a table could not be read: names that they state are unknown.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.get()
    }

    /// The folder of the file, for commands.
    pub(crate) fn folder(&self) -> String {
        let folder = Path::new(&*self.file).parent();
        match folder.filter(|folder| *folder != Path::new("")) {
            Some(folder) => folder.display().to_string(),
            None => ".".to_owned(),
        }
    }

    /// The value, unless there were mistakes.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Mistakes> {
        match Mistakes::new(self.mistakes.into_inner()) {
            Some(mistakes) => Err(mistakes),
            None => Ok(value),
        }
    }
}
