//! Outputs of a session.

use super::{ChildSuite, Path, Refusal};
use crate::crypto::Secret;
use crate::message::{AddressRange, Identity, NotifyType};

/// Which end began the IKE SA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sent the first request.
    Initiator,
    /// Received it.
    Responder,
}

/// An output of a session. The caller executes outputs in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a datagram.
    Send {
        /// The message, without marker.
        datagram: Vec<u8>,
        /// From and to.
        path: Path,
        /// Four zero bytes must precede the message: it shares its port with ESP (RFC 3948).
        marker: bool,
    },
    /// Both ends are authenticated.
    Established,
    /// This is the peer's only IKE SA: the caller drops its other sessions with this peer, without
    /// a message (RFC 7296 section 2.4).
    InitialContact,
    /// A rekeying created an IKE SA with this SPI of this end. The session takes its messages.
    IkeUp(u64),
    /// An IKE SA of the session exists no longer.
    IkeDown(u64),
    /// A child SA exists.
    ChildUp(Box<ChildSa>),
    /// A child SA exists no longer, by the SPI of its inbound half.
    ChildDown(u32),
    /// Something worth a line in a log, or a count.
    Event(Event),
    /// The session has ended; nothing follows.
    Closed(Closed),
}

/// Something worth a line in a log, or a count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A datagram was ignored, for this reason.
    Ignored(Refusal),
    /// A peer without authentication reports an error. It may be forged.
    Hint(NotifyType),
    /// A first request was answered with this error. Its sender is not authenticated.
    FirstRefused(NotifyType),
    /// The peer asks for a cookie.
    Cookie,
    /// A request is sent again: no response came in time. Its datagrams follow.
    Repeated,
    /// The peer proved this identity. The settings name none.
    Identity(Identity),
    /// A child SA was not created or replaced: the peer, or this end, refused with this error.
    ChildRefused(NotifyType),
    /// The IKE SA was not replaced: the peer, or this end, refused with this error.
    RekeyRefused(NotifyType),
    /// The IKE SA has no PPK: the peer supports none, or lacks the one that was named.
    NoPpk,
}

/// Why an IKE SA ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// This end deleted it.
    Deleted,
    /// The peer deleted it.
    ByPeer,
    /// No response came; the last error that somebody sent without authentication, if any.
    Silent(Option<NotifyType>),
    /// This end refused the peer, with an error that names the reason.
    Refused(NotifyType, String),
    /// The peer refused this end.
    RefusedByPeer(NotifyType),
    /// The peer's response violates the protocol.
    Protocol(String),
}

/// A child SA.
#[derive(Clone, PartialEq, Eq)]
pub struct ChildSa {
    /// The algorithms.
    pub suite: ChildSuite,
    /// SPI of packets to this end.
    pub inbound_spi: u32,
    /// SPI of packets to the peer.
    pub outbound_spi: u32,
    /// Keys of packets to this end: encryption with salt, then integrity.
    pub inbound_keys: Secret,
    /// Keys of packets to the peer.
    pub outbound_keys: Secret,
    /// Packets behind this end.
    pub local: Vec<AddressRange>,
    /// Packets behind the peer.
    pub remote: Vec<AddressRange>,
    /// ESP is encapsulated in UDP: a NAT is in the path.
    pub in_udp: bool,
    /// SPI to this end of the child SA that it replaces. That one is deleted afterwards.
    pub replaces: Option<u32>,
    /// This end began its exchange, so the peer has it already. Otherwise the response that
    /// announces it is still to be sent.
    pub has_peer: bool,
}

/// Shows no key.
impl std::fmt::Debug for ChildSa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChildSa")
            .field("suite", &self.suite)
            .field("inbound_spi", &self.inbound_spi)
            .field("outbound_spi", &self.outbound_spi)
            .field("local", &self.local)
            .field("remote", &self.remote)
            .field("in_udp", &self.in_udp)
            .field("replaces", &self.replaces)
            .finish_non_exhaustive()
    }
}
