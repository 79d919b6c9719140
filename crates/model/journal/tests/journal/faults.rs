//! Journals that cannot be written, and files that are no journals: one clear error each.

use crate::fixture::{failed, header, measured};
use journal::{FILE_NAME, JournalError, Record, Writer, read};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A run folder whose journal holds these lines.
fn folder(lines: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join(FILE_NAME),
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )
    .unwrap();
    dir
}

fn line(record: &Record) -> String {
    serde_json::to_string(record).unwrap()
}

/// A header of the last version without checksums.
fn header_line() -> String {
    let header = journal::record::Header {
        format: 5,
        ..header()
    };
    line(&Record::Header(Box::new(header)))
}

fn error(dir: &Path) -> String {
    let error = read(dir).unwrap_err().to_string();
    // A run that cannot be read cannot be resumed either, and people must see the same reason.
    let on_resume = Writer::append_to(dir).unwrap_err().to_string();
    assert_eq!(error, on_resume, "reading and resuming report the same");
    assert!(error.contains("\nhelp: "), "no hint in: {error}");
    error
}

#[test]
fn a_folder_without_a_journal_is_distinguished_from_a_missing_folder() {
    let dir = tempfile::tempdir().unwrap();
    assert!(error(dir.path()).starts_with(&format!("no journal in {}", dir.path().display())));

    // `--out` names the folder above that of the run.
    let within = |name: &str| {
        let run = dir.path().join(name);
        fs::create_dir(&run).unwrap();
        fs::write(run.join(FILE_NAME), format!("{}\n", header_line())).unwrap();
        run
    };
    let first = within("20261201T074216Z-gate");
    let message = error(dir.path());
    let help = format!(
        "help: give the folder of the run in it: {}",
        first.display()
    );
    assert!(message.ends_with(&help), "{message}");
    let last = within("20261202T074216Z-gate");
    let message = error(dir.path());
    let help = format!(
        "one of the 2 runs in it; the last one is {}",
        last.display()
    );
    assert!(message.ends_with(&help), "{message}");

    let missing = dir.path().join("missing");
    let message = error(&missing);
    assert!(
        message.starts_with(&format!("cannot read {}: No such file", missing.display())),
        "{message}"
    );

    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(error(&file).starts_with("no journal in "));
}

#[test]
fn another_format_version_is_refused_with_both_versions() {
    // The version is reported even if fields of another format are unknown.
    for format in [0, 9, 16] {
        let header = format!(r#"{{"record":"header","format":{format},"new":true}}"#);
        let dir = folder(&[&header]);
        let message = error(dir.path());
        let wanted = format!("has journal format {format}, this program reads formats 1 to 8");
        assert!(message.contains(&wanted), "{message}");
    }
}

#[test]
fn a_bad_line_is_reported_with_its_number() {
    let good = line(&measured(0, 1));
    for (bad, problem) in [
        (
            "{\"record\":\"trial\"",
            "column 17: EOF while parsing an object",
        ),
        ("", "column 0: EOF while parsing a value"),
        (r#"{"record":"weather"}"#, "unknown variant `weather`"),
        (r#"{"record":"end"}"#, "missing field `at_unix_ns`"),
        ("\0\0\0", "column 1: expected value"),
        (&header_line(), "a second header"),
        (
            &line(&measured(0, 1)).replace("dut-0", "dut-9"),
            "cell `tcp/mtu=1500/cores=1/dut-9` is not in the plan",
        ),
        (&line(&measured(0, 4)), "repeat 4 of 3 is not planned"),
        (&line(&measured(0, 0)), "repeat 0 of 3 is not planned"),
    ] {
        // A good line follows: a bad one in the middle must not be mistaken for an incomplete
        // end.
        let dir = folder(&[&header_line(), &good, bad, &good]);
        let message = error(dir.path());
        let place = format!("{}:3: ", dir.path().join(FILE_NAME).display());
        assert!(
            message.starts_with(&place) && message.contains(problem),
            "{bad:?}: {message}"
        );
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_reported_with_their_line() {
    let dir = folder(&[&header_line()]);
    let path = dir.path().join(FILE_NAME);
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"record\":\"\xff\xfe\"}\n");
    fs::write(&path, bytes).unwrap();
    assert!(error(dir.path()).contains(":2: "));
}

#[test]
fn a_file_that_is_no_journal_is_reported_as_no_journal() {
    assert!(error(folder(&["hello"]).path()).contains(":1: not a cipherbench journal"));
    let message = error(folder(&[&line(&measured(0, 1))]).path());
    assert!(
        message.contains(":1: the first record is a `trial`, expected `header`"),
        "{message}"
    );
    assert!(matches!(
        read(folder(&[]).path()),
        Err(JournalError::NoHeader { .. })
    ));
}

#[test]
fn a_journal_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    drop(Writer::create(dir.path(), &header()).unwrap());
    let before = fs::read(dir.path().join(FILE_NAME)).unwrap();
    assert!(matches!(
        Writer::create(dir.path(), &header()),
        Err(JournalError::Exists { .. })
    ));
    assert_eq!(fs::read(dir.path().join(FILE_NAME)).unwrap(), before);
}

#[test]
fn a_journal_has_one_writer_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::create(dir.path(), &header()).unwrap();
    assert!(matches!(
        Writer::append_to(dir.path()),
        Err(JournalError::InUse { .. })
    ));
    // A report can be made while the run goes on.
    assert!(read(dir.path()).is_ok(), "readers need no lock");
    drop(writer);
    let (first, _) = Writer::append_to(dir.path()).unwrap();
    assert!(matches!(
        Writer::append_to(dir.path()),
        Err(JournalError::InUse { .. })
    ));
    drop(first);
}

#[test]
fn a_journal_that_cannot_be_read_is_reported_with_the_path() {
    // Not even root can read a folder as a file.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    fs::create_dir(&path).unwrap();
    let message = read(dir.path()).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("cannot read {}: it is a folder", path.display())),
        "{message}"
    );
}

#[test]
fn a_missing_permission_is_reported_with_the_path() {
    let dir = tempfile::tempdir().unwrap();
    drop(Writer::create(dir.path(), &header()).unwrap());
    let path = dir.path().join(FILE_NAME);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        eprintln!(
            "SKIPPED a_missing_permission_is_reported_with_the_path: root may read everything"
        );
        return;
    }
    assert!(error(dir.path()).starts_with(&format!("cannot read {}", path.display())));
}

/// Variable that makes these tests a child process: the folder to write to until killed.
const ENDLESS: &str = "CIPHERBENCH_TEST_ENDLESS";

/// With [`ENDLESS`] set, this process is the child that is killed: it prints a line after each
/// record that is on the disk. Without it there is nothing to do: the test below starts the child.
#[test]
fn endless_child() {
    let Some(dir) = std::env::var_os(ENDLESS) else {
        return;
    };
    let mut writer = Writer::create(Path::new(&dir), &header()).unwrap();
    for record in [
        measured(0, 1),
        failed(0, 2, &"x".repeat(3_000)),
        measured(1, 1),
    ]
    .iter()
    .cycle()
    {
        writer.append(record).unwrap();
        println!("on the disk");
    }
}

#[test]
fn a_kill_loses_no_record_that_append_returned_for() {
    for kept in [1, 7, 40] {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::endless_child", "--nocapture"])
            .env(ENDLESS, dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let acknowledged = output
            .lines()
            .map_while(Result::ok)
            .filter(|line| line.contains("on the disk"))
            .take(kept)
            .count();
        // SIGKILL, at any moment of a write: the child has no chance to end a line.
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(acknowledged, kept);
        assert!(read(dir.path()).unwrap().trials.len() >= kept);
        // The kernel dropped the lock with the process.
        Writer::append_to(dir.path())
            .unwrap()
            .0
            .append(&measured(0, 3))
            .unwrap();
    }
}

/// Variable that makes these tests a child process: the folder to fill until a write fails.
const FILL: &str = "CIPHERBENCH_TEST_FILL";

/// With [`FILL`] set, this process is the child with a small disk; it prints what happened.
/// Without it there is nothing to do: the tests below start the child.
#[test]
fn filling_child() {
    let Some(dir) = std::env::var_os(FILL) else {
        return;
    };
    let dir = Path::new(&dir);
    let mut writer = Writer::create(dir, &header()).unwrap();
    let ballast = dir.join("ballast");
    // Takes a page of the small disk, to be given back when the disk is full.
    fs::write(&ballast, [0; 4096]).unwrap();
    let mut written = 0;
    let error = loop {
        match writer.append(&failed(0, 1, &"x".repeat(500))) {
            Ok(()) => written += 1,
            Err(error) => break error.to_string(),
        }
        // Without a limit the loop would fill the real disk.
        assert!(written < 10_000, "the disk was never full");
    };
    let journal = read(dir).unwrap();
    assert_eq!(
        (journal.trials.len(), journal.warnings),
        (written, vec![]),
        "a torn line was left"
    );
    // With room again (if the limit is the disk's), the same writer continues.
    fs::remove_file(ballast).unwrap();
    let continued = writer.append(&failed(0, 2, "continues")).is_ok();
    assert_eq!(
        read(dir).unwrap().trials.len(),
        written + usize::from(continued)
    );
    println!("continued: {continued}\n{error}");
}

/// Runs [`filling_child`] after `prepare` in a shell, which knows the folder as `$1`.
fn fill(command: &mut Command, prepare: &str, dir: &Path) -> String {
    let script = format!(r#"{prepare} && exec "$2" --exact faults::filling_child --nocapture"#);
    let output = command
        .args(["sh", "-ec", &script, "sh"])
        .args([dir, &std::env::current_exe().unwrap()])
        .env(FILL, dir)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

#[test]
fn a_full_disk_is_one_clear_error_and_leaves_no_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "--"]);
        command
    };
    if !unshare()
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("SKIPPED a_full_disk_is_one_clear_error: no user namespaces here");
        return;
    }
    // The mount is private to the child's namespace and goes with it.
    let output = fill(
        &mut unshare(),
        // A real file system with a few pages: a write fails in its middle as it does on a full
        // disk.
        r#"mount -t tmpfs -o size=16k none "$1""#,
        dir.path(),
    );
    let path = dir.path().join(FILE_NAME);
    let wanted = format!("cannot write {}: No space left on device", path.display());
    assert!(
        output.contains(&wanted) && output.contains("help: free some space"),
        "{output}"
    );
    assert!(output.contains("continued: true"), "{output}");
}

#[test]
fn a_limit_on_the_file_size_is_one_clear_error_and_leaves_no_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    // 16 blocks of 512 bytes; with the signal ignored, the write itself fails.
    let output = fill(
        &mut Command::new("env"),
        "trap '' XFSZ && ulimit -f 16",
        dir.path(),
    );
    let path = dir.path().join(FILE_NAME);
    let wanted = format!("cannot write {}: File too large", path.display());
    assert!(
        output.contains(&wanted) && output.contains("help: raise the limit"),
        "{output}"
    );
}

#[test]
fn a_disk_too_small_for_the_header_leaves_no_file() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("run");
    fs::create_dir(&dir).unwrap();
    let script =
        // Not even the header fits: nothing may be left, since a folder with an empty journal
        // would look like a run.
        r#"trap '' XFSZ && ulimit -f 0 && exec "$2" --exact faults::filling_child --nocapture"#;
    let output = Command::new("sh")
        .args(["-ec", script, "sh"])
        .args([&dir, &std::env::current_exe().unwrap()])
        .env(FILL, &dir)
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(!dir.exists(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_command_that_continues_names_the_run() {
    let path = Path::new("runs/a").join(FILE_NAME);
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    for error in [
        JournalError::Exists { path: path.clone() },
        JournalError::Broken { path: path.clone() },
        JournalError::Line {
            path: path.clone(),
            line: 7,
            problem: "broken".into(),
        },
        JournalError::Io {
            action: "write",
            path,
            source: full,
        },
    ] {
        let text = error.to_string();
        assert!(text.contains("cipherbench resume runs/a"), "{text}");
    }
}
