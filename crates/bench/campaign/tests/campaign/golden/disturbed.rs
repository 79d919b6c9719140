//! What happens to a DUT under a load: every refusal, and plans as they print.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text, lab_from_text};
use plan::{BaseLoad, Event, Measurement, Procedure, to_text};

fn mistakes(text: &str) -> String {
    format!("{}\n", from_text("campaigns/ipsec.yaml", text).unwrap_err())
}

#[test]
fn every_mistake_is_reported_at_once() {
    let text = "\
campaign: ipsec
duts: [cipherbench]
trials:
  - rekey: { frame: 64 B, load: 10 kpps, profile: fast, max_load: 1 Gbit/s L1, every: 0 s }
  - rekey: { frame: 64 B, load: 101 %, every: 2 s, duration: 2 s }
  - rekey: { frame: 64 B, load: 1 Gbit/s, direction: [both, encrypt], evry: 1 s }
  - rekey: { frame: 64 B, load: 10 kpps, every: 10 ms, duration: 2 min }
  - failover: { frame: 64 B }
  - failover: { frame: 64 B, failure: [crash, cable, crash], times: 0, down: 2 h, watch: 1 ms }
  - failover: { frame: 64 B, failure: link, load: 20 frames/s, down: 40 ms }
  - reset: { frame: 64 B }
  - reset: { frame: 64 B, kind: [process, power, process], down: 1 s, watch: 2 h }
  - setup: { frame: 64 B, load: 33.3 %, times: 1001, failure: link, min_load: 5 frames/s }
  - hostile: { frame: 64 B, attack: flood, shares: [10 %, 1 %, 1001 %, 10] }
  - hostile: { frame: 64 B, attack: replay, load: 100 frames/s, duration: 500 ms }
  - hostile: { frame: 64 B, attack: replay, load: 90 %, timeout: 500 ms, min_load: 2 frames/s }
  - rekey: { frame: 64 B, load: 10 kpps, throughput: true }
  - desync: { frame: 64 B, cause: [wrong-keys, wrong-key], times: 0 }
  - soak: { frame: 64 B, load: 10 kpps, duration: [1 h, 25 h], point: 1 s, loss: 11 % }
  - soak: { frame: 64 B, load: 10 kpps, duration: 10 s, point: 6 s }
  - soak: { frame: 64 B, load: 1 frame/s, duration: 10 s, point: 100 ms, segment: 1 s, rate_drift: 0 % }
  - soak: { frame: 64 B, duration: 10 s, point: 2 s, segment: 1 s }
  - soak: { frame: 64 B, duration: 24 h, segment: 10 s, memory_drift: 101 % }
";
    compare("disturbed-mistakes.txt", &mistakes(text));
}

#[test]
fn a_disturbance_that_a_dut_does_not_support_is_reported_with_duts_that_do() {
    let text = "\
campaign: abilities
duts: [straight, direct, wireguard-go, openvpn, cipherbench: { mode: [l3, l2tpv3-clear], insecure: true }]
trials:
  - rekey: { frame: 64 B }
  - failover: { frame: 65 B, failure: [crash, link] }
  - reset: { frame: 65 B, kind: [process, orderly, command] }
  - setup: { frame: 66 B }
  - hostile: { frame: 67 B, attack: [bad-icv, replay] }
  - desync: { frame: 68 B, cause: wrong-keys }
";
    let mut all = mistakes(text);
    let alone = "campaign: a\nduts: [direct]\ntrials: [rekey: { frame: 64 B }]\n";
    all.push_str(&format!("\n{}", mistakes(alone)));
    compare("abilities-mistakes.txt", &all);
}

#[test]
fn a_lab_in_memory_and_a_slow_line_are_reported() {
    let text = "\
campaign: labs
duts: [cipherbench]
trials:
  - rekey: { frame: 64 B, load: 1488096 frames/s }
  - failover: { frame: 64 B, failure: link, max_load: 1 M frames/s }
  - soak: { frame: 64 B, load: 1488096 frames/s }
";
    let campaign = from_text("c.yaml", text).unwrap();
    let memory = LabFile::built_in_named("memory").unwrap();
    let wire = lab_from_text("l.yaml", "lab: wire\nlink_rate: 1 Gbit/s\n").unwrap();
    let errors = [memory, wire].map(|lab| campaign.plan(&lab, &HOST).unwrap_err().to_string());
    compare("disturbed-in-lab-mistakes.txt", &(errors.join("\n") + "\n"));
}

#[test]
fn a_plan_of_all_of_them_reads_well() {
    let text = "\
campaign: ipsec
repeats: 1
duts: [direct, cipherbench: { tunnels: [1, 100] }, cipherbench: { name: agreed, keys: pqc }]
trials:
  - rekey: { frame: 512 B, load: 10 Mbit/s L1, duts: cipherbench }
  - rekey: { frame: 512 B, load: 90 %, every: 100 ms, duration: 5 s, throughput: true, duts: cipherbench }
  - failover: { frame: 512 B, failure: link, load: 10 kpps }
  - failover: { frame: 512 B, failure: crash, load: 10 kpps, times: 3, duts: cipherbench }
  - reset: { frame: 512 B, kind: [process, orderly], load: 10 kpps, times: 3, duts: cipherbench }
  - setup: { frame: 512 B, duts: cipherbench, max_load: 100 kpps }
  - hostile: { frame: 512 B, attack: [bad-icv, replay], load: 10 kpps, duts: cipherbench }
  - desync: { frame: 512 B, cause: [wrong-keys, missed-rollover], load: 10 kpps, duts: agreed }
  - soak: { frame: 512 B, load: 10 kpps, duration: [2 min, 20 h], duts: [direct, agreed] }
  - soak: { frame: 512 B, load: 90 %, duration: 100 s, point: 500 ms, segment: 20 s, loss: 0.001 %, duts: direct }
";
    let campaign = from_text("c.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    // Each of these includes a control, so the tester's limit is no part of its result.
    assert!(plan.cells.iter().all(|cell| !cell.calibrates()));
    compare("disturbed-plan.txt", &to_text(&plan, |_| Vec::new()));
}

#[test]
fn what_is_left_open_has_its_defaults() {
    let text = "\
campaign: defaults
duts: [cipherbench, cipherbench: { name: agreed, keys: pqc }]
trials:
  - rekey: { frame: 64 B, duts: cipherbench }
  - failover: { frame: 64 B, failure: crash, duts: cipherbench }
  - reset: { frame: 64 B, kind: process, duts: cipherbench }
  - setup: { frame: 64 B, duts: cipherbench }
  - hostile: { frame: 64 B, attack: garbage, duts: cipherbench }
  - desync: { frame: 64 B, cause: missed-rollover, duts: agreed }
";
    let campaign = from_text("c.yaml", text).unwrap();
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    let events: Vec<Event> = plan
        .cells
        .iter()
        .map(|cell| {
            let Measurement::Frames(test) = &cell.measurement else {
                panic!("a frame test")
            };
            let Procedure::Disturbed(disturbed) = &test.procedure else {
                panic!("{:?}", test.procedure)
            };
            assert!(matches!(
                disturbed.load,
                BaseLoad::Share { percent: 50, .. }
            ));
            disturbed.event.clone()
        })
        .collect();
    let second = 1_000_000_000;
    let expected = [
        Event::Rekey {
            every_ns: second,
            duration_ns: 20 * second,
            throughput: false,
        },
        Event::Failover {
            failure: plan::Failure::Crash,
            times: 5,
            down_ns: second,
            watch_ns: 5 * second,
        },
        Event::Reset {
            kind: plan::Reset::Process,
            times: 5,
            watch_ns: 5 * second,
        },
        Event::Setup {
            times: 10,
            watch_ns: 2 * second,
        },
        Event::Hostile {
            attack: plan::Attack::Garbage,
            percents: vec![1, 10, 50, 100, 200],
            trial_ns: 5 * second,
        },
        Event::Desync {
            cause: plan::Desync::MissedRollover,
            times: 5,
            watch_ns: 5 * second,
        },
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_soak_that_is_left_open_has_its_defaults() {
    let text = "campaign: defaults\nduts: [direct]\ntrials: [soak: { frame: 64 B, duration: [2 min, 20 h] }]\n";
    let campaign = from_text("c.yaml", text).unwrap();
    let plan = campaign.plan(&LabFile::built_in(), &HOST).unwrap();
    let times: Vec<[u64; 3]> = plan
        .cells
        .iter()
        .map(|cell| {
            let Measurement::Frames(test) = &cell.measurement else {
                panic!("a frame test")
            };
            let Procedure::Soak(soak) = &test.procedure else {
                panic!("{:?}", test.procedure)
            };
            assert!(matches!(soak.load, BaseLoad::Share { percent: 50, .. }));
            assert_eq!(soak.loss_ppm, 0);
            assert_eq!(soak.drift.rate_ppm, 10_000);
            assert_eq!(soak.drift.latency_ppm, 500_000);
            assert_eq!(soak.drift.memory_ppm, 100_000);
            let others = (soak.drift.cpu_ppm, soak.drift.capacity_ppm);
            assert_eq!(others, (Some(200_000), Some(200_000)));
            assert_eq!(soak.probe_ns, Some(1_000_000_000));
            let seconds = |ns: u64| ns / 1_000_000_000;
            [soak.duration_ns, soak.point_ns, soak.segment_ns].map(seconds)
        })
        .collect();
    // Segments of long soaks are limited: an interrupted run loses at most one.
    assert_eq!(times, [[120, 1, 30], [72_000, 300, 600]]);
}
