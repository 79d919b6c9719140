//! A parsed file and its collected mistakes.

use crate::sink::Sink;
use crate::source::Source;
use crate::tree::{self, Tree};
use crate::{FILE_BYTES_MAX, Mistakes, Place};
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
    parse(
        &path.display().to_string(),
        &load_text(path, FILE_BYTES_MAX)?,
    )
}

/// Reads a file of any format, and no more of it than one byte above a limit.
///
/// # Errors
/// When it cannot be read or is not UTF-8.
pub fn load_text(path: &Path, bytes_max: usize) -> Result<String, Mistakes> {
    let file = path.display().to_string();
    let cannot = |what: String, help: &str| Place::whole_file(&file).mistake(what, help);
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|open| open.take(bytes_max as u64 + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(cannot(format!("the file cannot be read: {error}"), "").into());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        let what = format!("line {line} is not UTF-8 text");
        cannot(what, "save the file as UTF-8").into()
    })
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
}

pub(crate) fn not_understood(file: &str) -> Mistakes {
    Place::whole_file(file)
        .mistake("the file is not understood", "")
        .into()
}
