//! Frames as decoded by independent programs: tshark, scapy and etherparse.

use crate::wire_tap::{KeyPair, SOURCE_MAC, TARGET_MAC, all_frames, esp, send};
use base16ct::lower::encode_string as hex;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use keying::StaticKeys;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use traffic::{KeyUse, Keys, SOURCE_PORT_MIN};
use traffic_spec::{Part, Send, TEST_PORT};
use wire::Suite;
use wire::mix::{FrameMix, Share};

const LANES: u16 = 3;
const SIZES: [u16; 8] = [84, 85, 128, 570, 1280, 1500, 1518, 9216];

/// One frame of each size, each in its own flow and tunnel; over IPv4 the smallest too.
fn spec(ipv6: bool) -> Send {
    let smallest = (!ipv6).then_some(64);
    let share = |frame_bytes| Share {
        frame_bytes,
        weight: 1,
    };
    let mix = FrameMix {
        name: "mix".to_owned(),
        shares: smallest.into_iter().chain(SIZES).map(share).collect(),
    };
    let mut spec = send(ipv6, mix);
    spec.frames.flows = 30;
    spec.frames.tunnels = 4;
    spec.frames_per_s = Some(30);
    spec
}

fn frames(spec: &Send) -> Vec<Vec<u8>> {
    let keys = spec
        .peer
        .as_ref()
        .map(|esp| Keys::open(esp, KeyUse::Seal).unwrap());
    let frames = all_frames(spec, 0xabcd, Part::WHOLE, keys.as_ref());
    frames.into_iter().map(|(frame, _)| frame).collect()
}

/// A capture file in the format of `pcap-savefile(5)`, link type Ethernet.
fn write_pcap(path: &Path, frames: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 2 | 4 << 16, 0, 0, 65_535, 1] {
        file.extend(word.to_ne_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            file.extend(word.to_ne_bytes());
        }
        file.extend(frame);
    }
    fs::write(path, file).unwrap();
}

/// The fields of each frame as decoded by tshark; `None`, with a printed note, where it is not
/// installed.
fn dissect(frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let folder = testing::folder().unwrap();
    let path = folder.path().join("golden.pcap");
    write_pcap(&path, frames);
    let text = testing::tshark("dissection by tshark", |tshark| {
        tshark.args(["-n", "-T", "fields", "-E", "separator=;"]);
        tshark.args(["-o", "ip.check_checksum:TRUE"]);
        tshark.args(["-o", "udp.check_checksum:TRUE"]);
        tshark.arg("-r").arg(&path);
        for field in fields {
            tshark.args(["-e", field]);
        }
    })?;
    let row = |line: &str| line.split(';').map(str::to_owned).collect();
    Some(text.lines().map(row).collect())
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

#[test]
fn tshark_finds_every_header_right() {
    for ipv6 in [false, true] {
        let spec = spec(ipv6);
        let frames = frames(&spec);
        assert_eq!(frames.len(), 30);
        let ip = if ipv6 { "ipv6" } else { "ip" };
        let (source, target) = (format!("{ip}.src"), format!("{ip}.dst"));
        let ttl = if ipv6 { "ipv6.hlim" } else { "ip.ttl" };
        let mut fields = vec!["frame.len", "eth.src", "eth.dst", &source, &target, ttl];
        fields.extend(["udp.srcport", "udp.dstport", "udp.length"]);
        fields.extend(["udp.checksum.status", "_ws.expert", "_ws.malformed"]);
        if !ipv6 {
            fields.extend(["ip.checksum.status", "ip.flags.df", "ip.len"]);
        }
        let Some(rows) = dissect(&frames, &fields) else {
            return;
        };
        assert_eq!(rows.len(), frames.len());
        for (flow, (row, frame)) in (0u16..).zip(rows.iter().zip(&frames)) {
            let length = frame.len();
            let tunnel = flow % 4;
            let address = |net: u16| match ipv6 {
                // 254 and 255 are followed by 256, and 0xfffe, 0xffff by 0x1_0000.
                false => format!("10.{net}.{}.{}", (254 + tunnel) / 256, (254 + tunnel) % 256),
                true if tunnel < 2 => format!("2001:db8:{net}::{:x}", 0xfffe + tunnel),
                true => format!("2001:db8:{net}::1:{:x}", tunnel - 2),
            };
            let headers = if ipv6 { 54 } else { 34 };
            let mut expected = vec![length.to_string(), mac(SOURCE_MAC), mac(TARGET_MAC)];
            expected.extend([address(1), address(2), "64".to_owned()]);
            expected.extend([SOURCE_PORT_MIN + flow / 4, TEST_PORT].map(|port| port.to_string()));
            expected.extend([(length - headers).to_string(), "1".to_owned()]);
            expected.extend([String::new(), String::new()]);
            if !ipv6 {
                let total = (length - 14).to_string();
                expected.extend(["1".to_owned(), "1".to_owned(), total]);
            }
            assert_eq!(*row, expected, "flow {flow}");
        }
        let lengths: Vec<_> = frames.iter().map(Vec::len).collect();
        for share in &spec.frames.mix.shares {
            assert!(lengths.contains(&(usize::from(share.frame_bytes) - 4)));
        }
    }
}

#[test]
fn tshark_finds_esp_in_udp_in_sealed_frames() {
    for outer_ipv6 in [false, true] {
        let keys = KeyPair::new();
        let mut spec = spec(!outer_ipv6);
        spec.peer = Some(esp(&keys.a, outer_ipv6, LANES));
        let frames = frames(&spec);
        let mut fields = vec!["udp.srcport", "udp.dstport", "udp.length"];
        fields.extend(["udp.checksum.status", "esp.spi", "esp.sequence"]);
        fields.extend(["_ws.malformed", "ip.checksum.status"]);
        let Some(rows) = dissect(&frames, &fields) else {
            return;
        };
        for (index, (row, frame)) in (0u16..).zip(rows.iter().zip(&frames)) {
            let lane = index % LANES;
            let port = (4500 + lane).to_string();
            let headers = if outer_ipv6 { 54 } else { 34 };
            // No checksum over IPv4, a correct one over IPv6.
            let status = if outer_ipv6 { "1" } else { "3" };
            let mut expected = vec![port.clone(), port, (frame.len() - headers).to_string()];
            expected.push(status.to_owned());
            // By its port, tshark recognises only the first lane as ESP.
            if lane == 0 {
                expected.extend([
                    format!("0x{:08x}", 1 << 12),
                    (index / LANES + 1).to_string(),
                ]);
            } else {
                expected.extend([String::new(), String::new()]);
            }
            expected.push(String::new());
            expected.push(if outer_ipv6 { "" } else { "1" }.to_owned());
            assert_eq!(*row, expected, "frame {index}");
        }
    }
}

#[test]
fn etherparse_agrees() {
    for ipv6 in [false, true] {
        for frame in frames(&spec(ipv6)) {
            let packet = SlicedPacket::from_ethernet(&frame).unwrap();
            let Some(TransportSlice::Udp(udp)) = &packet.transport else {
                panic!("not UDP")
            };
            let header = udp.to_header();
            let checksum = match packet.net.as_ref().unwrap() {
                NetSlice::Ipv4(ip) => {
                    let ip = ip.header().to_header();
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    header.calc_checksum_ipv4(&ip, udp.payload()).unwrap()
                }
                NetSlice::Ipv6(ip) => {
                    let ip = ip.header().to_header();
                    header.calc_checksum_ipv6(&ip, udp.payload()).unwrap()
                }
                _ => panic!("not IP"),
            };
            assert_eq!(header.checksum, checksum);
        }
    }
}

/// The output of a Python program for input lines; `None`, with a printed note, where no Python has
/// scapy.
fn python(program: &str, lines: &[String]) -> Option<String> {
    let has_scapy = |python: &&&str| {
        let probe = ["-c", "import scapy.layers.ipsec"];
        let output = Command::new(python).args(probe).output();
        output.is_ok_and(|output| output.status.success())
    };
    // `scripts/setup.sh test` installs it for the first.
    let Some(python) = ["/usr/bin/python3", "python3"].iter().find(has_scapy) else {
        testing::lacks(
            "dissection by scapy",
            "scapy with its ciphers",
            "apt install python3-scapy python3-cryptography",
        );
        return None;
    };
    let mut child = Command::new(python)
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It reads all input before it writes any output.
    let mut input = child.stdin.take().unwrap();
    input.write_all(lines.join("\n").as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn scapy_makes_the_same_frames_from_their_fields() {
    let program = "
import sys
from scapy.all import Ether, IP, IPv6, UDP
for line in sys.stdin.read().split():
    frame = Ether(bytes.fromhex(line))
    ip = frame[IP] if IP in frame else frame[IPv6]
    for field in ('len', 'chksum', 'plen'):
        if hasattr(ip, field):
            delattr(ip, field)
    del frame[UDP].len, frame[UDP].chksum
    print(bytes(frame).hex())
";
    let all: Vec<_> = [false, true]
        .iter()
        .flat_map(|ipv6| frames(&spec(*ipv6)))
        .collect();
    let lines: Vec<_> = all.iter().map(|frame| hex(frame)).collect();
    let Some(output) = python(program, &lines) else {
        return;
    };
    assert_eq!(output.lines().collect::<Vec<_>>(), lines);
}

#[test]
fn scapy_opens_sealed_frames() {
    let program = "
import sys
from scapy.all import Ether, IP, UDP, ESP, raw
from scapy.layers.ipsec import SecurityAssociation
for line in sys.stdin.read().splitlines():
    key, frame = line.split()
    datagram = Ether(bytes.fromhex(frame))[IP][UDP]
    sealed = ESP(raw(datagram.payload))
    sa = SecurityAssociation(ESP, spi=sealed.spi, crypt_algo='AES-GCM', crypt_key=bytes.fromhex(key),
                             esn_en=True, esn=0, tunnel_header=IP(src='192.0.2.1', dst='192.0.2.2'))
    outer = IP(src='192.0.2.1', dst='192.0.2.2', proto=50) / sealed
    print(raw(sa.decrypt(outer)).hex())
";
    for inner_ipv6 in [false, true] {
        let pair = KeyPair::new();
        let mut spec = spec(inner_ipv6);
        let clear = frames(&spec);
        spec.peer = Some(esp(&pair.a, false, LANES));
        let sealed = frames(&spec);
        // The peer's keys.
        let peer = StaticKeys::open(&pair.b).unwrap();
        let line = |(index, frame): (u16, &Vec<u8>)| {
            let lane = index % LANES;
            let spi = keying::spi_of(1, lane);
            let keys = peer.inbound(Suite::Aes256Gcm, spi, lane).unwrap();
            format!("{} {}", hex(&keys.keymat), hex(frame))
        };
        let lines: Vec<_> = (0..).zip(&sealed).map(line).collect();
        let Some(output) = python(program, &lines) else {
            return;
        };
        let clear: Vec<_> = clear.iter().map(|frame| hex(&frame[14..])).collect();
        assert_eq!(output.lines().collect::<Vec<_>>(), clear);
    }
}
