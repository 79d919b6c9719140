//! Data messages of L2TPv3 (RFC 3931): the Ethernet frames of a pseudowire (RFC 4719), in IP or in
//! UDP.
//!
//! ```text
//! over IP, protocol 115 (§4.1.1.1)          over UDP (§4.1.2.1)
//!                                           | 0x0003 | reserved |
//! | session id |                            | session id |
//! | cookie, 0, 4 or 8 bytes |               | cookie, 0, 4 or 8 bytes |
//! | Ethernet frame without FCS |            | Ethernet frame without FCS |
//! ```
//!
//! The receiver chooses the session id and the cookie. The cookie protects against misrouted or
//! blindly forged packets (§8.2), not against a reader of the wire: that is ESP's task.
//!
//! No L2-specific sublayer, which an Ethernet pseudowire does not need (RFC 4719 §2.1), and so no
//! sequence numbers. Control messages are recognised, not parsed: sessions are configured
//! statically.

use crate::checksum;
use crate::headers::{IPV4_IN_IP, IPV6_IN_IP, IpView, be32, put16, put32};
use crate::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES};
use std::net::IpAddr;

/// IP protocol number of L2TPv3 over IP.
pub const PROTOCOL: u8 = 115;
/// The registered UDP port.
pub const UDP_PORT: u16 = 1701;
/// The longest data header: over UDP, with a cookie of 8 bytes.
pub const HEADER_BYTES_MAX: usize = FLAGS_BYTES + SESSION_BYTES + COOKIE_BYTES_MAX;

/// Length of flags, version and the reserved field over UDP.
pub const FLAGS_BYTES: usize = 4;
/// Length of the session id.
pub const SESSION_BYTES: usize = 4;
const COOKIE_BYTES_MAX: usize = 8;
/// Set in the first byte over UDP when it is a control message.
const T_BIT: u8 = 0x80;
const VERSION: u8 = 3;
/// TTL of the packets that carry L2TP (RFC 1700).
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;

/// The layer between L2TP and IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// Nothing: protocol [`PROTOCOL`].
    Ip,
    /// UDP, whose header is outside this module.
    Udp,
}

impl Encapsulation {
    const fn flags_bytes(self) -> usize {
        match self {
            Self::Ip => 0,
            Self::Udp => FLAGS_BYTES,
        }
    }
}

/// A session's cookie: random bytes that the receiver expects. Compared in constant time only.
#[derive(Clone, Copy)]
pub struct Cookie {
    bytes: [u8; COOKIE_BYTES_MAX],
    length: usize,
}

impl Cookie {
    /// No cookie.
    pub const NONE: Self = Self {
        bytes: [0; COOKIE_BYTES_MAX],
        length: 0,
    };

    /// A cookie of these bytes; `None` unless they are 0, 4 or 8 (§4.1).
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if !matches!(bytes.len(), 0 | 4 | 8) {
            return None;
        }
        let mut cookie = Self {
            length: bytes.len(),
            ..Self::NONE
        };
        cookie.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(cookie)
    }

    /// Its bytes as sent.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether `received` is this cookie; the time does not reveal where it differs.
    #[inline]
    fn is(&self, received: &[u8]) -> bool {
        // The caller has cut `received` to this length; behind it both are zero.
        let mut padded = [0; COOKIE_BYTES_MAX];
        padded[..self.length].copy_from_slice(received);
        // Prevents the optimiser from branching on single bytes of this.
        std::hint::black_box(u64::from_ne_bytes(padded) ^ u64::from_ne_bytes(self.bytes)) == 0
    }
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cookie({} bytes)", self.length)
    }
}

/// One direction of a pseudowire.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// The carrier.
    pub encapsulation: Encapsulation,
    /// The receiver's session id; never 0.
    pub id: u32,
    /// The receiver's cookie.
    pub cookie: Cookie,
}

/// Why a message is not a frame of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Shorter than the session's header.
    Runt,
    /// A control message: session id 0 over IP, the T bit over UDP.
    Control,
    /// Over UDP: another version of L2TP.
    OtherVersion,
    /// The id of another session.
    OtherSession,
    /// The cookie is not the session's.
    WrongCookie,
}

impl Session {
    /// Length of the header in front of each frame.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        self.encapsulation.flags_bytes() + SESSION_BYTES + self.cookie.length
    }

    /// Writes the header at the start of `out` and returns its length, which is
    /// [`header_bytes`](Self::header_bytes).
    ///
    /// # Panics
    /// When `out` is shorter; [`HEADER_BYTES_MAX`] is enough.
    #[inline]
    pub fn write_header(&self, out: &mut [u8]) -> usize {
        let at = self.encapsulation.flags_bytes();
        if at != 0 {
            // A T bit of 0 makes it a data message; the version is in the low half of the second
            // byte.
            out[..FLAGS_BYTES].copy_from_slice(&[0, VERSION, 0, 0]);
        }
        put32(out, at, self.id);
        let cookie = self.cookie.as_bytes();
        out[at + SESSION_BYTES..][..cookie.len()].copy_from_slice(cookie);
        self.header_bytes()
    }

    /// The frame in a message of this session: the bytes behind its header in `message`, an IP or
    /// UDP payload.
    ///
    /// # Errors
    /// [`Refused`]; the caller drops the message, or passes it to an implementation of the control
    /// protocol.
    #[inline]
    pub fn parse<'a>(&self, message: &'a [u8]) -> Result<&'a [u8], Refused> {
        let at = self.encapsulation.flags_bytes();
        if message.len() < at + SESSION_BYTES {
            return Err(Refused::Runt);
        }
        if at != 0 {
            // First, since a control message of L2TPv2 is for another program.
            if message[1] & 15 != VERSION {
                return Err(Refused::OtherVersion);
            }
            if message[0] & T_BIT != 0 {
                return Err(Refused::Control);
            }
        }
        let id = be32(message, at);
        if id == 0 {
            return Err(Refused::Control);
        }
        if id != self.id {
            return Err(Refused::OtherSession);
        }
        let (header, frame) = message
            .split_at_checked(self.header_bytes())
            .ok_or(Refused::Runt)?;
        if !self.cookie.is(&header[at + SESSION_BYTES..]) {
            return Err(Refused::WrongCookie);
        }
        Ok(frame)
    }
}

/// Two addresses of one family, and the session between them: the pseudowire as an IP packet, as
/// carried by ESP in tunnel mode.
#[derive(Debug, Clone, Copy)]
pub struct IpSession {
    source: IpAddr,
    target: IpAddr,
    session: Session,
}

impl IpSession {
    /// A session over IP; `None` when the addresses differ in family, or the session is over UDP.
    #[must_use]
    pub fn new(source: IpAddr, target: IpAddr, session: Session) -> Option<Self> {
        let fits =
            source.is_ipv4() == target.is_ipv4() && session.encapsulation == Encapsulation::Ip;
        fits.then_some(Self {
            source,
            target,
            session,
        })
    }

    /// The packet's next header value in ESP: IPv4 or IPv6 in IP.
    #[inline]
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        if self.source.is_ipv4() {
            IPV4_IN_IP
        } else {
            IPV6_IN_IP
        }
    }

    /// Length of everything in front of the frame.
    #[inline]
    #[must_use]
    pub const fn header_bytes(&self) -> usize {
        let ip = if self.source.is_ipv4() {
            IPV4_HEADER_BYTES
        } else {
            IPV6_HEADER_BYTES
        };
        ip + self.session.header_bytes()
    }

    /// Writes IP and L2TP header for a frame of `frame_bytes` at the start of `out`, and returns
    /// their length, which is [`header_bytes`](Self::header_bytes). `None` when the frame is too
    /// long for an IP packet, or `out` is too short for the headers.
    ///
    /// IPv4 packets may not be fragmented and so have no number (RFC 6864 §4.1). `tos` is DSCP and
    /// ECN.
    #[inline]
    pub fn write_headers(&self, frame_bytes: usize, tos: u8, out: &mut [u8]) -> Option<usize> {
        let header_bytes = self.header_bytes();
        let out = out.get_mut(..header_bytes)?;
        let total = header_bytes + frame_bytes;
        match (self.source, self.target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let total = u16::try_from(total).ok()?;
                // The identification stays 0, and so does the checksum while it is computed.
                out[..IPV4_HEADER_BYTES].fill(0);
                out[..2].copy_from_slice(&[0x45, tos]);
                put16(out, 2, total);
                put16(out, 6, DONT_FRAGMENT);
                out[8..10].copy_from_slice(&[HOP_LIMIT, PROTOCOL]);
                out[12..16].copy_from_slice(&source.octets());
                out[16..20].copy_from_slice(&target.octets());
                let sum = checksum::portable(&out[..IPV4_HEADER_BYTES], 0);
                out[10..12].copy_from_slice(&checksum::finish(sum));
                self.session.write_header(&mut out[IPV4_HEADER_BYTES..]);
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let payload = u16::try_from(total - IPV6_HEADER_BYTES).ok()?;
                // These fields are the whole header, so nothing old is left in `out`.
                put32(out, 0, 6 << 28 | u32::from(tos) << 20);
                put16(out, 4, payload);
                out[6..8].copy_from_slice(&[PROTOCOL, HOP_LIMIT]);
                out[8..24].copy_from_slice(&source.octets());
                out[24..40].copy_from_slice(&target.octets());
                self.session.write_header(&mut out[IPV6_HEADER_BYTES..]);
            }
            _ => return None,
        }
        Some(header_bytes)
    }

    /// The frame in an IP packet that this session's peer sent with
    /// [`write_headers`](Self::write_headers): with the same addresses, and with this session's id
    /// and cookie. `Ok(None)` when the packet is not L2TP between these addresses.
    ///
    /// # Errors
    /// [`Refused`].
    #[inline]
    pub fn parse<'a>(&self, packet: &'a [u8]) -> Result<Option<&'a [u8]>, Refused> {
        let Some(view) = IpView::parse(packet) else {
            return Ok(None);
        };
        if view.protocol != PROTOCOL || !self.is_between(packet, &view) {
            return Ok(None);
        }
        let message = &packet[view.header_bytes..view.total_bytes];
        self.session.parse(message).map(Some)
    }

    /// Whether the packet has these addresses, and is not a fragment.
    #[inline]
    fn is_between(&self, packet: &[u8], view: &IpView) -> bool {
        match (self.source, self.target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                view.version == 4
                    && packet[12..16] == source.octets()
                    && packet[16..20] == target.octets()
                    // A later fragment begins within a frame. IPv6 fragments have another next
                    // header.
                    && !view.is_ipv4_fragment(packet)
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                view.version == 6
                    && packet[8..24] == source.octets()
                    && packet[24..40] == target.octets()
            }
            _ => false,
        }
    }
}
