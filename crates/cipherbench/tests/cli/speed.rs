//! Engines measured by themselves.

use crate::support::{Ended, Sandbox, end};
use serde_json::Value;
use std::fs;

/// `cipherbench speed` with a cache in the sandbox.
fn speed(sandbox: &Sandbox, arguments: &[&str]) -> Ended {
    let mut command = sandbox.program(&["speed"]);
    command
        .args(arguments)
        .env("XDG_CACHE_HOME", sandbox.path("cache"));
    end(&mut command)
}

pub(crate) fn every_engine_has_a_rate_for_every_size_and_direction() {
    let sandbox = Sandbox::new();
    let few = [
        "--sizes",
        "64,1500",
        "--duration",
        "2 ms",
        "--engine",
        "aws-lc",
    ];
    let ended = speed(&sandbox, &[&few[..], &["--json", "--quiet"]].concat()).exits(0);
    // Other tests run at the same time, about which it may warn.
    for line in ended.stderr.lines() {
        assert!(line.starts_with("warning: in "), "{line}");
    }
    let measured: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let figures = measured["figures"].as_array().expect("figures");
    assert_eq!(figures.len(), 2 * 3);
    for figure in figures {
        let number = |key: &str| {
            figure[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {figure}"))
        };
        assert_eq!(figure["engine"], "aws-lc");
        assert!(number("rate_bps_median") > 1e6, "{figure}");
        assert!(
            number("rate_bps_best") >= number("rate_bps_median"),
            "{figure}"
        );
        let bits = number("inner_bytes") * 8.0 * number("packets_per_s_best");
        assert!(
            (bits / number("rate_bps_best") - 1.0).abs() < 1e-6,
            "{figure}"
        );
    }

    let ended = speed(&sandbox, &few).exits(0);
    assert!(
        ended
            .stderr
            .starts_with("[1/6] aes-256-gcm aws-lc seal 64 B: "),
        "{}",
        ended.stderr
    );
    assert!(
        ended
            .stdout
            .starts_with("aes-256-gcm, Gbit/s of inner packets (one core, batches of 32)\n"),
        "{}",
        ended.stdout
    );
    for direction in ["seal", "seal-from", "open"] {
        let rows = ended
            .stdout
            .lines()
            .filter(|line| line.contains(&format!(" {direction} ")));
        assert_eq!(rows.count(), 2, "{}", ended.stdout);
    }
}

pub(crate) fn threads_are_measured_alone_and_together() {
    let sandbox = Sandbox::new();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    if cores < 2 {
        eprintln!("SKIPPED: this host has one core");
        return;
    }
    let words = [
        "--sizes",
        "256",
        "--duration",
        "2 ms",
        "--engine",
        "aws-lc",
        "--direction",
        "open",
    ];
    let ended = speed(
        &sandbox,
        &[&words[..], &["--threads", "2", "--quiet"]].concat(),
    )
    .exits(0);
    for words in [
        "(one core, batches of 32)",
        "(2 cores in parallel, ",
        "2 cores compared with one",
    ] {
        assert!(
            ended.stdout.contains(words),
            "{words} is not in:\n{}",
            ended.stdout
        );
    }
    let many = (cores + 1).to_string();
    speed(&sandbox, &["--threads", &many])
        .exits(2)
        .says("more than the")
        .says("help: ");
}

pub(crate) fn curves_are_charted_and_kept_in_the_cache() {
    let sandbox = Sandbox::new();
    let ended = speed(&sandbox, &["--curves", "--out", "out"]).exits(0);
    for words in [
        "aes-256-gcm, cost of a batch in ns",
        "the engine by length of the inner packets",
        "aes-256-gcm, seal in batches of 32, ns per packet\n",
        "aes-256-gcm, seal-from, ns per packet\n",
        "a aws-lc",
        "wrote out/speed.html",
    ] {
        assert!(
            ended.stdout.contains(words),
            "{words} is not in:\n{}",
            ended.stdout
        );
    }
    let page = fs::read_to_string(sandbox.path("out/speed.html")).expect("a page");
    assert_eq!(
        page.matches("<svg").count(),
        3,
        "a chart for each direction"
    );
    assert!(
        page.contains("cipherbench speed --curves") || page.contains("speed --curves --out out")
    );
    let json = fs::read_to_string(sandbox.path("out/speed.json")).expect("a document");
    let measured: Value = serde_json::from_str(&json).expect("JSON");
    let engines = measured["curves"][0]["engines"]
        .as_array()
        .expect("engines");
    assert!(engines.iter().any(|engine| engine["engine"] == "aws-lc"));
    // The curves of a named engine are never cached.
    for _ in 0..3 {
        let other = sandbox.path("another-cache");
        let mut command = sandbox.program(&["speed", "--curves", "--engine", "aws-lc"]);
        end(command.env("XDG_CACHE_HOME", &other)).exits(0);
        assert!(!other.join("cipherbench").exists());
    }
    // Curves measured while other tests ran need not be cached; nothing else may be there.
    let kept = fs::read_dir(sandbox.path("cache/cipherbench"))
        .into_iter()
        .flatten()
        .flatten();
    for entry in kept {
        assert_eq!(entry.file_name(), "curves-aes-256-gcm.json");
    }
}

pub(crate) fn insecure_suites_and_engines_are_marked_everywhere() {
    let sandbox = Sandbox::new();
    let suite = "des-cbc-hmac-sha1";
    let short = ["--sizes", "64", "--duration", "1 ms", "--direction", "seal"];
    let of_suite = [&["--suite", suite, "--engine", "rustcrypto"][..], &short].concat();
    let of_null = [&["--engine", "null"][..], &short].concat();
    let curves_of_null = ["--engine", "null", "--curves"];
    let all: [(&[&str], &str, &str); 3] = [
        (
            &of_suite,
            "des-cbc-hmac-sha1 (insecure), ",
            "insecure: des-cbc-hmac-sha1: DES keys of 56 bits are found by trying\n",
        ),
        (
            &of_null,
            "null (insecure)  seal",
            "insecure: the engine `null` neither encrypts nor authenticates\n",
        ),
        (
            &curves_of_null,
            "n null (insecure)",
            "insecure: the engine `null` neither encrypts nor authenticates\n",
        ),
    ];
    for (arguments, name, reason) in all {
        let ended = speed(
            &sandbox,
            &[arguments, &["--quiet", "--out", "out"]].concat(),
        )
        .exits(0);
        let page = fs::read_to_string(sandbox.path("out/speed.html")).expect("a page");
        for text in [name, reason] {
            assert!(ended.stdout.contains(text), "{text}:\n{}", ended.stdout);
        }
        assert!(
            page.contains("(insecure)") && page.contains(reason.trim()),
            "{page}"
        );
        let json = fs::read_to_string(sandbox.path("out/speed.json")).expect("a document");
        let measured: Value = serde_json::from_str(&json).expect("JSON");
        for figure in ["figures", "curves"]
            .iter()
            .flat_map(|key| measured[key].as_array().expect(key))
        {
            let insecure = figure["insecure"].as_str().expect("a reason");
            assert!(reason.contains(insecure), "{insecure}");
        }
    }
    let ended = speed(
        &sandbox,
        &[&short[..], &["--engine", "aws-lc", "--json"]].concat(),
    );
    assert!(!ended.exits(0).stdout.contains("insecure"));
}

pub(crate) fn impossible_measurements_are_refused() {
    let sandbox = Sandbox::new();
    speed(&sandbox, &["--suite", "rot13"])
        .exits(2)
        .says("the suite `rot13` is not known")
        .says("aes-256-gcm");
    speed(&sandbox, &["--engine", "opensll"])
        .exits(2)
        .says("there is no engine `opensll`")
        .says("help: known engines are auto, ");
    speed(
        &sandbox,
        &["--suite", "des-cbc-hmac-md5", "--engine", "aws-lc"],
    )
    .exits(2)
    .says("does not have des-cbc-hmac-md5")
    .says("help: ");
    sandbox.write("file", "");
    let ended = speed(&sandbox, &["--out", "file/folder"]).exits(2);
    ended.says("cannot write file/folder").says("help: ");
}
