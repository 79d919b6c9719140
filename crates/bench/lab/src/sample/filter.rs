//! The kernel's filter of a watch (classic BPF): expected frames are dropped before anything is
//! copied.
//!
//! A load beyond a frame's end makes the kernel drop the frame, so every load here follows a length
//! check.

mod clear;
mod opaque;

use super::expected::Expected;
use super::forms::{
    self, Bare, IKE_HEADER_BYTES, IKE_LENGTH_AT, IKE_VERSION, IKE_VERSION_AT, IKE_VERSION_MASK,
    KEEPALIVE, Meaning, Shape,
};
use crate::clock_probe as probe;
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP,
    BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LEN, BPF_MEM, BPF_MSH, BPF_RET, BPF_ST, BPF_SUB, BPF_W,
    BPF_X, sock_filter,
};
use plan::LinkForm;
use testbed::protocol::{ControlPort, SealedPort};

const ETHERTYPE_IPV4: u32 = 0x0800;
const ETHERTYPE_ARP: u32 = 0x0806;
const ETHERTYPE_IPV6: u32 = 0x86dd;
const TCP: u32 = 6;
const UDP: u32 = 17;
const HOP_BY_HOP: u32 = 0;
const ICMPV6: u32 = 58;

/// Neighbour discovery: RFC 4861 §4.
const ND_FIRST: u32 = 133;
const ND_BEYOND: u32 = 138;

/// Group discovery: RFC 2710 §3 and, for the report of version 2, RFC 3810 §5.2.
const GROUPS_FIRST: u32 = 130;
const GROUPS_LAST: u32 = 132;
const GROUP_REPORT: u32 = 143;

/// Offsets in a frame. Offsets in the IPv4 payload assume a header of length 0 and are relative to
/// X, the header's length.
const ETHERTYPE_AT: u32 = 12;
const ETHERNET_BYTES: u32 = 14;
const IPV4_AT: u32 = 14;
const FRAGMENT_AT: u32 = 20;
const PROTOCOL_AT: u32 = 23;
const SOURCE_AT: u32 = 26;
const TARGET_AT: u32 = 30;
const IPV6_NEXT_AT: u32 = 20;
const ICMPV6_TYPE_AT: u32 = 54;
/// A hop-by-hop header of 8 bytes: next header and length, and the ICMPv6 type behind it.
const HOP_BY_HOP_AT: u32 = 54;
const GROUP_TYPE_AT: u32 = 62;
const SOURCE_PORT_AT: u32 = 14;
const TARGET_PORT_AT: u32 = 16;
const UDP_LENGTH_AT: u32 = 18;
const UDP_PAYLOAD_AT: u32 = 22;
const UDP_HEADER_BYTES: u32 = 8;
/// TCP header without options.
const TCP_HEADER_BYTES: u32 = 20;

/// `SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT` of linux/filter.h: the tag itself is no longer in the
/// frame.
const VLAN_TAG_PRESENT: u32 = (-0x1000_i32 + 48).cast_unsigned();

/// Verdicts, as the number of bytes of the frame to keep.
const FOREIGN: u32 = u32::MAX;
const EXPECTED: u32 = 0;

/// Returns the filter that passes only foreign frames; see [`journal::record::CipherWatch`]. With
/// `inside`, sealed packets that show the first marker are foreign too.
pub(super) fn foreign_only(expected: Expected<'_>, inside: bool) -> Vec<sock_filter> {
    let sealed_ports = expected.sealed;
    if forms::has(LinkForm::Opaque, sealed_ports) {
        return opaque::unless_hidden(expected.markers).0;
    }
    let marker = expected.markers.first().filter(|_| inside);
    let marker = marker.map_or(&[][..], Vec::as_slice);
    let mut program = Assembler::default();
    // The lab has no VLANs, so every tagged frame is foreign.
    program.load(BPF_W | BPF_ABS, VLAN_TAG_PRESENT);
    program.unless(BPF_JEQ, 0, FOREIGN);
    program.load(BPF_W | BPF_LEN, 0);
    // The headers of Ethernet and IPv4, so the loads below stay inside the frame.
    program.unless(BPF_JGE, FRAGMENT_AT + 14, FOREIGN);
    program.load(BPF_H | BPF_ABS, ETHERTYPE_AT);
    program.skip_unless(BPF_JEQ, ETHERTYPE_ARP, &arp());
    program.skip_unless(BPF_JEQ, ETHERTYPE_IPV6, &ipv6_discovery());
    program.skip_unless(BPF_JEQ, probe::ETHERTYPE.into(), &clock_probe());
    if forms::has(forms::MACSEC, sealed_ports) {
        program.when(BPF_JEQ, forms::EAPOL_ETHERTYPE.into(), EXPECTED);
        program.skip_unless(BPF_JEQ, forms::MACSEC_ETHERTYPE.into(), &macsec());
    }
    program.unless(BPF_JEQ, ETHERTYPE_IPV4, FOREIGN);
    program.load(BPF_B | BPF_ABS, PROTOCOL_AT);
    if let Some(bare) = Bare::beside(sealed_ports) {
        program.skip_unless(BPF_JEQ, bare.protocol.into(), &in_ip(bare, marker));
    }
    // No form is TCP: it is expected on the ports of a key exchange alone.
    program.skip_unless(BPF_JEQ, TCP, &channels(expected.control));
    program.unless(BPF_JEQ, UDP, FOREIGN);
    // Only the first fragment has the ports; its verdict counts for all fragments.
    program.load(BPF_H | BPF_ABS, FRAGMENT_AT);
    program.when(BPF_JSET, 0x1fff, EXPECTED);
    program.push(BPF_LDX | BPF_B | BPF_MSH, IPV4_AT);
    program.unless_beyond_header(UDP_PAYLOAD_AT + 1);
    program.by_port(sealed_ports, marker);
    program.0
}

/// The part for packets directly in IP. The verdict on the first fragment counts for all.
fn in_ip(bare: Bare, marker: &[u8]) -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_H | BPF_ABS, FRAGMENT_AT);
    program.when(BPF_JSET, 0x1fff, EXPECTED);
    program.push(BPF_LDX | BPF_B | BPF_MSH, IPV4_AT);
    program.unless_beyond_header(IPV4_AT + 4);
    for shape in bare.shapes {
        // The length is tested after the first word, since each kind of packet has another minimum.
        let mut packet = Assembler::default();
        packet.unless_beyond_header(IPV4_AT + u32::from(shape.bytes_least));
        packet.verdict(shape, bare.control, (marker, IPV4_AT));
        // For each shape again, because the mask changes A.
        program.load(BPF_W | BPF_IND, IPV4_AT);
        program.push(BPF_ALU | BPF_AND | BPF_K, shape.mask);
        program.skip_unless(BPF_JEQ, shape.value, &packet);
    }
    program.push(BPF_RET | BPF_K, FOREIGN);
    program
}

/// The part for a datagram on the port; its payload has at least one byte.
fn datagram(port: &SealedPort, marker: &[u8]) -> Assembler {
    let mut program = Assembler::default();
    if forms::has_keepalives(port) {
        // By the length field, because a short frame has padding.
        program.load(BPF_H | BPF_IND, UDP_LENGTH_AT);
        program.skip_unless(BPF_JEQ, UDP_HEADER_BYTES + 1, &keepalive());
    }
    program.unless_payload(4);
    for shape in forms::shapes(port) {
        program.load(BPF_W | BPF_IND, UDP_PAYLOAD_AT);
        program.push(BPF_ALU | BPF_AND | BPF_K, shape.mask);
        let mut packet = Assembler::default();
        packet.unless_payload(shape.bytes_least.into());
        packet.verdict(shape, port.control, (marker, UDP_PAYLOAD_AT));
        program.skip_unless(BPF_JEQ, shape.value, &packet);
    }
    program.push(BPF_RET | BPF_K, FOREIGN);
    program
}

/// Returns the filter that passes only the lab's probes between hosts, in both forms.
pub(crate) fn probes() -> Vec<sock_filter> {
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_LEN, 0);
    program.skip_unless(BPF_JEQ, probe::UDP_PROBE_BYTES as u32, &udp_probe());
    program.unless(BPF_JEQ, probe::PROBE_BYTES as u32, EXPECTED);
    program.load(BPF_H | BPF_ABS, ETHERTYPE_AT);
    program.unless(BPF_JEQ, probe::ETHERTYPE.into(), EXPECTED);
    program.push(BPF_RET | BPF_K, FOREIGN);
    program.0
}

/// Returns the filter that passes only neighbour and group discovery, of any length.
pub(crate) fn discovery() -> Vec<sock_filter> {
    let [mut neighbours, mut groups] = [unless_neighbours(EXPECTED), unless_groups(EXPECTED)];
    // Here the verdicts change roles: `FOREIGN` passes a frame, and a part falls through for
    // discovery.
    for part in [&mut neighbours, &mut groups] {
        part.push(BPF_RET | BPF_K, FOREIGN);
    }
    by_next_header(&neighbours, &groups, EXPECTED).0
}

/// The part that passes a frame with a UDP probe's length if it is a probe.
fn udp_probe() -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_H | BPF_ABS, ETHERTYPE_AT);
    program.unless(BPF_JEQ, ETHERTYPE_IPV4, EXPECTED);
    program.load(BPF_B | BPF_ABS, PROTOCOL_AT);
    program.unless(BPF_JEQ, UDP, EXPECTED);
    for (at, word) in (probe::UDP_BODY_AT as u32..).step_by(4).zip(probe::MAGIC) {
        program.load(BPF_W | BPF_ABS, at);
        program.unless(BPF_JEQ, word, EXPECTED);
    }
    program.push(BPF_RET | BPF_K, FOREIGN);
    program
}

/// The part for MACsec: encrypted frames are expected.
fn macsec() -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_LEN, 0);
    program.unless(BPF_JGE, forms::MACSEC_FRAME_BYTES_LEAST.into(), FOREIGN);
    program.load(BPF_B | BPF_ABS, ETHERNET_BYTES);
    program.push(BPF_ALU | BPF_AND | BPF_K, forms::MACSEC_TCI_MASK.into());
    program.unless(BPF_JEQ, forms::MACSEC_TCI.into(), FOREIGN);
    program.push(BPF_RET | BPF_K, EXPECTED);
    program
}

/// The part for the lab's probes between hosts, which are short.
fn clock_probe() -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_LEN, 0);
    program.unless(BPF_JEQ, probe::PROBE_BYTES as u32, FOREIGN);
    for (at, word) in (ETHERNET_BYTES..).step_by(4).zip(probe::MAGIC) {
        program.load(BPF_W | BPF_ABS, at);
        program.unless(BPF_JEQ, word, FOREIGN);
    }
    program.push(BPF_RET | BPF_K, EXPECTED);
    program
}

/// The part for IPv6 in this form: `groups` runs behind a hop-by-hop header, `neighbours` without
/// one. Ends with `answer` if the frame has no ICMPv6 type.
fn by_next_header(neighbours: &Assembler, groups: &Assembler, answer: u32) -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_LEN, 0);
    program.unless(BPF_JGE, ICMPV6_TYPE_AT + 1, answer);
    program.load(BPF_B | BPF_ABS, IPV6_NEXT_AT);
    program.skip_unless(BPF_JEQ, HOP_BY_HOP, groups);
    program.unless(BPF_JEQ, ICMPV6, answer);
    program.0.extend(&neighbours.0);
    program
}

/// The part that ends with `answer` unless the ICMPv6 type is one of neighbour discovery; then A is
/// the type.
fn unless_neighbours(answer: u32) -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_B | BPF_ABS, ICMPV6_TYPE_AT);
    program.unless(BPF_JGE, ND_FIRST, answer);
    program.when(BPF_JGE, ND_BEYOND, answer);
    program
}

/// The part that ends with `answer` unless group discovery follows a hop-by-hop header of 8 bytes.
fn unless_groups(answer: u32) -> Assembler {
    let mut others = Assembler::default();
    others.unless(BPF_JGE, GROUPS_FIRST, answer);
    others.when(BPF_JGT, GROUPS_LAST, answer);
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_LEN, 0);
    program.unless(BPF_JGE, GROUP_TYPE_AT + 1, answer);
    program.load(BPF_H | BPF_ABS, HOP_BY_HOP_AT);
    // Next header ICMPv6, and length 0, which means 8 bytes.
    program.unless(BPF_JEQ, ICMPV6 << 8, answer);
    program.load(BPF_B | BPF_ABS, GROUP_TYPE_AT);
    let beyond = others.0.len() as u8;
    program.jump(BPF_JMP | BPF_JEQ | BPF_K, GROUP_REPORT, beyond, 0);
    program.0.extend(others.0);
    program
}

/// The part for neighbour and group discovery, in frames no longer than these can be.
fn ipv6_discovery() -> Assembler {
    let mut neighbours = unless_neighbours(FOREIGN);
    let mut advertisement = Assembler::default();
    advertisement.until(forms::ND_LIST_BYTES_MOST);
    neighbours.skip_unless(BPF_JEQ, forms::ND_ADVERTISEMENT.into(), &advertisement);
    neighbours.until(forms::ND_FRAME_BYTES_MOST);
    let mut groups = unless_groups(FOREIGN);
    groups.until(forms::ND_LIST_BYTES_MOST);
    by_next_header(&neighbours, &groups, FOREIGN)
}

/// The part for ARP for IPv4 over Ethernet with nothing behind it.
fn arp() -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_W | BPF_LEN, 0);
    program.unless(BPF_JGE, (*forms::ARP_FRAME_BYTES.start()).into(), FOREIGN);
    program.when(BPF_JGT, (*forms::ARP_FRAME_BYTES.end()).into(), FOREIGN);
    let begin = forms::ARP_BEGIN.into_iter().zip(forms::ARP_BEGIN_MASK);
    for (at, (value, mask)) in (ETHERNET_BYTES..).step_by(4).zip(begin) {
        program.load(BPF_W | BPF_ABS, at);
        program.push(BPF_ALU | BPF_AND | BPF_K, mask);
        program.unless(BPF_JEQ, value, FOREIGN);
    }
    program.push(BPF_RET | BPF_K, EXPECTED);
    program
}

/// The part for the DUT's TCP: whole segments between the two addresses, in either direction,
/// identified by the listener's port.
fn channels(ports: &[ControlPort]) -> Assembler {
    let mut program = Assembler::default();
    program.load(BPF_H | BPF_ABS, FRAGMENT_AT);
    // A control connection sends no fragments.
    program.when(BPF_JSET, 0x3fff, FOREIGN);
    program.push(BPF_LDX | BPF_B | BPF_MSH, IPV4_AT);
    program.unless_beyond_header(IPV4_AT + TCP_HEADER_BYTES);
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

/// Instructions in order; jumps are forward and short.
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

    /// A = the value at offset `at`.
    fn load(&mut self, what: u32, at: u32) {
        self.push(BPF_LD | what, at);
    }

    /// A = length of the frame less X, the length of its IPv4 header.
    fn load_length_beyond_header(&mut self) {
        self.load(BPF_W | BPF_LEN, 0);
        self.push(BPF_ALU | BPF_SUB | BPF_X, 0);
    }

    /// Ends with `verdict` if the test of A against `k` holds.
    fn when(&mut self, test: u32, k: u32, verdict: u32) {
        self.jump(BPF_JMP | test | BPF_K, k, 0, 1);
        self.push(BPF_RET | BPF_K, verdict);
    }

    /// Ends with `verdict` if the test of A against `k` does not hold.
    fn unless(&mut self, test: u32, k: u32, verdict: u32) {
        self.jump(BPF_JMP | test | BPF_K, k, 1, 0);
        self.push(BPF_RET | BPF_K, verdict);
    }

    /// Ends with the verdict on a packet of that shape that is long enough and begins at this
    /// offset.
    fn verdict(&mut self, shape: &Shape, control: bool, (marker, at): (&[u8], u32)) {
        if !shape.is_allowed(control) {
            self.push(BPF_RET | BPF_K, FOREIGN);
            return;
        }
        match shape.meaning {
            Meaning::Ike { at } => self.unless_ike(at.into()),
            Meaning::Sealed(_) => self.0.extend(clear::unless_sealed(marker, at).0),
            Meaning::Control => {}
        }
        self.push(BPF_RET | BPF_K, EXPECTED);
    }

    /// Ends as foreign unless the frame has at least `bytes`, counted with an IPv4 header of length
    /// 0.
    fn unless_beyond_header(&mut self, bytes: u32) {
        self.load_length_beyond_header();
        self.unless(BPF_JGE, bytes, FOREIGN);
    }

    /// Ends as expected for frames of at most `bytes`, as foreign for longer ones.
    fn until(&mut self, bytes: u16) {
        self.load(BPF_W | BPF_LEN, 0);
        self.when(BPF_JGT, bytes.into(), FOREIGN);
        self.push(BPF_RET | BPF_K, EXPECTED);
    }

    /// Runs `part` only if the test of A against `k` holds.
    fn skip_unless(&mut self, test: u32, k: u32, part: &Self) {
        let length = u8::try_from(part.0.len())
            .unwrap_or_else(|_| unreachable!("the parts of this file are short"));
        self.jump(BPF_JMP | test | BPF_K, k, 0, length);
        self.0.extend(&part.0);
    }

    /// Ends as foreign unless the datagram's length field claims at least this payload and the
    /// frame holds it.
    fn unless_payload(&mut self, bytes: u32) {
        self.load(BPF_H | BPF_IND, UDP_LENGTH_AT);
        self.unless(BPF_JGE, UDP_HEADER_BYTES + bytes, FOREIGN);
        self.unless_beyond_header(UDP_PAYLOAD_AT + bytes);
    }

    /// Ends as foreign unless the payload has an IKEv2 message at offset `at`; the frame is known
    /// to hold its header. Must be the last check: it overwrites X.
    fn unless_ike(&mut self, at: u32) {
        let header_at = UDP_PAYLOAD_AT + at;
        self.load(BPF_B | BPF_IND, header_at + u32::from(IKE_VERSION_AT));
        self.push(BPF_ALU | BPF_AND | BPF_K, IKE_VERSION_MASK.into());
        self.unless(BPF_JEQ, u32::from(IKE_VERSION) << 4, FOREIGN);
        // The bytes that the datagram has for the message are kept in memory until X is free: a
        // jump compares A with a constant or with X.
        self.load(BPF_H | BPF_IND, UDP_LENGTH_AT);
        self.push(BPF_ALU | BPF_SUB | BPF_K, UDP_HEADER_BYTES + at);
        self.push(BPF_ST, 0);
        self.load(BPF_W | BPF_IND, header_at + u32::from(IKE_LENGTH_AT));
        self.unless(BPF_JGE, IKE_HEADER_BYTES.into(), FOREIGN);
        self.push(BPF_LDX | BPF_W | BPF_MEM, 0);
        self.jump(BPF_JMP | BPF_JGT | BPF_X, 0, 0, 1);
        self.push(BPF_RET | BPF_K, FOREIGN);
    }

    /// Ends with the verdict of the first of these ports that matches the source port, or else the
    /// target port; as foreign if none matches.
    fn by_port(&mut self, ports: &[SealedPort], marker: &[u8]) {
        let mut parts: Vec<Vec<sock_filter>> = Vec::new();
        // Ports of one form share a part: otherwise a thousand ports would exceed the 4096
        // instructions that the kernel accepts.
        let part_of = |port: &SealedPort| {
            let part = datagram(port, marker).0;
            let known = parts.iter().position(|known| same(known, &part));
            known.unwrap_or_else(|| {
                parts.push(part);
                parts.len() - 1
            })
        };
        let wanted: Vec<usize> = ports.iter().map(part_of).collect();
        // Only unconditional jumps can be long, so each is behind a test that skips it.
        // For each of the two ports of a datagram one load, and two instructions for each known
        // port.
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
                // Fits: at most a few instructions for each of 65536 ports, and few parts.
                self.push(BPF_JMP | BPF_JA, (begins[part] - behind) as u32);
            }
        }
        self.push(BPF_RET | BPF_K, FOREIGN);
        self.0.extend(parts.concat());
    }
}

/// Whether two parts have the same instructions.
fn same(one: &[sock_filter], other: &[sock_filter]) -> bool {
    let fields = |found: &sock_filter| (found.code, found.jt, found.jf, found.k);
    one.iter().map(fields).eq(other.iter().map(fields))
}

#[cfg(test)]
mod tests;
