//! Impairments of the path: mistakes, and the plan.

use crate::golden::{HOST, compare};
use campaign::{LabFile, from_text, lab_from_text};
use plan::{Axis, ImpairProfile, Value, to_text};

fn campaign(impairments: &str, trial: &str) -> String {
    format!(
        "campaign: c\nrepeats: 1\nduts: [direct]\nimpairments: {impairments}\ntrials: [{trial}]\n"
    )
}

const PING: &str = "ping: { mtu: 1500 B, impair: [none, bad] }";

#[test]
fn every_mistake_of_an_impairment_is_reported_at_once() {
    let mut all = String::new();
    for (impairments, trial) in [
        ("{ none: { loss: 1 % } }", PING),
        ("{ Bad One: { loss: 1 % } }", PING),
        ("{ bad: {} }", PING),
        ("{ bad: { a-to-b: { delay: 0 s } } }", PING),
        ("{ bad: { loss: 1 %, a-to-b: { delay: 1 ms } } }", PING),
        (
            "{ bad: { loss: 101 %, delay: 11 s, jitter: { time: 1 ms, distribution: gauss }, rate: 1 kbit/s } }",
            PING,
        ),
        ("{ bad: { loss: { p: 1 %, r: 0 % } } }", PING),
        ("{ bad: { loss: { p: 1 % }, reorder: 1 % } }", PING),
        ("{ bad: { queue: { time: 1 ms } } }", PING),
        (
            "{ bad: { rate: 1 Mbit/s, queue: { time: 1 ms, packets: 9 } } }",
            PING,
        ),
        (
            "{ bad: { loss: 1 % } }",
            "ping: { mtu: 1500 B, impair: [bat, bad, bad] }",
        ),
    ] {
        let text = campaign(impairments, trial);
        let mistakes = from_text("c.yaml", &text).unwrap_err();
        all.push_str(&format!("{mistakes}\n\n"));
    }
    let right = from_text("c.yaml", &campaign("{ bad: { loss: 1 % } }", PING)).unwrap();
    let mistakes = right.plan(&LabFile::built_in(), &HOST).unwrap_err();
    all.push_str(&format!("{mistakes}\n\n"));
    let twice = lab_from_text("l.yaml", "lab: l\npath: [impair, bridge, impair]\n").unwrap_err();
    all.push_str(&format!("{twice}\n"));
    compare("impairments-mistakes.txt", &all);
}

#[test]
fn a_plan_shows_each_cell_with_its_impairment() {
    let lab = lab_from_text("l.yaml", "lab: l\npath: [router, impair]\n").unwrap();
    let impairments = "{ bad: { a-to-b: { loss: { p: 1 %, r: 50 % } } } }";
    let text = campaign(
        impairments,
        "load: { frame: 64 B, rate: 9 kpps, impair: [none, bad] }",
    );
    let plan = from_text("c.yaml", &text)
        .unwrap()
        .plan(&lab, &HOST)
        .unwrap();
    compare("impairments-plan.txt", &to_text(&plan, |_| Vec::new()));
    // Frames of `straight` do not cross the element.
    let of = |dut: &str| {
        let cells = plan.cells.iter().filter(move |cell| cell.dut.name == dut);
        cells
            .map(|cell| cell.value(Axis::Impair))
            .collect::<Vec<_>>()
    };
    let named = |name: &str| Some(Value::from(name));
    assert_eq!(of("direct"), [named("none"), named("bad")]);
    assert_eq!(of("straight"), [None, None]);
    // Without the axis nothing is impaired.
    let text = campaign(impairments, "ping: { mtu: 1500 B }");
    let plan = from_text("c.yaml", &text)
        .unwrap()
        .plan(&lab, &HOST)
        .unwrap();
    assert_eq!(plan.cells[0].impair, Some(ImpairProfile::none()));
    assert_eq!(plan.cells[0].id, "ping/mtu=1500/direct");
}

#[test]
fn what_no_nat_passes_on_is_refused_with_what_to_do() {
    let text = "campaign: c\nduts:\n  - direct\n  - cipherbench: { name: ours }\n\
                \x20 - cipherbench: { name: wire, mode: l2tpv3 }\n  - xfrm\n\
                \x20 - strongswan: { name: bare, data_path: kernel }\n\
                \x20 - strongswan: { name: in udp, data_path: kernel-udp }\n\
                \x20 - l2tpv3: { name: ip, encapsulation: ip }\n\
                trials:\n";
    let lab = lab_from_text("l.yaml", "lab: l\npath: [nat]\n").unwrap();
    let mut all = String::new();
    for dut in ["wire", "xfrm", "bare", "ip"] {
        let text =
            format!("{text}  - ping: {{ mtu: 1500 B, duts: [direct, ours, in udp, {dut}] }}\n");
        let campaign = from_text("c.yaml", &text).unwrap();
        let mistakes = campaign.plan(&lab, &HOST).unwrap_err();
        all.push_str(&format!("{mistakes}\n\n"));
    }
    compare("nat-mistakes.txt", &all);
}
