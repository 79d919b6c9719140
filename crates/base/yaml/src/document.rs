//! A parsed file and its collected mistakes.

use crate::sink::Sink;
use crate::source::Source;
use crate::tree::{self, Tree};
use crate::{FILE_BYTES_MAX, Mistake, Mistakes, Place};
use guard::{read_bytes, visible};
use std::cell::RefCell;
use std::io::ErrorKind;
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
    parse(&name_of(path), &load_text(path, FILE_BYTES_MAX)?)
}

/// The path as messages have it.
fn name_of(path: &Path) -> String {
    visible(&path.display().to_string()).into_owned()
}

/// Reads a regular file of any format, of at most `bytes_max` bytes.
///
/// # Errors
/// When it cannot be read, is longer, or is not UTF-8.
pub fn load_text(path: &Path, bytes_max: usize) -> Result<String, Mistakes> {
    let file = name_of(path);
    let cannot = |what: String, help: &str| Place::whole_file(&file).mistake(what, help);
    let bytes = match read_bytes(path, bytes_max) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return Err(too_long(&file, bytes_max).into());
        }
        Err(error) => return Err(cannot(format!("the file cannot be read: {error}"), "").into()),
    };
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        // Only the line is named: bytes that are not UTF-8 cannot be shown.
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        let what = format!("line {line} is not UTF-8 text");
        cannot(what, "save the file as UTF-8").into()
    })
}

fn too_long(file: &str, bytes_max: usize) -> Mistake {
    let most = units::Bytes::new(bytes_max as u64);
    let what = format!("the file is longer than {most}");
    Place::whole_file(file).mistake(what, "is it the right file?")
}

fn parse_with(file: &str, text: &str, secret: bool) -> Result<Document, Mistakes> {
    // Before the parser sees it, which has no limit.
    if text.len() > FILE_BYTES_MAX {
        return Err(too_long(file, FILE_BYTES_MAX).into());
    }
    let source = Source::new(file, text, secret)?;
    let mut sink = Sink::default();
    let tree = tree::build(
        &source,
        // As `Source` does it: regions of the parser are columns of its lines.
        text.strip_prefix('\u{feff}').unwrap_or(text),
        &mut sink,
    );
    match tree {
        // Mistakes of the tree are kept: `decode` reports them with its results.
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
