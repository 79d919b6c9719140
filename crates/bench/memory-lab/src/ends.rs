//! A station's ends of rings in memory.
//!
//! A gateway's clear side takes whole frames. Its cipher side takes ESP; there a station's end
//! removes or adds the outer headers.

use port::{
    Batch, CipherPort, FRAME_SLOT_BYTES, FramePortStats, FrameReceiver, FrameSender,
    MemoryCipherPort, MemoryFrameReceiver, MemoryFrameSender, Train, flow_hash,
};
use std::io;
use std::os::fd::BorrowedFd;
use wire::headers::be16;
use wire::mix::ETHERNET_HEADER_BYTES;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// Headers before ESP: Ethernet, IPv4 and UDP.
const OUTER_BYTES: usize = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
/// Datagrams per batch.
const BATCH: usize = 32;

/// The entry of a station's frames.
///
/// A device takes frames at the sender's pace: frames without room are lost, as at a full queue.
/// Without a device, the sender waits for room in the analyser's ring instead, and is late: every
/// frame of its highest rate is then checked.
pub(crate) struct Entrance {
    target: Target,
    /// Takes datagrams to a cipher side, and frames that are lost or copied.
    batch: Batch,
    sent: u64,
}

pub(crate) enum Target {
    /// The analyser's ring.
    Straight(MemoryFrameSender),
    /// A device's clear side, one ring per lane.
    Clear(Vec<MemoryFrameSender>),
    /// A device's cipher side by lane; the first lane has this UDP port.
    Cipher(Vec<MemoryCipherPort>, u16),
}

impl Entrance {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            batch: Batch::new(FRAME_SLOT_BYTES),
            sent: 0,
        }
    }
}

impl FrameSender for Entrance {
    fn send(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        let batch = &mut self.batch;
        let sent = match &mut self.target {
            Target::Straight(port) => port.send(count, fill)?,
            Target::Clear(lanes) => {
                match &mut lanes[..] {
                    [only] => {
                        // The usual case of one lane has no copy: frames are written into the
                        // ring's slots.
                        let passed = only.send(count, &mut fill)?;
                        // Sent and lost: their sequence numbers are missing behind the device.
                        for _ in passed..count {
                            fill(&mut batch.buffer);
                        }
                    }
                    lanes => spread(lanes, count, fill, &mut batch.buffer)?,
                }
                count
            }
            Target::Cipher(lanes, udp_port) => {
                for _ in 0..count {
                    let length = fill(&mut batch.buffer);
                    // A sender in a gateway's place has one lane for each ring here, with ascending
                    // ports from this one on.
                    let lane = destination_port(&batch.buffer).wrapping_sub(*udp_port);
                    // The train begins behind the outer headers, which the ring does not carry.
                    // `send` empties the batch in any case.
                    batch.trains.push(Train {
                        start: OUTER_BYTES,
                        bytes: length - OUTER_BYTES,
                        datagram_bytes: length - OUTER_BYTES,
                        ..Train::default()
                    });
                    // Datagrams without room are lost.
                    lanes[usize::from(lane)].send(batch);
                }
                count
            }
        };
        self.sent += sent as u64;
        Ok(sent)
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats {
            sent: self.sent,
            ..FramePortStats::default()
        }
    }
}

/// Passes each frame to the lane of its flow, as the queues of a TUN device do; this costs a copy.
/// Frames without room are lost.
fn spread(
    lanes: &mut [MemoryFrameSender],
    count: usize,
    mut fill: impl FnMut(&mut [u8]) -> usize,
    scratch: &mut [u8],
) -> io::Result<()> {
    for _ in 0..count {
        let length = fill(scratch);
        let frame = &scratch[..length];
        // Frames of one flow take one lane and keep their order there.
        let packet = &frame[ETHERNET_HEADER_BYTES..];
        let lane = flow_hash(packet) as usize % lanes.len();
        let copy = |slot: &mut [u8]| {
            slot[..length].copy_from_slice(frame);
            length
        };
        lanes[lane].send(1, copy)?;
    }
    Ok(())
}

/// Returns the UDP destination port behind an IPv4 header without options.
fn destination_port(frame: &[u8]) -> u16 {
    be16(frame, ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + 2)
}

/// The exit of a station's frames, by lane. Several lanes have no common descriptor to wait for:
/// they are polled in turn.
pub(crate) enum Exit {
    Frames(Vec<MemoryFrameReceiver>),
    Cipher(Vec<CipherExit>),
}

/// The cipher side of one lane.
pub(crate) struct CipherExit {
    port: MemoryCipherPort,
    batch: Batch,
    frame: Box<[u8]>,
    udp_port: u16,
}

impl Exit {
    /// `udp_port` is the first lane's.
    pub(crate) fn cipher(lanes: Vec<MemoryCipherPort>, udp_port: u16) -> Self {
        let exits = (udp_port..).zip(lanes).map(|(udp_port, port)| CipherExit {
            port,
            batch: Batch::for_trains(BATCH),
            frame: vec![0; FRAME_SLOT_BYTES].into_boxed_slice(),
            udp_port,
        });
        Self::Cipher(exits.collect())
    }
}

impl CipherExit {
    fn recv(&mut self, read: &mut impl FnMut(&mut [u8])) -> io::Result<usize> {
        self.port.recv(&mut self.batch)?;
        let mut frames = 0;
        for datagram in self.batch.datagrams() {
            let end = OUTER_BYTES + datagram.len();
            // The analyzer takes whole frames, as from a network card, and finds the lane by the
            // port.
            outer(&mut self.frame, self.udp_port, datagram.len());
            self.frame[OUTER_BYTES..end].copy_from_slice(datagram);
            read(&mut self.frame[..end]);
            frames += 1;
        }
        Ok(frames)
    }
}

impl FrameReceiver for Exit {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        match self {
            Self::Frames(lanes) => in_turn(lanes, |port| port.recv(&mut read)),
            Self::Cipher(lanes) => in_turn(lanes, |lane| lane.recv(&mut read)),
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Frames(lanes) => match &lanes[..] {
                [only] => only.readable(),
                _ => None,
            },
            Self::Cipher(lanes) => match &lanes[..] {
                [only] => only.port.readable(),
                _ => None,
            },
        }
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

/// Receives from each lane once. Returns the number of frames.
fn in_turn<L>(
    lanes: &mut [L],
    mut recv: impl FnMut(&mut L) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut frames = 0;
    for lane in lanes {
        match recv(lane) {
            Ok(more) => frames += more,
            // One empty lane does not keep the others from being read.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    match frames {
        // As a single ring that is empty: the analyzer then waits, or polls again.
        0 => Err(io::ErrorKind::WouldBlock.into()),
        frames => Ok(frames),
    }
}

/// Writes the headers before ESP in UDP, as far as receivers check them.
fn outer(frame: &mut [u8], udp_port: u16, esp_bytes: usize) {
    let (ethernet, ip) = frame[..OUTER_BYTES].split_at_mut(ETHERNET_HEADER_BYTES);
    ethernet.copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    ip.fill(0);
    let udp_bytes = (UDP_HEADER_BYTES + esp_bytes) as u16;
    // Version 4 and five words, since receivers expect UDP at a fixed offset. Checksums stay 0: for
    // UDP that means none (RFC 3948 §2.1), and no receiver here checks the IPv4 header's.
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(udp_bytes + IPV4_HEADER_BYTES as u16).to_be_bytes());
    // Time to live, then the protocol number of UDP.
    ip[8] = 64;
    ip[9] = 17;
    let udp = &mut ip[IPV4_HEADER_BYTES..];
    udp[..2].copy_from_slice(&udp_port.to_be_bytes());
    udp[2..4].copy_from_slice(&udp_port.to_be_bytes());
    udp[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::memory_frame_pair;

    const ROOM: usize = 4;

    /// Sends six frames. Returns how many were sent and how many were generated.
    fn six(mut entrance: Entrance) -> (usize, usize) {
        let mut made = 0;
        let fill = |_: &mut [u8]| {
            made += 1;
            60
        };
        let sent = entrance.send(6, fill).unwrap();
        assert_eq!(entrance.stats().sent, sent as u64);
        (sent, made)
    }

    #[test]
    fn without_a_device_frames_wait_for_room_at_the_analyser() {
        let (near, _far) = memory_frame_pair(ROOM);
        assert_eq!(six(Entrance::new(Target::Straight(near))), (ROOM, ROOM));
    }

    #[test]
    fn a_device_that_has_no_room_has_lost_a_frame_that_was_sent() {
        let (near, mut far) = memory_frame_pair(ROOM);
        assert_eq!(six(Entrance::new(Target::Clear(vec![near]))), (6, 6));
        assert_eq!(far.recv(|_| ()).unwrap(), ROOM);
    }
}
