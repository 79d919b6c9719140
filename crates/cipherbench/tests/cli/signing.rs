//! Runs that are signed and verified, and what a forger may try.

use crate::support::{Sandbox, end};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// In memory, without a lab: what is measured does not matter here.
const CAMPAIGN: &str = "\
campaign: signed
repeats: 2
calibrate: false
duts: [direct]
trials: [load: { frame: [512 B, 64 B], rate: 1000 frames/s, duration: 100 ms }]
";

/// A sandbox with a run in `run`, and keys in `lab.key` and `other.key`.
fn signed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    end(&mut sandbox.program(&["run", "campaign.yaml", "--lab", "memory"]));
    fs::rename(
        sandbox.path("").join(sandbox.only_run()),
        sandbox.path("run"),
    )
    .expect("a run");
    for key in ["lab.key", "other.key"] {
        end(&mut sandbox.program(&["keys", "signing", key])).exits(0);
    }
    sign(&sandbox, &[]).exits(0);
    sandbox
}

fn sign(sandbox: &Sandbox, more: &[&str]) -> crate::support::Ended {
    let words = [&["sign", "run", "--key", "lab.key"], more].concat();
    end(&mut sandbox.program(&words))
}

/// Verifies by the signer's key: what is printed, with this exit code.
#[track_caller]
fn verified(sandbox: &Sandbox, code: i32) -> String {
    let words = ["verify", "run", "--key", "lab.key.pub"];
    end(&mut sandbox.program(&words)).exits(code).stdout
}

fn change(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a document");
    assert!(text.contains(from), "{from} is not in {}", path.display());
    fs::write(path, text.replacen(from, to, 1)).expect("written");
}

pub(crate) fn a_signed_run_is_verified_by_this_program_and_by_others() {
    let sandbox = signed();
    let said = verified(&sandbox, 0);
    for words in [
        "agrees with the journal",
        "good, by the key ",
        "as signed: all 5",
    ] {
        assert!(said.contains(words), "{said}");
    }
    // The text of the key is as good as its file.
    let key = fs::read_to_string(sandbox.path("lab.key.pub")).expect("a key");
    let key = key.lines().nth(1).expect("a second line");
    end(&mut sandbox.program(&["verify", "run", "--key", key])).exits(0);
    let mut sums = sandbox.command("sha256sum");
    end(sums
        .args(["--check", "SHA256SUMS"])
        .current_dir(sandbox.path("run")))
    .exits(0);
    // Another hand's program accepts our signature, and we its.
    if Command::new("minisign").arg("-v").output().is_err() {
        testing::lacks("a signed run", "minisign", "apt install minisign");
        return;
    }
    let minisign = |words: &[&str]| {
        let mut command = sandbox.command("minisign");
        end(command.args(words).current_dir(sandbox.path("run"))).exits(0)
    };
    minisign(&["-V", "-m", "SHA256SUMS", "-p", "../lab.key.pub"]);
    minisign(&["-G", "-W", "-p", "../its.pub", "-s", "../its.key"]);
    minisign(&["-S", "-W", "-m", "SHA256SUMS", "-s", "../its.key"]);
    let said = end(&mut sandbox.program(&["verify", "run", "--key", "its.pub"])).exits(0);
    assert!(said.stdout.contains("good, by the key "), "{}", said.stdout);
    end(&mut sandbox.program(&["sign", "run", "--key", "its.key", "--force"])).exits(0);
    minisign(&["-V", "-m", "SHA256SUMS", "-p", "../its.pub"]);
}

pub(crate) fn a_changed_figure_is_found_with_its_place() {
    let sandbox = signed();
    let report = sandbox.path("run/report.md");
    let original = fs::read(&report).expect("a report");
    change(&report, "1.00 kpps", "9.00 kpps");
    let said = verified(&sandbox, 1);
    assert!(
        said.contains("report.md does not agree with the journal, from line "),
        "{said}"
    );
    assert!(
        said.contains("9.00 kpps") && said.contains("1.00 kpps"),
        "{said}"
    );
    assert!(said.contains("CHANGED since: report.md"), "{said}");
    // Without a signature too, and it cannot be signed.
    fs::remove_file(sandbox.path("run/SHA256SUMS.minisig")).expect("removed");
    let said = end(&mut sandbox.program(&["verify", "run"]))
        .exits(1)
        .stdout;
    assert!(
        said.contains("WRONG: report.md") && said.contains("signature  none"),
        "{said}"
    );
    sign(&sandbox, &[])
        .exits(1)
        .says("help: `cipherbench report run` writes it anew");
    assert!(!sandbox.path("run/SHA256SUMS.minisig").exists());
    fs::write(&report, original).expect("written");
    end(&mut sandbox.program(&["verify", "run"])).exits(0);
    // With a key, no signature is no proof.
    verified(&sandbox, 1);
}

pub(crate) fn a_forger_who_computes_everything_anew_lacks_the_key() {
    let sandbox = signed();
    // The first trial less: whole lines with their checksums, and the documents of that journal.
    let journal = sandbox.path("run/journal.jsonl");
    let text = fs::read_to_string(&journal).expect("a journal");
    let shorter: Vec<&str> = text.lines().take(text.lines().count() / 2).collect();
    fs::write(&journal, shorter.join("\n") + "\n").expect("written");
    end(&mut sandbox.program(&["report", "run"]));
    end(&mut sandbox.program(&["verify", "run"])).exits(1);
    let said = verified(&sandbox, 1);
    assert!(
        said.contains("every figure agrees with the journal"),
        "{said}"
    );
    assert!(said.contains("CHANGED since: journal.jsonl"), "{said}");
    // And the list of files, by a key of the forger.
    let words = ["sign", "run", "--key", "other.key", "--force"];
    end(&mut sandbox.program(&words)).exits(0);
    let said = verified(&sandbox, 1);
    assert!(said.contains("WRONG: it names the key "), "{said}");
}

pub(crate) fn signatures_of_other_keys_lists_and_runs_are_refused() {
    let sandbox = signed();
    let other = end(&mut sandbox.program(&["verify", "run", "--key", "other.key.pub"])).exits(1);
    assert!(
        other.stdout.contains("WRONG: it names the key "),
        "{}",
        other.stdout
    );
    // Nobody verified it: no proof.
    let none = end(&mut sandbox.program(&["verify", "run"])).exits(1);
    assert!(none.stdout.contains("NOT VERIFIED"), "{}", none.stdout);
    // A file that was not there.
    fs::write(sandbox.path("run/notes.txt"), "read me").expect("written");
    let said = verified(&sandbox, 0);
    assert!(said.contains("no part of the run: notes.txt"), "{said}");
    fs::remove_file(sandbox.path("run/notes.txt")).expect("removed");
    // One that is missing.
    let csv = fs::read(sandbox.path("run/results.csv")).expect("a document");
    fs::remove_file(sandbox.path("run/results.csv")).expect("removed");
    let said = verified(&sandbox, 1);
    assert!(said.contains("MISSING: results.csv"), "{said}");
    fs::write(sandbox.path("run/results.csv"), csv).expect("written");
    verified(&sandbox, 0);
    // A list that was changed after it was signed.
    let list = sandbox.path("run/SHA256SUMS");
    let text = fs::read(&list).expect("a list");
    let mut file = OpenOptions::new()
        .append(true)
        .open(&list)
        .expect("the list");
    writeln!(file, "{}  more", "0".repeat(64)).expect("written");
    let said = verified(&sandbox, 1);
    assert!(said.contains("it is not of this SHA256SUMS"), "{said}");
    fs::write(&list, text).expect("written");
    // A file that is no signature.
    fs::write(sandbox.path("run/SHA256SUMS.minisig"), "hello\n").expect("written");
    let words = ["verify", "run", "--key", "lab.key.pub"];
    end(&mut sandbox.program(&words))
        .exits(2)
        .says("is no signature of minisign");
}

pub(crate) fn mistakes_with_keys_and_runs_are_explained() {
    let sandbox = signed();
    sign(&sandbox, &[])
        .exits(2)
        .says("`--force` replaces the signature");
    sign(&sandbox, &["--force"]).exits(0);
    let said = |words: &[&str], code, message| {
        end(&mut sandbox.program(words)).exits(code).says(message);
    };
    said(
        &["keys", "signing", "lab.key"],
        2,
        "name a file that is not there yet",
    );
    said(
        &["sign", "run", "--key", "lab.key.pub", "--force"],
        2,
        "lab.key.pub",
    );
    said(
        &["sign", "run", "--key", "none.key", "--force"],
        2,
        "none.key is not there",
    );
    said(
        &["verify", "run", "--key", "lab.key"],
        2,
        "is not a public key of minisign",
    );
    said(
        &["verify", "run", "--key", "RWnone"],
        2,
        "neither a file nor a public key",
    );
    said(&["verify", "rnu"], 2, "rnu");
    std::os::unix::fs::symlink("/etc/hostname", sandbox.path("run/link")).expect("a link");
    said(
        &["sign", "run", "--key", "lab.key", "--force"],
        2,
        "run/link is a link",
    );
}
