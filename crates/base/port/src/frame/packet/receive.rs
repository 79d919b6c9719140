//! Receiving by a ring of blocks in memory shared with the kernel (TPACKET_V3).
//!
//! The kernel packs frames into a block and delivers it when it is full or a millisecond old: one
//! wake-up for some hundred frames. (TPACKET_V2, which delivers each frame by itself, was measured:
//! 0.60 million frames per second over a veth pair, against 1.03 with blocks.) The wait for the
//! block is not part of a frame's latency: the kernel notes each arrival, and
//! [`FrameReceiver::recv_timed`] returns it.

use super::Dropped;
use crate::arrivals::Arrivals;
use crate::frame::bpf::DropCaptured;
use crate::frame::wanted::OpenFrames;
use crate::frame::{FramePortStats, FrameReceiver, Swallow};
use crate::kernel::{self, ErrorWatch, Interface, Mapping};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of the whole ring.
const RING_BYTES: usize = 64 << 20;
/// Size of a block, which holds several of the longest frames.
const BLOCK_BYTES: usize = 128 << 10;
/// A block of this age is delivered even if it is not full.
const BLOCK_AGE_MS: libc::c_uint = 1;
/// The format requires a nominal frame size, which only sets the maximum number of frames.
const NOMINAL_FRAME_BYTES: usize = 2048;

/// Receives frames by AF_PACKET: all that arrive at the interface, none that leave.
///
/// The capture also leaves the frames to the stack, which would answer that their port is
/// unreachable, at the cost of a third of the rate (0.56 against 0.88 million frames per second
/// over a veth pair). So test frames, recognised by their UDP target ports, are dropped after the
/// capture.
#[derive(Debug)]
pub struct PacketReceiver {
    ring: Mapping,
    blocks: usize,
    next: usize,
    /// Frames lost so far; the kernel resets its count when it is read.
    dropped: Dropped,
    arrivals: Arrivals,
    errors: ErrorWatch,
    socket: OwnedFd,
    end: Option<End>,
}

/// Keeps test frames from the stack, or the stack from answering them.
#[derive(Debug)]
pub(super) enum End {
    Drop(#[expect(dead_code, reason = "held for its drop")] DropCaptured),
    Swallow(#[expect(dead_code, reason = "held for its drop")] Swallow),
}

impl End {
    /// A program where the kernel permits one, else sockets, which cost the path through the stack.
    /// Where the ports are already in use, nothing is answered anyway.
    pub(super) fn of(interface: &Interface, wanted: &OpenFrames<'_>) -> io::Result<Option<Self>> {
        match DropCaptured::test_frames(interface.index, wanted) {
            Ok(program) => return Ok(Some(Self::Drop(program))),
            // Their owner would get every sealed packet too.
            Err(error) if wanted.beside.is_some() => return Err(error),
            Err(_) => {}
        }
        match Swallow::bind(&interface.name, wanted.udp_ports) {
            Ok(sockets) => Ok(Some(Self::Swallow(sockets))),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl PacketReceiver {
    /// Opens the interface for receiving by `threads` receivers, among which flows are divided by a
    /// hash of their addresses and ports. The stack sees none of the wanted frames until the first
    /// of them is dropped.
    ///
    /// # Errors
    /// The kernel's error: EPERM without CAP_NET_RAW, ENOMEM.
    pub(in crate::frame) fn open(
        interface: &Interface,
        wanted: &OpenFrames<'_>,
    ) -> io::Result<Vec<Self>> {
        let threads = wanted.threads;
        let mut receivers = Vec::with_capacity(threads);
        let mut group = None;
        for _ in 0..threads {
            let receiver = Self::open_one(interface, RING_BYTES / BLOCK_BYTES / threads)?;
            if threads > 1 {
                group = Some(kernel::join_fanout(&receiver.socket, group)?);
            }
            receivers.push(receiver);
        }
        if let Some(first) = receivers.first_mut() {
            first.end = End::of(interface, wanted)?;
        }
        Ok(receivers)
    }

    fn open_one(interface: &Interface, blocks: usize) -> io::Result<Self> {
        let blocks = blocks.max(4);
        let socket = kernel::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let set = |option, value: libc::c_int| {
            kernel::set_option(&socket, libc::SOL_PACKET, option, &value)
        };
        set(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V3 as libc::c_int,
        )?;
        set(libc::PACKET_IGNORE_OUTGOING, 1)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: NOMINAL_FRAME_BYTES as libc::c_uint,
            tp_frame_nr: (blocks * BLOCK_BYTES / NOMINAL_FRAME_BYTES) as libc::c_uint,
            tp_retire_blk_tov: BLOCK_AGE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        kernel::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let ring = Mapping::of_socket(&socket, blocks * BLOCK_BYTES, 0)?;
        kernel::bind_packet(&socket, interface, libc::ETH_P_ALL)?;
        kernel::pending_error(&socket)?;
        Ok(Self {
            ring,
            blocks,
            next: 0,
            dropped: Dropped::default(),
            arrivals: Arrivals::new(),
            errors: ErrorWatch::default(),
            socket,
            end: None,
        })
    }

    /// Offset of the next block's header.
    const fn block(&self) -> usize {
        self.next * BLOCK_BYTES + offset_of!(libc::tpacket_block_desc, hdr)
    }

    /// The status word of the next block, which is its owner.
    fn status(&self) -> &AtomicU32 {
        let offset = self.block() + offset_of!(libc::tpacket_hdr_v1, block_status);
        // SAFETY: `at` checks the bounds; blocks are aligned to pages; the kernel writes this word
        // atomically.
        unsafe { AtomicU32::from_ptr(self.ring.at(offset, 4).cast()) }
    }

    /// The header at `offset`, of a block that is ours.
    #[inline]
    fn header<H: kernel::Plain>(&self, offset: usize) -> H {
        // SAFETY: `at` checks the bounds; the kernel does not write to a block that is ours; any
        // bytes are a value.
        unsafe {
            self.ring
                .at(offset, size_of::<H>())
                .cast::<H>()
                .read_unaligned()
        }
    }

    /// Passes on the frames of the next block, which must be ours.
    fn read_block(&mut self, mut read: impl FnMut(&mut [u8], Option<u64>)) -> usize {
        self.arrivals.update();
        let block: libc::tpacket_hdr_v1 = self.header(self.block());
        let mut offset = self.next * BLOCK_BYTES + block.offset_to_first_pkt as usize;
        for _ in 0..block.num_pkts {
            let header: libc::tpacket3_hdr = self.header(offset);
            let start = offset + usize::from(header.tp_mac);
            let bytes = header.tp_snaplen as usize;
            // SAFETY: `at` checks the bounds; the frame is ours as the block is; `&mut self` makes
            // the slice the only one.
            let frame =
                unsafe { std::slice::from_raw_parts_mut(self.ring.at(start, bytes), bytes) };
            let came_ns = i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec);
            read(frame, self.arrivals.monotonic_ns(came_ns));
            offset += header.tp_next_offset as usize;
        }
        block.num_pkts as usize
    }
}

impl FrameReceiver for PacketReceiver {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        self.recv_timed(|frame, _| read(frame))
    }

    fn recv_timed(&mut self, mut read: impl FnMut(&mut [u8], Option<u64>)) -> io::Result<usize> {
        while self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0 {
            let count = self.read_block(&mut read);
            self.status()
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.blocks;
            if count > 0 {
                return Ok(count);
            }
        }
        Err(self.errors.empty(&self.socket))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.errors.note_wait();
        Some(self.socket.as_fd())
    }

    fn stats(&self) -> FramePortStats {
        self.dropped.stats(&self.socket)
    }
}
