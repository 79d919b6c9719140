//! Declared keys, compared with documents and files.

use jsonschema::Validator;
use std::fs;
use std::path::{Path, PathBuf};
use yaml::Key;

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../docs")
        .join(name)
}

/// Compares a document's tables with the declared keys, or rewrites them (`UPDATE_GOLDEN=1`).
///
/// # Panics
/// When they differ.
#[track_caller]
pub fn tables(name: &str, keys: &'static [Key]) {
    let path = document(name);
    let text = fs::read_to_string(&path).expect("the document is readable");
    let declared = yaml::with_tables(&text, keys);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, declared).expect("the document is writable");
        return;
    }
    // The first row that differs says more than two whole documents.
    let mut rows = text.lines().zip(declared.lines());
    if let Some((row, declared)) = rows.find(|(row, declared)| row != declared) {
        panic!("docs/{name} has\n{row}\ninstead of\n{declared}\n(UPDATE_GOLDEN=1 rewrites it)");
    }
    // One may be longer, or end in another way.
    assert_eq!(text, declared);
}

/// The JSON Schema of a kind of file.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// The schema of files with these keys.
    ///
    /// # Panics
    /// When it is no schema.
    #[must_use]
    pub fn of(keys: &[Key]) -> Self {
        Self(jsonschema::validator_for(&yaml::schema("a file", keys)).expect("it is a schema"))
    }

    fn refusals(&self, text: &str) -> Vec<String> {
        let file = yaml::parse("file", text).expect("it is YAML").json();
        let refusal =
            |error: jsonschema::ValidationError<'_>| format!("{}: {error}", error.instance_path());
        self.0.iter_errors(&file).map(refusal).collect()
    }

    /// Expects a file to be accepted.
    ///
    /// # Panics
    /// When it is refused.
    #[track_caller]
    pub fn accepts(&self, text: &str) {
        let refusals = self.refusals(text);
        assert!(refusals.is_empty(), "{text}\n{}", refusals.join("\n"));
    }

    /// Expects a file to be refused.
    ///
    /// # Panics
    /// When it is accepted.
    #[track_caller]
    pub fn refuses(&self, text: &str) {
        assert!(!self.refusals(text).is_empty(), "{text}");
    }

    /// Expects the YAML blocks of a document that begin with a key to be accepted; returns their
    /// number.
    ///
    /// # Panics
    /// When one is refused.
    #[track_caller]
    pub fn accepts_examples(&self, name: &str, first: &str) -> usize {
        let text = fs::read_to_string(document(name)).expect("the document is readable");
        let blocks = text.split("```yaml\n").skip(1);
        // A block ends at the next fence.
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        let blocks: Vec<_> = blocks.filter(|block| block.starts_with(first)).collect();
        for block in &blocks {
            self.accepts(block);
        }
        blocks.len()
    }
}
