//! Trials of crypto devices from the command line, without a lab or privileges.

use crate::support::{Ended, PROGRAM, Sandbox, end, finish, kill, start, wait_for};
use nix::sys::signal::SIGINT;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Child;

/// The outcomes of the only run's trials.
fn outcomes(sandbox: &Sandbox) -> Vec<Value> {
    sandbox.trials().into_values().collect()
}

pub(crate) fn a_functional_trial_ends_in_a_table() {
    let sandbox = Sandbox::new();
    let words = [
        "kat",
        "--device",
        "engine",
        "--device",
        "openssl",
        "sha-256,aes-128-cbc",
    ];
    end(&mut sandbox.program(&words)).exits(0);
    let outcomes = outcomes(&sandbox);
    assert_eq!(outcomes.len(), 2);
    for outcome in &outcomes {
        let rows = outcome["device"]["kat"].as_array().expect("rows");
        assert!(rows.iter().any(|row| row["outcome"] == "pass"), "{outcome}");
    }
    for name in ["report.html", "report.md", "results.csv", "results.json"] {
        assert!(!sandbox.run_file(name).is_empty(), "{name} is empty");
    }
}

pub(crate) fn speeds_of_devices_are_a_run() {
    let sandbox = Sandbox::new();
    let words = [
        "speed",
        "--device",
        "engine",
        "--operation",
        "sha-256,ecdsa-p256 sign",
        "--sizes",
        "16,1408",
        "--concurrency",
        "1,2",
        "--duration",
        "30 ms",
        "--repeats",
        "1",
    ];
    end(&mut sandbox.program(&words)).exits(0);
    let outcomes = outcomes(&sandbox);
    // Two sizes of one operation and none of the other, each with concurrency one and two.
    assert_eq!(outcomes.len(), (2 + 1) * 2);
    for outcome in &outcomes {
        let speed = &outcome["device"]["speed"];
        let operations = speed["devices"][0]["operations"].as_u64();
        assert!(
            operations.is_some_and(|operations| operations > 0),
            "{outcome}"
        );
    }
}

/// Ends a run by Ctrl-C once its worker has started.
pub(crate) fn nobody_else_may_write_to_a_run_whatever_the_umask_is() {
    let sandbox = Sandbox::new();
    let words = "umask 000; exec \"$0\" kat --device engine sha-256";
    let mut shell = sandbox.command("sh");
    end(shell.args(["-c", words, PROGRAM])).exits(0);
    let folder = sandbox.path(".").join(sandbox.only_run());
    let entries = fs::read_dir(&folder).expect("a run");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    for path in paths.chain([folder]) {
        let mode = fs::metadata(&path).expect("an entry").mode();
        assert_eq!(mode & 0o022, 0, "{}: {mode:o}", path.display());
    }
}

fn interrupt(sandbox: &Sandbox, child: Child) -> Ended {
    wait_for("a worker", || {
        let processes = sandbox.processes();
        let is_worker = |words: &String| words.trim_end().ends_with(" device");
        processes
            .iter()
            .map(|(_, words)| words)
            .any(is_worker)
            .then_some(())
    });
    let program = i32::try_from(child.id()).expect("a process id");
    kill(program, SIGINT);
    finish(child).exits(4)
}

pub(crate) fn an_interrupted_fatigue_trial_is_resumed() {
    let sandbox = Sandbox::new();
    let words = ["fatigue", "--threads", "2", "--duration", "3 s", "sha-256"];
    let child = start(&mut sandbox.interruptible(&words));
    interrupt(&sandbox, child).says("cipherbench resume runs/");
    let run = sandbox.only_run();
    let run = run.to_str().expect("a plain name");
    end(&mut sandbox.program(&["resume", run])).exits(0);
    let outcomes = outcomes(&sandbox);
    assert_eq!(outcomes.len(), 1);
    let segments = outcomes[0]["device"]["fatigue"]
        .as_array()
        .expect("segments");
    let elapsed = segments
        .iter()
        .map(|segment| segment["devices"][0]["elapsed_ns"].as_u64());
    let whole = elapsed.sum::<Option<u64>>().expect("times");
    assert!(whole >= 2_900_000_000, "{outcomes:?}");
}

pub(crate) fn a_device_with_wrong_results_exits_1() {
    let sandbox = Sandbox::new();
    let model = "model: { rate: 1 Gbit/s, errors: 100 %, fault: wrong }";
    end(&mut sandbox.program(&["kat", "--device", model, "sha-256"])).exits(1);
    let outcomes = outcomes(&sandbox);
    let rows = outcomes[0]["device"]["kat"].as_array().expect("rows");
    assert!(
        rows.iter().any(|row| row["outcome"]["wrong"].is_object()),
        "{outcomes:?}"
    );
}

pub(crate) fn invalid_trials_are_repeated_only_on_request() {
    let sandbox = Sandbox::new();
    let model = "model: { rate: 1 Gbit/s, errors: 100 %, fault: wrong }";
    let words = [
        "speed",
        "--device",
        model,
        "--operation",
        "sha-256",
        "--sizes",
        "64",
        "--duration",
        "2 s",
        "--repeats",
        "1",
    ];
    end(&mut sandbox.program(&words)).exits(1);
    let run = sandbox.only_run();
    let run = run.to_str().expect("a plain name");
    end(&mut sandbox.program(&["resume", run]))
        .exits(1)
        .says("nothing is left to do")
        .says("1 was found invalid: `--invalid` repeats it");
    let again = start(&mut sandbox.interruptible(&["resume", "--invalid", run]));
    interrupt(&sandbox, again).says("cipherbench resume --invalid runs/");
    assert_eq!(sandbox.trial_records().len(), 1);

    end(&mut sandbox.program(&["resume", "--invalid", run])).exits(1);
    let records = sandbox.trial_records();
    assert_eq!(records.len(), 2);
    let kinds = records.iter().map(|record| &record["outcome"]["kind"]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["invalid", "invalid"]);
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
    let warning = "1 trial was invalid (`results-right`) and repeated";
    assert!(report.contains(warning), "{report}");
}

pub(crate) fn unknown_and_unusable_devices_are_reported() {
    let sandbox = Sandbox::new();
    end(&mut sandbox.program(&["kat", "--device", "enigma"]))
        .exits(2)
        .says("`enigma` is not known")
        .says("softhsm");
    end(&mut sandbox.program(&["kat", "sha256"]))
        .exits(2)
        .says("did you mean sha-256?");
    end(&mut sandbox.program(&["speed", "--sizes", "16"]))
        .exits(2)
        .says("16 B is too short for a packet");
    let token = "pkcs11: { module: /nonexistent/module.so, pin_file: /nonexistent/pin }";
    end(&mut sandbox.program(&["kat", "--device", token, "sha-256"])).exits(1);
    let outcomes = outcomes(&sandbox);
    let reason = outcomes[0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("/nonexistent/"), "{reason}");
}
