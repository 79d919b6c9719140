//! Logs of two strongSwan 5.9.8 daemons: `c0` and `c1` set up by gw2, then `c0` renewed by gw2 and
//! `c1` by gw1; and of one with SAs in the kernel.

use super::*;
use proptest::prelude::*;

const GW1: &str = include_str!("../fixtures/gw1-rekeys.log");
const GW2: &str = include_str!("../fixtures/gw2-rekeys.log");
/// gw2's and gw1's address in `c1`.
const ENDS: [&str; 2] = ["198.18.1.2", "198.18.1.1"];

fn read<'t>(lines: impl IntoIterator<Item = &'t str>) -> Log {
    let mut log = Log::default();
    lines.into_iter().for_each(|line| log.read_line(line));
    log
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The lines before those that close everything at the end.
fn in_service(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .take_while(|line| !line.contains("INSTALLED => DESTROYING"))
}

/// Outbound SPI of packets of gw2 in `c1`.
fn sealing(log: &Log) -> Option<u32> {
    let [own, peer] = ENDS.map(address);
    log.sealing(own, peer).map(|sa| sa.outbound)
}

#[test]
fn both_daemons_logs_show_the_same_keys_whoever_began() {
    let [one, other] = [GW1, GW2].map(|text| read(in_service(text)));
    assert_eq!((one.sas.len(), other.sas.len()), (4, 4));
    for sa in &one.sas {
        let peer = other
            .sas
            .iter()
            .find(|it| it.inbound == sa.outbound)
            .unwrap();
        assert_eq!((&sa.name, sa.inbound), (&peer.name, peer.outbound));
        assert_eq!(*sa.outbound_keymat, *peer.inbound_keymat);
        assert_eq!(*sa.inbound_keymat, *peer.outbound_keymat);
        assert_ne!(*sa.inbound_keymat, *sa.outbound_keymat);
        assert_eq!(sa.inbound_keymat.len(), 36);
    }
    let first = other.sas.first().unwrap();
    assert_eq!(
        first.outbound_keymat[..4],
        [0x05, 0x79, 0x50, 0x6e],
        "gw2 began"
    );
    assert_eq!(first.inbound_keymat[32..], [0x2c, 0x05, 0x57, 0x9c]);
}

#[test]
fn packets_are_sealed_with_new_keys_once_the_daemon_does() {
    let lines: Vec<&str> = in_service(GW2).collect();
    let mut log = Log::default();
    let mut changes: Vec<(Option<u32>, &str)> = Vec::new();
    for line in lines {
        log.read_line(line);
        let now = sealing(&log);
        if changes.last().is_none_or(|(last, _)| *last != now) {
            changes.push((now, line));
        }
    }
    let [(none, _), (first, _), (second, line)] = changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!(none, None);
    assert_eq!(first, Some(0x9740_f3b7));
    assert_eq!(second, Some(0xf7a1_ef9a));
    // gw1 began that exchange: its keys are registered long before they are used.
    assert!(line.contains("SPI 0xf7a1ef9a"), "{line}");
}

/// The log of a daemon with SAs in the kernel, of which the peer renews one.
#[test]
fn sas_in_the_kernel_seal_only_once_the_peer_opens() {
    let mut log = Log::default();
    let mut changes: Vec<(Option<u32>, &str)> = Vec::new();
    let [own, peer] = ["198.19.0.1", "198.18.0.1"].map(address);
    for line in include_str!("../fixtures/kernel-renewal.log").lines() {
        log.read_line(line);
        let now = log.sealing(own, peer).map(|sa| sa.outbound);
        if changes.last().is_none_or(|(last, _)| *last != now) {
            changes.push((now, line));
        }
    }
    let [(None, _), (first, _), (second, line)] = changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!([first, second], [Some(0xcb67_fc62), Some(0xc476_cf6c)]);
    assert!(
        line.contains("outbound CHILD_SA c0{2} established"),
        "{line}"
    );
    assert!(log.opening(0xc1b4_02bd).is_some());
}

#[test]
fn what_is_closed_or_of_other_networks_seals_nothing() {
    let log = read(GW2.lines());
    assert_eq!(sealing(&log), None, "the daemon has ended");
    let log = read(in_service(GW2));
    let [own, peer] = ENDS.map(address);
    let seals = |source, target| log.sealing(source, target).is_some();
    assert!(seals(own, peer) && !seals(peer, own));
    assert!(!seals(own, address("198.18.1.3")));
    assert!(!seals(own, address("2001:2::1")));
}

#[test]
fn networks_hold_their_addresses() {
    let holds = |network, it| Network::parse(network).unwrap().holds(address(it));
    assert!(holds("198.18.0.0/16", "198.18.255.255"));
    assert!(!holds("198.18.0.0/16", "198.19.0.0"));
    assert!(holds("0.0.0.0/0", "192.0.2.1") && !holds("0.0.0.0/0", "::1"));
    assert!(holds("::/0", "2001:2::1") && !holds("::/0", "0.0.0.0"));
    assert!(holds("2001:2:0:18::/64", "2001:2:0:18::ffff"));
    assert!(!holds("2001:2:0:18::/64", "2001:2:0:19::"));
    for wrong in [
        "198.18.0.0/33",
        "198.18.0.0",
        "10.0.0.0/8[udp/4500]",
        "dynamic",
        "::/129",
    ] {
        assert_eq!(Network::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn text_beside_a_dump_is_no_part_of_the_key() {
    let bytes = |text| dumped(text).map(|bytes| bytes.to_vec());
    assert_eq!(
        bytes("   32: E3 E3 6D E4                                      ..m."),
        Some(vec![0xe3, 0xe3, 0x6d, 0xe4])
    );
    let whole = "    0: 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F  AB CD EF 01 23 4";
    assert_eq!(bytes(whole), Some((0..16).collect()));
    assert_eq!(bytes("CHILD_SA c0{1} state: 1"), None);
}

proptest! {
    #[test]
    fn damaged_logs_make_no_keys_of_another_length(
        at in 0..200_usize, with in "[ -~]{0,60}", drop_line: bool,
    ) {
        let mut lines: Vec<&str> = in_service(GW2).collect();
        let at = at % lines.len();
        if drop_line {
            lines.remove(at);
        } else {
            lines[at] = &with;
        }
        for sa in &read(lines).sas {
            prop_assert_eq!([sa.inbound_keymat.len(), sa.outbound_keymat.len()], [36, 36]);
        }
    }
}
