//! Floods of ARP and of neighbour discovery, in frames of the usual size, during trials by tools:
//! each is found, on each link and either way.

use crate::hidden::python;
use crate::sabotage::{MS, sabotaged_after, tcp};
use crate::trials::{TestLab, cell, encrypting, ping};
use plan::{Adapter, Cell, Encryptor, Measurement, Mode};
use testbed::NodeId;
use wire::Suite;

/// Frames of a flood.
const FRAMES: u64 = 20_000;
/// Of these a full backlog may drop some, and on a busy machine some come after the trial.
const FOUND_LEAST: u64 = 1000;
/// Frames of neighbours that a node may receive in a trial of a few seconds when nobody floods.
const USUAL_MOST: u64 = 24;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 3] = [
    ("floods_during_a_transfer", floods_during_a_transfer),
    ("floods_during_a_ping", floods_during_a_ping),
    (
        "hosts_that_look_one_another_up_are_no_flood",
        hosts_that_look_one_another_up_are_no_flood,
    ),
];

/// Sends broadcasts of ARP of 42 B, or solicitations of neighbours of 86 B.
const FLOOD: &str = "\
import socket
sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
sender.bind(('INTERFACE', 0))
mac = '02cb000000b0'
arp = 'ff' * 6 + mac + '08060001080006040001' + mac + '0a020002' + '00' * 6 + '0a020063'
to = 'fe80' + '00' * 13 + '63'
nd = '3333ff000063' + mac + '86dd' + '6000000000203aff' + 'fe80' + '00' * 13 + 'b0'
nd += 'ff02' + '00' * 9 + '01ff000063' + '8700000000000000' + to + '0101' + mac
frame = bytes.fromhex(KIND)
for _ in range(FRAMES):
    try:
        sender.send(frame)
    except OSError:
        pass
";

/// Floods a link from one of its ends from the tool's first bytes on, and expects that the node at
/// the other end says how many frames came.
fn assert_found(cell: &Cell, [from, to]: [(NodeId, &'static str); 2], kind: &str) {
    let (node, interface) = from;
    let script = FLOOD
        .replace("INTERFACE", interface)
        .replace("FRAMES", &FRAMES.to_string())
        .replace("KIND", kind);
    let begun_bytes = match cell.measurement {
        // A ping sends few bytes: some dozens of requests have passed by then.
        Measurement::Ping { .. } => 5000,
        _ => 2_000_000,
    };
    let reasons = sabotaged_after(node, cell, begun_bytes, move |node| python(node, &script));
    let mut reasons = reasons.iter();
    let found = reasons.find_map(|reason| reason.strip_prefix("links-not-flooded: "));
    let found = found.unwrap_or_else(|| panic!("{interface} {kind}: {reasons:?}"));
    let (counts, _) = found.split_once(';').unwrap();
    let (_, counts) = counts.split_once(": ").unwrap();
    let ends_there = format!(" at {}", to.0.name());
    let mut counts = counts.split(", ");
    let count = counts.find_map(|count| count.strip_suffix(&ends_there));
    let count: u64 = count.unwrap().parse().unwrap();
    let expected = FOUND_LEAST..FRAMES + USUAL_MOST;
    assert!(expected.contains(&count), "{found}");
}

const LINK_A: [(NodeId, &str); 2] = [(NodeId::A, "a0"), (NodeId::Gw1, "a1")];
const CIPHER_LINK: [(NodeId, &str); 2] = [(NodeId::Gw1, "w0"), (NodeId::Gw2, "w1")];
const LINK_B: [(NodeId, &str); 2] = [(NodeId::Gw2, "b1"), (NodeId::B, "b0")];

/// The same link, from its other end.
const fn back([near, far]: [(NodeId, &'static str); 2]) -> [(NodeId, &'static str); 2] {
    [far, near]
}

fn floods_during_a_transfer() {
    let direct = cell(Adapter::Direct, 1, true, tcp());
    assert_found(&direct, LINK_A, "arp");
    assert_found(&direct, back(LINK_B), "nd");
    let sealed = cell(encrypting(), 1, false, tcp());
    assert_found(&sealed, CIPHER_LINK, "arp");
    assert_found(&sealed, LINK_B, "arp");
}

fn floods_during_a_ping() {
    let mut long = ping();
    if let Measurement::Ping {
        count, interval_ns, ..
    } = &mut long
    {
        (*count, *interval_ns) = (400, 10 * MS);
    }
    let sealed = cell(encrypting(), 1, true, long);
    assert_found(&sealed, back(LINK_A), "nd");
    assert_found(&sealed, back(CIPHER_LINK), "arp");
    assert_found(&sealed, back(LINK_B), "arp");
}

fn hosts_that_look_one_another_up_are_no_flood() {
    let mut lab = TestLab::build();
    let bridging = Adapter::Cipherbench(Encryptor {
        mode: Mode::L2,
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    for adapter in [Adapter::Direct, bridging, encrypting()] {
        let measured = lab.measured(&cell(adapter, 1, true, tcp()));
        let settings = measured.evidence.settings.unwrap();
        let counted = settings.neighbour_frames;
        let nodes: Vec<&str> = counted.keys().map(String::as_str).collect();
        assert_eq!(nodes, ["a", "b", "gw1", "gw2"]);
        assert!(counted.values().all(|it| *it <= USUAL_MOST), "{counted:?}");
    }
}
