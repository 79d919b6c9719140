//! The filter of a watch, as the kernel runs it (classic BPF): what belongs on the cipher link is
//! passed over before anything is copied.
//!
//! A load beyond a frame's end makes the kernel pass the frame over, so every load here stands
//! behind a look at the length.

use super::Expected;
use super::forms::{
    self, IKE_HEADER_BYTES, IKE_LENGTH_AT, IKE_VERSION, IKE_VERSION_AT, IKE_VERSION_MASK,
    KEEPALIVE, Meaning, Shape,
};
use crate::protocol::{ControlPort, SealedPort};
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP,
    BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LEN, BPF_MEM, BPF_MSH, BPF_RET, BPF_ST, BPF_SUB, BPF_W,
    BPF_X, sock_filter,
};

const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_ARP: u32 = 0x0806;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
const UDP: u32 = 17;
const ESP: u32 = 50;
const ICMPV6: u32 = 58;

/// Neighbour discovery: RFC 4861 §4.
const ND_FIRST: u32 = 133;
const ND_BEYOND: u32 = 138;

/// Offsets in a frame; those in the IPv4 payload are counted with a header of no length, to which
/// X is added.
const ETHERTYPE_AT: u32 = 12;
const IPV4_AT: u32 = 14;
const FRAGMENT_AT: u32 = 20;
const PROTOCOL_AT: u32 = 23;
const SOURCE_AT: u32 = 26;
const TARGET_AT: u32 = 30;
const IPV6_NEXT_AT: u32 = 20;
const ICMPV6_TYPE_AT: u32 = 54;
const SOURCE_PORT_AT: u32 = 14;
const TARGET_PORT_AT: u32 = 16;
const UDP_LENGTH_AT: u32 = 18;
const UDP_PAYLOAD_AT: u32 = 22;
const UDP_HEADER_BYTES: u32 = 8;
/// Without options.
const TCP_HEADER_BYTES: u32 = 20;

/// `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT` of linux/filter.h: the tag itself is no longer in the
/// frame.
const VLAN_TAG_PRESENT: u32 = (-0x1000_i32 + 48).cast_unsigned();

/// Verdicts: bytes of the frame to keep.
const FOREIGN: u32 = u32::MAX;
const EXPECTED: u32 = 0;

/// The filter that lets foreign frames through only; see [`journal::record::CipherWatch`].
pub(super) fn foreign_only(expected: Expected<'_>) -> Vec<sock_filter> {
    let sealed_ports = expected.sealed;
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_ABS, VLAN_TAG_PRESENT);
    program.unless(BPF_JEQ, 0, FOREIGN);
    program.load(BPF_W | BPF_LEN, 0);
    program.unless(BPF_JGE, FRAGMENT_AT + 14, FOREIGN);
    program.load(BPF_H | BPF_ABS, ETHERTYPE_AT);
    program.when(BPF_JEQ, ETHERTYPE_ARP, EXPECTED);
    program.skip_unless(BPF_JEQ, ETHERTYPE_IPV6, &neighbour_discovery());
    program.unless(BPF_JEQ, ETHERTYPE_IPV4, FOREIGN);
    program.load(BPF_B | BPF_ABS, PROTOCOL_AT);
    let bare_esp = match forms::has_bare_esp(sealed_ports) {
        true => EXPECTED,
        false => FOREIGN,
    };
    program.when(BPF_JEQ, ESP, bare_esp);
    program.skip_unless(BPF_JEQ, TCP, &channels(expected.control));
    program.unless(BPF_JEQ, UDP, FOREIGN);
    // The ports stand in the first fragment, which is judged for all.
    program.load(BPF_H | BPF_ABS, FRAGMENT_AT);
    program.when(BPF_JSET, 0x1fff, EXPECTED);
    program.push(BPF_LDX | BPF_B | BPF_MSH, IPV4_AT);
    program.load_length_beyond_header();
    program.unless(BPF_JGE, UDP_PAYLOAD_AT + 1, FOREIGN);
    program.by_port(sealed_ports);
    program.0
}

/// What a datagram on the port is; its payload has at least one byte.
fn datagram(port: &SealedPort) -> Assembler {
    let mut program = Assembler::default();
    if forms::has_keepalives(port) {
        program.load(BPF_H | BPF_IND, UDP_LENGTH_AT);
        program.skip_unless(BPF_JEQ, UDP_HEADER_BYTES + 1, &keepalive());
    }
    program.unless_payload(4);
    for shape in forms::shapes(port) {
        program.load(BPF_W | BPF_IND, UDP_PAYLOAD_AT);
        program.push(BPF_ALU | BPF_AND | BPF_K, shape.mask);
        program.skip_unless(BPF_JEQ, shape.value, &packet(port, shape));
    }
    program.push(BPF_RET | BPF_K, FOREIGN);
    program
}

/// What a packet is whose first bytes have that shape.
fn packet(port: &SealedPort, shape: &Shape) -> Assembler {
    let mut program = Assembler::default();
    if !shape.is_allowed(port) {
        program.push(BPF_RET | BPF_K, FOREIGN);
        return program;
    }
    program.unless_payload(shape.bytes_least.into());
    if let Meaning::Ike { at } = shape.meaning {
        program.unless_ike(at.into());
    }
    program.push(BPF_RET | BPF_K, EXPECTED);
    program
}

fn neighbour_discovery() -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_LEN, 0);
    program.unless(BPF_JGE, ICMPV6_TYPE_AT + 1, FOREIGN);
    program.load(BPF_B | BPF_ABS, IPV6_NEXT_AT);
    program.unless(BPF_JEQ, ICMPV6, FOREIGN);
    program.load(BPF_B | BPF_ABS, ICMPV6_TYPE_AT);
    program.unless(BPF_JGE, ND_FIRST, FOREIGN);
    program.when(BPF_JGE, ND_BEYOND, FOREIGN);
    program.push(BPF_RET | BPF_K, EXPECTED);
    program
}

/// Whole segments of the DUT's own TCP: either way between the two addresses, by the port of the
/// one that listens.
fn channels(ports: &[ControlPort]) -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_H | BPF_ABS, FRAGMENT_AT);
    program.when(BPF_JSET, 0x3fff, FOREIGN);
    program.push(BPF_LDX | BPF_B | BPF_MSH, IPV4_AT);
    program.load_length_beyond_header();
    program.unless(BPF_JGE, IPV4_AT + TCP_HEADER_BYTES, FOREIGN);
    for port in ports {
        let ends = [port.connector, port.listener].map(u32::from);
        for ([source, target], port_at) in [
            ([ends[0], ends[1]], TARGET_PORT_AT),
            ([ends[1], ends[0]], SOURCE_PORT_AT),
        ] {
            let mut by_port = Assembler::default();
            by_port.load(BPF_H | BPF_IND, port_at);
            by_port.when(BPF_JEQ, port.port.into(), EXPECTED);
            let mut by_target = Assembler::default();
            by_target.load(BPF_W | BPF_ABS, TARGET_AT);
            by_target.skip_unless(BPF_JEQ, target, &by_port);
            program.load(BPF_W | BPF_ABS, SOURCE_AT);
            program.skip_unless(BPF_JEQ, source, &by_target);
        }
    }
    program.push(BPF_RET | BPF_K, FOREIGN);
    program
}

/// RFC 3948 §2.3: one byte of 0xff.
fn keepalive() -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_B | BPF_IND, UDP_PAYLOAD_AT);
    program.unless(BPF_JEQ, KEEPALIVE.into(), FOREIGN);
    program.push(BPF_RET | BPF_K, EXPECTED);
    program
}

/// Instructions in their order; jumps are forwards and short.
#[derive(Default)]
struct Assembler(Vec<sock_filter>);

impl Assembler {
    fn push(&mut self, code: u32, k: u32) {
        self.jump(code, k, 0, 0);
    }

    fn jump(&mut self, code: u32, k: u32, jt: u8, jf: u8) {
        // Every code of classic BPF fits its 16 bits.
        let code = code as u16;
        self.0.push(sock_filter { code, jt, jf, k });
    }

    /// A = what is there.
    fn load(&mut self, what: u32, at: u32) {
        self.push(BPF_LD | what, at);
    }

    /// A = length of the frame less X, the length of its IPv4 header.
    fn load_length_beyond_header(&mut self) {
        self.load(BPF_W | BPF_LEN, 0);
        self.push(BPF_ALU | BPF_SUB | BPF_X, 0);
    }

    /// Ends with `verdict` when the test of A against `k` holds.
    fn when(&mut self, test: u32, k: u32, verdict: u32) {
        self.jump(BPF_JMP | test | BPF_K, k, 0, 1);
        self.push(BPF_RET | BPF_K, verdict);
    }

    /// Ends with `verdict` when the test of A against `k` does not hold.
    fn unless(&mut self, test: u32, k: u32, verdict: u32) {
        self.jump(BPF_JMP | test | BPF_K, k, 1, 0);
        self.push(BPF_RET | BPF_K, verdict);
    }

    /// Goes through `part` only when the test of A against `k` holds.
    fn skip_unless(&mut self, test: u32, k: u32, part: &Self) {
        let length = u8::try_from(part.0.len())
            .unwrap_or_else(|_| unreachable!("the parts of this file are short"));
        self.jump(BPF_JMP | test | BPF_K, k, 0, length);
        self.0.extend(&part.0);
    }

    /// Ends as foreign unless the datagram says that it has so much payload, and the frame holds
    /// it.
    fn unless_payload(&mut self, bytes: u32) {
        self.load(BPF_H | BPF_IND, UDP_LENGTH_AT);
        self.unless(BPF_JGE, UDP_HEADER_BYTES + bytes, FOREIGN);
        self.load_length_beyond_header();
        self.unless(BPF_JGE, UDP_PAYLOAD_AT + bytes, FOREIGN);
    }

    /// Ends as foreign unless an IKEv2 message, whose header is known to be there, stands so far
    /// into the payload. It is the last that is asked: X is not what it was.
    fn unless_ike(&mut self, at: u32) {
        let header_at = UDP_PAYLOAD_AT + at;
        self.load(BPF_B | BPF_IND, header_at + u32::from(IKE_VERSION_AT));
        self.push(BPF_ALU | BPF_AND | BPF_K, IKE_VERSION_MASK.into());
        self.unless(BPF_JEQ, u32::from(IKE_VERSION) << 4, FOREIGN);
        self.load(BPF_H | BPF_IND, UDP_LENGTH_AT);
        self.push(BPF_ALU | BPF_SUB | BPF_K, UDP_HEADER_BYTES + at);
        self.push(BPF_ST, 0);
        self.load(BPF_W | BPF_IND, header_at + u32::from(IKE_LENGTH_AT));
        self.unless(BPF_JGE, IKE_HEADER_BYTES.into(), FOREIGN);
        self.push(BPF_LDX | BPF_W | BPF_MEM, 0);
        self.jump(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1);
        self.push(BPF_RET | BPF_K, FOREIGN);
    }

    /// Ends with what the first of these ports that is the source's, or else the target's, makes of
    /// the datagram, and as foreign where there is none.
    fn by_port(&mut self, ports: &[SealedPort]) {
        let mut parts: Vec<Vec<sock_filter>> = Vec::new();
        let part_of = |port: &SealedPort| {
            let part = datagram(port).0;
            let known = parts.iter().position(|known| same(known, &part));
            known.unwrap_or_else(|| {
                parts.push(part);
                parts.len() - 1
            })
        };
        let wanted: Vec<usize> = ports.iter().map(part_of).collect();
        // Long jumps are unconditional only: a test, and a jump that it steps over.
        let tests = 2 * (1 + 2 * ports.len());
        let mut begins = Vec::new();
        let mut end = self.0.len() + tests + 1;
        for part in &parts {
            begins.push(end);
            end += part.len();
        }
        for at in [SOURCE_PORT_AT, TARGET_PORT_AT] {
            self.load(BPF_H | BPF_IND, at);
            for (port, &part) in ports.iter().zip(&wanted) {
                self.jump(BPF_JMP | BPF_JEQ | BPF_K, u32::from(port.port), 0, 1);
                let behind = self.0.len() + 1;
                // At most a few instructions for each of 65536 ports, and few parts.
                self.push(BPF_JMP | BPF_JA, (begins[part] - behind) as u32);
            }
        }
        self.push(BPF_RET | BPF_K, FOREIGN);
        self.0.extend(parts.concat());
    }
}

/// Whether two parts do the same.
fn same(one: &[sock_filter], other: &[sock_filter]) -> bool {
    let fields = |found: &sock_filter| (found.code, found.jt, found.jf, found.k);
    one.iter().map(fields).eq(other.iter().map(fields))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sample::classify::tests::{fragment, ipv4, udp};
    use crate::sample::socket::attach;
    use campaign::plan::Form;
    use std::os::unix::net::UnixDatagram;

    const PORTS: [u16; 2] = [4500, 4501];
    const ESP_PACKET: &[u8] = &[0, 0, 1, 2, 0, 0, 0, 1, 9, 9, 9, 9];

    /// Whether the kernel takes the frame for foreign.
    pub(in crate::sample) fn is_foreign_on(ports: &[SealedPort], frame: &[u8]) -> bool {
        let expected = Expected {
            sealed: ports,
            control: &[],
        };
        is_foreign_where(expected, frame)
    }

    pub(in crate::sample) fn is_foreign_where(expected: Expected<'_>, frame: &[u8]) -> bool {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        attach(&receiver, &foreign_only(expected)).unwrap();
        receiver.set_nonblocking(true).unwrap();
        sender.send(frame).unwrap();
        receiver.recv(&mut [0; 100]).is_ok()
    }

    fn is_foreign_to(ports: &[u16], frame: &[u8]) -> bool {
        let ports: Vec<_> = ports.iter().copied().map(SealedPort::esp).collect();
        is_foreign_on(&ports, frame)
    }

    fn is_foreign(frame: &[u8]) -> bool {
        is_foreign_to(&PORTS, frame)
    }

    #[test]
    fn esp_is_expected_bare_whole_or_in_fragments_and_in_udp_on_either_end_of_its_ports() {
        assert!(!is_foreign(&ipv4(50, ESP_PACKET)));
        assert!(!is_foreign(&fragment(ipv4(50, ESP_PACKET), 1, 0x2000)));
        assert!(!is_foreign(&fragment(ipv4(50, ESP_PACKET), 1, 100)));
        assert!(!is_foreign(&udp(4501, 9, ESP_PACKET)));
        assert!(!is_foreign(&udp(9, 4500, ESP_PACKET)));
        assert!(is_foreign(&udp(9, 4502, ESP_PACKET)));
        assert!(is_foreign_to(&[], &udp(4500, 4500, ESP_PACKET)));
    }

    #[test]
    fn bare_esp_is_foreign_to_a_dut_of_another_form() {
        let wireguard = SealedPort {
            form: Form::WireGuard,
            ..SealedPort::esp(51_820)
        };
        let both = [wireguard, SealedPort::esp(4500)];
        for frame in [ipv4(50, ESP_PACKET), fragment(ipv4(50, ESP_PACKET), 1, 100)] {
            assert!(is_foreign_on(&[wireguard], &frame));
            assert!(!is_foreign_on(&both, &frame));
        }
    }

    #[test]
    fn on_the_ports_of_esp_only_an_spi_and_a_keepalive_are_expected() {
        assert!(is_foreign(&udp(4500, 4500, &[0, 0, 0, 0, 1, 2, 3, 4])));
        assert!(is_foreign(&udp(4500, 4500, &[1, 2, 3])));
        assert!(!is_foreign(&udp(4500, 4500, &[0xff])));
        assert!(is_foreign(&udp(4500, 4500, &[0xfe])));
        assert!(is_foreign(&udp(4500, 4500, &[])));
    }

    #[test]
    fn a_header_with_options_moves_the_ports_and_the_spi() {
        let with_options = |frame: Vec<u8>| {
            let mut longer = frame[..34].to_vec();
            longer[14] = 0x46;
            // What would be ports of ESP and an SPI in a header without options.
            longer.extend_from_slice(&[0x11, 0x94, 0x11, 0x94]);
            longer.extend_from_slice(&frame[34..]);
            longer
        };
        assert!(!is_foreign(&with_options(udp(9, 4500, ESP_PACKET))));
        assert!(is_foreign(&with_options(udp(9, 9, ESP_PACKET))));
    }

    #[test]
    fn what_is_clear_or_cut_off_is_foreign() {
        assert!(is_foreign(&ipv4(6, &[0; 20])));
        assert!(is_foreign(&ipv4(1, &[8, 0, 0, 0])));
        assert!(is_foreign(&fragment(udp(1, 2, &[0; 8]), 1, 0x2000)));
        let whole = udp(4500, 4500, ESP_PACKET);
        for length in [1, 13, 14, 33, 34, 41, 42, 45] {
            assert!(is_foreign(&whole[..length]), "{length} bytes");
        }
        assert!(!is_foreign(&whole[..46]));
    }

    #[test]
    fn a_later_fragment_of_udp_goes_with_its_first_one() {
        assert!(!is_foreign(&fragment(ipv4(17, &[7; 8]), 1, 100)));
        assert!(!is_foreign(&fragment(udp(9, 4500, ESP_PACKET), 1, 0x2000)));
    }

    #[test]
    fn arp_and_neighbour_discovery_are_expected_and_other_protocols_are_not() {
        let frame = |ethertype: u16, length: usize| {
            let mut frame = vec![0; length];
            frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
            frame
        };
        assert!(!is_foreign(&frame(0x0806, 42)));
        assert!(is_foreign(&frame(0x88cc, 60)));
        let icmpv6 = |kind: u8| {
            let mut frame = frame(0x86dd, 60);
            (frame[20], frame[54]) = (58, kind);
            frame
        };
        assert!(!is_foreign(&icmpv6(133)) && !is_foreign(&icmpv6(137)));
        assert!(is_foreign(&icmpv6(128)) && is_foreign(&icmpv6(138)));
        assert!(is_foreign(&icmpv6(133)[..54]));
    }

    #[test]
    fn many_ports_are_all_known() {
        let ports: Vec<u16> = (5000..5900).collect();
        for (port, foreign) in [(5000, false), (5899, false), (5900, true)] {
            assert_eq!(is_foreign_to(&ports, &udp(port, 9, ESP_PACKET)), foreign);
            assert_eq!(is_foreign_to(&ports, &udp(9, port, ESP_PACKET)), foreign);
        }
    }

    #[test]
    fn a_hundred_ports_of_each_form_fit_a_program() {
        let forms = [Form::Esp, Form::WireGuard, Form::OpenVpn];
        let ports: Vec<_> = (5000..5600)
            .map(|port| SealedPort {
                port,
                form: forms[usize::from(port % 3)],
                control: port % 2 == 0,
            })
            .collect();
        let data = [4, 0, 0, 0].repeat(10);
        // 5001 is a port of ESP, 5002 one of WireGuard, 5003 one of OpenVPN.
        for (port, foreign) in [(5001, false), (5002, false), (5003, true), (5599, false)] {
            assert_eq!(
                is_foreign_on(&ports, &udp(9, port, &data)),
                foreign,
                "{port}"
            );
        }
    }
}
