//! `bisect`: a real device, slowed in one of several revisions, measured in a real lab.

use crate::support::{Ended, PROGRAM, Sandbox, end};
use serde_json::Value;
use std::fs;

const CAMPAIGN: &str = "\
campaign: pings
repeats: 1
duts: [direct, cipherbench]
trials:
  - ping: { mtu: 1500 B, count: 30, interval: 10 ms }
";

/// Stands still for half of the time, for some seconds: the encryptor's process alone, not those
/// that it starts. Afterwards it can end as quickly as ever.
const SLOW: &str = r#"
case "$*" in *--remove*) ;; *)
  (for round in $(seq 150); do
    kill -STOP $$ && sleep 0.01 && kill -CONT $$ || exit; sleep 0.01
  done) >/dev/null 2>&1 </dev/null &
esac
"#;

/// Commits a revision of a device: our encryptor behind a script.
fn revision(sandbox: &Sandbox, subject: &str, slow: &str) {
    let script = format!("#!/bin/sh\n# {subject}{slow}\nexec {PROGRAM} \"$@\"\n");
    sandbox.write("device/source.sh", &script);
    git(sandbox, &["add", "."]);
    git(sandbox, &["commit", "--quiet", "--message", subject]);
}

fn git(sandbox: &Sandbox, words: &[&str]) -> String {
    let mut command = sandbox.command("git");
    command.args([
        "-c",
        "user.name=Nobody",
        "-c",
        "user.email=nobody@example.org",
    ]);
    command.args(["-C", "device"]).args(words);
    end(&mut command).exits(0).stdout
}

/// `bisect` in the sandbox's lab, from a revision to `main`.
fn bisect(sandbox: &Sandbox, good: &str, gate: &str, more: &[&str]) -> Ended {
    let mut words = vec![
        "bisect",
        "campaign.yaml",
        "--lab",
        "lab.yaml",
        "--repository",
        "device",
    ];
    words.extend(["--good", good, "--bad", "main", "--gate", gate]);
    words.extend(["--build", "sh -c 'cp source.sh built && chmod 755 built'"]);
    words.extend(["--program", "built", "--cache", "cache", "--repeats", "1"]);
    words.extend(more);
    end(&mut sandbox.program(&words))
}

fn device(sandbox: &Sandbox) {
    sandbox.write("campaign.yaml", CAMPAIGN);
    sandbox.make_folder("device");
    git(sandbox, &["init", "--quiet", "--initial-branch=main"]);
}

pub(crate) fn the_revision_that_slows_a_device_is_found() {
    let sandbox = Sandbox::new();
    device(&sandbox);
    for (subject, slow) in [
        ("first", ""),
        ("lane: rename", ""),
        ("lane: stand still", SLOW),
        ("docs: describe it", SLOW),
    ] {
        revision(&sandbox, subject, slow);
    }
    let ended = bisect(&sandbox, "main~3", "ping p50 rises > 80 %", &["--json"]);
    let ended = ended.exits(0);
    let found: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(found["outcome"], "found", "{found}");
    assert_eq!(
        (&found["first"], &found["last"]),
        (&Value::from(2), &Value::from(2))
    );
    assert_eq!(found["versions"][2]["subject"], "lane: stand still");
    assert!(
        found["change"]["low"].as_f64().is_some_and(|low| low > 1.0),
        "{found}"
    );
    assert!(
        found["probability"].as_f64().is_some_and(|it| it > 0.97),
        "{found}"
    );
    // The run of all its cells, with both versions.
    let run = sandbox.path(found["others"]["run"].as_str().expect("a run"));
    let report = fs::read_to_string(run.join("report.html")).expect("a report");
    assert!(report.contains("ping"), "{}", run.display());
    assert!(ended.stderr.contains("confirm "), "{}", ended.stderr);
    let trees = git(&sandbox, &["worktree", "list"]);
    assert_eq!(trees.lines().count(), 1, "{trees}");
    // Nothing is left to be measured.
    let folder = found["folder"].as_str().expect("a folder");
    let again = end(&mut sandbox.program(&["bisect", "--resume", folder])).exits(0);
    assert!(
        again.stdout.contains(" lane: stand still\n"),
        "{}",
        again.stdout
    );
    assert!(again.stderr.is_empty(), "{}", again.stderr);
}

pub(crate) fn mistakes_of_a_bisection_are_reported_before_anything_is_made() {
    let sandbox = Sandbox::new();
    device(&sandbox);
    revision(&sandbox, "first", "");
    revision(&sandbox, "second", "");
    let gate = "ping p50 rises > 80 %";
    let refused = |ended: Ended, said: &str| {
        let ended = ended.exits(2);
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{}", ended.stdout);
        assert!(!sandbox.path("runs").exists(), "{said}");
    };
    let program = |words: &[&str]| end(&mut sandbox.program(words));
    refused(program(&["bisect"]), "--gate");
    refused(
        program(&["bisect", "--gate", gate, "--good", "main"]),
        "--bad",
    );
    refused(program(&["bisect", "--gate", gate]), "--programs");
    refused(
        program(&["bisect", "--gate", gate, "--good", "a", "--bad", "b"]),
        "error: revisions without a build",
    );
    refused(
        program(&["bisect", "--resume", "nowhere"]),
        "error: nowhere has no bisection: there is no bisect.jsonl",
    );
    refused(
        bisect(&sandbox, "other", gate, &[]),
        "error: `--good other` names no revision",
    );
    refused(bisect(&sandbox, "main~1", "ping p50 over 3", &[]), "^");
    refused(
        bisect(&sandbox, "main~1", gate, &["--dut", "direct"]),
        "error: the device `direct` runs no program",
    );
    sandbox.write("device/source.sh", "changed");
    refused(
        bisect(&sandbox, "main~1", gate, &[]),
        "has changes that no revision has: M source.sh",
    );
}
