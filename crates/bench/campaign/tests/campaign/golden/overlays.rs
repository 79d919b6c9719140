//! Overlay networks: mistakes, and the plan.

use crate::golden::{HOST, commands, compare};
use campaign::{from_text, lab_from_text};
use plan::{Overlay, to_text_here};

fn campaign(duts: &str, trial: &str) -> String {
    format!("campaign: c\nrepeats: 1\nduts: [{duts}]\ntrials: [{trial}]\n")
}

#[test]
fn every_mistake_of_an_overlay_is_reported() {
    let mut all = String::new();
    for trial in [
        "tcp: { mtu: 1400 B, overlay: vxlam }",
        "tcp: { mtu: 1400 B, overlay: [vxlan, vxlan] }",
        "tcp: { mtu: [600 B, 1400 B], overlay: [none, vxlan, geneve] }",
        "udp: { mtu: 1400 B, overlay: [none, vxlan], datagram: 1340 B }",
        "ping: { mtu: 1400 B, overlay: vxlan }",
        "throughput: { frame: 512 B, overlay: vxlan }",
    ] {
        let text = campaign("direct", trial);
        let mistakes = from_text("c.yaml", &text).map(drop).unwrap_err();
        all += &format!("{trial}\n{mistakes}\n\n");
    }
    let lab = lab_from_text("lab.yaml", "lab: l\npath: [nat]\n").unwrap();
    let trial = "tcp: { mtu: 1400 B, overlay: [none, vxlan] }";
    let text = campaign("direct, cipherbench", trial);
    let parsed = from_text("c.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let mistakes = parsed.plan(&lab, &HOST).map(drop).unwrap_err();
    all += &format!("behind a NAT: {trial}\n{mistakes}\n");
    compare("mistakes-overlay.txt", &all);
}

#[test]
fn a_list_of_overlays_makes_cells_of_each() {
    let trial = "tcp: { mtu: 1400 B, overlay: [none, vxlan, geneve] }";
    let parsed = from_text("c.yaml", &campaign("cipherbench", trial));
    let parsed = parsed.unwrap_or_else(|error| panic!("{error}"));
    let plan = parsed.plan(&parsed.usual_lab(), &HOST);
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let overlays = plan.cells.iter().map(|cell| cell.stations.unwrap().overlay);
    let expected = [Overlay::None, Overlay::Vxlan, Overlay::Geneve];
    assert_eq!(overlays.collect::<Vec<_>>(), expected);
    compare(
        "plan-overlay.txt",
        &to_text_here(&plan, HOST.cores.into(), commands),
    );
}
