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
    report::Report::of(&fixture::in_progress())
        .write_all(dir.path())
        .unwrap();
    let journal = fixture::quick();
    report::Report::of(&journal).write_all(dir.path()).unwrap();
    assert_eq!(
        names(dir.path()),
        ["report.html", "report.md", "results.csv", "results.json"]
    );
    let documents = report::build(&journal);
    for (name, text) in [
        ("report.html", documents.html),
        ("report.md", documents.markdown),
        ("results.csv", documents.csv),
        ("results.json", documents.json),
    ] {
        assert!(
            fs::read_to_string(dir.path().join(name)).unwrap() == text,
            "{name}"
        );
    }
}

#[test]
fn a_document_that_cannot_be_written_is_reported_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    // A folder in its place cannot be replaced by a file.
    fs::create_dir(dir.path().join("report.md")).unwrap();
    let error = report::Report::of(&fixture::quick())
        .write_all(dir.path())
        .unwrap_err();
    assert_eq!(error.path, dir.path().join("report.md"));
    let message = error.to_string();
    assert!(
        message.starts_with("cannot write ") && message.contains("\nhelp: "),
        "{message}"
    );
    assert_eq!(
        names(dir.path()),
        ["report.html", "report.md", "results.json"]
    );
}

#[test]
fn a_folder_with_a_space_is_quoted_in_commands() {
    let run = Path::new("my runs/it's one");
    let folders = Some(report::Folders {
        run,
        documents: run,
    });
    let quoted = r"'my runs/it'\''s one'";
    let brief = crate::brief(&fixture::in_progress(), folders, 200, false);
    for command in [
        format!("cipherbench report {quoted} --full"),
        format!("cipherbench resume {quoted}"),
    ] {
        assert!(brief.contains(&command), "{command}: {brief}");
    }
    let resume = format!("cipherbench resume {quoted} --invalid");
    let troubled = fixture::troubled();
    for text in [
        crate::brief(&troubled, folders, 200, false),
        crate::terminal(&troubled, folders, 200, false),
    ] {
        assert!(text.contains(&resume), "{text}");
    }
    let error = report::WriteError {
        path: run.join("report.md"),
        source: std::io::ErrorKind::StorageFull.into(),
    };
    let help = format!("then: cipherbench report {quoted}, or");
    assert!(error.to_string().contains(&help), "{error}");
}
