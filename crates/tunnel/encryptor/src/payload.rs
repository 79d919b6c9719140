//! The payload of a lane and its encapsulation.

use crate::config::Dscp;
use std::net::IpAddr;
use wire::ecn::{self, DscpModel};
use wire::l2tp::{IpSession, Session};

/// Next header of an Ethernet frame (RFC 8986 §10.1).
pub(crate) const ETHERNET: u8 = 143;

/// The payload of a lane and its encapsulation. Equal on both sides.
#[derive(Debug, Clone)]
pub enum Payload {
    /// IP packets, in ESP.
    Ip(IpRules),
    /// Ethernet frames, in ESP.
    Ethernet,
    /// Ethernet frames, in an L2TPv3 pseudowire in ESP.
    Pseudowire {
        /// The peer's session.
        outbound: IpSession,
        /// This side's session.
        inbound: IpSession,
    },
    /// Ethernet frames, in an L2TPv3 pseudowire in UDP: not protected at all.
    PlainPseudowire {
        /// The peer's session.
        outbound: Session,
        /// This side's session.
        inbound: Session,
    },
}

/// Processing of IP packets besides sealing and opening.
#[derive(Debug, Clone, Copy)]
pub struct IpRules {
    /// DSCP of the outer headers.
    pub dscp: Dscp,
    /// Whether ECN is copied from the inner to the outer header and back (RFC 6040).
    pub ecn: bool,
    /// Whether packets share ESP packets (RFC 9347).
    pub aggregate: bool,
    /// Addresses of this host, IPv4 and IPv6, that answer the sender of a packet that does not fit.
    /// Without one, senders of that family get no answer.
    pub icmp_source: [Option<IpAddr>; 2],
}

impl IpRules {
    /// No copied fields, no answers, and one ESP packet per packet.
    pub const NONE: Self = Self {
        dscp: Dscp::Fixed(0),
        ecn: false,
        aggregate: false,
        icmp_source: [None; 2],
    };

    /// DSCP and ECN of the outer header of a packet.
    #[inline]
    pub(crate) fn outer_tos(&self, inner: &[u8]) -> u8 {
        let ecn = if self.ecn {
            ecn::outer_tos(inner, DscpModel::Pipe)
        } else {
            0
        };
        // DSCP has the upper six bits of the byte, ECN the lower two (RFC 2474, RFC 3168).
        ecn | match self.dscp {
            Dscp::Fixed(dscp) => dscp << 2,
            Dscp::Copy => ecn::tos(inner) & 0xfc,
        }
    }

    /// Returns the source address of an answer to `packet`: for IPv6 this host's, for IPv4 the
    /// packet's destination, since Linux drops received packets with one of its addresses as
    /// source.
    pub(crate) fn answer_source(&self, version: u8, packet: &[u8]) -> Option<IpAddr> {
        let own = self.icmp_source[usize::from(version == 6)]?;
        if version == 6 {
            return Some(own);
        }
        let target: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
        Some(IpAddr::from(target))
    }
}
