//! Messages and plans as users see them. `UPDATE_GOLDEN=1 cargo test -p cipherbench-campaign`
//! rewrites the expected texts; review the difference like code.

mod claims;
mod classes;
mod devices;
mod disturbed;
mod expect;
mod external;
mod frames;
mod hosts;
mod http;
mod ike;
mod impairments;
mod orders;
mod overlays;
mod tunnels;
mod versions;

use campaign::{Campaign, HostFacts, LabFile, from_text, lab_from_text};
use plan::{Cell, to_text};
use std::path::Path;

const HOST: HostFacts = HostFacts { cores: 2 };

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    // Written first and compared all the same, so that a file that cannot be written is noticed.
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{name} differs; it is now:\n{actual}");
}

/// Stands for the commands of `trial`: enough to see where the plan prints them.
fn commands(cell: &Cell) -> Vec<Vec<String>> {
    let words = |text: String| text.split(' ').map(str::to_owned).collect();
    (0..cell.stations.map_or(0, |stations| stations.cores))
        .map(|core| {
            words(format!(
                "{} -p {} 10.2.0.2",
                cell.measurement.name(),
                5201 + core
            ))
        })
        .collect()
}

#[test]
fn every_mistake_of_a_campaign_is_reported_at_once() {
    let text = "\
campaign: IPv4 sweep
tittle: A slip
repeats: many
duts:
  - direct
  - cipherbench: { suite: [aes-256-gcm, aes256], workers: [1, 1], engine: openssl }
  - wiregard
  - direct: { name: direct }
  - cipherbench: { name: \"a/b\", cores: 2 }
trials:
  - tcp: { mtu: [40 B, 400 B, 1500, 9500 B], cores: 4, streams: [2, auto], window: 64 }
  - tcp: { cores: 0, duration: [2 s, 1.55 s, 500 ms], warmup: 500 ms, offloads: sometimes }
  - udp: { mtu: [1500 B, 9000 B], datagram: [8 B, 1473 B, auto], rate: 100 }
  - udp: { mtu: 1500 B, datagram: 64 B, rate: 1 Gbit/s, tune: on }
  - tcp: { mtu: 1500 B, streams: 4, window: 1 MiB, tune: on }
  - ping: { mtu: 1500 B, count: 0, interval: 1500 µs, payload: [16 B, 1473 B] }
  - ping: { mtu: 1500 B, count: 100000, interval: 10 s }
  - http: { mtu: 1500 B }
";
    let mistakes = from_text("campaigns/ipv4.yaml", text).unwrap_err();
    compare("campaign-mistakes.txt", &format!("{mistakes}\n"));
}

#[test]
fn mistakes_between_trials_and_duts_are_reported() {
    let list = |items: std::ops::RangeInclusive<u32>, unit: &str| {
        items
            .map(|i| format!("{i}{unit}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    // 128 × 87 points, and below 128 DUTs and 300 values: each list is beyond one of the limits.
    let many_points = format!(
        "[tcp: {{ mtu: 1500 B, streams: [{}], window: [{}] }}]",
        list(1..=128, ""),
        list(4..=90, " KiB")
    );
    let many_duts = format!("[cipherbench: {{ workers: [{}] }}]", list(1..=128, ""));
    let many_rates = format!(
        "[udp: {{ mtu: 1500 B, rate: [{}] }}]",
        list(1001..=1300, " bit/s")
    );
    let mut all = String::new();
    for (duts, trials) in [
        ("[direct]", "[]"),
        ("[]", "[tcp: { mtu: 1500 B }]"),
        ("[direct, direct]", "[ping: { mtu: 1500 B }]"),
        // The names differ, the ids of their cells would not.
        (
            "[direct: { name: a b }, direct: { name: a-b }]",
            "[ping: { mtu: 1500 B }]",
        ),
        (
            "[direct]",
            "\n  - tcp: { mtu: [1500 B, 9000 B] }\n  - tcp: { mtu: 9000 B }",
        ),
        ("[direct]", &many_points),
        (&many_duts, "[ping: { mtu: 1500 B }]"),
        ("[direct]", &many_rates),
        (
            "[direct]",
            "[tcp: { mtu: 1500 B, duration: 23 h, warmup: 0 s }]",
        ),
        ("[direct]", "[tcp: { mtu: 1500 B, duration: 24 h }]"),
        ("[direct]", "[tcp: { mtu: 1500 B, warmup: 300 ms }]"),
        ("[direct]", "[tcp: { mtu: 1500 B, tool: [iperf3, iperf] }]"),
        (
            "[direct]",
            "[udp: { mtu: 1500 B, datagram: [191 B, 192 B], tool: iperf2 }]",
        ),
        ("[direct]", "\n  - tcp:\n    mtu: 1500 B"),
    ] {
        // With 100 repeats, a trial of 23 hours takes longer than a campaign may.
        let text = format!("campaign: a\nrepeats: 100\nduts: {duts}\ntrials: {trials}\n");
        all.push_str(&format!("{}\n\n", from_text("c.yaml", &text).unwrap_err()));
    }
    compare("between-mistakes.txt", &all);
}

#[test]
fn every_mistake_of_a_lab_is_reported_at_once() {
    let text = "\
lab: My Lab
kind: namespace
cipher_mtu: [1500 B]
mtu: 1500 B
addresses:
  station_a: 10.1.0.0/16
  station_b: 8.8.8.0/24
  cypher: 192.0.2.0/24
";
    let mut all = format!("{}\n\n", lab_from_text("labs/mine.yaml", text).unwrap_err());
    for addresses in [
        "station_a: 192.0.2.0/24",
        "station_a: 10.9.0.0/24, station_b: 10.9.0.0/24",
        "cipher: fd00:1::/24",
        "cipher: 172.32.0.0/24",
        "cipher: 10.0.0.1",
    ] {
        let text = format!("lab: mine\naddresses: {{ {addresses} }}\n");
        all.push_str(&format!(
            "{}\n\n",
            lab_from_text("l.yaml", &text).unwrap_err()
        ));
    }
    for text in [
        "lab: a\nlink_rate: 1 Gpps\n",
        "lab: a\nlink_rate: 10 kbit/s\n",
        "lab: a\npath: [bridge, swich, router]\n",
        "lab: a\npath: bridge\n",
        "lab: a\npath: [bridge, router, bridge, router, bridge]\n",
        "lab: a\nkind: memory\ncipher_mtu: 1500 B\nlink_rate: 1 Gbit/s\npath: [bridge]\n\
         addresses: { station_a: 10.9.0.0/24 }\n",
    ] {
        all.push_str(&format!(
            "{}\n\n",
            lab_from_text("l.yaml", text).unwrap_err()
        ));
    }
    compare("lab-mistakes.txt", &all);
}

#[test]
fn missing_features_of_lab_and_host_are_reported_at_their_place_in_the_campaign() {
    let text = "\
campaign: too-much
duts: [direct, cipherbench: { suite: [aes-256-gcm, chacha20-poly1305] }]
trials:
  - tcp:
      mtu: [1400 B, 1438 B, 1439 B, 1500 B, 9000 B]
      cores: [1, 4, 8]
      streams: 8
  - ping: { mtu: 1501 B }
";
    let campaign = from_text("c.yaml", text).unwrap();
    let lab = lab_from_text("labs/e.yaml", "lab: e\ncipher_mtu: 1500 B\n").unwrap();
    let mistakes = campaign.plan(&lab, &HOST).unwrap_err();
    compare("plan-mistakes.txt", &format!("{mistakes}\n"));
    assert!(
        campaign
            // The same campaign is right elsewhere: each mistake above is the lab's or the
            // host's.
            .plan(&LabFile::built_in(), &HostFacts { cores: 8 })
            .is_ok()
    );
}

#[test]
fn the_quick_plan_reads_well() {
    let plan = Campaign::quick().plan(&LabFile::built_in(), &HOST).unwrap();
    compare("quick-plan.txt", &to_text(&plan, commands));
}

#[test]
fn a_plan_with_elements_names_them_in_the_order_of_the_path() {
    let text = "campaign: c\nduts: [direct]\ntrials: [ping: { mtu: 1500 B }]\n";
    let campaign = from_text("c.yaml", text).unwrap();
    let mut all = String::new();
    for path in ["[bridge]", "[bridge, router, impair]", "[nat]", "[]"] {
        let lab = lab_from_text("l.yaml", &format!("lab: a\npath: {path}\n")).unwrap();
        let plan = campaign.plan(&lab, &HOST).unwrap();
        let text = to_text(&plan, |_| Vec::new());
        let heading = text.split_once("\n\n").unwrap().0;
        all.push_str(&format!("{heading}\n\n"));
    }
    compare("path-plan.txt", &all);
}

#[test]
fn a_plan_of_every_axis_reads_well() {
    let text = "\
campaign: axes
duts:
  - cipherbench:
      name: box
      suite: [aes-128-gcm, chacha20-poly1305]
      workers: [1, 4]
      engine: [auto, aws-lc]
trials:
  - tcp: { mtu: 1500 B, window: [auto, 64 KiB], duration: 1.5 s, warmup: 500 ms }
  - tcp: { mtu: 1500 B, tune: on, warmup: 500 ms, duration: 1.5 s }
  - udp: { mtu: 9000 B, rate: [max, 1.5 Gbit/s], datagram: [auto, 64 B], offloads: off }
  - udp: { mtu: 9000 B, rate: 250 Mbit/s, duration: [10 s, 2 min], tune: on, offloads: off }
  - ping: { mtu: 576 B, payload: [20 B, 548 B] }
";
    let campaign = from_text("axes.yaml", text).unwrap();
    let lab = lab_from_text("l.yaml", "lab: wire\ncipher_mtu: 9100 B\n").unwrap();
    let plan = campaign.with_repeats(1).plan(&lab, &HOST).unwrap();
    compare("axes-plan.txt", &to_text(&plan, |_| Vec::new()));
}
