//! Kinds of datagram on a DUT's own UDP port, identified by their first bytes and length.
//!
//! One table serves both readers: [`super::classify`] applies it frame by frame, and
//! [`super::filter`] compiles it for the kernel, so they cannot differ. Lengths are minimums of
//! each kind: GRO may append the packets that follow.
//!
//! Not checked: whether the packet can be opened, and by which key.

use crate::protocol::SealedPort;
use campaign::plan::Form;

/// The port on which IKE begins at the first byte and ESP is never sent; on any other port IKE
/// follows a non-ESP marker (RFC 7296 §2, RFC 3948 §2.2).
const IKE_PORT: u16 = 500;

/// The only byte of a NAT keepalive's payload (RFC 3948 §2.3).
pub(super) const KEEPALIVE: u8 = 0xff;

/// One kind of packet; the first of a list whose first four bytes match applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// Mask over the first four bytes, as a number in network order.
    pub(super) mask: u32,
    /// Value of the masked bits.
    pub(super) value: u32,
    /// Minimum UDP payload in bytes.
    pub(super) bytes_least: u16,
    pub(super) meaning: Meaning,
}

/// What a [`Shape`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Sealed by the DUT, with this key identifier.
    Sealed(Id),
    /// Key exchange.
    Control,
    /// An IKEv2 message whose header begins at this offset of the payload.
    Ike { at: u16 },
}

/// Where sealed packets carry the identifier of their key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    /// These bits of the first four bytes.
    Word { mask: u32 },
    /// The next four bytes, little-endian.
    SecondWord,
}

/// IKE's header (RFC 7296 §3.1): its length, and within it version and length of the message.
pub(super) const IKE_HEADER_BYTES: u16 = 28;
pub(super) const IKE_VERSION_AT: u16 = 17;
pub(super) const IKE_LENGTH_AT: u16 = 24;
/// Its major version, in the upper half of the byte.
pub(super) const IKE_VERSION: u8 = 2;
pub(super) const IKE_VERSION_MASK: u8 = 0xf0;

const NON_ESP_MARKER_BYTES: u16 = 4;

const IKE_ALONE: &[Shape] = &[Shape {
    mask: 0,
    value: 0,
    bytes_least: IKE_HEADER_BYTES,
    meaning: Meaning::Ike { at: 0 },
}];

const ESP: &[Shape] = &[
    Shape {
        mask: u32::MAX,
        value: 0,
        bytes_least: NON_ESP_MARKER_BYTES + IKE_HEADER_BYTES,
        meaning: Meaning::Ike {
            at: NON_ESP_MARKER_BYTES,
        },
    },
    Shape {
        mask: 0,
        value: 0,
        bytes_least: 4,
        meaning: Meaning::Sealed(Id::Word { mask: u32::MAX }),
    },
];

/// The whitepaper's §5.4: a type and three zero bytes, then of data the receiver's index.
const WIREGUARD: &[Shape] = &[
    wireguard(4, 32, Meaning::Sealed(Id::SecondWord)),
    wireguard(1, 148, Meaning::Control),
    wireguard(2, 92, Meaning::Control),
    wireguard(3, 64, Meaning::Control),
];

const fn wireguard(kind: u8, bytes_least: u16, meaning: Meaning) -> Shape {
    Shape {
        mask: u32::MAX,
        value: u32::from_be_bytes([kind, 0, 0, 0]),
        bytes_least,
        meaning,
    }
}

/// Opcode, key id and what follows them. `P_DATA_V2` has a peer id, which stays with the key id in
/// its name; behind both versions' headers are a packet id and a tag. A control packet has a
/// session id and a count of acknowledgements at least.
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
    Shape {
        mask: u32::from_be_bytes([0xf8, 0, 0, 0]),
        value: u32::from_be_bytes([opcode << 3, 0, 0, 0]),
        bytes_least,
        meaning,
    }
}

const fn openvpn_control(opcode: u8) -> Shape {
    openvpn(opcode, 1 + 8 + 1, Meaning::Control)
}

/// Returns the kinds of packet that a port may carry.
pub(super) const fn shapes(port: &SealedPort) -> &'static [Shape] {
    match port.form {
        Form::Esp if port.port == IKE_PORT => IKE_ALONE,
        Form::Esp => ESP,
        Form::WireGuard => WIREGUARD,
        Form::OpenVpn => OPENVPN,
        // It is no protocol of UDP.
        Form::MacSec => &[],
    }
}

/// Whether a port may carry NAT keepalives.
pub(super) const fn has_keepalives(port: &SealedPort) -> bool {
    matches!(port.form, Form::Esp) && port.port != IKE_PORT
}

/// Whether bare ESP is expected beside these ports: if one carries ESP, or there are none.
pub(super) fn has_bare_esp(ports: &[SealedPort]) -> bool {
    ports.is_empty() || ports.iter().any(|port| port.form == Form::Esp)
}

/// Whether MACsec is expected.
pub(super) fn has_macsec(ports: &[SealedPort]) -> bool {
    ports.iter().any(|port| port.form == Form::MacSec)
}

/// EtherTypes of MACsec and of its key agreement (IEEE Std 802.1AE §9.3, 802.1X §11.1.4).
pub(super) const MACSEC_ETHERTYPE: u16 = 0x88e5;
pub(super) const EAPOL_ETHERTYPE: u16 = 0x888e;
/// The SecTAG's first byte behind the EtherType: version 0, encrypted and changed; of a frame that
/// is only authenticated the last two are not set (§9.5).
pub(super) const MACSEC_TCI_MASK: u8 = 0x8c;
pub(super) const MACSEC_TCI: u8 = 0x0c;
/// The number of the key, in the same byte.
pub(super) const MACSEC_AN_MASK: u8 = 0x03;
/// Ethernet header with the EtherType, SecTAG without SCI, the EtherType inside, and the tag.
pub(super) const MACSEC_FRAME_BYTES_LEAST: u16 = 14 + 6 + 2 + 16;

impl Shape {
    /// Returns the first of a list that matches a packet's first four bytes.
    pub(super) fn of(shapes: &[Self], word: u32) -> Option<&Self> {
        let mut shapes = shapes.iter();
        shapes.find(|shape| word & shape.mask == shape.value)
    }

    /// Whether the port may carry a packet of this kind.
    pub(super) const fn is_allowed(&self, port: &SealedPort) -> bool {
        matches!(self.meaning, Meaning::Sealed(_)) || port.control
    }
}

impl Id {
    /// Returns the key identifier of a payload; `None` if the payload is truncated.
    pub(super) fn read(self, payload: &[u8]) -> Option<u32> {
        let (word, rest) = payload.split_first_chunk::<4>()?;
        match self {
            Self::Word { mask } => Some(u32::from_be_bytes(*word) & mask),
            Self::SecondWord => Some(u32::from_le_bytes(*rest.first_chunk()?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::protocol::SealedPort;
    use crate::sample::classify::Kind::{self, Control, Other};
    use crate::sample::tests::{is_foreign_on, kind_on, udp};
    use campaign::plan::Form;

    const fn port(port: u16, form: Form, control: bool) -> SealedPort {
        SealedPort {
            port,
            form,
            control,
        }
    }

    const fn sealed(id: u32) -> Kind {
        Kind::Sealed { id: Some(id) }
    }

    /// `length` bytes that begin so.
    fn bytes(begin: &[u8], length: usize) -> Vec<u8> {
        let mut bytes = begin.to_vec();
        bytes.resize(length, 0x5a);
        bytes
    }

    /// An IKE message of `length` bytes with its header, whose length field is `said`.
    fn ike(version: u8, length: usize, said: u32) -> Vec<u8> {
        let mut message = bytes(&[], length);
        message[17] = version;
        message[24..28].copy_from_slice(&said.to_be_bytes());
        message
    }

    fn behind_marker(message: &[u8]) -> Vec<u8> {
        [&[0; 4], message].concat()
    }

    /// Both who judge frames take what is on the port for `kind`.
    fn expect(port: SealedPort, payload: &[u8], kind: Kind) {
        for frame in [udp(port.port, 9, payload), udp(9, port.port, payload)] {
            assert_eq!(kind_on(&[port], &frame), kind, "{port:?} {payload:02x?}");
            let is_foreign = is_foreign_on(&[port], &frame);
            assert_eq!(is_foreign, kind == Other, "{port:?} {payload:02x?}");
        }
    }

    /// It is `kind`, whole or longer; a byte less in the datagram, or in the frame, and it is
    /// nothing.
    fn expect_from(port: SealedPort, begin: &[u8], bytes_least: usize, kind: Kind) {
        expect(port, &bytes(begin, bytes_least), kind);
        expect(port, &bytes(begin, bytes_least + 1400), kind);
        expect(port, &bytes(begin, bytes_least - 1), Other);
        let frame = udp(9, port.port, &bytes(begin, bytes_least));
        for cut in 1..=bytes_least {
            let frame = &frame[..frame.len() - cut];
            assert_eq!(kind_on(&[port], frame), Other, "{port:?}, {cut} B cut off");
            assert!(is_foreign_on(&[port], frame), "{port:?}, {cut} B cut off");
        }
    }

    /// As [`expect_from`] where a key exchange may be seen, and nothing elsewhere.
    fn expect_control_from(port: SealedPort, begin: &[u8], bytes_least: usize) {
        expect_from(port, begin, bytes_least, Control);
        let without = SealedPort {
            control: false,
            ..port
        };
        expect(without, &bytes(begin, bytes_least), Other);
    }

    #[test]
    fn esp_is_named_by_its_spi_with_and_without_a_key_exchange_beside_it() {
        for control in [false, true] {
            let port = port(4500, Form::Esp, control);
            expect_from(port, &[0xc0, 0xff, 0xee, 1], 4, sealed(0xc0ff_ee01));
            expect(port, &[0xff], Control);
            expect(port, &[0xfe], Other);
            expect(port, &[], Other);
        }
    }

    #[test]
    fn ike_stands_behind_four_zero_bytes_where_a_key_exchange_shares_the_port() {
        let with = port(4500, Form::Esp, true);
        let whole = behind_marker(&ike(0x20, 200, 200));
        expect(with, &whole, Control);
        expect(port(4500, Form::Esp, false), &whole, Other);
        expect(with, &behind_marker(&ike(0x20, 28, 28)), Control);
        expect(with, &behind_marker(&ike(0x20, 28, 28))[..31], Other);
        // IKEv1, and lengths that no header has and that no datagram of this length holds.
        expect(with, &behind_marker(&ike(0x10, 200, 200)), Other);
        for said in [0, 27, 201, u32::MAX] {
            expect(with, &behind_marker(&ike(0x20, 200, said)), Other);
        }
        expect(with, &[0; 300], Other);
        expect(with, &[0; 4], Other);
    }

    #[test]
    fn on_port_500_every_ike_message_is_control_and_nothing_is_esp() {
        let with = port(500, Form::Esp, true);
        // A cookie of an initiator that happens to begin like a marker is one.
        let mut zeros_first = ike(0x20, 200, 200);
        zeros_first[..4].fill(0);
        for message in [&ike(0x20, 200, 200), &ike(0x22, 28, 28), &zeros_first] {
            expect(with, message, Control);
            expect(port(500, Form::Esp, false), message, Other);
        }
        expect(with, &ike(0x10, 200, 200), Other);
        expect(with, &ike(0x20, 200, 201), Other);
        expect(with, &ike(0x20, 28, 28)[..27], Other);
        expect(with, &behind_marker(&ike(0x20, 200, 200)), Other);
        expect(with, &[0xc0, 0xff, 0xee, 1, 0, 0, 0, 1], Other);
        expect(with, &[0xff], Other);
    }

    #[test]
    fn wireguard_is_named_by_its_receivers_index() {
        for control in [false, true] {
            let port = port(51_820, Form::WireGuard, control);
            let begin = [4, 0, 0, 0, 0x44, 0x33, 0x22, 0x11];
            expect_from(port, &begin, 32, sealed(0x1122_3344));
        }
    }

    #[test]
    fn wireguards_handshake_is_control_where_it_is_expected() {
        let port = port(51_820, Form::WireGuard, true);
        for (kind, bytes_least) in [(1, 148), (2, 92), (3, 64)] {
            expect_control_from(port, &[kind, 0, 0, 0], bytes_least);
        }
    }

    #[test]
    fn no_other_type_is_wireguards() {
        for control in [false, true] {
            let port = port(51_820, Form::WireGuard, control);
            for kind in (0..=u8::MAX).filter(|kind| !(1..=4).contains(kind)) {
                expect(port, &bytes(&[kind, 0, 0, 0], 200), Other);
            }
            for begin in [[4, 1, 0, 0], [4, 0, 0, 1], [1, 0, 1, 0], [0, 0, 0, 4]] {
                expect(port, &bytes(&begin, 200), Other);
            }
            expect(port, &[0xff], Other);
        }
    }

    #[test]
    fn openvpn_is_named_by_key_and_peer() {
        for control in [false, true] {
            let port = port(1194, Form::OpenVpn, control);
            let v2 = |key: u8| [9 << 3 | key, 0x11, 0x22, 0x33];
            expect_from(port, &v2(0), 24, sealed(0x11_2233));
            expect_from(port, &v2(5), 24, sealed(0x0511_2233));
            // Behind the first byte is the packet's number, which names no key.
            expect_from(
                port,
                &[6 << 3 | 3, 0x11, 0x22, 0x33],
                21,
                sealed(0x0300_0000),
            );
        }
    }

    #[test]
    fn openvpns_control_channel_is_control_where_it_is_expected_and_no_other_opcode_is_anything() {
        let with = port(1194, Form::OpenVpn, true);
        for opcode in 0..32 {
            let begin = [opcode << 3 | 1];
            match opcode {
                1..=5 | 7 | 8 | 10 | 11 => expect_control_from(with, &begin, 10),
                6 | 9 => {}
                _ => expect(with, &bytes(&begin, 200), Other),
            }
        }
    }

    #[test]
    fn each_port_has_its_own_form() {
        let ports = [
            port(500, Form::Esp, true),
            port(4500, Form::Esp, true),
            port(51_820, Form::WireGuard, false),
            port(1194, Form::OpenVpn, true),
        ];
        let data = bytes(&[4, 0, 0, 0, 1, 0, 0, 0], 200);
        for (port, kind) in [
            (500, Other),
            (4500, sealed(0x0400_0000)),
            (51_820, sealed(1)),
            (1194, Other),
            (1195, Other),
        ] {
            let frame = udp(port, 9, &data);
            assert_eq!(kind_on(&ports, &frame), kind, "{port}");
            assert_eq!(is_foreign_on(&ports, &frame), kind == Other, "{port}");
        }
        // The sender's port applies if both are known.
        let frame = udp(51_820, 500, &data);
        assert_eq!(kind_on(&ports, &frame), sealed(1));
        assert!(!is_foreign_on(&ports, &frame));
    }
}
