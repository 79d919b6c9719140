use super::*;
use crate::findings::{Received, RoundTrips, SendReport, Unsealed};

const MS: u64 = 1_000_000;

fn trips(p50_ns: u64) -> RoundTrips {
    RoundTrips {
        sent: 100,
        lost: 0,
        p50_ns,
        p95_ns: 2 * p50_ns,
        max_ns: 3 * p50_ns,
    }
}

fn cpu(busy_percent: u8) -> Option<CpuUse> {
    Some(CpuUse {
        cpu: 1,
        busy_percent,
        softirq_percent: busy_percent / 2,
    })
}

fn stream() -> Stream {
    Stream {
        sender: SendReport {
            segments: 100_000,
            retransmitted: 10,
            busy_us: 10_000_000,
            receiver_limited_us: 100,
            buffer_limited_us: 100,
            cpu: cpu(40),
        },
        receiver: Received {
            second_bytes: vec![1, 125_000_000, 130_000_000, 120_000_000],
            cpu: cpu(30),
        },
        round_trips: Some(trips(MS)),
    }
}

/// Nothing is wrong.
pub(crate) fn findings() -> Findings {
    let host = |interface: &str| HostFacts {
        program: "0.2.0".to_owned(),
        interface: interface.to_owned(),
        kind: "wireguard".to_owned(),
    };
    let mtu = PathMtu {
        known_bytes: 1420,
        passed_bytes: 1420,
    };
    let seal = Seal::Yes {
        interface: "eth0".to_owned(),
        form: "WireGuard".to_owned(),
        packets: 80,
    };
    Findings {
        peer: "10.9.0.2".to_owned(),
        here: host("wg0"),
        there: host("wg7"),
        seal: both(|_| seal.clone()),
        mtu: both(|_| Ok(mtu)),
        idle: Ok(trips(MS)),
        streams: both(|_| Ok(stream())),
        offloads: None,
        took_ms: 27_000,
    }
}

/// The verdict after a change of the stream from here.
fn changed(change: impl Fn(&mut Stream)) -> Verdict {
    let mut findings = findings();
    let mut stream = stream();
    change(&mut stream);
    findings.streams.from_here = Ok(stream);
    Verdict::of(&findings)
}

fn limit_of(change: impl Fn(&mut Stream)) -> Limit {
    changed(change).limits.from_here.unwrap()
}

#[test]
fn nothing_is_wrong() {
    let verdict = Verdict::of(&findings());
    assert!(!verdict.is_faulty && !verdict.is_incomplete);
    assert_eq!(verdict.limits, both(|_| Some(Limit::Unknown)));
    assert!(verdict.help.is_empty());
    let goodput = verdict.goodput.from_here.unwrap();
    assert!((goodput.bps - 1e9).abs() < 1.0, "{goodput:?}");
    assert_eq!(goodput.range, (960e6, 1040e6));
    let (low, high) = goodput.interval_95.unwrap();
    assert!(low < 1e9 && high > 1e9);
}

#[test]
fn each_limit_is_found_and_has_its_remedy() {
    let verdict = changed(|stream| stream.receiver.cpu = cpu(97));
    assert_eq!(
        verdict.limits.from_here,
        Some(Limit::Core {
            of_sender: false,
            cpu: cpu(97).unwrap()
        })
    );
    assert!(verdict.help[0].contains("`--offloads` finds"));
    let verdict = changed(|stream| stream.sender.receiver_limited_us = 9_000_000);
    assert_eq!(
        verdict.limits.from_here,
        Some(Limit::ReceiveWindow { percent: 90 })
    );
    assert!(verdict.help[0].starts_with("there: sysctl -w net.ipv4.tcp_rmem"));
    let verdict = changed(|stream| stream.sender.buffer_limited_us = 5_000_000);
    assert_eq!(
        verdict.limits.from_here,
        Some(Limit::SendBuffer { percent: 50 })
    );
    assert!(verdict.help[0].starts_with("here: sysctl -w net.ipv4.tcp_wmem"));
    let loss = limit_of(|stream| stream.sender.retransmitted = 1000);
    assert_eq!(loss, Limit::Loss { ppm: 10_000 });
    let verdict = changed(|stream| {
        stream.sender.retransmitted = 1000;
        stream.round_trips = Some(trips(41 * MS));
    });
    let path = Limit::Path {
        added_ns: 40 * MS,
        ppm: 10_000,
    };
    assert_eq!(verdict.limits.from_here, Some(path));
    assert_eq!(
        verdict.help,
        ["here: tc qdisc replace dev wg0 root cake bandwidth 950mbit"]
    );
    // A short queue limits, and harms nobody.
    let verdict = changed(|stream| stream.round_trips = Some(trips(4 * MS)));
    assert!(matches!(verdict.limits.from_here, Some(Limit::Path { .. })));
    assert!(verdict.help.is_empty() && !verdict.is_faulty);
}

#[test]
fn a_black_hole_explains_a_stall() {
    let stalled = |stream: &mut Stream| stream.receiver.second_bytes = vec![500, 0, 0, 0];
    let verdict = changed(stalled);
    assert_eq!(
        verdict.limits.from_here,
        Some(Limit::Stall { black_hole: None })
    );
    assert!(verdict.is_faulty);
    let mut findings = findings();
    let hole = PathMtu {
        known_bytes: 1420,
        passed_bytes: 1300,
    };
    findings.mtu.from_here = Ok(hole);
    let mut stream = stream();
    stalled(&mut stream);
    findings.streams.from_here = Ok(stream);
    let verdict = Verdict::of(&findings);
    let stall = Limit::Stall {
        black_hole: Some(hole),
    };
    assert_eq!(verdict.limits.from_here, Some(stall));
    assert_eq!(
        verdict.help,
        [
            "here: ip link set dev wg0 mtu 1300; there: ip link set dev wg7 mtu 1300; or let ICMP through"
        ]
    );
    findings.there.interface = "wg0".to_owned();
    assert_eq!(
        Verdict::of(&findings).help,
        ["both hosts: ip link set dev wg0 mtu 1300; or let ICMP through"]
    );
}

#[test]
fn readable_packets_are_a_fault_and_unknown_ones_are_undecided() {
    let mut findings = findings();
    findings.seal.to_here = Seal::Unknown {
        reason: "needs root on this host".to_owned(),
    };
    let verdict = Verdict::of(&findings);
    assert!(verdict.is_incomplete && !verdict.is_faulty);
    findings.seal.from_here = Seal::No {
        interface: "eth0".to_owned(),
        form: "GRE".to_owned(),
        why: Unsealed::Readable,
        packets: 80,
    };
    let verdict = Verdict::of(&findings);
    assert!(verdict.is_faulty);
    assert!(verdict.help[0].starts_with("stop using this path"));
    findings.streams.to_here = Err("no second connection".to_owned());
    let verdict = Verdict::of(&findings);
    assert_eq!(verdict.limits.to_here, None);
    assert!(verdict.goodput.to_here.is_none());
}
