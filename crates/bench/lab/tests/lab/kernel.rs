//! Tunnels of the kernel itself if it supports them; otherwise the refusal. With
//! `CIPHERBENCH_KERNEL=full`, which `make kernel` sets, a refusal is a failure.

use crate::frames::{LINKS, cross_both_ways, with_dut};
use crate::support::{
    MARKER_IN_HEX, PATIENCE, TestLab, assert_nothing_is_left, dump, end_watch, ping, reason, shell,
    watch,
};
use journal::record::CipherWatch;
use plan::{Adapter, Direction, Dut, L2tpEncapsulation, L2tpv3, Xfrm};
use testbed::protocol::{Request, Response};
use testbed::{Bench, LabError, NodeId, RunningDut};
use wire::{Cipher, Hmac, Suite};

const GATEWAYS: [NodeId; 2] = [NodeId::Gw1, NodeId::Gw2];
const PINGS: u64 = 20;

fn ready_lab() -> TestLab {
    let mut lab = TestLab::build();
    lab.lab.configure(LINKS).unwrap();
    lab
}

fn try_start(lab: &mut TestLab, adapter: Adapter) -> Result<RunningDut, LabError> {
    let dut = Dut::new("under test", adapter);
    lab.lab.start_dut(&dut, LINKS, Direction::Both)
}

/// Fails unless an error is the one of a kernel that lacks something, and this kernel may.
pub(crate) fn refused(error: &LabError, begins: &str, help: &str) {
    let error = reason(error);
    let is_full = std::env::var_os("CIPHERBENCH_KERNEL").is_some_and(|value| value == "full");
    assert!(!is_full, "this kernel must support everything: {error}");
    eprintln!("SKIPPED: the kernel's: {error}");
    assert!(error.starts_with(begins), "{error}");
    assert!(error.contains(help), "{error}");
}

/// SAs, policies, tunnels and sessions on the gateways; empty if the kernel has none.
fn states(lab: &TestLab) -> String {
    let show = |id| {
        let script = "ip xfrm state list nokeys; ip xfrm policy; ip l2tp show session; \
                      ip l2tp show tunnel";
        let ended = lab.lab.node(id).run(shell(script), PATIENCE).unwrap();
        ended.stdout
    };
    GATEWAYS.map(show).concat()
}

fn facts<'a>(dut: &'a RunningDut, name: &str) -> [&'a str; 2] {
    ["gw1", "gw2"].map(|gateway| &*dut.facts[&format!("{gateway}/{name}")])
}

/// Pings of the MTU cross whole; what the watch saw of them.
fn ping_whole(lab: &TestLab, dut: &RunningDut) -> CipherWatch {
    let gw1 = lab.lab.node(NodeId::Gw1);
    let watched = watch(gw1, &dut.sealed_ports);
    let payload = (LINKS.mtu - 28).to_string();
    let count = PINGS.to_string();
    let whole = [
        "-q",
        "-c",
        &count,
        "-i",
        "0.05",
        "-M",
        "do",
        "-s",
        &payload,
        "-p",
        MARKER_IN_HEX,
    ];
    let ended = ping(&lab.lab, &whole);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    end_watch(gw1, watched)
}

/// How far a counter moved between two readings.
type Counters = std::collections::BTreeMap<String, u64>;

fn moved(was: &Counters, now: &Counters, name: &str) -> u64 {
    now[name] - was[name]
}

/// Bytes that gw1 has sent to the cipher link.
fn sealed_bytes(lab: &TestLab) -> u64 {
    let gw1 = lab.lab.node(NodeId::Gw1);
    match gw1.call(Request::InterfaceCounters).unwrap() {
        Response::InterfaceCounters(counters) => counters["w0"].tx_bytes,
        other => panic!("{other:?}"),
    }
}

fn xfrm_carries(lab: &mut TestLab, suite: Suite) {
    let adapter = Adapter::Xfrm(Xfrm { suite });
    let packet = adapter.carrier().unwrap();
    let packet = packet.cipher_packet_bytes(LINKS.mtu.into()) as u64;
    with_dut(lab, adapter, Direction::Both, |lab, dut, path| {
        assert_eq!(facts(dut, "suite"), [suite.name(); 2]);
        assert_eq!(facts(dut, "program"), ["xfrm"; 2]);
        assert!(facts(dut, "crypto").iter().all(|driver| !driver.is_empty()));
        assert!(dut.processes.is_empty() && dut.sealed_ports.is_empty());
        let was = lab.lab.dut_counters(dut).unwrap();
        let bytes = sealed_bytes(lab);
        let seen = ping_whole(lab, dut);
        // Each as long as bare ESP makes it, behind an Ethernet header.
        assert_eq!(sealed_bytes(lab) - bytes, PINGS * (packet + 14), "{suite}");
        match suite {
            Suite::EncryptThenMac(Cipher::Null, _) => assert!(seen.foreign_frames == 0),
            _ => assert_eq!(seen, CipherWatch::default()),
        }
        let now = lab.lab.dut_counters(dut).unwrap();
        for gateway in ["gw1", "gw2"] {
            for way in ["in", "out"] {
                let moved = |what: &str| moved(&was, &now, &format!("{gateway}/sa_{way}_{what}"));
                assert_eq!(moved("packets"), PINGS, "{gateway} {way}");
                assert!(moved("bytes") >= PINGS * u64::from(LINKS.mtu));
                assert_eq!(moved("failed_packets") + moved("replayed_packets"), 0);
            }
        }
        cross_both_ways(lab, path);
    });
    assert_eq!(states(lab), "", "{suite}");
}

pub(crate) fn the_kernels_xfrm_carries_the_path_with_every_algorithm_or_is_reported_missing() {
    let mut lab = ready_lab();
    let before = dump(&lab);
    match try_start(
        &mut lab,
        Adapter::Xfrm(Xfrm {
            suite: Suite::Aes256Gcm,
        }),
    ) {
        Ok(running) => lab.lab.stop_dut(running).unwrap(),
        Err(error) => {
            let begins = "needs ESP in the kernel, which gw1 does not have";
            refused(&error, begins, "\nhelp: sudo modprobe -a esp4 xfrm_user; ");
            assert_nothing_is_left(&lab, &before, "xfrm");
            return;
        }
    }
    // Every cipher and every HMAC once.
    let ciphers = Cipher::ALL.into_iter().zip(Hmac::ALL.into_iter().cycle());
    let pairs = ciphers.map(|(cipher, hmac)| Suite::EncryptThenMac(cipher, hmac));
    for suite in Suite::AEADS.into_iter().chain(pairs) {
        xfrm_carries(&mut lab, suite);
    }
}

/// A wrong key at one end: nothing is opened there, and the path is reported as closed.
pub(crate) fn the_kernels_xfrm_refuses_what_was_changed_on_the_way() {
    let suite = Suite::EncryptThenMac(Cipher::Aes128Cbc, Hmac::Sha256);
    let mut lab = ready_lab();
    let running = match try_start(&mut lab, Adapter::Xfrm(Xfrm { suite })) {
        Ok(running) => running,
        Err(error) => return refused(&error, "needs ESP in the kernel", "\nhelp: sudo modprobe"),
    };
    // The kernel does not change the keys of an SA that it has.
    let replaced = "ip xfrm state delete src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x1001 && \
                    ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x1001 reqid 1 \
                    mode tunnel replay-window 4096 flag af-unspec esn if_id 1 auth-trunc 'hmac(sha256)' \
                    0x0000000000000000000000000000000000000000000000000000000000000001 128 enc \
                    'cbc(aes)' 0x00000000000000000000000000000002";
    let gw2 = lab.lab.node(NodeId::Gw2);
    let ended = gw2.run(shell(replaced), PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let was = lab.lab.dut_counters(&running).unwrap();
    assert_ne!(
        ping(&lab.lab, &["-c", "3", "-i", "0.01", "-W", "0.1"]).code,
        Some(0)
    );
    let now = lab.lab.dut_counters(&running).unwrap();
    assert_eq!(moved(&was, &now, "gw2/sa_in_failed_packets"), 3, "{now:?}");
    lab.lab.stop_dut(running).unwrap();
    assert_eq!(states(&lab), "");
}

pub(crate) fn the_kernels_l2tpv3_joins_the_stations_or_is_reported_missing() {
    let mut lab = ready_lab();
    for encapsulation in L2tpEncapsulation::ALL {
        let tunnel = L2tpv3 { encapsulation };
        let before = dump(&lab);
        match try_start(&mut lab, Adapter::L2tpv3(tunnel)) {
            Ok(running) => lab.lab.stop_dut(running).unwrap(),
            Err(error) => {
                let begins = "needs L2TPv3 in the kernel, which gw1 does not have: ";
                refused(&error, begins, "\nhelp: sudo modprobe -a l2tp_eth");
                assert_nothing_is_left(&lab, &before, "l2tpv3");
                continue;
            }
        }
        assert_nothing_is_left(&lab, &before, encapsulation.name());
        let packet = 20 + tunnel.added_bytes().0 as u64 + u64::from(LINKS.mtu);
        with_dut(
            &mut lab,
            Adapter::L2tpv3(tunnel),
            Direction::Both,
            |lab, dut, path| {
                assert_eq!(facts(dut, "encapsulation"), [encapsulation.name(); 2]);
                let was = lab.lab.dut_counters(dut).unwrap();
                let bytes = sealed_bytes(lab);
                // It does not encrypt, and the watch sees that.
                let seen = ping_whole(lab, dut);
                assert_eq!(seen.foreign_frames, 2 * PINGS, "{seen:?}");
                assert!(seen.marker_frames > 0, "{seen:?}");
                assert_eq!(sealed_bytes(lab) - bytes, PINGS * (packet + 14));
                let now = lab.lab.dut_counters(dut).unwrap();
                for counter in ["gw1/pseudowire_tx_packets", "gw2/pseudowire_rx_packets"] {
                    assert_eq!(moved(&was, &now, counter), PINGS, "{counter}");
                }
                cross_both_ways(lab, path);
            },
        );
        assert_eq!(states(&lab), "");
    }
}

/// gw1 is up when gw2 finds that another tunnel has the number.
pub(crate) fn the_kernels_l2tpv3_that_comes_up_on_one_gateway_only_is_taken_down_there() {
    let mut lab = ready_lab();
    let before = dump(&lab);
    let taken = "ip l2tp add tunnel tunnel_id 1 peer_tunnel_id 1 encap udp local 192.0.2.2 \
                 remote 192.0.2.1 udp_sport 5000 udp_dport 5000";
    let gw2 = lab.lab.node(NodeId::Gw2);
    if gw2.run(shell(taken), PATIENCE).unwrap().code != Some(0) {
        eprintln!("SKIPPED: the kernel's L2TPv3 on one gateway only: it has none");
        return;
    }
    let tunnel = L2tpv3 {
        encapsulation: L2tpEncapsulation::Udp,
    };
    let error = reason(&try_start(&mut lab, Adapter::L2tpv3(tunnel)).unwrap_err());
    assert!(error.contains("did not come up on gw2"), "{error}");
    assert_nothing_is_left(&lab, &before, "l2tpv3");
    assert_eq!(states(&lab), "");
}
