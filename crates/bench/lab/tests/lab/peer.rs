//! What a station does with test frames, by hand: frames as bytes, sent as they are, sealed and
//! opened.

use base16ct::lower::encode_string as hex;
use base16ct::mixed;
use engine::CpuChoice;
use esp::{InboundSa, OutboundSa, TRAILER_ROOM, WindowSize};
use keying::StaticKeys;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socket};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use testbed::protocol::{Ended, Program, Ready};
use testbed::{FrameEnd, Node, StationKeys, StationPeer};
use wire::Suite;

use crate::support::{PATIENCE, shell, this_program};

/// In every payload.
pub(crate) const MARKER: &[u8] = b"Cipherbench";

const UDP: u8 = 17;

/// An IP packet from one address to another: UDP with the marker in it.
pub(crate) fn packet(source: IpAddr, target: IpAddr) -> Vec<u8> {
    datagram(source, target, [40_000, 50_000], MARKER)
}

/// An IP packet with one UDP datagram.
pub(crate) fn datagram(
    source: IpAddr,
    target: IpAddr,
    [source_port, target_port]: [u16; 2],
    payload: &[u8],
) -> Vec<u8> {
    let length = u16::try_from(8 + payload.len()).unwrap();
    let mut udp = [source_port, target_port, length, 0]
        .map(u16::to_be_bytes)
        .concat();
    udp.extend_from_slice(payload);
    let addresses = match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => [source.octets(), target.octets()].concat(),
        (IpAddr::V6(source), IpAddr::V6(target)) => [source.octets(), target.octets()].concat(),
        _ => panic!("{source} and {target} are of two families"),
    };
    let pseudo = [&addresses[..], &[0, UDP], &length.to_be_bytes(), &udp].concat();
    udp[6..8].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    let mut header = if source.is_ipv4() {
        let [high, low] = (length + 20).to_be_bytes();
        vec![0x45, 0, high, low, 0, 0, 0x40, 0, 64, UDP, 0, 0]
    } else {
        let [high, low] = length.to_be_bytes();
        vec![0x60, 0, 0, 0, high, low, UDP, 64]
    };
    header.extend_from_slice(&addresses);
    if source.is_ipv4() {
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    [header, udp].concat()
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Sends an IP packet from an end of the path, in `count` equal frames.
pub(crate) fn send_frames(node: &dyn Node, end: &FrameEnd, packet: &[u8], count: u64) {
    let ether_type = if packet[0] >> 4 == 4 {
        [0x08, 0x00]
    } else {
        [0x86, 0xdd]
    };
    let frame = [&end.next_hop_mac[..], &end.mac, &ether_type, packet].concat();
    let words = [
        "send-frames",
        &end.interface,
        &hex(&frame),
        &count.to_string(),
    ];
    let ended = run(node, &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// The ESP packet that carries an inner one, sealed by the station that has these keys.
pub(crate) fn seal(node: &dyn Node, esp: &StationPeer, packet: &[u8]) -> Vec<u8> {
    let ended = run(
        node,
        &["seal", key_file(esp), esp.suite.name(), &hex(packet)],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    mixed::decode_vec(ended.stdout.trim()).unwrap()
}

/// The inner packet of an ESP packet, opened by the station that has these keys.
pub(crate) fn open(node: &dyn Node, esp: &StationPeer, packet: &[u8]) -> Vec<u8> {
    let ended = run(
        node,
        &["open", key_file(esp), esp.suite.name(), &hex(packet)],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    mixed::decode_vec(ended.stdout.trim()).unwrap()
}

/// Starts to wait for a datagram to an address that the node's kernel has.
pub(crate) fn start_to_receive(node: &dyn Node, address: &str) -> u64 {
    let this = this_program().display().to_string();
    let program = Program {
        ready: Ready::Line("ready".to_owned()),
        ..Program::new([this.as_str(), "receive", address])
    };
    node.start(program, PATIENCE).unwrap()
}

/// What came.
pub(crate) fn received(node: &dyn Node, receiver: u64) -> Vec<u8> {
    let ended = node.wait(receiver, PATIENCE).unwrap();
    let line = ended.stdout.lines().nth(1);
    let line = line.unwrap_or_else(|| panic!("nothing came: {ended:?}"));
    mixed::decode_vec(line).unwrap()
}

/// Packets of either version that a node's IP has taken in, whatever became of them.
pub(crate) fn taken_in(node: &dyn Node) -> u64 {
    let script = "awk '/^Ip: [0-9]/ { print $4 } /^Ip6InReceives/ { print $2 }' \
                  /proc/net/snmp /proc/net/snmp6";
    let ended = node.run(shell(script), PATIENCE).unwrap();
    let counts = ended
        .stdout
        .lines()
        .map(|line| line.parse::<u64>().unwrap());
    counts.sum()
}

fn run(node: &dyn Node, words: &[&str]) -> Ended {
    let this = this_program().display().to_string();
    let words = [this.as_str()].into_iter().chain(words.iter().copied());
    node.run(Program::new(words), PATIENCE).unwrap()
}

/// Plays the station's part; `None` when it is no part of it.
pub(crate) fn play(words: &[&str]) -> Option<()> {
    match words {
        ["send-frames", interface, frame, count] => {
            send_on(
                interface,
                &mixed::decode_vec(frame).unwrap(),
                count.parse().unwrap(),
            );
        }
        ["receive", address] => {
            let socket = UdpSocket::bind(address).unwrap();
            println!("ready");
            let mut buffer = [0; 2048];
            let length = socket.recv(&mut buffer).unwrap();
            println!("{}", hex(&buffer[..length]));
        }
        ["seal", key_file, suite, packet] => {
            println!("{}", hex(&seal_here(key_file, suite, packet)))
        }
        ["open", key_file, suite, packet] => {
            println!("{}", hex(&open_here(key_file, suite, packet)))
        }
        _ => return None,
    }
    Some(())
}

fn send_on(interface: &str, frame: &[u8], count: u64) {
    let socket = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .unwrap();
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_ifindex = if_nametoindex(interface).unwrap().cast_signed();
    // SAFETY: the pointer is to a live `sockaddr_ll`, and the length is its own.
    let bound = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    assert_eq!(bound, 0, "{}", std::io::Error::last_os_error());
    for _ in 0..count {
        send(socket.as_raw_fd(), frame, MsgFlags::empty()).unwrap();
    }
}

fn seal_here(key_file: &str, suite: &str, packet: &str) -> Vec<u8> {
    let suite = Suite::from_name(suite).unwrap();
    let mut keys = StaticKeys::open(Path::new(key_file)).unwrap();
    let keys = keys.outbound(suite, 0);
    let selection = engine::select(&CpuChoice::Auto, suite).unwrap();
    let transform = selection.transform(&keys.keymat);
    let mut sa = OutboundSa::new(keys.spi, transform);
    let mut inner = mixed::decode_vec(packet).unwrap();
    let length = inner.len();
    let next_header = if inner[0] >> 4 == 4 { 4 } else { 41 };
    inner.resize(length + TRAILER_ROOM, 0);
    let mut sealed = vec![0; sa.sealed_len(length) + TRAILER_ROOM];
    let bytes = sa
        .seal(&mut inner, length, next_header, &mut sealed)
        .unwrap();
    sealed.truncate(bytes);
    sealed
}

fn open_here(key_file: &str, suite: &str, packet: &str) -> Vec<u8> {
    let suite = Suite::from_name(suite).unwrap();
    let keys = StaticKeys::open(Path::new(key_file)).unwrap();
    let mut packet = mixed::decode_vec(packet).unwrap();
    let spi = wire::headers::be32(&packet, 0);
    let keys = keys.inbound(suite, spi, keying::lane_of(spi)).unwrap();
    let selection = engine::select(&CpuChoice::Auto, suite).unwrap();
    let transform = selection.transform(&keys.keymat);
    let mut sa = InboundSa::new(keys.spi, transform, WindowSize::DEFAULT);
    let opened = sa.open(&mut packet).unwrap();
    packet[opened.inner].to_vec()
}

/// The key file of a station in our own encryptor's place.
fn key_file(esp: &StationPeer) -> &str {
    match &esp.keys {
        StationKeys::File(path) => path,
        StationKeys::Ike { .. } | StationKeys::WireGuard(_) => panic!("{esp:?}"),
    }
}
