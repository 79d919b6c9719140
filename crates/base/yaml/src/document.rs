//! A parsed file and its collected mistakes.

use crate::source::Source;
use crate::tree::{self, Tree};
use crate::{FILE_BYTES_MAX, MISTAKES_MAX, Mistake, Mistakes, Node, Place, Reported};
use std::cell::RefCell;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A parsed file, ready for decoding.
#[derive(Debug)]
pub struct Document {
    pub(crate) source: Source,
    pub(crate) tree: Tree,
    pub(crate) sink: RefCell<Sink>,
}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    kept: Vec<Mistake>,
    not_kept: usize,
}

impl Sink {
    pub(crate) fn put(&mut self, mistake: Mistake) {
        if !self.count_if_full() {
            self.kept.push(mistake);
        }
    }

    /// Counts a mistake without storing it if the list is full; returns whether it was.
    pub(crate) fn count_if_full(&mut self) -> bool {
        let full = self.kept.len() == MISTAKES_MAX;
        self.not_kept += usize::from(full);
        full
    }

    /// Adds to the help of the mistake found last.
    pub(crate) fn amend_help(&mut self, addition: &str) {
        if let Some(last) = self.kept.last_mut().filter(|_| self.not_kept == 0) {
            last.help
                .push_str(if last.help.is_empty() { "" } else { "; " });
            last.help.push_str(addition);
        }
    }

    fn into_mistakes(self) -> Option<Mistakes> {
        Mistakes::with_more(self.kept, self.not_kept)
    }
}

/// Parses a text; messages call it `file`.
///
/// # Errors
/// When it is longer than [`FILE_BYTES_MAX`] or is not YAML; neither can be decoded. Other mistakes
/// are returned by [`Document::decode`].
pub fn parse(file: &str, text: &str) -> Result<Document, Mistakes> {
    parse_with(file, text, false)
}

/// Parses a text that holds keys or passwords: messages show neither its lines nor its values.
///
/// # Errors
/// As [`parse`].
pub fn parse_secret(file: &str, text: &str) -> Result<Document, Mistakes> {
    parse_with(file, text, true)
}

/// Reads and parses a file; messages name it by this path.
///
/// # Errors
/// When it cannot be read or is not UTF-8, and as [`parse`].
pub fn load(path: &Path) -> Result<Document, Mistakes> {
    load_with(path, false)
}

/// [`load`] for a file that holds keys or passwords; see [`parse_secret`].
///
/// # Errors
/// As [`load`].
pub fn load_secret(path: &Path) -> Result<Document, Mistakes> {
    load_with(path, true)
}

fn load_with(path: &Path, secret: bool) -> Result<Document, Mistakes> {
    let file = path.display().to_string();
    let cannot = |what: String, help: &str| Place::whole_file(&file).mistake(what, help);
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|open| open.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(cannot(format!("the file cannot be read: {error}"), "").into());
    }
    match String::from_utf8(bytes) {
        Ok(text) => parse_with(&file, &text, secret),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let what = format!("line {line} is not UTF-8 text");
            Err(cannot(what, "save the file as UTF-8").into())
        }
    }
}

fn parse_with(file: &str, text: &str, secret: bool) -> Result<Document, Mistakes> {
    if text.len() > FILE_BYTES_MAX {
        let what = format!(
            "the file is longer than {}",
            units::Bytes::new(FILE_BYTES_MAX as u64)
        );
        return Err(Place::whole_file(file)
            .mistake(what, "is it the right file?")
            .into());
    }
    let source = Source::new(file, text, secret)?;
    let mut sink = Sink::default();
    let tree = tree::build(
        &source,
        text.strip_prefix('\u{feff}').unwrap_or(text),
        &mut sink,
    );
    match tree {
        Some(tree) => Ok(Document {
            source,
            tree,
            sink: RefCell::new(sink),
        }),
        None => Err(sink.into_mistakes().unwrap_or_else(|| not_understood(file))),
    }
}

impl Document {
    /// The file's name in messages.
    pub fn file(&self) -> &str {
        &self.source.file
    }

    /// Whether the file is a map with this key; distinguishes kinds of files before decoding.
    pub fn has_key(&self, key: &str) -> bool {
        self.tree.has_key(key)
    }

    /// Decodes the file. The closure may continue after a mistake to find more; its value is
    /// returned only when there are no mistakes.
    ///
    /// # Errors
    /// All mistakes found by it and by the parser, in file order.
    pub fn decode<'d, T>(
        &'d self,
        read: impl FnOnce(Node<'d>) -> Result<T, Reported>,
    ) -> Result<T, Mistakes> {
        let value = read(Node::root(self));
        let sink = self.sink.take();
        match (sink.into_mistakes(), value) {
            (Some(mistakes), _) => Err(mistakes),
            (None, Ok(value)) => Ok(value),
            // A `Reported` exists only together with a mistake, so this one came from another
            // document.
            (None, Err(Reported(()))) => Err(not_understood(&self.source.file)),
        }
    }
}

fn not_understood(file: &str) -> Mistakes {
    Place::whole_file(file)
        .mistake("the file is not understood", "")
        .into()
}
