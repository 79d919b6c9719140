//! A clear port on frame rings: passes a generator's frames to an encryptor in the same process.

use super::{
    FRAME_SLOT_BYTES, FramePortStats, FrameSender, MemoryFrameReceiver, MemoryFrameSender,
};
use crate::{CLEAR_ROOM_BYTES, ClearPort};
use std::io;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::headers::IpView;
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};

const ETHERNET_HEADER_BYTES: usize = 14;
/// The shortest Ethernet frame without FCS; shorter ones are padded.
const FRAME_BYTES_MIN: usize = 60;

/// Carries the IP packets of frames; every packet is a frame, there are no super-packets.
#[derive(Debug)]
pub struct FrameClearPort {
    receiver: MemoryFrameReceiver,
    sender: MemoryFrameSender,
    /// Target and source MAC addresses of the frames sent.
    macs: [u8; 12],
}

impl FrameClearPort {
    /// Receives packets in frames of `receiver` and sends them in frames by `sender`, from
    /// `source_mac` to `target_mac`.
    #[must_use]
    pub fn new(
        receiver: MemoryFrameReceiver,
        sender: MemoryFrameSender,
        source_mac: [u8; 6],
        target_mac: [u8; 6],
    ) -> Self {
        let mut macs = [0; 12];
        macs[..6].copy_from_slice(&target_mac);
        macs[6..].copy_from_slice(&source_mac);
        Self {
            receiver,
            sender,
            macs,
        }
    }

    /// Counts of the frames sent.
    #[must_use]
    pub fn stats(&self) -> FramePortStats {
        self.sender.stats()
    }
}

impl ClearPort for FrameClearPort {
    /// Skips frames that are not IP and cuts off padding. Lends the frame in its slot: the virtio
    /// header replaces the end of the Ethernet header.
    #[inline]
    fn recv<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        let bytes = loop {
            let (slot, length) = self.receiver.lend().ok_or(io::ErrorKind::WouldBlock)?;
            if let Some(view) = slot
                .get(ETHERNET_HEADER_BYTES..length)
                .and_then(IpView::parse)
            {
                break view.total_bytes;
            }
        };
        let slot = self.receiver.lent();
        let (front, packet) = slot.split_at_mut(ETHERNET_HEADER_BYTES);
        let start = ETHERNET_HEADER_BYTES - VNET_HEADER_BYTES;
        front[start..].copy_from_slice(&VnetHeader::PLAIN.to_bytes());
        let length = VNET_HEADER_BYTES + bytes;
        if packet.len() - bytes < CLEAR_ROOM_BYTES {
            buffer[..length].copy_from_slice(&slot[start..start + length]);
            return Ok((buffer, length));
        }
        Ok((&mut slot[start..], length))
    }

    /// A packet without room is lost, with [`io::ErrorKind::StorageFull`].
    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        let pieces = std::iter::once(headers).chain(payload.iter().copied());
        let bytes = ETHERNET_HEADER_BYTES + pieces.clone().map(<[u8]>::len).sum::<usize>();
        if vnet.gso != Gso::None || vnet.flags != 0 || bytes > FRAME_SLOT_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let sent = self.sender.send(1, |slot| {
            let (ethernet, mut rest) = slot.split_at_mut(ETHERNET_HEADER_BYTES);
            ethernet[..12].copy_from_slice(&self.macs);
            for piece in pieces.clone() {
                let (now, later) = rest.split_at_mut(piece.len());
                now.copy_from_slice(piece);
                rest = later;
            }
            let ether_type: [u8; 2] = if slot[ETHERNET_HEADER_BYTES] >> 4 == 6 {
                [0x86, 0xdd]
            } else {
                [0x08, 0x00]
            };
            slot[12..14].copy_from_slice(&ether_type);
            let padded = bytes.max(FRAME_BYTES_MIN);
            slot[bytes..padded].fill(0);
            padded
        })?;
        if sent == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn joinable(&self) -> Joinable {
        Joinable::NONE
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        use super::FrameReceiver as _;
        self.receiver.readable()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FrameReceiver, memory_frame_pair};
    use super::*;
    use etherparse::PacketBuilder;

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const NEXT: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// A frame with padding; `payload` bytes of UDP.
    fn frame(ipv6: bool, payload: usize) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2(OWN, NEXT);
        let mut frame = Vec::new();
        let payload = vec![7; payload];
        if ipv6 {
            let udp = ethernet.ipv6([1; 16], [2; 16], 64).udp(1, 2);
            udp.write(&mut frame, &payload).unwrap();
        } else {
            let udp = ethernet.ipv4([1; 4], [2; 4], 64).udp(1, 2);
            udp.write(&mut frame, &payload).unwrap();
        }
        frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
        frame
    }

    #[test]
    fn a_frame_is_received_as_a_packet_and_returns_unchanged() {
        let (mut generator, receiver) = memory_frame_pair(8);
        let (sender, mut analyser) = memory_frame_pair(8);
        let mut port = FrameClearPort::new(receiver, sender, OWN, NEXT);
        let mut buffer = vec![0; crate::CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
        for (ipv6, payload) in [
            (false, 0),
            (false, 18),
            (true, 0),
            (true, 1400),
            (false, 9170),
        ] {
            let sent = frame(ipv6, payload);
            let fill = |slot: &mut [u8]| {
                slot[..sent.len()].copy_from_slice(&sent);
                sent.len()
            };
            generator.send(1, fill).unwrap();
            let (packet, bytes) = port.recv(&mut buffer).unwrap();
            let packet = packet[..bytes].to_vec();
            let headers = if ipv6 { 48 } else { 28 };
            assert_eq!(bytes, 10 + headers + payload, "without padding");
            assert_eq!(packet[..10], VnetHeader::PLAIN.to_bytes());
            let (headers, payload) = packet[10..].split_at(headers);
            let (one, two) = payload.split_at(payload.len() / 2);
            port.send(&VnetHeader::PLAIN, headers, &[one, two]).unwrap();
            let mut back = Vec::new();
            analyser
                .recv(|frame| back.extend_from_slice(frame))
                .unwrap();
            assert_eq!(back, sent);
        }
    }

    #[test]
    fn other_frames_are_skipped_and_super_packets_refused() {
        let (mut generator, receiver) = memory_frame_pair(8);
        let (sender, _analyser) = memory_frame_pair(1);
        let mut port = FrameClearPort::new(receiver, sender, OWN, NEXT);
        generator
            .send(3, |slot| {
                slot[..60].fill(0);
                60
            })
            .unwrap();
        let mut buffer = vec![0; crate::CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
        let error = port.recv(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let super_packet = VnetHeader {
            gso: Gso::UdpL4,
            ..VnetHeader::PLAIN
        };
        let error = port.send(&super_packet, &[0x45], &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        port.send(&VnetHeader::PLAIN, &[0x45], &[]).unwrap();
        let error = port.send(&VnetHeader::PLAIN, &[0x45], &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(port.stats().sent, 1);
    }
}
