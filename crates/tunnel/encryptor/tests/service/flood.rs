//! Strangers' connections and forged packets, at several rates, while a tunnel carries traffic.

use crate::namespace::pair;
use crate::negotiated::{await_established, dropped, epochs, folder, metric, start_both};
use crate::stations::Stations;
use crate::tests::await_that;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, bind, connect, sendto,
    socket,
};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Addresses of strangers, in the network of the gateways: 192.0.2.10 and following.
const STRANGERS: u8 = 20;
/// Connections per second.
const CONNECTIONS_PER_S: u32 = 1000;
/// How long each flood lasts.
const FLOOD: Duration = Duration::from_secs(2);
/// Time within which new keys must be in use.
const LIMIT: Duration = Duration::from_secs(2);
/// Floods on a machine that is too busy for the rate.
const ATTEMPTS: usize = 3;
/// Forged packets per second.
const FORGED_PER_S: [u32; 3] = [100, 1000, 10_000];
/// Epochs that packets which cannot be opened may cost a tunnel within the first 30 s.
const DESYNC_EPOCHS_MAX: u64 = 8;

/// Does `act` with the number of each event, so many times per second, until the end. Returns their
/// number.
fn at_rate(per_s: u32, ended: &AtomicBool, mut act: impl FnMut(u32)) -> u32 {
    let began = Instant::now();
    let mut number = 0;
    while !ended.load(Ordering::Relaxed) {
        let due = began + Duration::from_secs(1) * number / per_s;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        act(number);
        number += 1;
    }
    number
}

/// A socket that sends UDP from the port of a gateway, which that has bound.
fn raw_udp() -> nix::Result<OwnedFd> {
    let protocol = SockProtocol::Udp;
    socket(
        AddressFamily::Inet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        protocol,
    )
}

/// A packet of lane 0 of tunnel 0, in UDP without a checksum, between the gateways' ports.
fn forged(epoch: u32, sequence: u32) -> [u8; 128] {
    let mut packet = [0xa5; 128];
    for (at, field) in [4500, 4500, packet.len() as u16, 0].into_iter().enumerate() {
        packet[2 * at..][..2].copy_from_slice(&u16::to_be_bytes(field));
    }
    packet[8..12].copy_from_slice(&(epoch << 12).to_be_bytes());
    packet[12..16].copy_from_slice(&sequence.to_be_bytes());
    packet
}

fn connect_as(stranger: u8) -> nix::Result<TcpStream> {
    let socket = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    let [from, to] = [(10 + stranger, 0), (2, 4500)]
        .map(|(host, port)| SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, host), port));
    bind(socket.as_raw_fd(), &SockaddrIn::from(from))?;
    connect(socket.as_raw_fd(), &SockaddrIn::from(to))?;
    Ok(TcpStream::from(socket))
}

pub(crate) fn a_thousand_strange_connections_a_second_cost_no_packet_and_no_rollover() {
    let (folder, namespaces) = (folder(), pair());
    for stranger in 0..STRANGERS {
        namespaces[0].ip(&format!("address add 192.0.2.{}/24 dev w0", 10 + stranger));
    }
    let gateways = start_both(folder.path(), &namespaces, "grace: 500 ms", "workers: 2\n");
    await_established(&namespaces);
    let stations = Stations::new(&namespaces);
    stations.await_passage();
    let refused = "cipherbench_connections_refused_total";
    let rekeys = "cipherbench_rekeys_total";
    let mut packets = 0;
    for attempt in 1..=ATTEMPTS {
        let before = [0, 1].map(|side| dropped(&namespaces[side], &[]));
        let refused_before = metric(&namespaces[1], refused);
        let ended = Arc::new(AtomicBool::new(false));
        // A thread that is started within a namespace is in it.
        let flood = namespaces[0].run({
            let ended = Arc::clone(&ended);
            move || {
                thread::spawn(move || {
                    let mut open = VecDeque::new();
                    at_rate(CONNECTIONS_PER_S, &ended, |number| {
                        open.extend(connect_as((number % u32::from(STRANGERS)) as u8));
                        if open.len() > 100 {
                            open.pop_front();
                        }
                    })
                })
            }
        });
        let began = Instant::now();
        let mut slowest = Duration::ZERO;
        while began.elapsed() < FLOOD {
            for (gateway, namespace) in gateways.iter().zip(&namespaces) {
                let asked = Instant::now();
                let wanted = metric(namespace, rekeys) + 1;
                gateway.rekey();
                await_that("new keys are in use", || {
                    stations.cross(packets);
                    packets += 1;
                    metric(namespace, rekeys) >= wanted
                });
                slowest = slowest.max(asked.elapsed());
            }
        }
        ended.store(true, Ordering::Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        let connections = flood.join().unwrap();
        for (namespace, before) in namespaces.iter().zip(before) {
            assert_eq!(dropped(namespace, &[]), before);
        }
        await_that("every stranger is refused and counted", || {
            metric(&namespaces[1], refused) - refused_before >= u64::from(connections)
        });
        let per_s = f64::from(connections) / seconds;
        eprintln!("{per_s:.0} connections/s; new keys within {slowest:?}");
        let is_dense = per_s >= 0.9 * f64::from(CONNECTIONS_PER_S);
        if is_dense && slowest < LIMIT {
            break;
        }
        if attempt == ATTEMPTS {
            assert!(!is_dense, "new keys took {slowest:?}");
            eprintln!("SKIPPED: this machine opens fewer than {CONNECTIONS_PER_S} connections/s");
        }
    }
    for gateway in gateways {
        gateway.stop();
    }
}

pub(crate) fn forged_packets_cost_few_epochs_at_any_rate() {
    let (folder, namespaces) = (folder(), pair());
    let gateways = start_both(folder.path(), &namespaces, "policy: pqc", "");
    await_established(&namespaces);
    let stations = Stations::new(&namespaces);
    stations.await_passage();
    let desyncs = || -> u64 { namespaces.iter().map(|side| epochs(side, "desync")).sum() };
    let began = Instant::now();
    let mut packets = 0;
    // Among authentic packets, and while there are none.
    for (per_s, with_traffic) in FORGED_PER_S
        .into_iter()
        .flat_map(|per_s| [(per_s, true), (per_s, false)])
    {
        let before = desyncs();
        let ended = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(AtomicU32::new(0));
        let flood = namespaces[0].run({
            let ended = Arc::clone(&ended);
            let sent = Arc::clone(&sent);
            move || {
                let socket = raw_udp().unwrap();
                let gateway = SockaddrIn::new(192, 0, 2, 2, 0);
                thread::spawn(move || {
                    at_rate(per_s, &ended, |number| {
                        // Alternately of epochs that do not exist, and of the first.
                        let epoch = if number % 2 == 0 { 1 } else { 1000 + number };
                        let packet = forged(epoch, 1_000_000 + number);
                        let sending =
                            sendto(socket.as_raw_fd(), &packet, &gateway, MsgFlags::empty());
                        if sending.is_ok() {
                            sent.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
            }
        });
        let flooded = Instant::now();
        while flooded.elapsed() < FLOOD {
            if with_traffic {
                stations.cross(packets);
                packets += 1;
            } else {
                thread::sleep(Duration::from_millis(50));
            }
        }
        ended.store(true, Ordering::Relaxed);
        flood.join().unwrap();
        // What the flood did is over, and the tunnel carries packets at once.
        stations.cross(packets);
        packets += 1;
        let sent = sent.load(Ordering::Relaxed);
        assert!(sent > 0, "nothing was forged");
        eprintln!(
            "{sent} forged packets at {per_s}/s {} traffic: {} new epochs",
            if with_traffic { "among" } else { "without" },
            desyncs() - before
        );
    }
    let (took, all) = (began.elapsed(), desyncs());
    let bound = DESYNC_EPOCHS_MAX + took.as_secs() / 30;
    assert!(all <= bound, "{all} epochs in {took:?}, at most {bound}");
    assert!(all > 0, "no forged packet had any effect");
    let refused = dropped(&namespaces[1], &[]).join(" ");
    for reason in ["no_sa", "integrity_failed"] {
        assert!(refused.contains(reason), "{refused}");
    }
    for gateway in gateways {
        gateway.stop();
    }
}
