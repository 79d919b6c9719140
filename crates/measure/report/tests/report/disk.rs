//! How documents reach the disk.

use crate::fixture;
use std::fs;
use std::path::Path;

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn documents_replace_those_that_are_there_and_leave_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    report::build(&fixture::in_progress())
        .write_all(dir.path())
        .unwrap();
    let documents = report::build(&fixture::quick());
    let paths = documents.write_all(dir.path()).unwrap();
    assert_eq!(
        names(dir.path()),
        ["report.html", "report.md", "results.csv", "results.json"]
    );
    assert_eq!(fs::read_to_string(&paths[0]).unwrap(), documents.html);
    assert_eq!(
        fs::read_to_string(dir.path().join("results.json")).unwrap(),
        documents.json
    );
}

#[test]
fn a_document_that_cannot_be_written_is_reported_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    // A folder in its place cannot be replaced by a file.
    fs::create_dir(dir.path().join("report.md")).unwrap();
    let error = report::build(&fixture::quick())
        .write_all(dir.path())
        .unwrap_err();
    assert_eq!(error.path, dir.path().join("report.md"));
    let message = error.to_string();
    assert!(
        message.starts_with("cannot write ") && message.contains("\nhelp: "),
        "{message}"
    );
    assert_eq!(names(dir.path()), ["report.html", "report.md"]);
}
