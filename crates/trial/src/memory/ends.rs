//! A station's ends of rings in memory.
//!
//! On its clear side a gateway takes frames as they are. On its cipher side it takes ESP; there a station's end
//! takes the outer headers off, or puts them on.

use port::{
    Batch, CipherPort, FRAME_SLOT_BYTES, FramePortStats, FrameReceiver, FrameSender,
    MemoryCipherPort, MemoryFrameReceiver, MemoryFrameSender, Train,
};
use std::io;
use std::os::fd::BorrowedFd;
use wire::mix::ETHERNET_HEADER_BYTES;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// ESP in UDP over IPv4 over Ethernet: what stands before it.
const OUTER_BYTES: usize = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;
/// Datagrams that one batch takes.
const BATCH: usize = 32;

/// Where a station's frames enter.
///
/// A device takes them at the sender's pace: what finds no room is lost there, as in front of a queue that is
/// full. Where the analyser's own ring is all there is, the sender waits for room instead, and is late: its
/// highest rate is then one at which every frame was checked.
pub(super) struct Entrance {
    target: Target,
    scratch: Box<[u8]>,
    sent: u64,
}

enum Target {
    /// The analyser's ring.
    Straight(MemoryFrameSender),
    /// A device's clear side.
    Clear(MemoryFrameSender),
    /// A device's cipher side.
    Cipher(MemoryCipherPort, Batch),
}

impl Entrance {
    fn new(target: Target) -> Self {
        Self {
            target,
            scratch: vec![0; FRAME_SLOT_BYTES].into_boxed_slice(),
            sent: 0,
        }
    }

    pub(super) fn straight(port: MemoryFrameSender) -> Self {
        Self::new(Target::Straight(port))
    }

    pub(super) fn clear(port: MemoryFrameSender) -> Self {
        Self::new(Target::Clear(port))
    }

    pub(super) fn cipher(port: MemoryCipherPort) -> Self {
        Self::new(Target::Cipher(port, Batch::new(FRAME_SLOT_BYTES)))
    }
}

impl FrameSender for Entrance {
    fn send(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        let scratch = &mut self.scratch;
        let sent = match &mut self.target {
            Target::Straight(port) => port.send(count, fill)?,
            Target::Clear(port) => {
                let passed = port.send(count, &mut fill)?;
                // Lost, but sent: their numbers are missing behind the device.
                for _ in passed..count {
                    fill(scratch);
                }
                count
            }
            Target::Cipher(port, batch) => {
                for _ in 0..count {
                    let length = fill(&mut batch.buffer);
                    batch.trains.push(Train {
                        start: OUTER_BYTES,
                        bytes: length - OUTER_BYTES,
                        datagram_bytes: length - OUTER_BYTES,
                        ..Train::default()
                    });
                    // What finds no room is lost.
                    port.send(batch);
                }
                count
            }
        };
        self.sent += sent as u64;
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats {
            sent: self.sent,
            ..FramePortStats::default()
        }
    }
}

/// Where a station's frames come out.
pub(super) enum Exit {
    Frames(MemoryFrameReceiver),
    Cipher {
        port: MemoryCipherPort,
        batch: Batch,
        frame: Box<[u8]>,
        udp_port: u16,
    },
}

impl Exit {
    pub(super) fn cipher(port: MemoryCipherPort, udp_port: u16) -> Self {
        Self::Cipher {
            port,
            batch: Batch::for_trains(BATCH),
            frame: vec![0; FRAME_SLOT_BYTES].into_boxed_slice(),
            udp_port,
        }
    }
}

impl FrameReceiver for Exit {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        match self {
            Self::Frames(port) => port.recv(read),
            Self::Cipher {
                port,
                batch,
                frame,
                udp_port,
            } => {
                port.recv(batch)?;
                let mut frames = 0;
                for datagram in batch.datagrams() {
                    let end = OUTER_BYTES + datagram.len();
                    outer(frame, *udp_port, datagram.len());
                    frame[OUTER_BYTES..end].copy_from_slice(datagram);
                    read(&mut frame[..end]);
                    frames += 1;
                }
                Ok(frames)
            }
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Frames(port) => port.readable(),
            Self::Cipher { port, .. } => port.readable(),
        }
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

/// The headers in front of ESP in UDP, as far as a receiver looks at them.
fn outer(frame: &mut [u8], udp_port: u16, esp_bytes: usize) {
    let (ethernet, ip) = frame[..OUTER_BYTES].split_at_mut(ETHERNET_HEADER_BYTES);
    ethernet.copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    ip.fill(0);
    let udp_bytes = (UDP_HEADER_BYTES + esp_bytes) as u16;
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(udp_bytes + IPV4_HEADER_BYTES as u16).to_be_bytes());
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

    /// How many of six frames are sent, and how many were made.
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
        assert_eq!(six(Entrance::straight(near)), (ROOM, ROOM));
    }

    #[test]
    fn a_device_that_has_no_room_has_lost_a_frame_that_was_sent() {
        let (near, mut far) = memory_frame_pair(ROOM);
        assert_eq!(six(Entrance::clear(near)), (6, 6));
        assert_eq!(far.recv(|_| ()).unwrap(), ROOM);
    }
}
