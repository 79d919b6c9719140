//! Whole sealed packets from a link.
//!
//! Super-packets are cut into the packets that they contain: the kernel describes them in a virtio
//! header in front of each frame (`PACKET_VNET_HDR`, packet(7)). Kernels before 6.2 cannot describe
//! super-packets of UDP and return an error for them, so another socket provides the counts of a
//! sample.

use super::classify::{Classifier, Kind};
use super::expected::Expected;
use super::forms::MACSEC_ETHERTYPE;
use crate::packet_socket::{FRAME_BYTES_MAX, PacketSocket};
use std::io;
use std::time::Duration;
use wire::checksum::portable;
use wire::ethernet::EthernetView;
use wire::segment::Segmenter;
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};

/// Most bytes of the packets that one sample returns.
const BYTES_MAX: usize = 64 << 10;
/// Most packets taken from one super-packet.
const OF_SUPER_PACKET: usize = 8;
/// Time for a sealed frame that the counting socket has received to reach this socket too.
const BEHIND_MAX: Duration = Duration::from_millis(100);

/// A socket that collects frames from its opening, up to the size of its buffer.
pub(super) struct PacketTap(PacketSocket);

/// Packets taken from a link.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PacketSample {
    /// Frames with an Ethernet header and one whole sealed packet each.
    pub(super) packets: Vec<Vec<u8>>,
    /// Sealed frames without a whole packet: fragments, and super-packets without a description.
    pub(super) not_whole: u64,
}

impl PacketTap {
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        PacketSocket::open(interface, true, false).map(Self)
    }

    /// Takes the packets of the first `frames` frames. `is_sealed` means that at least one sealed
    /// frame has crossed the link since the opening.
    pub(super) fn take(
        self,
        expected: Expected<'_>,
        frames: u32,
        is_sealed: bool,
    ) -> io::Result<PacketSample> {
        let mut classifier = Classifier::new(expected);
        let mut taken = PacketSample::default();
        let mut buffer = vec![0; VNET_HEADER_BYTES + FRAME_BYTES_MAX];
        for _ in 0..frames {
            // The counting socket has seen a sealed frame, so one is on its way to this socket too.
            let is_awaited = is_sealed && taken == PacketSample::default();
            let limit = if is_awaited {
                BEHIND_MAX
            } else {
                Duration::ZERO
            };
            match self.0.receive(&mut buffer, limit) {
                Ok(Some(bytes)) => taken.add(&mut classifier, &mut buffer[..bytes]),
                Ok(None) => break,
                // A super-packet that this kernel cannot describe.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => taken.not_whole += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }
}

impl PacketSample {
    /// Returns at most `packets` packets, evenly spread, that also fit one answer.
    pub(super) fn at_most(self, packets: u32) -> Vec<Vec<u8>> {
        let mut chosen = spread(self.packets, packets as usize);
        let mut bytes = 0;
        chosen.retain(|packet| {
            bytes += packet.len();
            bytes <= BYTES_MAX
        });
        chosen
    }

    /// Adds the sealed packets of a received frame; of a super-packet only some.
    fn add(&mut self, classifier: &mut Classifier<'_>, received: &mut [u8]) {
        let Some((header, frame)) = received.split_first_chunk_mut::<VNET_HEADER_BYTES>() else {
            return;
        };
        if !matches!(classifier.kind(frame), Kind::Sealed { .. }) {
            return;
        }
        match VnetHeader::parse(header).and_then(|vnet| whole_packets(&vnet, frame)) {
            Some(packets) => self.packets.extend(spread(packets, OF_SUPER_PACKET)),
            None => self.not_whole += 1,
        }
    }
}

/// Splits a frame into its packets; `None` if it is a fragment or truncated.
fn whole_packets(vnet: &VnetHeader, frame: &mut [u8]) -> Option<Vec<Vec<u8>>> {
    // The classifier has found the form, and not that all of the frame is there.
    let view = EthernetView::parse(frame)?;
    if view.ethertype == MACSEC_ETHERTYPE {
        return Some(vec![frame.to_vec()]);
    }
    let ip = view.ip?;
    let packet = &frame[view.header_bytes..];
    if ip.is_ipv4_fragment(packet) {
        return None;
    }
    if vnet.gso == Gso::None {
        // Without the padding of a short frame.
        let end = view.header_bytes + ip.total_bytes;
        return Some(vec![frame[..end].to_vec()]);
    }
    let mut segmenter = Segmenter::with_link(vnet, frame, view.header_bytes).ok()?;
    let mut packets = Vec::new();
    while let Some(range) = segmenter.next(frame, portable) {
        packets.push(frame[range].to_vec());
    }
    Some(packets)
}

/// Returns at most `most` items of a list, evenly spread and in order.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len();
    if count <= most {
        return all;
    }
    let mut next = 0;
    let mut chosen = Vec::with_capacity(most);
    for (index, item) in all.into_iter().enumerate() {
        if chosen.len() < most && index == next {
            chosen.push(item);
            // Computed from the beginning each time, so that rounding does not add up.
            next = chosen.len() * count / most;
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::{fragment, sealed, udp};
    use testbed::protocol::SealedPort;

    const PORTS: &[SealedPort] = &[SealedPort::esp(4500)];

    /// A UDP datagram on a sealed port, with its length in the IP header.
    fn datagram(payload: &[u8]) -> Vec<u8> {
        let mut frame = udp(4500, 4500, payload);
        let bytes = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&bytes.to_be_bytes());
        frame
    }

    fn add(taken: &mut PacketSample, vnet: VnetHeader, frame: &[u8]) {
        let mut received = [&vnet.to_bytes()[..], frame].concat();
        taken.add(&mut Classifier::new(sealed(PORTS)), &mut received);
    }

    fn super_packet(gso_size: u16) -> VnetHeader {
        VnetHeader {
            gso: Gso::UdpL4,
            gso_size,
            ..VnetHeader::PLAIN
        }
    }

    #[test]
    fn a_single_packet_is_taken_without_what_follows_it() {
        let mut taken = PacketSample::default();
        let frame = datagram(&[1; 100]);
        add(&mut taken, VnetHeader::PLAIN, &frame);
        add(
            &mut taken,
            VnetHeader::PLAIN,
            &[&frame[..], &[0; 6]].concat(),
        );
        assert_eq!(taken.packets, [&frame[..], &frame]);
        assert_eq!(taken.not_whole, 0);
    }

    #[test]
    fn a_super_packet_is_cut_into_packets_with_headers_of_their_own() {
        let segments: Vec<_> = (1..=6_u8).map(|fill| vec![fill; 100]).collect();
        let mut payload = segments.concat();
        payload.extend([7; 40]);
        let mut taken = PacketSample::default();
        add(&mut taken, super_packet(100), &datagram(&payload));
        assert_eq!(taken.packets.len(), 7);
        let chosen = taken.at_most(4);
        let packets = chosen.iter().map(|frame| &frame[14 + 28..]);
        // Four of seven packets.
        let expected = [&segments[0][..], &segments[1], &segments[3], &segments[5]];
        assert!(packets.eq(expected), "{chosen:?}");
        for frame in &chosen {
            assert_eq!(frame[16..18], 128_u16.to_be_bytes());
            assert_eq!(frame[38..40], 108_u16.to_be_bytes());
        }
        let mut taken = PacketSample::default();
        add(&mut taken, super_packet(300), &datagram(&payload));
        let lengths = taken.packets.iter().map(|frame| frame.len() - 14 - 28);
        assert!(lengths.eq([300, 300, 40]));
    }

    #[test]
    fn fragments_and_undescribed_super_packets_are_counted() {
        let mut taken = PacketSample::default();
        let frame = datagram(&[1; 100]);
        add(
            &mut taken,
            VnetHeader::PLAIN,
            &fragment(frame.clone(), 1, 0x2000),
        );
        add(&mut taken, super_packet(0), &frame);
        assert_eq!((taken.packets.len(), taken.not_whole), (0, 2));
    }

    #[test]
    fn what_is_not_sealed_is_left_alone() {
        let mut taken = PacketSample::default();
        add(&mut taken, VnetHeader::PLAIN, &udp(4600, 4600, &[1; 100]));
        add(&mut taken, VnetHeader::PLAIN, &datagram(&[0xff]));
        assert_eq!(taken, PacketSample::default());
    }

    #[test]
    fn the_chosen_ones_are_spread() {
        let all = |count| (0..count).collect::<Vec<u32>>();
        assert_eq!(spread(all(3), 8), [0, 1, 2]);
        assert_eq!(spread(all(8), 8), all(8));
        assert_eq!(spread(all(9), 4), [0, 2, 4, 6]);
        assert_eq!(spread(all(100), 8), [0, 12, 25, 37, 50, 62, 75, 87]);
        assert!(spread(all(5), 0).is_empty());
    }
}
