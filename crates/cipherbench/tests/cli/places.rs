//! Odd surroundings: no locale, no home, folders that cannot be written to, names with spaces, in
//! other scripts and not in UTF-8, and journals of older formats.

use crate::support::{Ended, PROGRAM, Sandbox, end};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const NOBODY: u32 = 65_534;

/// A load that takes a second in memory. The name of the device has spaces and other scripts.
const CAMPAIGN: &str = "\
campaign: places
title: Straße – 测试
repeats: 1
calibrate: false
duts:
  - cipherbench: { name: unser Gerät 1 }
trials:
  - load: { frame: 512 B, rate: 100 frames/s, duration: 200 ms }
";

/// A program without the variables of a login: no locale, no home, no terminal.
fn bare(command: &mut Command) -> &mut Command {
    for name in [
        "LANG",
        "LANGUAGE",
        "LC_CTYPE",
        "HOME",
        "USER",
        "LOGNAME",
        "TERM",
        "XDG_RUNTIME_DIR",
    ] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C")
}

/// The program, as a user who can read the test's folder, and write nothing. The program itself may
/// be in a folder that only root can read.
fn reader(sandbox: &Sandbox, words: &[&str]) -> Ended {
    let is_root = nix::unistd::geteuid().is_root();
    let copy = sandbox.path("cipherbench");
    if is_root && !copy.exists() {
        // By another process: a child forked by another test would inherit a file open for
        // writing, and the copy could not be executed (`ETXTBSY`).
        let copied = Command::new("cp").arg(PROGRAM).arg(&copy).status();
        assert!(copied.expect("cp runs").success());
    }
    let mut command = if is_root {
        let mut command = sandbox.command(copy.to_str().expect("a plain name"));
        command.uid(NOBODY).gid(NOBODY);
        command
    } else {
        sandbox.command(PROGRAM)
    };
    end(bare(command.args(words)))
}

fn program(sandbox: &Sandbox, words: &[&OsStr]) -> Ended {
    end(bare(sandbox.command(PROGRAM).args(words)))
}

/// A journal of format 1, whose lines have no checksums.
fn old_journal() -> String {
    let path = "../model/journal/tests/fixture/format-1.jsonl";
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the journal")
}

fn place_run(sandbox: &Sandbox, folder: &OsStr, journal: &str) {
    let folder = sandbox.path("").join(folder);
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("journal.jsonl");
    fs::write(&file, journal).expect("our own folder");
    // Another user reads it, whatever the umask is.
    let readable = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    readable(&file, 0o644).expect("our own file");
    readable(&folder, 0o755).expect("our own folder");
}

pub(crate) fn names_with_spaces_other_scripts_and_no_utf8_are_names() {
    let sandbox = Sandbox::new();
    let broken = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0xff);
        OsString::from_vec(bytes)
    };
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    for (number, name) in [OsString::from("Messung im Büro №1"), broken("gemessen ")]
        .into_iter()
        .enumerate()
    {
        let file = sandbox.path("").join(&name);
        fs::write(&file, CAMPAIGN).expect("our own folder");
        let mut run = words(&["run"]);
        run.push(name.clone());
        run.extend(words(&["--lab", "memory", "--out"]));
        let mut out = OsString::from("läufe ");
        out.push(&name);
        run.push(out.clone());
        let mut check = words(&["check"]);
        check.push(name.clone());
        for (arguments, codes) in [(&check, &[0][..]), (&run, &[0, 1])] {
            let arguments: Vec<_> = arguments.iter().map(OsString::as_os_str).collect();
            let ended = program(&sandbox, &arguments);
            // On a busy machine its trial is invalid.
            let code = ended.code.unwrap_or(101);
            assert!(codes.contains(&code), "{number}: {}", ended.stderr);
        }
        let list = program(&sandbox, &[OsStr::new("runs"), &out]).exits(0);
        assert!(list.stdout.contains("-places"), "{}", list.stdout);
        // The list of a folder that no text can name is JSON all the same.
        let words = [OsStr::new("runs"), &out, OsStr::new("--json")];
        let list = program(&sandbox, &words).exits(0);
        let found: serde_json::Value = serde_json::from_str(&list.stdout).expect("JSON");
        let path = found["runs"][0]["path"].as_str().expect("a path");
        assert!(path.starts_with("läufe "), "{path}");
        // Its report names the device.
        let folder = fs::read_dir(sandbox.path("").join(&out)).expect("the folder of runs");
        let folder = folder.flatten().next().expect("a run").file_name();
        let run = Path::new(&out).join(folder);
        let report = program(&sandbox, &[OsStr::new("report"), run.as_os_str()]);
        assert!(report.stdout.contains("unser Gerät 1"), "{}", report.stderr);
    }
}

pub(crate) fn runs_of_older_formats_are_listed_reported_and_compared() {
    let sandbox = Sandbox::new();
    let old = old_journal();
    let later = old.replacen("\"started_unix_ns\":1795", "\"started_unix_ns\":1796", 1);
    place_run(&sandbox, OsStr::new("runs/one"), &old);
    place_run(&sandbox, OsStr::new("runs/two"), &later);
    let newer = old.replacen("\"format\":1,", "\"format\":99,", 1);
    place_run(&sandbox, OsStr::new("runs/newer"), &newer);
    let cipherbench = |words: &[&str]| end(bare(&mut sandbox.program(words)));
    let list = cipherbench(&["runs"]).exits(0).stdout;
    assert!(list.contains("one") && list.contains("two"), "{list}");
    assert!(list.contains("does not read journal format 99"), "{list}");
    cipherbench(&["report", "runs/one"])
        .exits(0)
        .says("the journal has format 1");
    cipherbench(&["compare", "runs/one", "runs/two"]).exits(0);
    for words in [
        &["report", "runs/newer"][..],
        &["compare", "runs/one", "runs/newer"],
    ] {
        cipherbench(words)
            .exits(2)
            .says("runs/newer/journal.jsonl has journal format 99")
            .says("use the version of cipherbench that wrote it, or a newer one");
    }
}

pub(crate) fn folders_that_cannot_be_written_to_are_named_with_a_way_out() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    place_run(&sandbox, OsStr::new("runs/one"), &old_journal());
    // An ordinary user who runs the tests owns the folder.
    let set = |mode| {
        for folder in ["runs/one", "runs", ""] {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(sandbox.path(folder), mode).expect("our own folder");
        }
    };
    set(0o555);
    for words in [
        &["check", "campaign.yaml"][..],
        &["plan", "quick"],
        &["runs"],
        &["examples"],
    ] {
        reader(&sandbox, words).exits(0);
    }
    for (words, place, help) in [
        (
            &["run", "campaign.yaml", "--lab", "memory"][..],
            "runs",
            "--out",
        ),
        (
            &["report", "runs/one"],
            "runs/one/results.json",
            "--out DIR",
        ),
        (
            &["report", "runs/one", "--out", "new"],
            "the folder new",
            "`--out`",
        ),
        (
            &[
                "init",
                "campaign",
                "--what",
                "encryptor",
                "--output",
                "first.yaml",
            ],
            "first.yaml",
            "`--output`",
        ),
        (&["examples", "quick", "--write"], "quick.yaml", "help: "),
    ] {
        let ended = reader(&sandbox, words).exits(2).says(place).says(help);
        assert!(ended.stderr.contains("denied"), "{}", ended.stderr);
    }
    // So that it can be removed.
    set(0o755);
}
