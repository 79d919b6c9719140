//! Links with a line rate.

use crate::peer::{packet, send_frames};
use crate::support::{LINKS, PATIENCE, TestLab, await_that, direct, shell, start};
use journal::record::InterfaceCounters;
use lab::NamespaceLab;
use plan::{Adapter, Direction, Dut};
use std::time::Instant;
use testbed::protocol::{Program, Ready, Request, Response};
use testbed::{Bench, Links, NodeId};

/// FCS, preamble and gap, in bytes: what an interface does not count of a frame.
const OVERHEAD_BYTES: u64 = 24;

fn shaped(rate_bps: Option<u64>) -> Links {
    Links {
        offloads: false,
        rate_bps,
        ..LINKS
    }
}

fn at_b(lab: &NamespaceLab) -> InterfaceCounters {
    match lab
        .node(NodeId::B)
        .call(Request::InterfaceCounters)
        .unwrap()
    {
        Response::InterfaceCounters(counters) => counters["b0"],
        other => panic!("{other:?}"),
    }
}

/// Windows that are looked at, at most, for one in which nothing held the sender up.
const WINDOWS: usize = 20;

/// Holds that UDP datagrams of that length, offered at twice what the line takes, come to B at its
/// L1 rate, within 5 %.
///
/// Each rate has a lowest and a highest value that it can have been, by the moments before and
/// after each look at the counters. Never is it more than the line's; less it is where the sender
/// was held up, and then the next window may show it.
fn comes_at_line_rate(lab: &NamespaceLab, line_bps: u64, datagram_bytes: u64) {
    let (a, b) = (lab.node(NodeId::A), lab.node(NodeId::B));
    let server = Program {
        ready: Ready::Listening(5201),
        ..Program::new(["iperf3", "-s", "-p", "5201"])
    };
    let server = b.start(server, PATIENCE).unwrap();
    let (target, length) = (lab.target().to_string(), datagram_bytes.to_string());
    let (offered, time) = ((2 * line_bps).to_string(), PATIENCE.as_secs().to_string());
    let client = [
        "iperf3", "-c", &target, "-p", "5201", "-u", "-b", &offered, "-l", &length, "-t", &time,
    ];
    let (client, _) = start(a, Program::new(client));
    // Half a second's worth.
    let frames = line_bps / 2 / 8 / (datagram_bytes + 8 + 20 + 14 + OVERHEAD_BYTES);
    let await_frames = |from: u64| {
        let mut look = (Instant::now(), at_b(lab), Instant::now());
        await_that("frames came", || {
            look = (Instant::now(), at_b(lab), Instant::now());
            look.1.rx_packets >= from + frames
        });
        look
    };
    // Beyond its start, with full queues.
    let mut first = await_frames(at_b(lab).rx_packets);
    let line = line_bps as f64;
    let mut seen = Vec::new();
    while seen.len() < WINDOWS {
        let last = await_frames(first.1.rx_packets + frames);
        let packets = last.1.rx_packets - first.1.rx_packets;
        let bytes = last.1.rx_bytes - first.1.rx_bytes + packets * OVERHEAD_BYTES;
        let rate = |from: Instant, to: Instant| bytes as f64 * 8.0 / (to - from).as_secs_f64();
        let (lowest, highest) = (rate(first.0, last.2), rate(first.2, last.0));
        assert!(
            lowest <= 1.05 * line,
            "{datagram_bytes} B: at least {lowest} of {line_bps} bit/s"
        );
        if highest >= 0.95 * line {
            a.stop(client, PATIENCE).unwrap();
            b.stop(server, PATIENCE).unwrap();
            return;
        }
        seen.push((lowest, highest));
        first = last;
    }
    panic!("{datagram_bytes} B: {seen:?} of {line_bps} bit/s");
}

pub(crate) fn the_rate_of_the_line_holds_for_long_and_short_frames() {
    // Slow enough to be exceeded on a machine that has other things to do.
    const LINE_BPS: u64 = 4_000_000;
    let mut lab = TestLab::build().lab;
    let links = shaped(Some(LINE_BPS));
    lab.configure(links).unwrap();
    let dut = lab.start_dut(&direct(), links, Direction::Both).unwrap();
    // The longest that fits, and the shortest frame.
    for datagram_bytes in [1472, 18] {
        comes_at_line_rate(&lab, LINE_BPS, datagram_bytes);
    }
    lab.stop_dut(dut).unwrap();
}

pub(crate) fn a_full_queue_is_counted_and_a_shaper_goes_as_it_came() {
    const FRAMES: u64 = 200;
    const BURSTS: u64 = 20;
    let mut lab = TestLab::build().lab;
    let disciplines = |lab: &NamespaceLab| {
        NodeId::ALL.map(|id| {
            lab.node(id)
                .run(shell("tc qdisc show"), PATIENCE)
                .unwrap()
                .stdout
        })
    };
    lab.configure(shaped(None)).unwrap();
    assert!(disciplines(&lab).iter().all(|shown| !shown.contains("tbf")));
    // Faster than gw1 may hand on.
    let links = shaped(Some(1_000_000));
    lab.configure(links).unwrap();
    assert!(
        disciplines(&lab)
            .iter()
            .all(|shown| shown.matches("tbf").count() == 2)
    );
    let router = Dut::new("router", Adapter::Router { nat: false });
    let dut = lab.start_dut(&router, links, Direction::Both).unwrap();
    let a = lab.node(NodeId::A);
    a.run(shell("tc qdisc replace dev a0 root noqueue"), PATIENCE)
        .unwrap();
    let path = dut.frame_path.as_ref().unwrap();
    let packet = packet(
        path.source.test_address.into(),
        path.sink.test_address.into(),
    );
    let mut counters = lab.dut_counters(&dut).unwrap();
    let mut sent = 0;
    // A sender that the machine holds up may stay below the rate: then the next burst fills the
    // queue.
    while counters["gw1/w0_queue_dropped"] == 0 {
        assert!(sent < BURSTS * FRAMES, "{counters:?}");
        send_frames(a, &path.source, &packet, FRAMES);
        sent += FRAMES;
        await_that("every frame was sent or found no room", || {
            counters = lab.dut_counters(&dut).unwrap();
            counters["gw1/w0_tx_packets"] + counters["gw1/w0_queue_dropped"] == sent
        });
        assert_eq!(counters["gw1/a1_rx_packets"], sent);
    }
    lab.stop_dut(dut).unwrap();
    lab.configure(shaped(None)).unwrap();
    assert!(disciplines(&lab).iter().all(|shown| !shown.contains("tbf")));
}
