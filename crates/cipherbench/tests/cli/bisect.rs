//! `bisect`: mistakes that are refused before anything is made, and bisections in a lab.
//! Bisections over known truth are tests of `bisecting`.

use crate::support::{Ended, PROGRAM, Sandbox, end};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use testing::busy;

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
    let settings = |names: &str, more: &[&str]| {
        let words = ["bisect", "campaign.yaml", "--lab", "lab.yaml", "--gate"];
        let words = words.into_iter().chain([gate, "--settings", names]);
        let words: Vec<&str> = words.chain(more.iter().copied()).collect();
        end(&mut sandbox.program(&words))
    };
    refused(settings("a,b", &["--good", "main"]), "--settings");
    refused(
        settings("a,b", &[]),
        "error: no device of the campaign has `settings`",
    );
    sandbox.write("campaign.yaml", WINDOWS);
    refused(
        settings("usual", &[]),
        "error: a bisection of one set of settings",
    );
    refused(
        settings("usual,tiny", &[]),
        "error: `direct` has no settings `tiny`\nhelp: its sets are usual, reno, small, same",
    );
    refused(
        settings("usual,small,same", &[]),
        "error: the sets of both ends are equal: `usual` and `same`",
    );
    sandbox.write("campaign.yaml", CAMPAIGN);
    sandbox.write("device/source.sh", "changed");
    refused(
        bisect(&sandbox, "main~1", gate, &[]),
        "has changes that no revision has: M source.sh",
    );
}

/// A version of our encryptor: with `pauses`, stopped for two thirds of the time.
fn script(name: &str, pauses: bool) -> String {
    let slow = "pid=$$\n\
                (while kill -STOP $pid; do sleep 0.02; kill -CONT $pid; sleep 0.01; done) &\n";
    let slow = if pauses { slow } else { "" };
    format!("#!/bin/sh\n# {name}\n{slow}exec {PROGRAM} \"$@\"\n")
}

fn version(sandbox: &Sandbox, name: &str, pauses: bool) {
    sandbox.write(name, &script(name, pauses));
    fs::set_permissions(sandbox.path(name), Permissions::from_mode(0o755)).expect("our own file");
}

pub(crate) fn the_program_that_slows_a_tunnel_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", CAMPAIGN);
    // The slow one is the last: pauses scatter, so that two of them take long to be found equal.
    for (name, pauses) in [("v1", false), ("v2", false), ("v3", true)] {
        version(&sandbox, name, pauses);
    }
    let words = [
        "bisect",
        "campaign.yaml",
        "--lab",
        "lab.yaml",
        "--programs",
        "./v1,./v2,./v3",
        "--gate",
        "ping p50 rises > 90 %",
        "--pairs",
        "300",
        "--repeats",
        "0",
        "--json",
        "--quiet",
    ];
    let result = found(end(&mut sandbox.program(&words)), 2);
    let named = result["versions"][2].to_string();
    assert!(named.contains("v3"), "{named}");
    slower(&result);
}

/// The size of the change is not checked more closely: how often pauses meet a ping depends on what
/// else the machine does.
fn slower(result: &Value) {
    assert!(result["change"]["low"].as_f64() > Some(1.0), "{result}");
}

/// The result of a bisection that must have named one version.
fn found(ended: Ended, place: usize) -> Value {
    if let Some(4 | 5) = ended.code {
        // Too much other work, or too little difference because of it: never a wrong name.
        busy::too_busy(ended.stderr);
    }
    let ended = ended.exits(0);
    let result: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(result["outcome"], "found", "{result}");
    assert_eq!(result["first"], place, "{result}");
    assert_eq!(result["last"], place, "{result}");
    result
}

/// A repository of 32 commits after the good one: the last of them slows the device, and the one
/// that is asked for first does not build.
pub(crate) fn the_commit_of_32_that_slows_a_tunnel_is_named() {
    let sandbox = Sandbox::new();
    device(&sandbox);
    for at in 0..=32 {
        if at == 16 {
            git(&sandbox, &["rm", "--quiet", "source.sh"]);
            git(&sandbox, &["commit", "--quiet", "--message", "commit 16"]);
            continue;
        }
        let name = format!("commit {at}");
        sandbox.write("device/source.sh", &script(&name, at == GUILTY));
        git(&sandbox, &["add", "."]);
        git(&sandbox, &["commit", "--quiet", "--message", &name]);
    }
    let more = ["--pairs", "400", "--json", "--quiet"];
    let gate = "ping p50 rises > 90 %";
    let result = found(bisect(&sandbox, "main~32", gate, &more), GUILTY);
    assert_eq!(result["versions"][GUILTY]["subject"], "commit 32");
    let broken = result["versions"][16]["skipped"].as_str();
    let words = "does not build: ";
    assert!(broken.is_some_and(|it| it.starts_with(words)), "{result}");
    slower(&result);
    assert_eq!(git(&sandbox, &["worktree", "list"]).lines().count(), 1);
}

/// Behind a slow commit others are slow too, and figures of a stopped device scatter: it takes
/// minutes to find two of them equal.
const GUILTY: usize = 32;

const TRANSFERS: &str = "\
campaign: transfers
repeats: 1
duts: [cipherbench]
trials:
  - tcp: { mtu: 1400 B, duration: 1 s, warmup: 0 s }
";

/// The one of 32 commits with a small delay, in the middle: its neighbours could be accused too.
const DELAYED: usize = 20;

/// Times that a bisection goes on after other work has stopped it.
const RESUMES_MAX: usize = 6;

/// Our encryptor stops for 10 ms of each 500 ms, so every lane loses 2 % of its time. A noisy
/// machine may hide that, and then nothing is accused: with a scatter of 13 % between two trials,
/// each comparison would need about 450 pairs. There `CIPHERBENCH_DELAY=10` is found.
pub(crate) fn a_delay_of_2_percent_at_one_of_32_commits_accuses_no_other() {
    let sandbox = Sandbox::new();
    device(&sandbox);
    sandbox.write("campaign.yaml", TRANSFERS);
    let set = |name: &str, usual: u32| {
        let set = std::env::var(name).ok();
        set.map_or(usual, |text| text.parse().expect(name))
    };
    let percent = set("CIPHERBENCH_DELAY", 2);
    let [stopped, runs] = [5 * percent, 500 - 5 * percent].map(|ms| f64::from(ms) / 1e3);
    let delays = format!(
        "pid=$$\n(while kill -STOP $pid; do sleep {stopped}; kill -CONT $pid; sleep {runs}; done) &\n"
    );
    for at in 0..=32 {
        let delay = if at >= DELAYED { &delays } else { "" };
        let text = format!("#!/bin/sh\n# commit {at}\n{delay}exec {PROGRAM} \"$@\"\n");
        sandbox.write("device/source.sh", &text);
        git(&sandbox, &["add", "."]);
        let subject = format!("commit {at}");
        git(&sandbox, &["commit", "--quiet", "--message", &subject]);
    }
    let pairs = set("CIPHERBENCH_PAIRS", 800).to_string();
    let more = ["--pairs", &pairs, "--json", "--quiet"];
    let gate = format!("tcp throughput drops > {percent} %");
    let mut ended = bisect(&sandbox, "main~32", &gate, &more);
    for _ in 0..RESUMES_MAX {
        if ended.code != Some(4) {
            break;
        }
        // So busy that it stopped: what it knows is in its folder.
        println!("{}", ended.stderr);
        let runs = fs::read_dir(sandbox.path("runs")).expect("the folder of the bisection");
        let is_bisection = |path: &PathBuf| path.to_string_lossy().contains("-bisect-");
        let mut folders = runs.flatten().map(|entry| entry.path());
        let folder = folders.find(is_bisection).expect("a bisection");
        let folder = folder.to_string_lossy();
        ended = end(&mut sandbox.program(&["bisect", "--resume", &folder, "--json", "--quiet"]));
    }
    println!("{}", ended.stdout);
    let Ok(result) = serde_json::from_str::<Value>(&ended.stdout) else {
        ended.exits(4);
        return;
    };
    match result["outcome"].as_str() {
        Some("found") => {
            let place = |key: &str| result[key].as_u64().expect("a place") as usize;
            let accused = place("first")..=place("last");
            assert!(accused.contains(&DELAYED), "{result:#}");
        }
        Some("undecided" | "no-change") => {}
        other => panic!("{other:?}: {result:#}"),
    }
}

const WINDOWS: &str = "\
campaign: windows
repeats: 1
duts:
  - direct:
      settings:
        usual: {}
        reno: { stations: { sysctls: { net.ipv4.tcp_congestion_control: reno } } }
        small: { stations: { sysctls: { net.ipv4.tcp_rmem: 4096 8192 8192 } } }
        same: {}
trials:
  - tcp: { mtu: 1400 B, duration: 1 s, warmup: 0 s }
";

pub(crate) fn the_set_with_a_small_window_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("campaign.yaml", WINDOWS);
    let words = [
        "bisect",
        "campaign.yaml",
        "--lab",
        "lab.yaml",
        "--settings",
        "usual,reno,small",
        "--gate",
        "tcp throughput drops > 50 %",
        "--pairs",
        "300",
        "--json",
        "--quiet",
    ];
    let result = found(end(&mut sandbox.program(&words)), 2);
    let named = &result["versions"][2];
    assert_eq!(named["name"], "small", "{named}");
    assert_eq!(
        named["settings"],
        "stations net.ipv4.tcp_rmem = 4096 8192 8192"
    );
    assert!(result["change"]["high"].as_f64() < Some(1.0), "{result}");
    // All cells of both sets are compared at the end.
    let run = &result["others"]["run"];
    let report = sandbox.path(run.as_str().expect("a run")).join("report.md");
    let report = fs::read_to_string(report).expect("a report");
    for dut in ["direct reno", "direct small"] {
        assert!(report.contains(dut), "{dut}: {report}");
    }
}
