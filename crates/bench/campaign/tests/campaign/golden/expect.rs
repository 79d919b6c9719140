//! Limits of a campaign, and the mistakes in them.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text, load};
use plan::{Plan, to_text};
use std::fs;

const DUTS_AND_TRIALS: &str = "\
campaign: c
duts: [direct, cipherbench, xfrm]
trials:
  - tcp: { mtu: [1500 B, 9000 B] }
  - udp: { mtu: 1500 B }
  - ping: { mtu: 1500 B }
  - load: { frame: 64 B, rate: 10 kpps }
  - latency: { frame: 64 B, loads: [10 %, 50 %] }
  - loss-curve: { frame: 64 B, step: 10 % }
expect:
";

fn plan(limits: &str) -> Plan {
    let text = format!("{DUTS_AND_TRIALS}{limits}");
    let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    campaign.plan(&LabFile::built_in(), &HOST).unwrap()
}

#[test]
fn every_mistake_of_limits_is_reported_at_its_place() {
    let limits = "  - tcp throughput >= 5
  - tcp thruput >= 5 Gbit/s
  - tcp throughput >= 5 Gbit/s p99 <= 1 ms
  - \"tcp throughput >= 5 ms\"
  - tcp throughput >=
  - 'tcp dut=\"a b throughput >= 5 Gbit/s'
  - tcp throughput = 5 Gbit/s
  - [tcp]
  - tcp throughput >= 80 % of run=nowhere
";
    let text = format!("{DUTS_AND_TRIALS}{limits}");
    let mut all = format!("{}\n", from_text("c.yaml", &text).unwrap_err());
    // What can be wrong only with the cells.
    let limits = "  - tcp dut=cipherbnch throughput >= 5 Gbit/s
  - mtu=1300 throughput >= 5 Gbit/s
  - http throughput >= 5 Gbit/s
  - tcp p99 <= 1 ms
  - load throughput >= 1 Gbit/s
  - tcp throughput >= 1 Mpps
  - load loss at 20 kpps = 0
  - latency p99 at 20 % <= 1 ms
  - tcp throughput drops > 5 %
  - tcp dut=direct throughput >= 80 % of baseline
  - tcp throughput >= 80 % of dut=xfmr
";
    let text = format!("{DUTS_AND_TRIALS}{limits}");
    all.push_str(&format!("\n{}\n", from_text("c.yaml", &text).unwrap_err()));
    compare("expect-mistakes.txt", &all);
}

/// Limits that are wrong only with the cells are reported together with all other mistakes.
#[test]
fn no_mistake_hides_that_a_limit_fits_no_cell() {
    let text = DUTS_AND_TRIALS
        .replace(
            "campaign: c",
            "campaign: c\nlab: weather\nrepeats: 0\ncalibrate: maybe",
        )
        .replace(
            "expect:",
            "claims: [{ dut: xfmr, trial: tcp, at_least: 1 Gbit/s, source: s }]\nexpect:",
        );
    let limits = "  - tcp throughput >= 5\n  - tcp dut=cipherbnch throughput >= 5 Gbit/s\n";
    let mistakes = from_text("c.yaml", &format!("{text}{limits}")).unwrap_err();
    let found = mistakes.to_string();
    for words in [
        "known labs are namespaces, memory, device; leave `lab` out, and measure it there with `--lab weather`",
        "(repeats)",
        "(calibrate)",
        "(claims[0]",
        "(expect[0])",
        "(expect[1])",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
}

#[test]
fn a_plan_has_its_limits_as_written() {
    let plan = plan(
        "  - tcp dut=cipherbench throughput >= 1 Gbit/s
  - tcp throughput >= 20 % of baseline
  - tcp dut=cipherbench throughput drops > 80 % against dut=xfrm
  - round trip p99 <= 3 ms
  - latency p99 at 50 % <= 2 ms
  - loss at 10 kpps = 0
  - loss-curve loss at 50 % <= 1 %
  - udp loss <= 10 ppm
",
    );
    assert_eq!(plan.expect.limits.len(), 8);
    let text = to_text(&plan, |_| Vec::new());
    let end = text.find("\nexpected\n").map(|at| &text[at..]).unwrap();
    assert!(end.contains("  round trip p99 <= 3 ms\n"), "{end}");
    // A plan of a journal is the same plan.
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn a_limit_is_found_in_a_folder_that_is_no_run() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("old")).unwrap();
    let path = dir.path().join("c.yaml");
    let limit = "  - tcp throughput drops > 5 % against run=old\n";
    fs::write(&path, format!("{DUTS_AND_TRIALS}{limit}")).unwrap();
    let error = load(&path, &HOST).unwrap_err().to_string();
    assert!(error.contains("c.yaml:11:40"), "{error}");
    assert!(error.contains("help: name the folder of a run"), "{error}");
}
