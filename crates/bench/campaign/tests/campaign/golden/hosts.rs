//! Labs of two hosts: what joins them, and the plan.

use crate::golden::{HOST, compare};
use campaign::{from_text, lab_from_text};
use plan::to_text;

const REACH: [&str; 2] = ["reach: ssh root@left", "reach: ssh root@right"];

fn lab(more: [&str; 2], rest: &str) -> String {
    let [a, b] = [0, 1].map(|host| format!("{{ {}{} }}", REACH[host], more[host]));
    format!("lab: two\nkind: hosts\nhosts:\n  a: {a}\n  b: {b}\n{rest}")
}

const BOXES: &str = "external: { station_a: eth2, station_b: eth2 }\n";
const CABLE: [&str; 2] = [", interface: eth1"; 2];

#[test]
fn every_mistake_of_hosts_and_their_cables_is_reported() {
    let mut all = String::new();
    let tap = "external: { station_a: eth2, station_b: eth2, tap: [eth2, eth3], tap_host: a }\n";
    for text in [
        lab(["", ""], ""),
        lab([", interface: eth1", ""], BOXES),
        lab([", interface: eth2", ", interface: eth1"], BOXES),
        lab(CABLE, tap),
        lab(CABLE, &tap.replace(", tap_host: a", "")),
        lab(CABLE, &tap.replace("tap: [eth2, eth3], ", "")),
        lab(CABLE, &tap.replace("tap_host: a", "tap_host: c")),
        lab(CABLE, "path: [bridge]\nlink_rate: 1 Gbit/s\n"),
        lab(
            [
                ", interface: eth1, cpus: [2, 2]",
                ", interface: eth1, cpus: 1024",
            ],
            "",
        ),
        tap.replacen("external", "lab: one\nexternal", 1),
    ] {
        let mistakes = lab_from_text("labs/two.yaml", &text).unwrap_err();
        all.push_str(&format!("{mistakes}\n\n"));
    }
    compare("hosts-mistakes.txt", &all);
}

/// The cores of the hosts are theirs to say, and not this machine's.
#[test]
fn a_plan_shows_what_joins_the_hosts_and_what_is_not_known_of_them() {
    let text = "\
campaign: c
repeats: 1
duts: [external: { name: rack, boxes: [{}] }]
trials: [tcp: { mtu: 1400 B, cores: 64, duration: 1 s }]
";
    let campaign = from_text("campaigns/boxes.yaml", text).unwrap();
    let tapped = "external: { station_a: eth2, station_b: eth2, tap: [eth3, eth4], tap_host: b }\n";
    let mut all = String::new();
    for text in [lab([", cpus: [2, 3]", ""], BOXES), lab(CABLE, tapped)] {
        let lab = lab_from_text("labs/two.yaml", &text).unwrap();
        let plan = campaign.plan(&lab, &HOST).unwrap();
        all.push_str(&to_text(&plan, |_| Vec::new()));
        all.push('\n');
        // A journal needs no other file.
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<plan::Plan>(&json).unwrap(), plan);
    }
    compare("hosts-plan.txt", &all);
}

#[test]
fn devices_that_need_a_cable_or_a_link_past_the_gateways_are_refused() {
    let text = "\
campaign: c
duts: [direct, cipherbench, straight, external: { name: rack, boxes: [{}] }]
trials: [load: { frame: 512 B }]
";
    let gateway = "\
campaign: c
duts: [external: { gateway: { psk_file: /run/psk }, boxes: [{}] }]
trials: [load: { frame: 512 B, direction: encrypt, ports: xdp, cores: 2 }]
";
    let mut all = String::new();
    for (campaign, lab) in [
        (text, lab(["", ""], BOXES)),
        (text, lab(CABLE, "")),
        (gateway, lab(["", ""], BOXES)),
    ] {
        let campaign = from_text("campaigns/boxes.yaml", campaign).unwrap();
        let lab = lab_from_text("labs/two.yaml", &lab).unwrap();
        let mistakes = campaign.plan(&lab, &HOST).unwrap_err();
        all.push_str(&format!("{mistakes}\n\n"));
    }
    compare("hosts-in-lab-mistakes.txt", &all);
    let lab = lab_from_text("labs/two.yaml", &lab(CABLE, BOXES)).unwrap();
    let campaign = from_text("campaigns/boxes.yaml", gateway).unwrap();
    // Over their own cable hosts compare their clocks, and cards may have several queues.
    campaign.plan(&lab, &HOST).unwrap();
}
