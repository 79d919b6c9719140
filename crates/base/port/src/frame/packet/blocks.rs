//! A ring of blocks in memory shared with the kernel (TPACKET_V3), which packs received frames into
//! them.

use super::Dropped;
use crate::frame::FramePortStats;
use crate::kernel::{self, ErrorWatch, Mapping};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of a block, which holds several of the longest frames.
pub(super) const BLOCK_BYTES: usize = 128 << 10;
/// A block of this age is delivered even if it is not full.
const BLOCK_AGE_MS: libc::c_uint = 1;
/// The format requires a nominal frame size, which only sets the maximum number of frames.
const NOMINAL_FRAME_BYTES: usize = 2048;
/// Alignment of the data behind a frame's header (`TPACKET_ALIGNMENT`).
const ALIGNMENT: usize = 16;

/// A packet socket with its ring.
#[derive(Debug)]
pub(super) struct BlockRing {
    ring: Mapping,
    blocks: usize,
    next: usize,
    /// Frames lost so far; the kernel resets its count when it is read.
    dropped: Dropped,
    errors: ErrorWatch,
    pub(super) socket: OwnedFd,
}

/// The kernel's record of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noted {
    /// Arrival by CLOCK_REALTIME, in nanoseconds.
    pub(super) came_ns: i64,
    /// Length before a filter cut it.
    pub(super) whole_bytes: u32,
    /// `TP_STATUS_*` flags.
    pub(super) status: u32,
    /// Tag control information and type of a VLAN tag that was removed; see `status`.
    pub(super) vlan: (u16, u16),
    /// Whether the interface sent it.
    pub(super) is_outgoing: bool,
}

impl BlockRing {
    /// Gives an unbound packet socket a ring of at least four blocks.
    pub(super) fn new(socket: OwnedFd, blocks: usize) -> io::Result<Self> {
        let blocks = blocks.max(4);
        kernel::set_option(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V3 as libc::c_int),
        )?;
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
        Ok(Self {
            ring,
            blocks,
            next: 0,
            dropped: Dropped::default(),
            errors: ErrorWatch::default(),
            socket,
        })
    }

    /// Whether the next block is full or old enough.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Passes on the frames of the next block that has some.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if no block is ready, or the socket's error.
    #[inline]
    pub(super) fn read(&mut self, mut read: impl FnMut(&mut [u8], Noted)) -> io::Result<usize> {
        while self.is_ready() {
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

    pub(super) fn readable(&self) -> BorrowedFd<'_> {
        self.errors.note_wait();
        self.socket.as_fd()
    }

    pub(super) fn stats(&self) -> FramePortStats {
        self.dropped.stats(&self.socket)
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
    #[inline]
    fn read_block(&mut self, read: &mut impl FnMut(&mut [u8], Noted)) -> usize {
        let block: libc::tpacket_hdr_v1 = self.header(self.block());
        let mut offset = self.next * BLOCK_BYTES + block.offset_to_first_pkt as usize;
        for _ in 0..block.num_pkts {
            let header: libc::tpacket3_hdr = self.header(offset);
            let behind = size_of::<libc::tpacket3_hdr>().next_multiple_of(ALIGNMENT);
            let address: libc::sockaddr_ll = self.header(offset + behind);
            let noted = Noted {
                came_ns: i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec),
                whole_bytes: header.tp_len,
                status: header.tp_status,
                vlan: (header.hv1.tp_vlan_tci as u16, header.hv1.tp_vlan_tpid),
                is_outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            };
            let start = offset + usize::from(header.tp_mac);
            let bytes = header.tp_snaplen as usize;
            // SAFETY: `at` checks the bounds; the frame is ours as the block is; `&mut self` makes
            // the slice the only one.
            let frame =
                unsafe { std::slice::from_raw_parts_mut(self.ring.at(start, bytes), bytes) };
            read(frame, noted);
            // Frames have any length, so each one leads to the next.
            offset += header.tp_next_offset as usize;
        }
        block.num_pkts as usize
    }
}
