//! Packet kinds of a DUT, on its UDP ports or directly in IP, identified by their first bytes and
//! length.
//!
//! One table serves both readers, so they cannot differ: [`super::classify`] applies it frame by
//! frame, and [`super::filter`] compiles it for the kernel. Lengths are minimums of each kind: GRO
//! may append the following packets.
//!
//! Not checked: whether the packet can be opened, and by which key.

use plan::{Form, LinkForm};
use std::ops::RangeInclusive;
use testbed::protocol::SealedPort;
use wire::l2tp;

/// The port on which IKE begins at the first byte and ESP is never sent; on any other port IKE
/// follows a non-ESP marker (RFC 7296 §2, RFC 3948 §2.2).
const IKE_PORT: u16 = 500;

/// Ethernet header, of a frame and of an inner one.
const ETHERNET_BYTES: u16 = 14;

/// Lengths of a frame with an ARP packet for IPv4 over Ethernet (RFC 826): unpadded, up to padded
/// to the shortest frame including the FCS, which some cards keep.
pub(super) const ARP_FRAME_BYTES: RangeInclusive<u16> = ETHERNET_BYTES + 28..=64;
/// The first bytes of an ARP packet: Ethernet, IPv4, and the lengths of their addresses. The mask
/// excludes the operation.
pub(super) const ARP_BEGIN: [u32; 2] = [0x0001_0800, 0x0604_0000];
pub(super) const ARP_BEGIN_MASK: [u32; 2] = [u32::MAX, 0xffff_0000];

/// The longest frame of neighbour discovery except router advertisements: a redirect with the
/// link-layer address, without the redirected packet (RFC 4861 section 4.5).
pub(super) const ND_FRAME_BYTES_MOST: u16 = ETHERNET_BYTES + 40 + 48;
/// A router advertisement with a dozen options, or a report of as many groups (RFC 3810).
pub(super) const ND_LIST_BYTES_MOST: u16 = ETHERNET_BYTES + 40 + 256;
/// The ICMPv6 type of a router advertisement.
pub(super) const ND_ADVERTISEMENT: u8 = 134;

/// The only byte of a NAT keepalive's payload (RFC 3948 §2.3).
pub(super) const KEEPALIVE: u8 = 0xff;

/// One kind of packet. The first entry of a list that matches a packet's first four bytes applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Mask over the first four bytes, as a number in network order.
    pub(super) mask: u32,
    /// Value of the masked bits.
    pub(super) value: u32,
    /// Minimum length in bytes, including these four.
    pub(super) bytes_least: u16,
    pub(super) meaning: Meaning,
}

/// The kind of packet that a [`Shape`] matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Sealed or encapsulated by the DUT, with this identifier of its key or session.
    Sealed(Id),
    /// Key exchange.
    Control,
    /// An IKEv2 message with its header at this offset of the payload.
    Ike { at: u16 },
}

/// The location of the key identifier in sealed packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    /// These bits of the first four bytes.
    Word { mask: u32 },
    /// The next four bytes.
    SecondWord,
    /// The next four bytes, little-endian.
    SecondWordLittle,
    /// No identifier.
    None,
}

/// IKE's header (RFC 7296 §3.1): its length, and the offsets of version and message length.
pub(super) const IKE_HEADER_BYTES: u16 = 28;
pub(super) const IKE_VERSION_AT: u16 = 17;
pub(super) const IKE_LENGTH_AT: u16 = 24;
/// Its major version, in the upper half of the byte.
pub(super) const IKE_VERSION: u8 = 2;
pub(super) const IKE_VERSION_MASK: u8 = 0xf0;

const NON_ESP_MARKER_BYTES: u16 = 4;

/// A packet of at least this length with this value of the masked bits.
const fn shape((mask, value): (u32, u32), bytes_least: u16, meaning: Meaning) -> Shape {
    Shape {
        mask,
        value,
        bytes_least,
        meaning,
    }
}

/// The whole first word is the identifier.
const BY_WORD: Meaning = Meaning::Sealed(Id::Word { mask: u32::MAX });

/// Any first word.
const ANY: (u32, u32) = (0, 0);
/// The first word 0.
const ZERO: (u32, u32) = (u32::MAX, 0);

const IKE_ALONE: &[Shape] = &[shape(ANY, IKE_HEADER_BYTES, Meaning::Ike { at: 0 })];

const ESP: &[Shape] = &[
    shape(
        ZERO,
        NON_ESP_MARKER_BYTES + IKE_HEADER_BYTES,
        Meaning::Ike {
            at: NON_ESP_MARKER_BYTES,
        },
    ),
    shape(ANY, 4, BY_WORD),
];

/// §5.4 of the whitepaper: a type and three zero bytes; in data packets the receiver's index
/// follows.
const WIREGUARD: &[Shape] = &[
    wireguard(4, 32, Meaning::Sealed(Id::SecondWordLittle)),
    wireguard(1, 148, Meaning::Control),
    wireguard(2, 92, Meaning::Control),
    wireguard(3, 64, Meaning::Control),
];

const fn wireguard(kind: u8, bytes_least: u16, meaning: Meaning) -> Shape {
    let word = u32::from_be_bytes([kind, 0, 0, 0]);
    shape((u32::MAX, word), bytes_least, meaning)
}

/// Opcode, key id and the following bytes. `P_DATA_V2` has a peer id, which the identifier here
/// includes next to the key id; a packet id and a tag follow both versions' headers. A control
/// packet has at least a session id and a count of acknowledgements.
const OPENVPN: &[Shape] = &[
    openvpn(
        9,
        4 + 4 + 16,
        Meaning::Sealed(Id::Word { mask: 0x07ff_ffff }),
    ),
    openvpn(
        6,
        1 + 4 + 16,
        Meaning::Sealed(Id::Word { mask: 0x0700_0000 }),
    ),
    openvpn_control(1),
    openvpn_control(2),
    openvpn_control(3),
    openvpn_control(4),
    openvpn_control(5),
    openvpn_control(7),
    openvpn_control(8),
    openvpn_control(10),
    openvpn_control(11),
];

const fn openvpn(opcode: u8, bytes_least: u16, meaning: Meaning) -> Shape {
    let [mask, value] = [0xf8, opcode << 3];
    let mask = u32::from_be_bytes([mask, 0, 0, 0]);
    shape(
        (mask, u32::from_be_bytes([value, 0, 0, 0])),
        bytes_least,
        meaning,
    )
}

const fn openvpn_control(opcode: u8) -> Shape {
    openvpn(opcode, 1 + 8 + 1, Meaning::Control)
}

/// SPI.
const BARE_ESP: &[Shape] = &[shape(ANY, 4, BY_WORD)];

/// Flags, version 0 and the EtherType inside (RFC 2784 §2.1): IPv4, IPv6, or an Ethernet frame (RFC
/// 7637 §3.2). Checksum, key and sequence number follow if their flags are set (RFC 2890 §2); with
/// all of them the header is still shorter than each minimum here. EtherType 0 is the answer to a
/// router's keepalive.
const GRE: &[Shape] = &[
    gre(0x0800, 4 + 20),
    gre(0x86dd, 4 + 40),
    gre(0x6558, 4 + ETHERNET_BYTES),
    shape(ZERO, 4, Meaning::Control),
];

const fn gre(ethertype: u32, bytes_least: u16) -> Shape {
    // The flags in the mask, including those of routing, are reserved and must be zero.
    let word = (0x4c07_ffff, ethertype);
    shape(word, bytes_least, Meaning::Sealed(Id::None))
}

/// Length of the control message header of L2TPv3 (RFC 3931 §3.2.1).
const L2TP_CONTROL_BYTES: u16 = 12;

/// In UDP: flag T and version 3, the session id, and an Ethernet frame (RFC 3931 §4.1.2, RFC 4719).
/// Control messages also have the flags L and S.
const L2TPV3: &[Shape] = &[
    shape(
        (0x800f_0000, 0x0003_0000),
        (l2tp::FLAGS_BYTES + l2tp::SESSION_BYTES) as u16 + ETHERNET_BYTES,
        Meaning::Sealed(Id::SecondWord),
    ),
    shape(
        (0xc80f_0000, 0xc803_0000),
        L2TP_CONTROL_BYTES,
        Meaning::Control,
    ),
];

/// Directly in IP: the session id, which is 0 in control messages (RFC 3931 §4.1.1).
const BARE_L2TPV3: &[Shape] = &[
    shape(
        ZERO,
        l2tp::SESSION_BYTES as u16 + L2TP_CONTROL_BYTES,
        Meaning::Control,
    ),
    shape(ANY, l2tp::SESSION_BYTES as u16 + ETHERNET_BYTES, BY_WORD),
];

/// Returns the kinds of packet that a port may carry.
pub(super) const fn shapes(port: &SealedPort) -> &'static [Shape] {
    match port.form {
        LinkForm::Sealed(Form::Esp) if port.port == IKE_PORT => IKE_ALONE,
        LinkForm::Sealed(Form::Esp) => ESP,
        LinkForm::Sealed(Form::WireGuard) => WIREGUARD,
        LinkForm::Sealed(Form::OpenVpn) => OPENVPN,
        LinkForm::L2tpv3 => L2TPV3,
        // Not identified by a UDP port.
        LinkForm::Sealed(Form::MacSec) | LinkForm::Gre | LinkForm::Opaque => &[],
    }
}

/// Whether a port may carry NAT keepalives.
pub(super) const fn has_keepalives(port: &SealedPort) -> bool {
    matches!(port.form, LinkForm::Sealed(Form::Esp)) && port.port != IKE_PORT
}

/// Packets of a DUT directly in IP.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bare {
    /// Number of the IP protocol.
    pub(super) protocol: u8,
    pub(super) shapes: &'static [Shape],
    /// Whether a key exchange or other control messages may be present.
    pub(super) control: bool,
}

impl Bare {
    const ESP: Self = Self {
        protocol: 50,
        shapes: BARE_ESP,
        control: false,
    };

    /// Returns the form expected directly in IP next to these ports; ESP without ports.
    pub(super) fn beside(ports: &[SealedPort]) -> Option<Self> {
        if ports.is_empty() {
            return Some(Self::ESP);
        }
        ports.iter().find_map(|port| match port.form {
            LinkForm::Sealed(Form::Esp) => Some(Self::ESP),
            LinkForm::Gre => Some(Self {
                protocol: 47,
                shapes: GRE,
                control: port.control,
            }),
            LinkForm::L2tpv3 => Some(Self {
                protocol: l2tp::PROTOCOL,
                shapes: BARE_L2TPV3,
                control: port.control,
            }),
            // Only in UDP, or not in IP at all.
            LinkForm::Sealed(Form::WireGuard | Form::OpenVpn | Form::MacSec) | LinkForm::Opaque => {
                None
            }
        })
    }
}

/// Whether frames of that form are expected.
pub(super) fn has(form: LinkForm, ports: &[SealedPort]) -> bool {
    ports.iter().any(|port| port.form == form)
}

/// MACsec.
pub(super) const MACSEC: LinkForm = LinkForm::Sealed(Form::MacSec);

/// EtherTypes of MACsec and of its key agreement (IEEE Std 802.1AE §9.3, 802.1X §11.1.4).
pub(super) const MACSEC_ETHERTYPE: u16 = 0x88e5;
pub(super) const EAPOL_ETHERTYPE: u16 = 0x888e;
/// The SecTAG's first byte after the EtherType: version 0, with the flags E (encrypted) and C
/// (changed), which are clear in a frame that is only authenticated (§9.5).
pub(super) const MACSEC_TCI_MASK: u8 = 0x8c;
pub(super) const MACSEC_TCI: u8 = 0x0c;
/// The association number, which identifies the key, in the same byte.
pub(super) const MACSEC_AN_MASK: u8 = 0x03;
/// Ethernet header with EtherType, SecTAG without SCI, inner EtherType, and the tag.
pub(super) const MACSEC_FRAME_BYTES_LEAST: u16 = 14 + 6 + 2 + 16;

impl Shape {
    /// Returns the first shape of a list that matches a packet's first four bytes.
    pub(super) fn of(shapes: &[Self], word: u32) -> Option<&Self> {
        // In order: a later shape may match everything that the ones before it did not.
        let mut shapes = shapes.iter();
        shapes.find(|shape| word & shape.mask == shape.value)
    }

    /// Whether a packet of this kind may be present, given whether a key exchange may be.
    pub(super) const fn is_allowed(&self, control: bool) -> bool {
        matches!(self.meaning, Meaning::Sealed(_)) || control
    }
}

impl Id {
    /// Returns the key identifier of a payload; `None` if absent or truncated.
    pub(super) fn read(self, payload: &[u8]) -> Option<u32> {
        let (word, rest) = payload.split_first_chunk::<4>()?;
        match self {
            Self::Word { mask } => Some(u32::from_be_bytes(*word) & mask),
            Self::SecondWord => Some(u32::from_be_bytes(*rest.first_chunk()?)),
            Self::SecondWordLittle => Some(u32::from_le_bytes(*rest.first_chunk()?)),
            Self::None => None,
        }
    }
}

#[cfg(test)]
mod tests;
