//! Whole runs.

use crate::support::{PINGS, PROGRAM, Sandbox, end};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use testing::busy;

const DOCUMENTS: [&str; 4] = ["report.html", "report.md", "results.csv", "results.json"];

/// Both kinds of transfer and a ping, with and without encryption, at loads that leave room for
/// other tests.
const EVERYTHING: &str = "\
campaign: everything
repeats: 1
duts: [direct, cipherbench]
trials:
  - tcp: { mtu: 1500 B, streams: 2, duration: 1 s, warmup: 0 s }
  - udp: { mtu: 1500 B, datagram: 1400 B, rate: 5 Mbit/s, duration: 1 s, warmup: 0 s }
  - ping: { mtu: 9000 B, count: 60, interval: 10 ms }
";

pub(crate) fn a_run_ends_in_a_table_and_every_document() {
    let sandbox = Sandbox::new();
    let ended = sandbox.measures(&mut sandbox.run(EVERYTHING));
    let run = sandbox.only_run();
    for name in DOCUMENTS.iter().chain(&["journal.jsonl"]) {
        assert!(!sandbox.run_file(name).is_empty(), "{name} is empty");
    }
    let path = run.join("report.html").display().to_string();
    assert!(ended.stdout.contains(&path), "{}", ended.stdout);
    assert!(ended.stdout.lines().count() <= 80, "{}", ended.stdout);
    let full = end(sandbox
        .command(PROGRAM)
        .arg("report")
        .arg(&run)
        .arg("--full"))
    .exits(0);
    for name in DOCUMENTS.iter().chain(&["journal.jsonl"]) {
        let path = run.join(name).display().to_string();
        assert!(
            full.stdout.contains(&path),
            "{path} is not in:\n{}",
            full.stdout
        );
    }
    assert!(ended.stdout.contains("cipherbench"), "{}", ended.stdout);
    // Before anything is measured: how long it takes, and what begins.
    let begins = "campaign everything: 6 cells, 6 trials, ";
    assert!(ended.stderr.starts_with(begins), "{}", ended.stderr);
    let first = ended.stderr.lines().find(|line| line.starts_with("[1/6] "));
    assert!(
        first.is_some_and(|line| line.contains(" #1 begins, about ")),
        "{}",
        ended.stderr
    );
    // Piped: no colours, and a line for each trial.
    assert!(!ended.stdout.contains('\x1b') && !ended.stderr.contains('\x1b'));
    assert_eq!(
        ended
            .stderr
            .lines()
            .filter(|line| line.contains(" left)"))
            .count(),
        6,
        "{}",
        ended.stderr
    );
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    assert_eq!(
        journal.matches(r#""kind":"measured""#).count(),
        6,
        "{journal}"
    );
    let header: serde_json::Value =
        serde_json::from_str(journal.lines().next().expect("a header")).expect("JSON");
    let environment = &header["environment"];
    for known in ["cpu_model", "kernel", "os", "privilege"] {
        assert_ne!(environment[known], "", "{known} is not recorded");
    }
    assert!(environment["tools"]["iperf3"].is_string(), "{environment}");
    assert!(
        environment["engines"]["aws-lc"].is_string(),
        "{environment}"
    );
}

pub(crate) fn a_report_is_rebuilt_byte_for_byte() {
    let sandbox = Sandbox::new();
    sandbox.records(&mut sandbox.run(PINGS));
    let run = sandbox.only_run();
    let written = DOCUMENTS.map(|name| sandbox.run_file(name));
    for name in DOCUMENTS {
        fs::remove_file(sandbox.path("").join(&run).join(name)).expect("a document");
    }
    let run = run.to_str().expect("a plain name");
    // Another time zone, language and terminal must not affect the result.
    let mut report = sandbox.program(&["report", run]);
    sandbox.records(
        report
            .env("TZ", "Asia/Tokyo")
            .env("LC_ALL", "cs_CZ.UTF-8")
            .env("COLUMNS", "40"),
    );
    for (name, before) in DOCUMENTS.iter().zip(written) {
        assert!(sandbox.run_file(name) == before, "{name} differs");
    }
    // The journal is complete, so nothing is left to do.
    sandbox
        .records(&mut sandbox.program(&["resume", run]))
        .says("nothing is left to do");
}

pub(crate) fn json_output_is_pure_and_quiet_prints_nothing_else() {
    let sandbox = Sandbox::new();
    let ended = sandbox.measures(
        sandbox
            .run(PINGS)
            .args(["--json", "--quiet", "--repeats", "1"]),
    );
    assert_eq!(ended.stderr, "");
    assert_eq!(ended.stdout.as_bytes(), sandbox.run_file("results.json"));
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert!(result.is_object());
    let trials = sandbox.trials_recorded();
    assert_eq!(trials, 2, "--repeats has precedence over the campaign");
}

pub(crate) fn an_ordinary_user_runs_in_a_user_namespace() {
    const NOBODY: u32 = 65_534;
    let sandbox = Sandbox::new();
    let mut command = sandbox.run(PINGS);
    let mut outside = None;
    if nix::unistd::geteuid().is_root() {
        // The program may be in a folder that only root can read.
        let copy = sandbox.path("cipherbench");
        // By another process: a child forked by another test would inherit a file open for
        // writing, and the copy could not be executed (`ETXTBSY`).
        let copied = Command::new("cp")
            .args([PROGRAM.as_ref(), copy.as_path()])
            .status();
        assert!(copied.expect("cp runs").success());
        for path in [
            Path::new("."),
            Path::new("lab.yaml"),
            Path::new("campaign.yaml"),
        ] {
            chown(sandbox.path("").join(path), Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).expect("root may");
        command = sandbox.command(copy.to_str().expect("a plain name"));
        command.args(["run", "campaign.yaml", "--lab", "lab.yaml"]);
        command
            .env("TMPDIR", sandbox.path(""))
            .uid(NOBODY)
            .gid(NOBODY);
        outside = Some(NOBODY);
    }
    sandbox.records(&mut command);
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    assert!(
        journal.contains(r#""privilege":"root in a user namespace""#),
        "{journal}"
    );
    if let Some(uid) = outside {
        let owner = std::os::unix::fs::MetadataExt::uid(
            &fs::metadata(sandbox.path("").join(sandbox.only_run())).expect("a run"),
        );
        assert_eq!(owner, uid, "files belong to the user who ran it");
    }
}

/// A published table of one column, and a campaign that measures a part of it: the report prints
/// the table as published, with the ratio of the figure measured now, and a reason elsewhere.
pub(crate) fn a_published_table_stands_beside_what_was_measured() {
    const PUBLISHED: &str = "\
source = \"a data sheet\"
differs = \"published is a box, measured is this machine\"

[[table]]
id = \"7\"
title = \"TCP in clear\"
unit = \"Gbit/s\"
layer = \"payload\"
mtu = [1300, 1500]
cells = { trial = \"tcp\", rows = \"cores\", counts = { kind = \"goodput\", direction = \"one-way\" } }
[table.figures]
1 = [\"4.0 ± 0.1\", 5]
128 = [8.0, 10]

[[table]]
id = \"8\"
title = \"a box\"
columns = [\"rate\"]
absent = \"the box is not here\"
[table.figures]
box = [\"2 Gbit/s\"]
";
    const CAMPAIGN: &str = "\
campaign: beside
repeats: 3
missing_cores: skip
duts: [direct]
trials:
  - tcp: { mtu: 1500 B, duration: 60 s }
quick:
  repeats: 1
  trials:
    - tcp: { mtu: 1500 B, cores: [1, 128], duration: 1 s, warmup: 0 s }
published: own.toml
";
    let sandbox = Sandbox::new();
    sandbox.write("own.toml", PUBLISHED);
    let ended = end(sandbox.run(CAMPAIGN).arg("--quick"));
    // 128 cores are more than this machine has: the campaign expects that, so the run is good.
    sandbox.repeat_if_busy(|_| true);
    ended.exits(0);
    let page = String::from_utf8(sandbox.run_file("report.html")).expect("UTF-8");
    assert!(
        page.contains("for which a station needs up to 128 cores"),
        "one line says what was left out"
    );
    assert!(!page.contains("id=\"trouble\""), "nothing failed");
    let results: serde_json::Value =
        serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON");
    let beside = results["published"].as_array().expect("published figures");
    assert_eq!(beside.len(), 2, "{beside:?}");
    let found = &beside[0];
    let measured = found["measured"]["mean"].as_f64().expect("a figure");
    let ratio = found["ratio"].as_f64().expect("a ratio");
    assert!((ratio - measured / 5e9).abs() < 1e-9, "{found}");
    assert_eq!(found["at"]["column"], "MTU 1500");
    assert!(beside[1]["ratio"].is_null(), "{}", beside[1]);
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
    let (_, section) = report
        .split_once("Tables of the published report")
        .expect("the section");
    let row = section
        .lines()
        .find(|line| line.starts_with("| 1 | direct"));
    let row = row.unwrap_or_else(|| panic!("{section}"));
    assert!(
        row.contains("4.0 ± 0.1 / – / –") && row.contains("5 / "),
        "{row}"
    );
    for words in [
        "published is a box, measured is this machine",
        "no cell of the short form measures it",
        "the box is not here",
        "this machine has too few cores",
        "2 Gbit/s / – / –",
    ] {
        assert!(section.contains(words), "{words}: {section}");
    }
}

/// Every reference campaign, its devices and its published report as shipped, with the fewest
/// cells that measure one of its figures.
pub(crate) fn reference_campaigns_print_their_published_figures_beside_measured_ones() {
    const TRIALS: [(&str, &str); 5] = [
        (
            "vut-fekt-100g",
            "tcp: { mtu: 1500 B, duration: 1 s, warmup: 0 s, offloads: off, duts: [direct] }",
        ),
        (
            "baikal-gost",
            "tcp: { mtu: 1500 B, streams: 1, duration: 1 s, warmup: 0 s, offloads: off, duts: [cpu magma-ecb] }",
        ),
        (
            "vipnet-scaling",
            "tcp: { mtu: 9000 B, streams: 20, duration: 1 s, warmup: 0 s, offloads: off, duts: [cipherbench w4] }",
        ),
        (
            "crypto-card",
            "speed: { operation: [sha-256], size: 1024 B, duration: 100 ms, devices: [cpu, card] }",
        ),
        (
            "lancom-lcos",
            "throughput: { frame: 1418 B, direction: encrypt, goals: [{ name: ndr, loss: 0 %, width: 30 % }], \
             timeout: 4 s, duts: [gcm] }",
        ),
    ];
    for (name, trial) in TRIALS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = fs::read_to_string(root.join(format!("campaigns/{name}.yaml")));
        let text = text.expect("a shipped campaign");
        let (head, quick) = text.split_once("\nquick:\n").expect("a short form");
        let (_, published) = quick.split_once("\npublished:").expect("a reference");
        let shortest = format!(
            "{head}\nquick:\n  repeats: 1\n  trials:\n    - {trial}\npublished:{published}"
        );
        let sandbox = Sandbox::new();
        sandbox.write("campaign.yaml", &shortest);
        let mut command = sandbox.program(&["run", "campaign.yaml", "--quick"]);
        if !trial.starts_with("speed") {
            command.args(["--lab", "lab.yaml"]);
        }
        sandbox.measures(&mut command);
        let results: serde_json::Value =
            serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON");
        let beside = results["published"].as_array().expect("published figures");
        assert!(!beside.is_empty(), "{name}");
        for found in beside {
            // On a busy machine even the least load loses a frame in each trial of four seconds.
            if trial.starts_with("throughput") && found["measured"].is_null() {
                busy::too_busy(format!("{name}: no load without loss was found"));
            }
            assert!(found["ratio"].as_f64() > Some(0.0), "{name}: {found}");
        }
        let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
        assert!(report.contains("Tables of the published report"), "{name}");
    }
}
