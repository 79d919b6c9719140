//! Folders of others whose journal has no end, or quotes what a terminal obeys.

use crate::fixture;
use journal::{JournalError, Writer};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use testing::attack;

/// The error with which a folder is refused, by reader and writer; `None` if one waits for an end.
fn refused(folder: &Path) -> Option<[JournalError; 2]> {
    let (sender, receiver) = mpsc::channel();
    let folder = folder.to_owned();
    // In a thread, as an open of a FIFO would wait for ever, and the test with it.
    thread::spawn(move || {
        let read = journal::read(&folder).map(drop).unwrap_err();
        let appended = Writer::append_to(&folder).map(drop).unwrap_err();
        // The test may have given up.
        let _ = sender.send([read, appended]);
    });
    receiver.recv_timeout(Duration::from_secs(60)).ok()
}

#[test]
fn a_journal_without_an_end_is_refused_at_once() {
    let top = tempfile::tempdir().unwrap();
    let folder = |name: &str| -> PathBuf {
        let folder = top.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder.join(journal::FILE_NAME)
    };
    let fifo = folder("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let device = folder("device");
    symlink("/dev/zero", &device).unwrap();
    let sparse = folder("sparse");
    // A terabyte that takes no room on the disk: only its length can be refused.
    File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    let mut waited = 0;
    for (path, reason) in [
        (fifo, "it is a FIFO, not a file"),
        (device, "it is a device, not a file"),
        (sparse, "it has more than 2147483648 bytes"),
    ] {
        let errors = refused(path.parent().unwrap());
        waited += usize::from(errors.is_none());
        for error in errors.into_iter().flatten() {
            let text = error.to_string();
            assert!(
                text.contains(reason) && text.contains("journal.jsonl"),
                "{text}"
            );
        }
    }
    attack("journals without an end that are waited for", waited, 0);
}

#[test]
fn a_line_that_is_refused_is_quoted_without_orders_to_a_terminal() {
    let text = String::from_utf8(journal::to_bytes(&fixture::header(), &[])).unwrap();
    let mut obeyed = 0;
    for (from, to) in [
        // Both ways to begin a sequence: ESC with a bracket, and the one character CSI of C1.
        ("\"record\":\"header\"", r#""record":"\u001b[2J\u009b1m""#),
        ("\"record\":", r#""\u001b[2J":1,"record":"#),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text);
        let error = journal::from_bytes(Path::new("journal.jsonl"), changed.as_bytes());
        let error = error.map(drop).unwrap_err().to_string();
        obeyed += error
            .chars()
            .filter(|c| c.is_control() && *c != '\n')
            .count();
    }
    attack(
        "characters of a refused line that a terminal obeys",
        obeyed,
        0,
    );
}
