//! A TUN device in a network namespace of its own: offloads proven, super-packets both ways.
//!
//! Needs root on this machine or in a user namespace (`unshare -r`); prints a note where it has
//! neither.

use nix::sched::{CloneFlags, unshare};
use port::{
    Batch, CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, CipherPort, ClearPort, Train, Tun, TunError,
    TunOffloads, TunSettings, UdpLane, UdpOffloads, wait_readable,
};
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;
use wire::coalesce::{Coalescer, Joinable};
use wire::headers::IpView;
use wire::vnet::{Gso, NEEDS_CSUM, VNET_HEADER_BYTES, VnetHeader};

/// What every supported kernel has.
const ALL: TunOffloads = TunOffloads {
    tunnel: false,
    ..TunOffloads::ALL
};

/// Runs `test` on a thread in a new network namespace, which ends with the thread.
fn in_namespace(test: impl FnOnce() + Send + 'static) {
    let test = move || match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => test(),
        Err(error) => eprintln!("SKIPPED: no network namespace here ({error}): run as root"),
    };
    if let Err(panic) = std::thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .expect("ip is installed");
    assert!(status.success(), "ip {arguments}");
}

fn open(queues: usize) -> Vec<Tun> {
    let tuns = Tun::create(&TunSettings { name: "t0", queues }).unwrap();
    ip("address add 10.9.0.1/24 dev t0");
    ip("link set t0 mtu 1400 up");
    tuns
}

/// The next packet to 10.9.0.2, with its virtio header separate; others (router solicitations) are
/// skipped.
fn receive(tun: &mut Tun) -> (VnetHeader, Vec<u8>) {
    let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
    loop {
        let fd = tun.readable().unwrap();
        assert!(
            wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap(),
            "nothing arrived"
        );
        let (packet, bytes) = tun.recv(&mut buffer).unwrap();
        let (header, packet) = packet[..bytes]
            .split_first_chunk::<VNET_HEADER_BYTES>()
            .unwrap();
        if packet[0] >> 4 == 4 && packet[16..20] == [10, 9, 0, 2] {
            return (VnetHeader::parse(header).unwrap(), packet.to_vec());
        }
    }
}

#[test]
fn a_udp_train_passes_as_one_super_packet_in_both_directions() {
    in_namespace(|| {
        let mut tun = open(1).remove(0);
        assert_eq!(
            tun.enable_offloads(ALL),
            ALL,
            "this kernel lacks an offload"
        );
        let on = UdpOffloads {
            gso: true,
            gro: true,
        };
        let (a, b) = (
            "10.9.0.1:7000".parse().unwrap(),
            "10.9.0.2:7000".parse().unwrap(),
        );
        let mut lane = UdpLane::connect(a, b, on).unwrap();
        let payload: Vec<u8> = (0..5000u32).map(|at| at as u8).collect();
        let mut batch = Batch::for_trains(8);
        batch.buffer[..5000].copy_from_slice(&payload);
        batch.trains.push(Train {
            bytes: 5000,
            datagram_bytes: 1000,
            ..Train::default()
        });
        lane.send(&mut batch);
        let (vnet, mut packet) = loop {
            let (vnet, packet) = receive(&mut tun);
            // The lane's own probe arrives first.
            if packet.len() == 5028 {
                break (vnet, packet);
            }
        };
        assert_eq!(
            (vnet.gso, vnet.gso_size, vnet.flags),
            (Gso::UdpL4, 1000, NEEDS_CSUM)
        );
        assert_eq!(packet[28..], payload);

        // Returns it: swapped addresses keep every checksum valid.
        let (source, target): ([u8; 4], [u8; 4]) = (
            packet[12..16].try_into().unwrap(),
            packet[16..20].try_into().unwrap(),
        );
        packet[12..16].copy_from_slice(&target);
        packet[16..20].copy_from_slice(&source);
        let parts: Vec<&[u8]> = packet[28..].chunks(1000).collect();
        tun.send(&vnet, &packet[..28], &parts).unwrap();
        let mut echoed = Vec::new();
        while echoed.len() < 5000 {
            let fd = lane.readable().unwrap();
            assert!(wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap());
            lane.recv(&mut batch).unwrap();
            batch
                .datagrams()
                .for_each(|datagram| echoed.extend_from_slice(datagram));
        }
        assert_eq!(echoed, payload);
    });
}

#[test]
fn without_offloads_no_super_packet_arrives() {
    in_namespace(|| {
        let mut tun = open(1).remove(0);
        let off = TunOffloads::NONE;
        assert_eq!(tun.enable_offloads(off), off);
        let socket = UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(&[7; 1200], "10.9.0.2:9").unwrap();
        let (vnet, packet) = receive(&mut tun);
        assert_eq!((vnet.gso, packet.len()), (Gso::None, 1228));
        assert!(!tun.joinable().tcp && !tun.joinable().udp);
    });
}

#[test]
fn an_interface_can_have_several_queues() {
    in_namespace(|| {
        let mut tuns = open(2);
        assert_eq!(tuns.len(), 2);
        assert!(tuns.iter_mut().all(|tun| tun.enable_offloads(ALL) == ALL));
    });
}

#[test]
fn a_second_tunnel_does_not_join_the_queues_of_the_first() {
    in_namespace(|| {
        let _first = open(2);
        let settings = TunSettings {
            name: "t0",
            queues: 2,
        };
        let error = Tun::create(&settings).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
    });
}

#[test]
fn each_offload_has_its_own_switch() {
    in_namespace(|| {
        let mut tun = open(1).remove(0);
        for (tso, uso) in [(true, true), (true, false), (false, true), (false, false)] {
            let wanted = TunOffloads { tso, uso, ..ALL };
            assert_eq!(tun.enable_offloads(wanted), wanted);
        }
    });
}

#[test]
fn a_name_in_use_and_a_bad_name_are_refused_with_advice() {
    in_namespace(|| {
        let _first = open(1);
        for (name, remedy) in [
            ("t0", "another process"),
            ("", "1 to 15 bytes"),
            ("0123456789abcdef", "1 to 15 bytes"),
        ] {
            let error = Tun::create(&TunSettings { name, queues: 1 }).unwrap_err();
            assert!(matches!(error, TunError::Create { .. }));
            assert!(error.to_string().contains(remedy), "{error}");
        }
    });
}

#[test]
fn flows_use_the_queue_of_their_hash() {
    in_namespace(|| {
        let mut tuns = open(4);
        if let Err(error) = tuns[0].steer_flows() {
            assert_eq!(
                error.kind(),
                std::io::ErrorKind::PermissionDenied,
                "{error}"
            );
            eprintln!("SKIPPED: no program may be loaded here ({error}): run as root");
            return;
        }
        let mut counts = [0; 4];
        for port in 20_000..20_040 {
            let socket = UdpSocket::bind(("10.9.0.1", port)).unwrap();
            socket.send_to(b"which?", "10.9.0.2:9").unwrap();
            let packet = etherparse::PacketBuilder::ipv4([10, 9, 0, 1], [10, 9, 0, 2], 64);
            let mut back_and_forth = [Vec::new(), Vec::new()];
            let back = etherparse::PacketBuilder::ipv4([10, 9, 0, 2], [10, 9, 0, 1], 64);
            packet
                .udp(port, 9)
                .write(&mut back_and_forth[0], b"which?")
                .unwrap();
            back.udp(9, port)
                .write(&mut back_and_forth[1], b"this")
                .unwrap();
            let queues = back_and_forth.map(|packet| port::flow_hash(&packet) as usize % 4);
            assert_eq!(queues[0], queues[1]);
            let (_, packet) = receive(&mut tuns[queues[0]]);
            assert_eq!(packet[20..22], port.to_be_bytes(), "another queue has it");
            counts[queues[0]] += 1;
        }
        assert!(counts.iter().all(|count| *count > 2), "{counts:?}");
    });
}

/// Linux takes no super-packet without a checksum to complete, so the coalescer requests one.
#[test]
fn datagrams_without_a_checksum_are_accepted_as_one_super_packet() {
    in_namespace(|| {
        let mut tun = open(1).remove(0);
        assert_eq!(tun.enable_offloads(ALL), ALL);
        let socket = UdpSocket::bind("10.9.0.1:5201").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let payload: Vec<u8> = (0..2500u32).map(|at| (at / 7) as u8).collect();
        let datagrams: Vec<Vec<u8>> = (0..)
            .zip(payload.chunks(1000))
            .map(|(id, part)| datagram_without_checksum(id, part))
            .collect();
        let mut coalescer = Coalescer::new(
            Joinable {
                tcp: true,
                udp: true,
                tunnel: true,
            },
            wire::checksum::portable,
        );
        let mut writes = 0;
        let mut sink = |vnet: &VnetHeader, headers: &[u8], parts: &[&[u8]], _: usize| {
            tun.send(vnet, headers, parts).unwrap();
            writes += 1;
        };
        for packet in &datagrams {
            coalescer.push(packet, IpView::parse(packet).unwrap(), &mut sink);
        }
        coalescer.flush(&mut sink);
        assert_eq!(writes, 1);
        let mut buffer = [0; 2000];
        for part in payload.chunks(1000) {
            let bytes = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..bytes], part);
        }
    });
}

fn datagram_without_checksum(id: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((28 + payload.len() as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0x40, 0, 64, 17, 0, 0, 10, 9, 0, 2, 10, 9, 0, 1]);
    let sum = wire::checksum::finish(wire::checksum::portable(&packet, 0));
    packet[10..12].copy_from_slice(&sum);
    packet.extend(7000u16.to_be_bytes());
    packet.extend(5201u16.to_be_bytes());
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}
