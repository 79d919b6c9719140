//! Opens frames that were sampled between the gateways of a tunnel with static keys, from either
//! gateway, in any epoch and order.
//!
//! It has no replay window, and only the keys derived from the SPI: each packet is opened by
//! itself.

use crate::error::TrafficError;
use crate::open::{Refusal, expect_ip, spi};
use crate::parse::{datagram, ip_packet};
use engine::{CpuChoice, Packet, Selection};
use esp::{InboundSa, Limits, OpenError, Opened, WindowSize};
use keying::{ObserverKeys, SaKeys, Side, lane_of};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::Suite;
use wire::aggfrag::{AGGFRAG, Blocks};
use wire::ethernet::EthernetView;
use wire::headers::{IpView, NO_NEXT_HEADER, be32};
use wire::l2tp::IpSession;

/// Next header of an Ethernet frame (RFC 8986 §10.1).
const ETHERNET: u8 = 143;

/// Values of the high half of a sequence number that an SA reaches before its limit. A sample does
/// not show which one applies.
const SEQUENCE_HIGHS: u32 = (Limits::PACKETS >> 32) as u32;

/// The tunnels between two gateways.
#[derive(Debug, Clone)]
pub struct Tunnels {
    /// Their suite.
    pub suite: Suite,
    /// Outer addresses of side a and side b: several pairs if a NAT is between.
    pub gateways: Vec<[IpAddr; 2]>,
    /// UDP port of lane 0 on both ends; lane i has the i-th after it.
    pub port: u16,
    /// Lanes of each tunnel.
    pub lanes: u16,
    /// Number of tunnels.
    pub tunnels: u16,
    /// The content of their packets.
    pub payload: Payload,
}

/// The content of a tunnel's ESP packets.
#[derive(Debug, Clone)]
pub enum Payload {
    /// IP packets.
    Ip {
        /// Whether several may share an ESP packet (RFC 9347).
        aggregates: bool,
    },
    /// Ethernet frames.
    Ethernet,
    /// Ethernet frames in an L2TPv3 pseudowire, with the sessions that side a and side b send in.
    Pseudowire([IpSession; 2]),
}

/// The content of a packet that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The end that sealed it.
    pub sender: Side,
    /// Source and target of the whole IP packets in it.
    pub packets: Vec<[IpAddr; 2]>,
}

/// Opens the packets of a DUT's tunnels.
#[derive(Debug)]
pub struct Witness<'k> {
    keys: &'k ObserverKeys,
    tunnels: Tunnels,
    selection: Selection,
}

impl<'k> Witness<'k> {
    /// Selects an engine, which passes its known answers.
    ///
    /// # Errors
    /// [`TrafficError::Engine`] when none has the suite.
    pub fn new(keys: &'k ObserverKeys, tunnels: Tunnels) -> Result<Self, TrafficError> {
        let selection = engine::select(&CpuChoice::Auto, tunnels.suite)?;
        Ok(Self {
            keys,
            tunnels,
            selection,
        })
    }

    /// Opens a frame from its Ethernet header: one whole ESP packet in UDP between the gateways.
    ///
    /// # Errors
    /// [`Refusal`] unless it is authentic under the SA that its SPI identifies, and has the payload
    /// of these tunnels.
    pub fn open(&self, frame: &[u8]) -> Result<Content, Refusal> {
        // A sample is opened in place, and the caller keeps it.
        let mut frame = frame.to_vec();
        let packet = ip_packet(&mut frame).ok_or(Refusal::Runt)?;
        let outer = datagram(packet).ok_or(Refusal::NoSa)?;
        let sender = self.sender(packet).ok_or(Refusal::NoSa)?;
        let esp = &packet[outer.payload.ok_or(Refusal::Runt)?];
        let spi = spi(esp)?;
        let keys = self.keys(sender, spi, outer.port).ok_or(Refusal::NoSa)?;
        let (plain, opened) = self.authenticate(&keys, esp)?;
        let packets = self.packets(sender, opened.next_header, &plain[opened.inner])?;
        Ok(Content { sender, packets })
    }

    /// The end that sent an outer packet to the other one.
    fn sender(&self, packet: &[u8]) -> Option<Side> {
        let outer = ends(packet)?;
        let gateways = self.tunnels.gateways.iter();
        let mut sides = gateways.flat_map(|&[a, b]| [([a, b], Side::A), ([b, a], Side::B)]);
        let found = sides.find(|(ends, _)| *ends == outer);
        found.map(|(_, side)| side)
    }

    /// The keys of an SPI, if one of the tunnels uses it on this port.
    fn keys(&self, sender: Side, spi: u32, port: u16) -> Option<SaKeys> {
        let Tunnels { lanes, tunnels, .. } = self.tunnels;
        let slot = lane_of(spi);
        let lane = port.checked_sub(self.tunnels.port)?;
        // Before keys are derived, which costs more than the comparison.
        let is_used = u32::from(slot) < u32::from(lanes) * u32::from(tunnels);
        if !is_used || slot % lanes != lane {
            return None;
        }
        self.keys.inbound(self.tunnels.suite, sender, spi)
    }

    /// Opens a packet on a copy.
    fn authenticate(&self, keys: &SaKeys, packet: &[u8]) -> Result<(Vec<u8>, Opened), Refusal> {
        let transform = self.selection.transform(&keys.keymat);
        // New for each packet: a sample has no order, so no window may refuse it.
        let mut sa = InboundSa::new(keys.spi, transform, WindowSize::DEFAULT);
        match sa.expect(packet) {
            // These errors reflect only the low half of the number, in a window at its start.
            Ok(_) | Err(OpenError::TooOld | OpenError::Replayed) => {}
            Err(error) => return Err(error.into()),
        }
        let low = u64::from(be32(packet, 4));
        // The high half is authenticated but not sent (RFC 4303 §2.2.1).
        for sequence_high in 0..SEQUENCE_HIGHS {
            let mut plain = packet.to_vec();
            let whole = Packet {
                at: 0,
                bytes: packet.len(),
                sequence_high,
            };
            let mut authentic = [false];
            sa.open_staged(&mut plain, &[whole], &mut authentic)
                .map_err(|_| Refusal::OpenFailed)?;
            if authentic[0] {
                let sequence = u64::from(sequence_high) << 32 | low;
                let opened = sa.accept(&plain, sequence, true)?;
                return Ok((plain, opened));
            }
        }
        Err(Refusal::IntegrityFailed)
    }

    /// Source and target of the whole IP packets in a payload.
    fn packets(
        &self,
        sender: Side,
        next_header: u8,
        inner: &[u8],
    ) -> Result<Vec<[IpAddr; 2]>, Refusal> {
        if next_header == NO_NEXT_HEADER {
            return Err(Refusal::Dummy);
        }
        match &self.tunnels.payload {
            Payload::Ip { aggregates: true } if next_header == AGGFRAG => {
                let blocks = Blocks::parse(inner).map_err(|_| Refusal::BadPayload)?;
                // Parts of packets have no addresses, and are left out.
                Ok(blocks.filter_map(ends).collect())
            }
            Payload::Ip { .. } => {
                expect_ip(next_header, inner)?;
                Ok(vec![ends(inner).ok_or(Refusal::BadPayload)?])
            }
            Payload::Ethernet if next_header == ETHERNET => in_frame(inner),
            Payload::Pseudowire([of_a, of_b]) => {
                let session = match sender {
                    Side::A => of_a,
                    Side::B => of_b,
                };
                if next_header != session.next_header() {
                    return Err(Refusal::BadPayload);
                }
                match session.parse(inner) {
                    Ok(Some(frame)) => in_frame(frame),
                    _ => Err(Refusal::BadPayload),
                }
            }
            Payload::Ethernet => Err(Refusal::BadPayload),
        }
    }
}

/// Source and target of the IP packet in a frame, if it contains one.
fn in_frame(frame: &[u8]) -> Result<Vec<[IpAddr; 2]>, Refusal> {
    let view = EthernetView::parse(frame).ok_or(Refusal::BadPayload)?;
    let packet = view.ip.and_then(|_| ends(&frame[view.header_bytes..]));
    Ok(packet.into_iter().collect())
}

/// Source and target address of a whole IP packet.
fn ends(packet: &[u8]) -> Option<[IpAddr; 2]> {
    let view = IpView::parse(packet)?;
    let v4 = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?).into());
    let v6 = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?).into());
    match view.version {
        4 => Some([v4(12)?, v4(16)?]),
        _ => Some([v6(8)?, v6(24)?]),
    }
}
