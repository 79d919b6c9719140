//! Classes of service: mistakes, and the plan.

use crate::golden::{HOST, commands, compare};
use campaign::from_text;
use plan::{Dscp, to_text_here};

fn campaign(trial: &str) -> String {
    format!("campaign: c\nrepeats: 1\nduts: [cipherbench]\ntrials: [{trial}]\n")
}

#[test]
fn every_mistake_of_a_class_is_reported() {
    let mut all = String::new();
    for trial in [
        "ping: { mtu: 1400 B, dscp: eff }",
        "ping: { mtu: 1400 B, dscp: 46 }",
        "ping: { mtu: 1400 B, dscp: [ef, ef] }",
        "tcp: { mtu: 1400 B, dscp: [auto, ef], overlay: [none, vxlan] }",
        "throughput: { frame: 512 B, dscp: ef }",
        "ping: { mtu: 1400 B, load_dscp: [be, ef] }",
        "ping: { mtu: 1400 B, loaded: on, load_dscp: [be, be] }",
        "ping: { mtu: 1400 B, loaded: on, load_dscp: [be, voice] }",
        "tcp: { mtu: 1400 B, load_dscp: be }",
    ] {
        let mistakes = from_text("c.yaml", &campaign(trial)).map(drop).unwrap_err();
        all += &format!("{trial}\n{mistakes}\n\n");
    }
    compare("mistakes-classes.txt", &all);
}

#[test]
fn a_list_of_classes_makes_cells_of_each() {
    let trial = "ping: { mtu: 1400 B, loaded: on, load_dscp: [be, ef], dscp: [auto, be, ef, cs1] }";
    let parsed = from_text("c.yaml", &campaign(trial)).unwrap_or_else(|error| panic!("{error}"));
    let plan = parsed.plan(&parsed.usual_lab(), &HOST);
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let classes = plan.cells.iter().map(|cell| cell.stations.unwrap().dscp);
    let expected = [None, Some(Dscp::Be), Some(Dscp::Ef), Some(Dscp::Cs1)];
    assert_eq!(classes.collect::<Vec<_>>(), expected);
    compare(
        "plan-classes.txt",
        &to_text_here(&plan, HOST.cores.into(), commands),
    );
}
