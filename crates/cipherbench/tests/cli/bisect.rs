//! `bisect`: mistakes that are refused before anything is made. Bisections over known truth are
//! tests of `bisecting`.

use crate::support::{Ended, PROGRAM, Sandbox, end};

const CAMPAIGN: &str = "\
campaign: pings
repeats: 1
duts: [direct, cipherbench]
trials:
  - ping: { mtu: 1500 B, count: 30, interval: 10 ms }
";

/// Commits a revision of a device: our encryptor behind a script.
fn revision(sandbox: &Sandbox, subject: &str) {
    let script = format!("#!/bin/sh\n# {subject}\nexec {PROGRAM} \"$@\"\n");
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

pub(crate) fn mistakes_of_a_bisection_are_reported_before_anything_is_made() {
    let sandbox = Sandbox::new();
    device(&sandbox);
    revision(&sandbox, "first");
    revision(&sandbox, "second");
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
