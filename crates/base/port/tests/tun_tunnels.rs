//! Super-packets in VXLAN through TUN devices: real TCP and UDP of two network namespaces whose
//! packets this test carries between their devices.
//!
//! Needs root on this machine or in a user namespace (`unshare -r`); prints a note where it has
//! neither, and where the kernel has no such super-packets (before Linux 6.17) or no VXLAN.

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::socket::{setsockopt, sockopt};
use port::{
    CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort, Tun, TunOffloads, TunSettings, wait_readable,
};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::Duration;
use wire::checksum::portable;
use wire::coalesce::{Coalescer, Joinable};
use wire::headers::IpView;
use wire::segment::Segmenter;
use wire::vnet::{Gso, Outer, VNET_HEADER_BYTES, VnetHeader};

/// A namespace with a TUN device, and VXLAN over it.
struct Host {
    namespace: File,
    tun: Tun,
    granted: TunOffloads,
}

fn ip(arguments: &str) -> bool {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    status.expect("ip is installed").success()
}

/// Host 1 or 2; `None` where this machine lacks something.
fn host(number: u8) -> Option<Host> {
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
        eprintln!("SKIPPED: no network namespace here ({error}): run as root");
        return None;
    }
    let other = 3 - number;
    let settings = TunSettings {
        name: "t0",
        queues: 1,
    };
    let mut tun = Tun::create(&settings).unwrap().remove(0);
    assert!(ip(&format!("address add 10.9.0.{number}/24 dev t0")));
    assert!(ip("link set t0 mtu 1400 up"));
    let made = ip(&format!(
        "link add ov0 address 02:00:00:00:00:0{number} mtu 1350 type vxlan id 51 local 10.9.0.{number} \
         remote 10.9.0.{other} dstport 4789 nolearning noudpcsum"
    ));
    if !made {
        eprintln!("SKIPPED: this kernel has no VXLAN: `modprobe vxlan`");
        return None;
    }
    assert!(ip(&format!("address add 10.8.0.{number}/24 dev ov0")));
    assert!(ip("link set ov0 up"));
    assert!(ip(&format!(
        "neigh replace 10.8.0.{other} lladdr 02:00:00:00:00:0{other} dev ov0 nud permanent"
    )));
    let granted = tun.enable_offloads(TunOffloads::ALL);
    if !granted.tunnel {
        eprintln!("SKIPPED: this kernel has no super-packets in tunnels: Linux 6.17 has");
        return None;
    }
    let namespace = File::open("/proc/thread-self/ns/net").unwrap();
    Some(Host {
        namespace,
        tun,
        granted,
    })
}

/// The hosts, made by threads of their own, which stay where they are.
fn hosts() -> Option<[Host; 2]> {
    let made = [1, 2].map(|number| std::thread::spawn(move || host(number)).join().unwrap());
    let [Some(one), Some(two)] = made else {
        return None;
    };
    assert_eq!(one.granted, TunOffloads::ALL);
    Some([one, two])
}

/// What crossed, in one direction.
#[derive(Debug, Default)]
struct Crossed {
    /// Super-packets in tunnels as the kernel gave them, and as they were given to it.
    read: usize,
    written: usize,
    longest: usize,
}

/// Carries all waiting packets from one device to the other as an encryptor does: segmented, and
/// joined again.
fn carry(from: &mut Tun, to: &mut Tun, crossed: &mut Crossed) {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
    while let Ok((lent, bytes)) = from.recv(&mut buffer) {
        let (header, packet) = lent[..bytes]
            .split_first_chunk_mut::<VNET_HEADER_BYTES>()
            .unwrap();
        let vnet = VnetHeader::parse(header).unwrap();
        if vnet.gso == Gso::None {
            wire::segment::complete_checksum(&vnet, packet, portable).unwrap();
            packets.push(packet.to_vec());
            continue;
        }
        crossed.read += usize::from(vnet.outer == Outer::V4);
        let mut segmenter = Segmenter::new(&vnet, packet).unwrap();
        while let Some(range) = segmenter.next(packet, portable) {
            packets.push(packet[range].to_vec());
        }
    }
    crossed.longest = packets
        .iter()
        .map(Vec::len)
        .max()
        .unwrap_or(0)
        .max(crossed.longest);
    let joinable: Joinable = to.joinable();
    let mut sink = |vnet: &VnetHeader, headers: &[u8], parts: &[&[u8]], _: usize| {
        crossed.written += usize::from(vnet.outer == Outer::V4);
        to.send(vnet, headers, parts).unwrap();
    };
    let mut coalescer = Coalescer::new(joinable, portable);
    for packet in &packets {
        coalescer.push(packet, IpView::parse(packet).unwrap(), &mut sink);
    }
    coalescer.flush(&mut sink);
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|at| (at / 7) as u8).collect()
}

#[test]
fn tcp_in_vxlan_crosses_as_super_packets() {
    const BYTES: usize = 4_000_000;
    let Some([mut one, mut two]) = hosts() else {
        return;
    };
    let (ready, listening) = std::sync::mpsc::channel();
    let namespace = two.namespace;
    let receiver = std::thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        let listener = TcpListener::bind("10.8.0.2:5201").unwrap();
        ready.send(()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    listening.recv().unwrap();
    let namespace = one.namespace;
    let sender = std::thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
        let mut stream = TcpStream::connect("10.8.0.2:5201").unwrap();
        stream.write_all(&content(BYTES)).unwrap();
    });
    let (mut there, mut back) = (Crossed::default(), Crossed::default());
    while !receiver.is_finished() {
        let readable = [&one.tun, &two.tun].map(|tun| tun.readable().unwrap());
        wait_readable(&readable, Some(Duration::from_millis(20))).unwrap();
        carry(&mut one.tun, &mut two.tun, &mut there);
        carry(&mut two.tun, &mut one.tun, &mut back);
    }
    sender.join().unwrap();
    assert!(
        receiver.join().unwrap() == content(BYTES),
        "the transfer was changed"
    );
    // Packets of the tunnel's MTU, joined as often as the window allowed.
    assert!(there.read > 50 && there.written > 50, "{there:?}");
    assert_eq!(there.longest, 1400);
}

#[test]
fn datagrams_in_vxlan_are_segmented_by_their_inner_length() {
    let Some([mut one, mut two]) = hosts() else {
        return;
    };
    let (given, namespaces) = std::sync::mpsc::channel();
    let namespace = [one.namespace, two.namespace];
    std::thread::spawn(move || {
        let [from, to] = namespace;
        setns(to, CloneFlags::CLONE_NEWNET).unwrap();
        let receiver = UdpSocket::bind("10.8.0.2:7000").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        setns(from, CloneFlags::CLONE_NEWNET).unwrap();
        given
            .send((UdpSocket::bind("10.8.0.1:0").unwrap(), receiver))
            .unwrap();
    });
    let (sender, receiver) = namespaces.recv().unwrap();
    setsockopt(&sender, sockopt::UdpGsoSegment, &1000).unwrap();
    sender.send_to(&content(3500), "10.8.0.2:7000").unwrap();
    let mut crossed = Crossed::default();
    while crossed.read == 0 {
        let readable = [one.tun.readable().unwrap()];
        assert!(wait_readable(&readable, Some(Duration::from_secs(10))).unwrap());
        carry(&mut one.tun, &mut two.tun, &mut crossed);
    }
    // 20 + 8 + 8 + 14 + 20 + 8 bytes of headers.
    assert_eq!(crossed.longest, 1078);
    for part in content(3500).chunks(1000) {
        let mut buffer = [0; 2000];
        let bytes = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..bytes], part);
    }
}
