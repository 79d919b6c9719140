//! Runs compared, and exported.

use crate::support::{Ended, Sandbox, end};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A journal of format 1: TCP and ping, `direct` and `cipherbench`, one repeat.
fn old_journal() -> String {
    let path = "../model/journal/tests/fixture/format-1.jsonl";
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the journal")
}

fn place(sandbox: &Sandbox, run: &str, journal: &str) {
    fs::create_dir_all(sandbox.path(run)).expect("a folder");
    sandbox.write(&format!("{run}/journal.jsonl"), journal);
}

fn compare(sandbox: &Sandbox, words: &[&str]) -> Ended {
    end(&mut sandbox.program(&[&["compare"], words].concat()))
}

/// Runs a modelled device of known speed, into a folder of its own.
fn measured(sandbox: &Sandbox, out: &str, latency: &str) -> String {
    let device = format!("model: {{ rate: 1 Gbit/s, latency: {latency} }}");
    let words = [
        "speed",
        "--device",
        &device,
        "--operation",
        "sha-256",
        "--sizes",
        "64",
    ];
    let more = [
        "--duration",
        "100 ms",
        "--repeats",
        "4",
        "--out",
        out,
        "--quiet",
    ];
    end(&mut sandbox.program(&[&words[..], &more].concat())).exits(0);
    let runs = fs::read_dir(sandbox.path(out)).expect("a folder of runs");
    let run = runs.map(|run| run.expect("a run").file_name()).next();
    format!(
        "{out}/{}",
        run.expect("one run").to_str().expect("a plain name")
    )
}

pub(crate) fn a_device_of_half_the_speed_violates_a_gate() {
    let sandbox = Sandbox::new();
    let (base, slow) = (
        measured(&sandbox, "fast", "2 ms"),
        measured(&sandbox, "slow", "4 ms"),
    );
    let gates = [
        "--gate",
        "speed operations drops > 20 %",
        "--gate",
        "operations rises > 5 %",
    ];
    let files = ["--junit", "gates.xml", "--markdown", "comparison.md"];
    let words = [&[base.as_str(), slow.as_str()][..], &gates, &files].concat();
    let ended = compare(&sandbox, &words).exits(1);
    for words in [
        "latency_ns",
        "Regressions (1)",
        "2 gates: 1 violated, 1 passed",
    ] {
        assert!(ended.stdout.contains(words), "{words}:\n{}", ended.stdout);
    }
    let junit = fs::read_to_string(sandbox.path("gates.xml")).expect("written");
    assert!(junit.contains("failures=\"1\""), "{junit}");
    let markdown = fs::read_to_string(sandbox.path("comparison.md")).expect("written");
    assert!(markdown.contains("**violated**"), "{markdown}");
    // The other way round it is an improvement.
    let ended = compare(&sandbox, &[&slow, &base, "--json", gates[0], gates[1]]).exits(0);
    let found: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let change = &found["pairs"][0]["changes"][0];
    assert_eq!(change["direction"], "improvement");
    let ratio = change["ratio"].as_f64().expect("a ratio");
    assert!((1.5..2.5).contains(&ratio), "{change}");

    let metrics = end(&mut sandbox.program(&["export", &base, "--format", "openmetrics"])).exits(0);
    let name = "cipherbench_device_operations_per_second";
    let samples = metrics.stdout.lines().filter(|line| line.starts_with(name));
    assert_eq!(samples.count(), 4, "{}", metrics.stdout);
    assert!(metrics.stdout.ends_with("# EOF\n"), "{}", metrics.stdout);
    assert_prometheus_reads(&metrics.stdout, name);
    let words = ["export", &base, "--format", "influx", "--out", "run.lp"];
    end(&mut sandbox.program(&words)).exits(0);
    let lines = fs::read_to_string(sandbox.path("run.lp")).expect("written");
    assert_eq!(lines.lines().count(), 4, "{lines}");
}

/// Passes an export to the parser of Prometheus' Python client, where it is installed.
fn assert_prometheus_reads(metrics: &str, name: &str) {
    const PROGRAM: &str = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
        for family in read(sys.stdin.read()):\n    \
            print(family.name, family.type, family.unit, len(family.samples))";
    let python = |program: &str| {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", program]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let is_installed = python("import prometheus_client.openmetrics.parser").output();
    if !is_installed.is_ok_and(|ended| ended.status.success()) {
        eprintln!(
            "SKIPPED: python3-prometheus-client is not installed, so nothing but us read the export"
        );
        return;
    }
    let mut child = python(PROGRAM).spawn().expect("python3");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(metrics.as_bytes()).expect("it reads");
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let (out, error) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert!(ended.status.success(), "{error}");
    let expected = format!("{name} gauge operations_per_second 4");
    assert!(out.lines().any(|line| line == expected), "{out}");
}

pub(crate) fn old_cut_and_repeated_runs_are_compared_or_refused_with_their_place() {
    let sandbox = Sandbox::new();
    let journal = old_journal();
    let later = journal.replacen(
        "\"started_unix_ns\":1795177579585560497",
        "\"started_unix_ns\":1",
        1,
    );
    assert_ne!(journal, later);
    place(&sandbox, "old", &journal);
    place(&sandbox, "later", &later);
    place(&sandbox, "cut", &later[..later.len() - 400]);
    // One repeat of each: nothing is decided, which no gate passes.
    let ended = compare(&sandbox, &["old", "later"]).exits(0);
    for words in ["Undecided (6)", "the journal has format 1", "A  old: quick"] {
        assert!(ended.stdout.contains(words), "{words}:\n{}", ended.stdout);
    }
    compare(
        &sandbox,
        &["old", "later", "--gate", "throughput drops > 50 %"],
    )
    .exits(5);
    compare(
        &sandbox,
        &["old", "later", "--gate", "udp throughput drops > 50 %"],
    )
    .exits(5);
    let ended = compare(&sandbox, &["old", "cut"]).exits(0);
    assert!(
        ended.stdout.contains("it has not ended"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("of the journal is unfinished"),
        "{}",
        ended.stdout
    );
    // Within one run devices are compared, and those of other names between runs.
    let ended = compare(&sandbox, &["old", "--match", "direct=cipherbench"]).exits(0);
    assert!(
        ended.stdout.starts_with("Devices within old, "),
        "{}",
        ended.stdout
    );

    place(&sandbox, "copy", &journal);
    for (words, said) in [
        (&["old", "copy"][..], "old and copy are the same run"),
        (&["old"], "old is the only run"),
        (&["old", "nowhere"], "nowhere"),
        (
            &["old", "later", "--match", "direct=x"],
            "later has no device `x`",
        ),
        (
            &["old", "later", "--gate", "tcp troughput drops > 5 %"],
            "      ^^^^^^^^^\n",
        ),
        (&["old", "later", "--junit", "x.xml"], "--gate"),
        (&["old", "later", "--margin", "0"], "above 0"),
        (
            &["old", "later", "--markdown", "no/such/folder.md"],
            "cannot write no/such/folder.md",
        ),
    ] {
        let ended = compare(&sandbox, words).exits(2);
        assert!(ended.stderr.contains(said), "{said}:\n{}", ended.stderr);
    }
}
