//! Comments and documents are in plain technical English.
//!
//! The markers below are words that hide the subject of a sentence. They are not errors: quinn,
//! smoltcp, rustls and nextest have 19 to 27 per 10,000 words. More than the limit means that
//! sentences have to be read twice: rewrite them, rather than swap the word.

use crate::{crates, files, read, root, rust_files};
use std::fmt::Write;
use std::path::Path;

/// Markers per 10,000 words.
const LIMIT: usize = 90;
/// A text of fewer words counts as one of this length: a few markers say little there.
const WORDS_MIN: usize = 200;

/// Each marker is a sequence of words, given as the alternatives of each place.
const MARKERS: &[&[&[&str]]] = &[
    &[&["tell", "tells", "told", "telling"]],
    &[&["whoever", "whatever", "wherever", "whichever", "whose"]],
    &[&["so", "as"], &["many", "much", "often", "long", "few"]],
    &[&["beside"]],
    &[&["at"], &["once"]],
    &[&["where"]],
    &[&["own"]],
    &[&["that"], &["there"], &["is", "are"]],
    &[&["there"], &["is", "are"], &["none"]],
    &[&["stand", "stands", "stood", "lie", "lies"]],
    &[&["judge", "judges", "judged", "judgement"]],
    &[&["hence", "thereby", "thereupon", "vain"]],
    &[&["what"], WHAT],
    &[&["those"], &["that", "of"]],
    &[&["that"], &["of"]],
    &[&["of", "in", "by", "at", "with", "from", "for"], &["which"]],
    &[&["with"], &["it", "them"]],
];
const WHAT: &[&str] = &[
    "is", "it", "they", "was", "a", "the", "an", "its", "each", "one", "no",
];

#[derive(Default)]
struct Counts {
    words: usize,
    markers: usize,
}

impl Counts {
    /// Counts a line. `such as` is plain, `such` is not.
    fn line(&mut self, text: &str) {
        let text = text.to_lowercase();
        let is_part = |c: char| c.is_ascii_alphabetic() || c == '\'';
        let words: Vec<&str> = text
            .split(|c| !is_part(c))
            .filter(|word| !word.is_empty())
            .collect();
        self.words += words.len();
        for place in 0..words.len() {
            let rest = &words[place..];
            let is_marker = |marker: &&&[&[&str]]| {
                rest.len() >= marker.len()
                    && marker
                        .iter()
                        .zip(rest)
                        .all(|(any, word)| any.contains(word))
            };
            self.markers += MARKERS.iter().filter(is_marker).count();
            self.markers += usize::from(rest[0] == "such" && rest.get(1) != Some(&"as"));
        }
    }

    fn comments(&mut self, path: &Path) {
        for line in read(path).lines() {
            if let Some(comment) = line.trim_start().strip_prefix("//") {
                self.line(comment);
            }
        }
    }

    /// The text outside of code.
    fn prose(&mut self, path: &Path) {
        let mut is_code = false;
        for line in read(path).lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if !is_code {
                let parts = line.split('`').step_by(2);
                self.line(&parts.collect::<Vec<_>>().join("x"));
            }
        }
    }

    /// Appends what exceeds the limit.
    fn report(&self, name: &str, found: &mut String) {
        let rate = self.markers * 10_000 / self.words.max(WORDS_MIN);
        if rate > LIMIT {
            let _ = writeln!(found, "{rate} {name}");
        }
    }
}

#[test]
fn comments_and_documents_are_in_plain_english() {
    let mut found = String::new();
    let sources = rust_files();
    for (_, name, folder) in crates() {
        let mut counts = Counts::default();
        let folder = folder.strip_prefix(root()).expect("below the root");
        let sources = sources.iter();
        for path in sources.filter(|path| path.starts_with(folder.join("src"))) {
            counts.comments(path);
        }
        counts.report(&name, &mut found);
    }
    let is_document = |path: &Path| {
        let is_markdown = path.extension().is_some_and(|end| end == "md");
        is_markdown && (path.starts_with("docs") || path.components().count() == 1)
    };
    for path in files().iter().filter(|path| is_document(path)) {
        let mut counts = Counts::default();
        counts.prose(path);
        counts.report(&path.display().to_string(), &mut found);
    }
    assert!(
        found.is_empty(),
        "more than {LIMIT} markers of unidiomatic English per 10,000 words:\n{found}"
    );
}

#[test]
fn markers_are_found() {
    let mut counts = Counts::default();
    counts.line("What is known of those that stand beside it, such as this, at once.");
    counts.line("A plain sentence has none of them.");
    // "what is", "those that", "stand", "beside", "at once".
    assert_eq!((counts.markers, counts.words), (5, 21));
}

/// Words that say how a value came about, and not what it is.
const NO_NOUNS: [&str; 8] = [
    "Found", "Asked", "Way", "Kept", "Given", "Held", "Lent", "Heard",
];

/// The words of a name in camel case: `LoadShare` has two.
fn words_of(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let mut letters = rest.char_indices().skip(1);
        let end = letters.find(|(_, c)| c.is_ascii_uppercase());
        let (word, after) = rest.split_at(end.map_or(rest.len(), |(at, _)| at));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

#[test]
fn types_are_named_by_nouns() {
    assert!(words_of("ResetFound").eq(["Reset", "Found"]));
    let mut wrong = Vec::new();
    for path in rust_files() {
        for line in read(&path).lines() {
            let line = line.trim_start();
            // Behind `pub` and `pub(crate)`.
            let item = match line.strip_prefix("pub") {
                Some(rest) => rest.split_once(' ').map_or("", |(_, item)| item),
                None => line,
            };
            let kinds = ["struct ", "enum ", "trait ", "type "];
            let Some(rest) = kinds.iter().find_map(|kind| item.strip_prefix(kind)) else {
                continue;
            };
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric()).next();
            let name = name.unwrap_or_default();
            if words_of(name).any(|word| NO_NOUNS.contains(&word)) {
                wrong.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "types without a noun: {wrong:#?}");
}
