//! What data sheets say, beside the cells that measure it.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text};
use plan::{Bound, ClaimUnit, Percentile, Plan, to_text};

const DUTS_AND_TRIALS: &str = "\
campaign: c
duts:
  - direct
  - cipherbench: { workers: [1, 2] }
trials:
  - tcp: { mtu: [1500 B, 9000 B], cores: [1, 2], streams: 4 }
  - udp: { mtu: 1500 B, datagram: [64 B, auto] }
  - ping: { mtu: 1500 B }
  - throughput: { frame: [64 B, imix], direction: [both, encrypt] }
  - latency: { frame: 64 B, loads: [10 %, 50 %] }
  - recovery: { frame: 64 B }
  - load: { frame: 64 B, rate: 1 kpps }
claims:
";

fn plan(claims: &str) -> Plan {
    let text = format!("{DUTS_AND_TRIALS}{claims}");
    let campaign = from_text("c.yaml", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    campaign.plan(&LabFile::built_in(), &HOST).unwrap()
}

#[test]
fn every_mistake_of_claims_is_reported_at_its_place() {
    let claims = "  - { dut: cipherbench, trial: http, at_least: 1 Gbit/s, source: x }
  - { dut: cipherbench, trial: tcp, source: x }
  - { dut: cipherbench, trial: tcp, at_least: 1 Gbit/s, at_most: 2 Gbit/s, source: x }
  - { dut: cipherbench, trial: tcp, at_least: 1 Mpps, source: x }
  - { dut: cipherbench, trial: udp, at_least: 1 Gbit/s L1, source: x }
  - { dut: cipherbench, trial: throughput, at_least: 1 Gbit/s, source: x }
  - { dut: cipherbench, trial: throughput, at_most: 50 µs, source: x }
  - { dut: cipherbench, trial: ping, at_most: 10 Gbit/s, source: x }
  - { dut: cipherbench, trial: ping, at_most: fast, source: \"\" }
  - { dut: cipherbench, trial: tcp, at_least: 1 Gbit/s, source: x, percentile: p99, mtu: 40 B, speed: 1 }
  - { trial: tcp, at_least: 0 bit/s }
  - { dut: cipherbench, trial: latency, at_most: 1 ms, source: x, load: 12.5 % }
  - tcp
";
    let text = format!("{DUTS_AND_TRIALS}{claims}");
    let mut all = format!("{}\n", from_text("c.yaml", &text).unwrap_err());
    // What can be wrong only beside the cells.
    let claims = "  - { dut: cipherbnch, trial: tcp, at_least: 1 Gbit/s, source: x }
  - { dut: cipherbench, trial: tcp, at_least: 1 Gbit/s, source: x, mtu: 1300 B }
  - { dut: cipherbench, trial: tcp, at_least: 1 Gbit/s, source: x, cores: 2, workers: 3 }
  - { dut: cipherbench, trial: tcp, at_least: 1 Gbit/s, source: x, frame: 64 B }
  - { dut: direct, trial: tcp, at_least: 1 Gbit/s, source: x, workers: 1 }
  - { dut: cipherbench, trial: throughput, at_least: 1 kpps, source: x, goal: mrr }
  - { dut: cipherbench, trial: ping, at_most: 1 ms, source: x, goal: ndr }
  - { dut: cipherbench, trial: latency, at_most: 1 ms, source: x, load: 90 % }
  - { dut: cipherbench, trial: throughput, at_least: 1 kpps, source: x, load: 50 %, frame: imix1 }
";
    let text = format!("{DUTS_AND_TRIALS}{claims}");
    all.push_str(&format!("\n{}\n", from_text("c.yaml", &text).unwrap_err()));
    let text = "campaign: c\nduts: [direct]\ntrials: [ping: { mtu: 1500 B }]\nclaims:\n  \
                - { dut: direct, trial: tcp, at_least: 1 Gbit/s, source: x }\n";
    all.push_str(&format!("\n{}\n", from_text("c.yaml", text).unwrap_err()));
    compare("claim-mistakes.txt", &all);
}

#[test]
fn a_plan_ends_with_its_claims() {
    let text = "\
campaign: c
duts: [cipherbench]
trials:
  - tcp: { mtu: 1400 B }
  - latency: { frame: 64 B, loads: 50 % }
claims:
  - { dut: cipherbench, trial: tcp, at_least: 10 Gbit/s, source: \"data sheet X, 2025\" }
  - dut: cipherbench
    trial: latency
    at_most: 50 µs
    percentile: p99
    load: 50 %
    source: offer of May
    conditions: AES-256-GCM, frames of 64 B, a core each
";
    let campaign = from_text("c.yaml", text).unwrap();
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    compare("claims-plan.txt", &to_text(&plan, |_| Vec::new()));
}

#[test]
fn a_claim_is_about_all_cells_that_meet_it() {
    let plan = plan(
        "  - { dut: cipherbench, trial: tcp, at_least: 10 Gbit/s, source: x }
  - { dut: cipherbench w2, trial: tcp, at_least: 10 Gbit/s, source: x, mtu: 9000 B, cores: 1, offloads: on }
  - { dut: cipherbench, trial: udp, at_most: 1 Gbit/s, source: x, datagram: 1472 B, workers: 1 }
  - { dut: cipherbench, trial: throughput, at_least: 1 Gbit/s L1, source: x, frame: imix, direction: encrypt }
  - { dut: direct, trial: ping, at_most: 50 µs, source: x, conditions: idle }
  - { dut: cipherbench, trial: recovery, at_most: 1 s, source: x }
",
    );
    let claims = plan.claims;
    let cells: Vec<_> = claims.iter().map(|claim| claim.cells.len()).collect();
    assert_eq!(cells, [8, 1, 1, 2, 1, 2]);
    assert_eq!(claims[1].cells, ["tcp/mtu=9000/cores=1/cipherbench-w2"]);
    // Two directions were configured; the calibration is no device about which anything could be
    // claimed.
    assert!(
        claims[3]
            .cells
            .iter()
            .all(|id| id.contains("direction=encrypt/cipherbench"))
    );
    assert_eq!(
        (claims[2].bound, claims[2].unit),
        (Bound::AtMost, ClaimUnit::PayloadBps)
    );
    assert_eq!(
        (claims[3].value, claims[3].unit),
        (1_000_000_000, ClaimUnit::L1Bps)
    );
    assert_eq!(claims[4].percentile, Some(Percentile::P50));
    assert_eq!(
        (claims[4].value, claims[4].conditions.as_str()),
        (50_000, "idle")
    );
    assert_eq!(claims[5].percentile, None);
}

#[test]
fn claims_of_cells_that_are_left_out_go_with_them() {
    let text = format!(
        "{DUTS_AND_TRIALS}  - {{ dut: cipherbench, trial: tcp, at_least: 1 bit/s, source: x, cores: 2 }}\n  \
         - {{ dut: cipherbench, trial: tcp, at_least: 1 bit/s, source: y }}\n"
    );
    let campaign = from_text("c.yaml", &text).unwrap().within_cores(1);
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    let sources: Vec<_> = plan
        .claims
        .iter()
        .map(|claim| claim.source.as_str())
        .collect();
    assert_eq!(sources, ["y"]);
    assert_eq!(plan.claims[0].cells.len(), 4);
    assert!(plan.calibration_only().claims.is_empty());
}
