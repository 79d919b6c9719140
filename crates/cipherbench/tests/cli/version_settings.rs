//! Settings as versions: applied, recorded, compared, and restored.

use crate::support::{Ended, Sandbox, end};
use serde_json::Value;

const SMALL: &str = "4096 8192 8192";

fn campaign(settings: &str, repeats: u32) -> String {
    format!(
        "campaign: settings\nrepeats: {repeats}\nduts:\n  - direct:\n      settings:\n{settings}\
         trials:\n  - tcp: {{ mtu: 1400 B, duration: 1 s, warmup: 0 s }}\n"
    )
}

/// The facts about a DUT in each of its trials.
fn facts(sandbox: &Sandbox, dut: &str) -> Vec<Value> {
    let records = sandbox.trial_records().into_iter();
    let of_dut = records.filter(|record| {
        let cell = record["cell"].as_str().expect("a cell");
        cell.split('/').any(|part| part == dut)
    });
    of_dut
        .map(|record| {
            // Of an invalid trial the measured values are a level deeper.
            let outcome = &record["outcome"];
            let measured = outcome.get("measured").unwrap_or(outcome);
            measured["evidence"]["dut_facts"].clone()
        })
        .collect()
}

pub(crate) fn a_smaller_window_is_applied_compared_and_restored() {
    let sandbox = Sandbox::new();
    let settings = format!(
        "        usual: {{}}\n        small:\n          stations:\n            sysctls: {{ \
         net.ipv4.tcp_rmem: {SMALL}, net.ipv4.tcp_wmem: {SMALL} }}\n            ethtool: {{ tso: off }}\n          \
         gateways: {{ ethtool: {{ gro: on }} }}\n"
    );
    let ended = sandbox.records(&mut sandbox.run(&campaign(&settings, 4)));
    let small = facts(&sandbox, "direct-small");
    assert_eq!(small.len(), 4, "{small:?}");
    for found in &small {
        for name in [
            "a/net.ipv4.tcp_rmem",
            "a/net.ipv4.tcp_wmem",
            "b/net.ipv4.tcp_rmem",
        ] {
            let value = found[name].as_str().unwrap_or_default();
            assert!(
                value.starts_with(&format!("{SMALL}, was ")),
                "{name}: {found}"
            );
        }
        let features: Vec<&Value> = found.as_object().unwrap().values().collect();
        let has = |text: &str| features.iter().filter(|it| **it == text).count();
        assert_eq!((has("off, was on"), has("on, was off")), (4, 4), "{found}");
        // What each trial found before it: all was restored exactly.
        assert_eq!(found, &small[0]);
    }
    // The check of offloads knows that they differ, and says so.
    let journal = String::from_utf8(sandbox.run_file("journal.jsonl")).expect("UTF-8");
    let words = "except, as the settings of this version ask, tcp-segmentation-offload off at a, ";
    assert_eq!(journal.matches(words).count(), 4, "{words}");
    for found in facts(&sandbox, "direct-usual") {
        assert!(!found.to_string().contains("tcp_rmem"), "{found}");
    }
    // Figures only where the machine had time for them.
    sandbox.measured(ended);
    let results: Value = serde_json::from_slice(&sandbox.run_file("results.json")).expect("JSON");
    let contrasts = results["contrasts"].as_array().expect("a contrast");
    let contrast = contrasts
        .iter()
        .find(|it| it["contrast"] == "versions" && it["metric"] == "payload-throughput")
        .unwrap_or_else(|| panic!("{contrasts:?}"));
    assert_eq!(contrast["dut"], "direct small");
    assert_eq!(contrast["twin"], "direct usual");
    let ratio = contrast["ratio"]["mean"].as_f64().expect("a ratio");
    assert!(ratio < 0.8, "{contrast}");
    let report = String::from_utf8(sandbox.run_file("report.md")).expect("UTF-8");
    for words in [
        "Versions compared with the first one",
        r"settings small: stations net.ipv4.tcp\_rmem = 4096 8192 8192",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

pub(crate) fn a_setting_that_the_namespace_refuses_fails_its_cell_in_words() {
    let sandbox = Sandbox::new();
    let sysctl =
        |name: &str, value: &str| format!("{{ stations: {{ sysctls: {{ {name}: {value} }} }} }}");
    let settings = format!(
        "        usual: {{}}\n        unknown: {}\n        short: {}\n        fixed: {{ stations: {{ \
         ethtool: {{ ntuple: on }} }} }}\n",
        sysctl("net.ipv4.tcp_congestion_control", "nosuch"),
        sysctl("net.ipv4.tcp_rmem", "4096 8192"),
    );
    let ended = end(&mut sandbox.run(&campaign(&settings, 1)));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for ((cell, _), outcome) in sandbox.trials() {
        let reason = outcome["reason"].as_str().unwrap_or_default();
        let words: &[&str] = match &cell {
            cell if cell.contains("unknown") => &[
                "cannot have its settings `unknown`: a cannot set \
                 net.ipv4.tcp_congestion_control to nosuch: ",
                "help: `sysctl net.ipv4.tcp_available_congestion_control` lists",
            ],
            cell if cell.contains("short") => &[
                "a cannot set net.ipv4.tcp_rmem to 4096 8192: it reads back as 4096 8192 ",
                "help: write a value that the kernel keeps",
            ],
            cell if cell.contains("fixed") => &[
                "of a cannot have ntuple-filters on: its driver fixes it",
                "help: see `ethtool -k`",
            ],
            _ => &[],
        };
        for words in words {
            assert!(reason.contains(words), "{words}: {outcome}");
        }
    }
}

pub(crate) fn an_unknown_parameter_is_named_by_check_and_refused_by_run() {
    let sandbox = Sandbox::new();
    let settings = "        usual: {}\n        typo: { stations: { sysctls: { net.ipv4.tcp_rnem: 1 2 3 } } }\n";
    let text = campaign(settings, 1);
    sandbox.write("campaign.yaml", &text);
    let line = "settings of DUT `direct typo`: this kernel has no parameter net.ipv4.tcp_rnem\nhelp: see \
                `sysctl -a`";
    let names = |ended: Ended| assert!(ended.stderr.contains(line), "{}", ended.stderr);
    names(end(&mut sandbox.program(&["check", "campaign.yaml"])).exits(0));
    names(end(&mut sandbox.run(&text)).exits(3));
    assert!(!sandbox.path("runs").exists(), "nothing was begun");
}
