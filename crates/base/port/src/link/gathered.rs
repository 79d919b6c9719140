//! Frames that wait to be sent together, in memory that a program in the kernel may share.
//!
//! ```text
//! control block │ slot │ slot │ …        control: frames that wait, frames that were lost
//!                  │
//!                  └─ length │ virtio header │ frame
//! ```

use crate::kernel::Mapping;
use arrayvec::ArrayVec;
use std::io;
use wire::checksum::portable;
use wire::segment::complete_checksum;
use wire::vnet::{NEEDS_CSUM, VNET_HEADER_BYTES, VnetHeader};

/// The most that wait.
pub(super) const GATHERED_FRAMES_MAX: usize = 64;
/// Longer frames are not gathered: the copy would cost more than it saves.
pub(super) const GATHERED_BYTES_MAX: usize = 2048;

/// Size of the control block.
pub(super) const CONTROL_BYTES: usize = 64;
/// In the control block: how many frames wait, a word.
pub(super) const WAITING_AT: usize = 0;
/// In the control block: how many were lost, a word.
pub(super) const LOST_AT: usize = 4;
/// In a slot: the frame. Its length is a word at the slot's start, its virtio header just before
/// it.
pub(super) const FRAME_AT: usize = 16;
const VNET_AT: usize = FRAME_AT - VNET_HEADER_BYTES;
/// Distance between slots: an odd number of cache lines.
pub(super) const STRIDE_BYTES: usize = ((FRAME_AT + GATHERED_BYTES_MAX).div_ceil(64) | 1) * 64;
/// Size of the memory.
pub(super) const MEMORY_BYTES: usize = CONTROL_BYTES + GATHERED_FRAMES_MAX * STRIDE_BYTES;

#[derive(Debug)]
pub(super) struct Gathered {
    memory: Mapping,
    /// Lengths of the waiting frames, without virtio headers.
    lengths: ArrayVec<usize, GATHERED_FRAMES_MAX>,
}

impl Gathered {
    /// Uses memory of [`MEMORY_BYTES`].
    pub(super) const fn new(memory: Mapping) -> Self {
        Self {
            memory,
            lengths: ArrayVec::new_const(),
        }
    }

    pub(super) fn in_own_memory() -> io::Result<Self> {
        Mapping::anonymous(MEMORY_BYTES).map(Self::new)
    }

    pub(super) const fn len(&self) -> usize {
        self.lengths.len()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.lengths.is_full()
    }

    pub(super) fn clear(&mut self) {
        self.lengths.clear();
    }

    /// Appends a frame of up to [`GATHERED_BYTES_MAX`] from its pieces, and completes its checksum
    /// if it is to. Returns whether the frame is complete.
    ///
    /// # Panics
    /// If it is full, or the frame too long.
    #[inline]
    pub(super) fn put(
        &mut self,
        vnet: &VnetHeader,
        headers: &[u8],
        payload: &[&[u8]],
        completes: bool,
    ) -> bool {
        let start = CONTROL_BYTES + self.lengths.len() * STRIDE_BYTES;
        let pointer = self.memory.at(start, STRIDE_BYTES);
        // SAFETY: within the memory; the kernel accesses it only during a system call; `&mut self`
        // makes the slice the only one.
        let slot = unsafe { std::slice::from_raw_parts_mut(pointer, STRIDE_BYTES) };
        let mut at = FRAME_AT;
        for piece in [headers].iter().chain(payload) {
            slot[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        let bytes = at - FRAME_AT;
        let is_incomplete = vnet.flags & NEEDS_CSUM != 0;
        let is_completed = is_incomplete
            && completes
            && complete_checksum(vnet, &mut slot[FRAME_AT..at], portable).is_ok();
        let vnet = if is_completed {
            &VnetHeader::PLAIN
        } else {
            vnet
        };
        slot[VNET_AT..FRAME_AT].copy_from_slice(&vnet.to_bytes());
        slot[..4].copy_from_slice(&(bytes as u32).to_ne_bytes());
        self.lengths.push(bytes);
        is_completed || !is_incomplete
    }

    /// The waiting frames from `first` on, each with its virtio header.
    pub(super) fn vectors(&self, first: usize) -> ArrayVec<libc::iovec, GATHERED_FRAMES_MAX> {
        let frames = self.lengths.iter().enumerate().skip(first);
        frames
            .map(|(nth, bytes)| {
                let bytes = VNET_HEADER_BYTES + bytes;
                let at = CONTROL_BYTES + nth * STRIDE_BYTES + VNET_AT;
                libc::iovec {
                    iov_base: self.memory.at(at, bytes).cast(),
                    iov_len: bytes,
                }
            })
            .collect()
    }

    /// Writes to the control block that all frames wait, and that none is lost.
    pub(super) fn announce(&mut self) {
        for (at, word) in [(WAITING_AT, self.lengths.len() as u32), (LOST_AT, 0)] {
            // SAFETY: `at` checks the bounds; the mapping starts on a page, so words are aligned.
            unsafe { self.memory.at(at, 4).cast::<u32>().write_volatile(word) };
        }
    }

    /// The frames lost according to the control block.
    pub(super) fn lost(&self) -> u64 {
        // SAFETY: as above.
        let lost = unsafe { self.memory.at(LOST_AT, 4).cast::<u32>().read_volatile() };
        lost.into()
    }
}
