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
/// They enter at the sender's pace: what finds no room is lost there, as in front of a device whose queue is
/// full.
pub(super) struct Entrance {
    target: Target,
    scratch: Box<[u8]>,
    sent: u64,
    /// Of [`sent`](Self::sent), those that found no room.
    lost: u64,
}

enum Target {
    Frames(MemoryFrameSender),
    Cipher(MemoryCipherPort),
}

impl Entrance {
    fn new(target: Target) -> Self {
        Self {
            target,
            scratch: vec![0; FRAME_SLOT_BYTES].into_boxed_slice(),
            sent: 0,
            lost: 0,
        }
    }

    pub(super) fn frames(port: MemoryFrameSender) -> Self {
        Self::new(Target::Frames(port))
    }

    pub(super) fn cipher(port: MemoryCipherPort) -> Self {
        Self::new(Target::Cipher(port))
    }

    /// Frames that found no room so far.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the scratch's frame of `length` bytes found room.
    fn put(&mut self, length: usize) -> bool {
        match &mut self.target {
            Target::Frames(_) => false,
            Target::Cipher(port) => {
                let esp = Train {
                    start: OUTER_BYTES,
                    bytes: length - OUTER_BYTES,
                    datagram_bytes: length - OUTER_BYTES,
                };
                port.send(&self.scratch, &[esp]).datagrams == 1
            }
        }
    }
}

impl FrameSender for Entrance {
    fn send(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        let passed = match &mut self.target {
            Target::Frames(port) => port.send(count, &mut fill)?,
            Target::Cipher(_) => 0,
        };
        for _ in passed..count {
            let length = fill(&mut self.scratch);
            if !self.put(length) {
                self.lost += 1;
            }
        }
        self.sent += count as u64;
        Ok(count)
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
            batch: Batch::new(BATCH),
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
