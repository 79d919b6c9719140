//! Documents that a reader finds the answer in, and that the code names correctly.

use crate::{files, read, root, rust_files};
use std::path::Path;

/// The most words of a page of the methodology: a reader looks for one answer, not for a book.
const PAGE_WORDS_MAX: usize = 3000;
/// The question and its answer are on the first screen.
const FIRST_WORDS_MAX: usize = 110;

#[test]
fn pages_of_the_methodology_are_short_and_begin_with_their_question() {
    let pages: Vec<_> = files()
        .into_iter()
        .filter(|path| path.starts_with("docs/methodology"))
        .collect();
    assert_eq!(pages.len(), 8, "{pages:?}");
    for path in pages {
        let text = read(&path);
        let words = text.split_whitespace().count();
        assert!(
            words <= PAGE_WORDS_MAX,
            "{}: {words} words, of {PAGE_WORDS_MAX} at most",
            path.display()
        );
        let first = text.split("\n\n").nth(1).expect("a first paragraph");
        let first: Vec<_> = first.split_whitespace().collect();
        let is_answer = first.join(" ").contains("? In short: ");
        assert!(
            is_answer && first.len() <= FIRST_WORDS_MAX,
            "{} does not begin with its question and the answer in short",
            path.display()
        );
    }
}

/// Comments, messages and campaigns name documents by their path, which no compiler checks.
#[test]
fn every_document_that_the_sources_name_exists() {
    let has_names = |path: &Path| {
        let end = path.extension().unwrap_or_default();
        end == "rs" || end == "yaml" || end == "yml" || end == "sh" || end == "py"
    };
    let mut dead = Vec::new();
    for path in files().into_iter().filter(|path| has_names(path)) {
        let text = read(&path);
        for (start, _) in text.match_indices("docs/") {
            let before = text[..start].chars().next_back();
            // A part of another path, such as `target/docs/`.
            if before.is_some_and(|c| c.is_alphanumeric() || "./-_".contains(c)) {
                continue;
            }
            let is_path = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
            let name = text[start..].split(|c| !is_path(c)).next().unwrap_or("");
            if name.ends_with(".md") && !root().join(name).exists() {
                dead.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(dead.is_empty(), "no such document: {dead:#?}");
}

/// The names of checks are the last parts of reasons in reports: a reader searches for them.
#[test]
fn every_check_of_the_evidence_is_in_its_reference() {
    let reference = read(Path::new("docs/checks.md"));
    let mut missing = Vec::new();
    let mut count = 0;
    for path in rust_files() {
        if !path.starts_with("crates/bench/trial/src") {
            continue;
        }
        let text = read(&path);
        for name in CALLS.iter().flat_map(|call| literals(&text, call)) {
            count += 1;
            if !reference.contains(&format!("`{name}`")) {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(count > 40, "{count} checks");
    assert!(missing.is_empty(), "docs/checks.md lacks {missing:#?}");
}

/// A picture that no run remakes shows a report of the past.
#[test]
fn every_picture_is_remade_by_a_script() {
    let script = read(Path::new("scripts/pictures.py"));
    let is_picture = |path: &Path| path.extension().is_some_and(|end| end == "png");
    let pictures: Vec<_> = files()
        .into_iter()
        .filter(|path| path.starts_with("docs") && is_picture(path))
        .collect();
    assert!(pictures.len() > 2, "{pictures:?}");
    for path in pictures {
        let name = path.file_stem().expect("a name").to_string_lossy();
        assert!(
            script.contains(&format!("\n    \"{name}\": Picture(")),
            "scripts/pictures.py does not make {}",
            path.display()
        );
    }
}

/// How the crate of trials makes a check: its name is the first argument.
const CALLS: [&str; 2] = ["check(", "Check::new("];

/// The first arguments of calls, if they are texts.
fn literals<'a>(text: &'a str, call: &str) -> Vec<&'a str> {
    text.match_indices(call)
        .filter_map(|(start, _)| {
            let argument = text[start + call.len()..].trim_start();
            argument.strip_prefix('"')?.split('"').next()
        })
        .collect()
}
