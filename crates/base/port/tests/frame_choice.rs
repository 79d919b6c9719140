//! Choice of the frame port, reasons against the others, and cleanup.

mod traffic;
mod veth;

use etherparse::{IpNumber, PacketBuilder};
use port::{
    AnyReceiver, AnySender, Beside, FramePortError, FramePortKind, FrameReceiver, FrameSender,
    OpenFrames, Packets, Swallow, XdpAttach, XdpMemory, XdpMode, open_receivers, open_senders,
    wait_readable,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;
use traffic::{
    SOURCE_PORT, UDP_PORT, bpf_is_allowed, frame, receive, receive_those, receiver, sender, wanted,
};
use veth::{Ip, ip, with_pair};
use wire::checksum::{finish, portable};

#[test]
fn no_program_is_left_on_the_interface() {
    with_pair(Ip::Both, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        let from = UdpSocket::bind("10.8.0.1:0").unwrap();
        let say = || {
            from.send_to(b"hello, hello, hello", ("10.8.0.2", UDP_PORT))
                .unwrap()
        };
        let listen = || {
            let to = pair
                .in_b(|| UdpSocket::bind(("10.8.0.2", UDP_PORT)))
                .unwrap();
            to.set_nonblocking(true).unwrap();
            to
        };
        for kind in [FramePortKind::Xdp, FramePortKind::Packet] {
            let mut port = pair.in_b(|| receiver("v1", kind, 1514));
            let to = listen();
            say();
            receive(&mut port, 1);
            let error = to.recv(&mut [0; 99]).unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::WouldBlock,
                "{kind} lets frames through"
            );
            drop(port);
            // Another test may be starting a process, which inherits our descriptors for a moment.
            let heard = (0..1000).any(|_| {
                say();
                wait_readable(&[to.as_fd()], Some(Duration::from_millis(10))).unwrap()
            });
            assert!(heard, "{kind} left a program behind");
        }
        let shown = pair.in_b(|| veth::output("-details link show dev v1"));
        assert!(!shown.contains("xdp"), "{shown}");
    });
}

#[test]
fn only_frames_to_the_given_ports_are_received() {
    with_pair(Ip::Both, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        let taken = [5000, 5001, 5002, 5003, 7000, 65_535];
        let left = [1, 4999, 5004, 6999, 7001, 65_534];
        for kind in [FramePortKind::Xdp, FramePortKind::Packet] {
            let wanted = OpenFrames {
                packets: Packets::Udp(&taken),
                ..wanted("v1", Some(kind), 1514)
            };
            let (_port, _) = pair.in_b(|| open_receivers(&wanted)).unwrap();
            let listen = |port| {
                let socket = pair.in_b(|| UdpSocket::bind(("10.8.0.2", port))).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket
            };
            let heard = |socket: &UdpSocket, limit| {
                wait_readable(&[socket.as_fd()], Some(Duration::from_secs(limit))).unwrap()
            };
            let (taken, left) = (taken.map(listen), left.map(listen));
            let from = UdpSocket::bind("10.8.0.1:0").unwrap();
            for socket in taken.iter().chain(&left) {
                from.send_to(b"hello", socket.local_addr().unwrap())
                    .unwrap();
            }
            // These were sent last: the other receivers' frames have already arrived.
            assert!(left.iter().all(|socket| heard(socket, 10)), "{kind}");
            assert!(!taken.iter().any(|socket| heard(socket, 0)), "{kind}");
        }
    });
}

/// Sealed packets do not reach the program that has their port; what it says to its peer does.
#[test]
fn key_exchanges_stay_with_the_owner_of_the_port() {
    with_pair(Ip::Both, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        let esp = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1];
        let ike = [0, 0, 0, 0, 0x12, 0x34, 0x56, 0x78];
        let (transport, handshake) = ([4, 0, 0, 0, 1, 2, 3, 4], [1, 0, 0, 0, 1, 2, 3, 4]);
        for (beside, sealed, exchange) in [
            (Beside::Ike, esp, ike),
            (Beside::WireGuard, transport, handshake),
        ] {
            for kind in [FramePortKind::Xdp, FramePortKind::Packet] {
                let wanted = OpenFrames {
                    packets: Packets::UdpBeside(&[UDP_PORT], beside),
                    ..wanted("v1", Some(kind), 1514)
                };
                let (mut ports, _) = pair.in_b(|| open_receivers(&wanted)).unwrap();
                for (own, peer) in [("10.8.0.1", "10.8.0.2"), ("fd00:8::1", "fd00:8::2")] {
                    let owner = pair.in_b(|| UdpSocket::bind((peer, UDP_PORT))).unwrap();
                    owner
                        .set_read_timeout(Some(Duration::from_secs(10)))
                        .unwrap();
                    let sender = UdpSocket::bind((own, 0)).unwrap();
                    sender.connect((peer, UDP_PORT)).unwrap();
                    // In this order: what passed both would be heard first.
                    for payload in [&sealed[..], &exchange, &[0xff]] {
                        sender.send(payload).unwrap();
                    }
                    let what = format!("{kind} {beside:?} {peer}");
                    for expected in [&exchange[..], &[0xff]] {
                        let mut heard = [0; 64];
                        let bytes = owner.recv(&mut heard).unwrap();
                        assert_eq!(&heard[..bytes], expected, "{what}");
                    }
                    // The capture has the others too.
                    let count = if kind == FramePortKind::Packet { 3 } else { 1 };
                    let frames = receive(&mut ports[0], count);
                    assert!(frames[0].ends_with(&sealed), "{what}: {frames:?}");
                }
            }
        }
    });
}

const ESP: u8 = 50;
const AH: u8 = 51;
const FRAGMENT_HEADER: u8 = 44;

/// A frame from A to B with this payload directly in IP.
fn in_ip(ipv6: bool, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let ethernet = PacketBuilder::ethernet2(veth::A_MAC, veth::B_MAC);
    let ip = if ipv6 {
        let address = |last| [0xfd, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        ethernet.ipv6(address(1), address(2), 64)
    } else {
        ethernet.ipv4([10, 8, 0, 1], [10, 8, 0, 2], 64)
    };
    let mut frame = Vec::new();
    ip.write(&mut frame, IpNumber(protocol), payload).unwrap();
    frame
}

/// An IPv4 frame as a fragment: with its flag of more and its offset in units of 8 bytes.
fn as_fragment(mut frame: Vec<u8>, more_and_offset: u16) -> Vec<u8> {
    frame[20..22].copy_from_slice(&more_and_offset.to_be_bytes());
    frame[24..26].fill(0);
    let sum = finish(portable(&frame[14..34], 0));
    frame[24..26].copy_from_slice(&sum);
    frame
}

/// ESP is taken whatever its SPI; AH, fragments and UDP are the kernel's.
#[test]
fn bare_esp_alone_is_kept_from_the_kernel() {
    with_pair(Ip::Both, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        let esp = |mark| [&[0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1][..], &[mark; 16]].concat();
        let taken = [in_ip(false, ESP, &esp(1)), in_ip(true, ESP, &esp(2))];
        let parts = esp(3);
        let atomic = [&[ESP, 0, 0, 0, 0, 0, 0, 9][..], &esp(4)].concat();
        let left = [
            as_fragment(in_ip(false, ESP, &parts[..16]), 0x2000),
            as_fragment(in_ip(false, ESP, &parts[16..]), 2),
            in_ip(false, AH, &esp(5)),
            in_ip(true, FRAGMENT_HEADER, &atomic),
            in_ip(true, AH, &esp(6)),
            frame(60, SOURCE_PORT),
        ];
        for kind in [FramePortKind::Xdp, FramePortKind::Packet] {
            let wanted = OpenFrames {
                packets: Packets::BareEsp,
                ..wanted("v1", Some(kind), 1514)
            };
            let (mut ports, _) = pair.in_b(|| open_receivers(&wanted)).unwrap();
            let listen = |domain, ty, protocol| {
                let socket = pair.in_b(|| Socket::new(domain, ty, protocol)).unwrap();
                socket
                    .set_read_timeout(Some(Duration::from_secs(10)))
                    .unwrap();
                socket
            };
            let raw = |domain, protocol: u8| {
                listen(domain, Type::RAW, Some(Protocol::from(i32::from(protocol))))
            };
            let udp = listen(Domain::IPV4, Type::DGRAM, None);
            udp.bind(&SocketAddr::from(([10, 8, 0, 2], UDP_PORT)).into())
                .unwrap();
            let owners = [
                (raw(Domain::IPV4, ESP), 3),
                (raw(Domain::IPV6, ESP), 4),
                (raw(Domain::IPV4, AH), 5),
                (raw(Domain::IPV6, AH), 6),
                (udp, *frame(60, SOURCE_PORT).last().unwrap()),
            ];
            let mut from = sender("v0", FramePortKind::Packet, 1514);
            for frame in taken.iter().chain(&left) {
                let fill = |slot: &mut [u8]| {
                    slot[..frame.len()].copy_from_slice(frame);
                    frame.len()
                };
                assert_eq!(from.send(1, fill).unwrap(), 1);
            }
            from.flush().unwrap();
            // What is the first that each hears was sent behind all that is taken.
            for (mut owner, mark) in owners {
                let mut heard = [0; 64];
                let bytes = owner.read(&mut heard).unwrap();
                assert_eq!(heard[bytes - 1], mark, "{kind}: {heard:?}");
            }
            let is_whole_esp = |frame: &[u8]| match frame[12..14] {
                [0x08, 0x00] => frame[23] == ESP && frame[20..22] == taken[0][20..22],
                _ => frame[20] == ESP,
            };
            assert_eq!(receive_those(&mut ports[0], 2, is_whole_esp), taken);
            if kind == FramePortKind::Xdp {
                let more = ports[0].recv(|frame| panic!("{frame:?}")).unwrap_err();
                assert_eq!(more.kind(), io::ErrorKind::WouldBlock);
            }
        }
        let by_socket = OpenFrames {
            packets: Packets::BareEsp,
            ..wanted("v0", Some(FramePortKind::Socket), 1514)
        };
        let refused = [
            open_senders(&by_socket).unwrap_err(),
            open_receivers(&by_socket).unwrap_err(),
        ];
        for error in refused {
            assert!(error.to_string().contains("ESP is bare"), "{error}");
        }
    });
}

#[test]
fn swallowed_ports_are_not_answered() {
    with_pair(Ip::Both, |pair| {
        let swallow = pair.in_b(|| Swallow::bind("v1", &[UDP_PORT])).unwrap();
        let ask = |port: u16| {
            let socket = UdpSocket::bind("10.8.0.1:0").unwrap();
            socket.connect(("10.8.0.2", port)).unwrap();
            socket.send(b"anybody there?").unwrap();
            socket
        };
        let is_refused = |socket: &UdpSocket| {
            let answered = wait_readable(&[socket.as_fd()], Some(Duration::from_secs(10)));
            assert!(answered.unwrap(), "no answer");
            let error = socket.take_error().unwrap().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        };
        let swallowed = ask(UDP_PORT);
        is_refused(&ask(UDP_PORT + 1));
        assert!(
            swallowed.take_error().unwrap().is_none(),
            "it was answered before the other"
        );
        drop(swallow);
        is_refused(&ask(UDP_PORT));
    });
}

#[test]
fn the_fastest_is_chosen_and_rejected_kinds_have_reasons() {
    with_pair(Ip::Both, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        let (ports, passed_over) = open_senders(&wanted("v0", None, 1514)).unwrap();
        assert_eq!(
            (ports[0].kind(), passed_over.len()),
            (FramePortKind::Xdp, 0)
        );
        // The queue is in use now.
        let (second, passed_over) = open_senders(&wanted("v0", None, 1514)).unwrap();
        assert_eq!(second[0].kind(), FramePortKind::Packet);
        assert_eq!(passed_over[0].0, FramePortKind::Xdp);
        assert!(
            passed_over[0].1.contains("stop that one"),
            "{passed_over:?}"
        );
        let (long, passed_over) = open_senders(&wanted("v0", None, 9000)).unwrap();
        assert_eq!(long[0].kind(), FramePortKind::Packet);
        assert!(passed_over[0].1.contains("fit a page"), "{passed_over:?}");
        let receivers = pair
            .in_b(|| open_receivers(&wanted("v1", None, 1514)))
            .unwrap();
        assert_eq!(
            (receivers.0[0].kind(), receivers.1.len()),
            (FramePortKind::Packet, 0)
        );
    });
}

#[test]
fn without_privilege_sockets_are_chosen() {
    with_pair(Ip::Both, |_| {
        // SAFETY: takes numbers only. The raw system call changes this thread and not the process.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) };
        if result != 0 {
            eprintln!("SKIPPED: there is no user 65534 in this user namespace");
            return;
        }
        let (ports, passed_over) = open_senders(&wanted("v0", None, 1514)).unwrap();
        assert_eq!(ports[0].kind(), FramePortKind::Socket);
        let kinds: Vec<_> = passed_over.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [FramePortKind::Xdp, FramePortKind::Packet]);
        for (_, reason) in &passed_over {
            assert!(reason.contains("CAP_NET_RAW"), "{reason}");
        }
        let (ports, passed_over) = open_receivers(&wanted("v0", None, 1514)).unwrap();
        assert_eq!(
            (ports[0].kind(), passed_over.len()),
            (FramePortKind::Socket, 2)
        );
        let error = open_senders(&wanted("v0", Some(FramePortKind::Packet), 1514)).unwrap_err();
        assert!(matches!(error, FramePortError::Forced { .. }), "{error}");
        assert!(error.to_string().contains("run as root"), "{error}");
    });
}

#[test]
fn unusable_ports_are_refused_with_one_sentence_and_advice() {
    with_pair(Ip::Both, |_| {
        let refused = |wanted: OpenFrames<'_>| open_senders(&wanted).unwrap_err().to_string();
        assert_eq!(
            refused(wanted("nosuch0", None, 1514)),
            "there is no interface `nosuch0` in this network namespace\nhelp: `ip link` lists the existing ones"
        );
        assert!(refused(wanted("", None, 1514)).contains("there is no interface"));
        assert!(refused(wanted("v0", None, 9473)).contains("9472 B that a frame port carries"));
        assert!(refused(wanted("v0", Some(FramePortKind::Memory), 60)).contains("one process"));
        let long = refused(wanted("v0", Some(FramePortKind::Xdp), 5000));
        assert!(
            long.starts_with("AF_XDP does not work on interface `v0`"),
            "{long}"
        );
        ip("link set v0 mtu 1500");
        let mtu = refused(wanted("v0", None, 1515));
        assert!(mtu.contains("MTU of 1500 B allows 1514 B"), "{mtu}");
        assert!(mtu.contains("mtu 1501"), "{mtu}");
        ip("link set v0 down");
        let error = open_receivers(&wanted("v0", None, 1514)).unwrap_err();
        assert!(error.to_string().contains("`ip link set v0 up`"), "{error}");
    });
}

#[test]
fn a_port_reports_that_its_interface_is_down() {
    for kind in [FramePortKind::Xdp, FramePortKind::Packet] {
        with_pair(Ip::Both, move |_| {
            let mut from = sender("v0", kind, 1514);
            let mut to = receiver("v0", FramePortKind::Packet, 1514);
            ip("link set v0 down");
            let frame = frame(60, SOURCE_PORT);
            let fill = |slot: &mut [u8]| {
                slot[..60].copy_from_slice(&frame);
                60
            };
            assert!(from.send(1, fill).is_err(), "{kind}");
            // The kernel's own frames (IPv6 neighbour discovery) may have arrived before, and are
            // received first.
            let error = (0..1000).find_map(|_| to.recv(|_| ()).err());
            assert_eq!(error.unwrap().raw_os_error(), Some(libc::ENETDOWN));
        });
    }
}

#[test]
fn a_socket_sender_names_an_unusable_source() {
    with_pair(Ip::Both, |_| {
        let mut from = sender("v0", FramePortKind::Socket, 1514);
        let mut frame = frame(60, SOURCE_PORT);
        frame[29] = 77;
        let fill = |slot: &mut [u8]| {
            slot[..60].copy_from_slice(&frame);
            60
        };
        let error = from.send(1, fill).unwrap_err().to_string();
        assert!(
            error.contains("10.8.0.77:40000") && error.contains("`v0`"),
            "{error}"
        );
    });
}

/// A veth has native XDP and as many queues as it is given, but no zero-copy.
#[test]
fn threads_have_a_queue_each_in_native_mode_and_copies_replace_zero_copy() {
    with_pair(Ip::V4, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        let threads = 2;
        // In native mode a receiver cannot have long frames.
        let set = |name: &str| {
            ip(&format!("link set {name} mtu 1500"));
            ethtool(&format!("-L {name} rx {threads} tx {threads}"));
        };
        set("v0");
        pair.in_b(|| set("v1"));
        let several = |interface| OpenFrames {
            threads,
            ..wanted(interface, Some(FramePortKind::Xdp), 1514)
        };
        let (mut receivers, _) = pair.in_b(|| open_receivers(&several("v1"))).unwrap();
        let (mut senders, _) = open_senders(&several("v0")).unwrap();
        let modes = receivers.iter().map(AnyReceiver::xdp_mode);
        let native = XdpMode {
            attach: Some(XdpAttach::Native),
            memory: XdpMemory::Copy,
        };
        assert_eq!(modes.collect::<Vec<_>>(), [Some(native); 2]);
        assert_eq!(native.to_string(), "native, copy");
        let modes = senders.iter().map(AnySender::xdp_mode);
        let copies = XdpMode {
            attach: None,
            ..native
        };
        assert_eq!(modes.collect::<Vec<_>>(), [Some(copies); 2]);
        assert_eq!(copies.to_string(), "copy");
        // What a queue sends arrives at the queue of the same number.
        for (queue, sender) in senders.iter_mut().enumerate() {
            let frame = frame(60, SOURCE_PORT + queue as u16);
            let fill = |slot: &mut [u8]| {
                slot[..60].copy_from_slice(&frame);
                60
            };
            assert_eq!(sender.send(1, fill).unwrap(), 1);
            sender.flush().unwrap();
            assert_eq!(receive(&mut receivers[queue], 1), [frame], "queue {queue}");
        }
        drop(receivers);
        let one = wanted("v1", Some(FramePortKind::Xdp), 1514);
        let refused = pair.in_b(|| open_receivers(&one)).unwrap_err().to_string();
        assert!(
            refused.contains("2 receive queue(s) for 1 thread(s)"),
            "{refused}"
        );
        assert!(refused.contains("`ethtool -X v1 equal 1`"), "{refused}");
    });
}

/// With a long MTU a veth refuses native XDP.
#[test]
fn a_program_is_attached_behind_the_driver_where_the_driver_takes_none() {
    with_pair(Ip::V4, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        let port = pair.in_b(|| receiver("v1", FramePortKind::Xdp, 1514));
        let generic = XdpMode {
            attach: Some(XdpAttach::Generic),
            memory: XdpMemory::Copy,
        };
        assert_eq!(port.xdp_mode(), Some(generic));
        assert_eq!(generic.to_string(), "generic, copy");
    });
}

fn ethtool(arguments: &str) {
    let mut ethtool = Command::new("ethtool");
    let status = ethtool.args(arguments.split(' ')).status();
    assert!(
        status.expect("ethtool is installed").success(),
        "ethtool {arguments}"
    );
}
