//! Programs that a campaign needs and this host lacks: one search for all commands, and reports
//! before anything is measured.

use crate::support::{PINGS, Sandbox, end};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Pings through two devices, one of which needs two programs, and TCP by another program.
const PEERS: &str = "\
campaign: peers
repeats: 1
duts: [direct, gotatun]
trials:
  - ping: { mtu: 1400 B, count: 20, interval: 10 ms }
  - tcp: { mtu: 1400 B, duration: 1 s, tool: iperf2 }
";

const MISSING: [&str; 3] = ["gotatun", "wg", "iperf"];

/// The lines of the warning, and of the error, about [`PEERS`] without [`MISSING`].
const LINES: &str = "3 programs that this campaign needs are not installed here
  wg       for DUT gotatun: 2 of 4 cells
           install: make peers, or sudo apt install wireguard-tools
  gotatun  for DUT gotatun: 2 of 4 cells
           install: make peers, or cargo install gotatun-cli
  iperf    for tcp: 2 of 4 cells
           install: make peers, or sudo apt install iperf
";

pub(crate) fn check_and_plan_warn_of_missing_programs() {
    let sandbox = Sandbox::new();
    sandbox.write("peers.yaml", PEERS);
    let ended = |words: &[&str]| {
        let mut command = sandbox.program(words);
        end(sandbox.without_programs(&MISSING, &mut command)).exits(0)
    };
    let help = "help: install them before `run`, which refuses, or leaves cells out with `--skip-missing`\n";
    let checked = ended(&["check", "peers.yaml"]);
    assert!(
        checked
            .stdout
            .starts_with("ok  peers.yaml  campaign peers: 4 cells")
    );
    assert_eq!(
        checked.stderr,
        format!("warning: peers.yaml: {LINES}{help}")
    );
    let planned = ended(&["plan", "peers.yaml"]);
    assert_eq!(planned.stderr, format!("warning: {LINES}{help}"));
    let planned = ended(&["plan", "peers.yaml", "--json"]);
    assert_eq!(planned.stderr, "");
    let planned: Value = serde_json::from_str(&planned.stdout).expect("JSON");
    let missing = planned["missing"].as_array().expect("a list");
    let names: Vec<_> = missing.iter().map(|it| &it["program"]).collect();
    assert_eq!(names, ["wg", "gotatun", "iperf"]);
    assert_eq!(missing[1]["needed_by"][0], "DUT gotatun");
    assert_eq!(
        missing[1]["install"],
        "make peers, or cargo install gotatun-cli"
    );
    let cells: Vec<_> = missing[2]["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .collect();
    assert_eq!(cells.len(), 2);
    assert!(
        cells
            .iter()
            .all(|id| id.as_str().expect("an id").starts_with("tcp/"))
    );
}

pub(crate) fn a_lab_demands_only_programs_that_its_cells_need() {
    let sandbox = Sandbox::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let root = root.expect("two folders deep");
    let silent = |words: &[&str]| {
        let mut command = sandbox.program(&["check"]);
        command.args(words).current_dir(root);
        let missing = ["gotatun", "wg", "iperf", "softhsm2-util"];
        let ended = end(sandbox.without_programs(&missing, &mut command)).exits(0);
        for program in missing {
            let line = format!("  {program} ");
            assert!(!ended.stderr.contains(&line), "{words:?}: {}", ended.stderr);
        }
    };
    // Boxes outside of this machine, a lab in memory, and devices.
    silent(&["campaigns/external-routeros.yaml", "labs/external.yaml"]);
    silent(&["campaigns/memory.yaml"]);
    silent(&["campaigns/gost-engines.yaml"]);
}

pub(crate) fn a_run_without_its_programs_is_refused_before_anything_is_made() {
    let sandbox = Sandbox::new();
    let run = |campaign: &str, options: &[&str]| {
        let mut command = sandbox.run(campaign);
        command.args(options);
        let ended = end(sandbox.without_programs(&MISSING, &mut command)).exits(3);
        assert!(!sandbox.path("runs").exists(), "nothing was begun");
        ended
    };
    let help = "help: install what is missing, or measure the other cell with `--skip-missing`; no trial was run\n";
    assert_eq!(run(PEERS, &[]).stderr, format!("error: {LINES}{help}"));
    // With nothing left to measure there is no run.
    let one = PEERS.replace("direct, gotatun", "gotatun");
    for options in [&["--skip-missing"][..], &[]] {
        let refused = run(&one, options).says("for DUT gotatun: all cells");
        assert!(
            !refused.stderr.contains("--skip-missing"),
            "{}",
            refused.stderr
        );
    }
}

pub(crate) fn a_device_without_its_programs_is_refused() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.program(&["kat", "--device", "softhsm", "sha-256"]);
    end(sandbox.without_programs(&["softhsm2-util"], &mut command))
        .exits(3)
        .says("softhsm2-util  for DUT softhsm: all cells")
        .says("install: sudo apt install softhsm2");
    assert!(!sandbox.path("runs").exists(), "nothing was begun");
}

pub(crate) fn cells_without_their_programs_are_left_out_on_request_and_measured_later() {
    let sandbox = Sandbox::new();
    let tcp = PINGS.replace(
        "  - ping",
        "  - tcp: { mtu: 1500 B, duration: 1 s }\n  - ping",
    );
    let mut command = sandbox.run(&tcp);
    let ended = end(sandbox
        .without_programs(&["iperf3"], &mut command)
        .arg("--skip-missing"));
    let ended = ended
        .exits(1)
        .says("warning: a program that this campaign needs is not installed here")
        .says("iperf3  for tcp: 2 of 4 cells")
        .says("going on with the other 2 cells");
    assert!(
        ended.stdout.contains("left out by `--skip-missing`"),
        "the report has the reason instead of a figure:\n{}",
        ended.stdout
    );
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
    let reason = "left out by `--skip-missing`: `iperf3` is not installed here; help: sudo apt install iperf3";
    assert!(report.contains(reason), "{report}");
    let trials = sandbox.trials();
    assert_eq!(trials.len(), 8);
    for ((cell, _), outcome) in &trials {
        assert_eq!(
            outcome["kind"] == "failed",
            cell.starts_with("tcp/"),
            "{cell}"
        );
    }
    // What is left needs the program still, and is measured once it is there.
    let run = sandbox.only_run();
    let resume = ["resume", run.to_str().expect("a plain name")];
    let mut command = sandbox.program(&resume);
    end(sandbox.without_programs(&["iperf3"], &mut command))
        .exits(3)
        .says("iperf3  for tcp: all cells");
    assert_eq!(sandbox.trial_records().len(), 8);
    sandbox.measures(&mut sandbox.program(&resume));
}

/// Stands in for a program that makes others: prints its version, or does its work.
fn fake(sandbox: &Sandbox, name: &str, script: &str) {
    let path = sandbox.path("bin").join(name);
    assert!(!path.exists(), "{name} is this host's own");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its owner may");
}

pub(crate) fn what_make_peers_installs_is_found_without_a_variable() {
    let sandbox = Sandbox::new();
    let peers = ["wireguard-go", "boringtun-cli", "gotatun"];
    let fakes = ["go", "cargo", "dpkg-query", "python3"];
    let missing = [&peers[..], &fakes].concat();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    let script = root.expect("two folders deep").join("scripts/peers.sh");
    let mut command = sandbox.command("sh");
    command.arg(script);
    sandbox.without_programs(&missing, &mut command);
    const MAKE: &str = "printf '#!/bin/sh\\necho %s v1.2.3\\n' \"$it\" >\"$to\"; chmod +x \"$to\"";
    // As `go install` names it.
    let go = format!("mkdir -p \"$GOBIN\"; it=wireguard-go to=$GOBIN/wireguard; {MAKE}");
    fake(&sandbox, "go", &go);
    let cargo = format!(
        "while [ $# -gt 2 ]; do [ \"$1\" != --root ] || root=$2; shift; done
        case $2 in gotatun-cli) it=gotatun;; *) it=$2;; esac
        mkdir -p \"$root/bin\"; to=$root/bin/$it; {MAKE}"
    );
    fake(&sandbox, "cargo", &cargo);
    fake(&sandbox, "dpkg-query", "echo installed");
    fake(&sandbox, "python3", "exit 0");
    let installed = end(&mut command).exits(0);
    let mut doctor = sandbox.program(&["doctor", "--json"]);
    let ended = end(sandbox.without_programs(&missing, &mut doctor));
    let found: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let findings = found["findings"].as_array().expect("findings");
    for name in peers {
        let finding = findings.iter().find(|finding| finding["name"] == name);
        let finding = finding.expect("every program is listed");
        let path = sandbox.path(".cache/cipherbench-peers/bin").join(name);
        let expected = format!("1.2.3, {}", path.display());
        assert_eq!(finding["found"], expected, "{}", installed.stderr);
    }
    sandbox.write(
        "peers.yaml",
        &PEERS.replace("gotatun]", "gotatun, boringtun, wireguard-go]"),
    );
    let mut check = sandbox.program(&["check", "peers.yaml"]);
    let checked = end(sandbox.without_programs(&missing, &mut check)).exits(0);
    for name in peers {
        let line = format!("  {name} ");
        assert!(!checked.stderr.contains(&line), "{}", checked.stderr);
    }
}
