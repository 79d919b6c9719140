//! Frames from the kernel, many in a call, each to a slot of its own.

use super::BATCH_FRAMES;
use super::vlan::{self, TAG_BYTES};
use crate::udp::control::{self, Control};
use crate::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, kernel};
use arrayvec::ArrayVec;
use std::cell::Cell;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use wire::vnet::{NEEDS_CSUM, VNET_HEADER_BYTES};

/// Free bytes in front of each frame, for a VLAN tag; a multiple of what the headers behind want.
pub(super) const HEADROOM_BYTES: usize = 8;
/// From slot to slot: an odd number of cache lines, so that the first lines of slots share no cache set.
const STRIDE_BYTES: usize = {
    let lines = (HEADROOM_BYTES + CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES).div_ceil(64);
    (lines | 1) * 64
};
/// Frames of a kind that the kernel cannot describe, read away by one call.
const UNKNOWN_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Receiver {
    slots: Box<[u8]>,
    frames: Box<[Frame; BATCH_FRAMES]>,
    /// Of these, the ones that wait to be lent.
    next: usize,
    count: usize,
    /// Frames that could not be described, or were longer than a slot.
    refused: u64,
    /// Frames lost so far; the kernel forgets its count when it is read.
    dropped: Cell<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    /// Length with virtio header, without the tag.
    bytes: usize,
    tag: Option<[u8; TAG_BYTES]>,
    whole: bool,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![0; BATCH_FRAMES * STRIDE_BYTES].into_boxed_slice(),
            frames: Box::new([Frame::default(); BATCH_FRAMES]),
            next: 0,
            count: 0,
            refused: 0,
            dropped: Cell::new(0),
        }
    }

    /// The number of the next frame, from those at hand or from the kernel; `None` when there is none.
    #[inline]
    pub(super) fn next(&mut self, socket: &OwnedFd) -> io::Result<Option<usize>> {
        loop {
            while self.next < self.count {
                let at = self.next;
                self.next += 1;
                if self.frames[at].whole {
                    return Ok(Some(at));
                }
                self.refused += 1;
            }
            if !self.fill(socket)? {
                return Ok(None);
            }
        }
    }

    /// The frame behind its virtio header, with the tag that it came with, and its length.
    #[inline]
    pub(super) fn lend(&mut self, at: usize) -> (&mut [u8], usize) {
        let Frame { bytes, tag, .. } = self.frames[at];
        let slot = &mut self.slots[at * STRIDE_BYTES..][..STRIDE_BYTES];
        // The kernel also says which checksums it has checked.
        slot[HEADROOM_BYTES] &= NEEDS_CSUM;
        let Some(tag) = tag else {
            return (&mut slot[HEADROOM_BYTES..], bytes);
        };
        vlan::insert(slot, tag);
        (&mut slot[HEADROOM_BYTES - TAG_BYTES..], bytes + TAG_BYTES)
    }

    /// Takes what the kernel has; whether there was anything.
    fn fill(&mut self, socket: &OwnedFd) -> io::Result<bool> {
        for _ in 0..UNKNOWN_MAX {
            match self.receive(socket) {
                Ok(()) => return Ok(self.count > 0),
                Err(error) => match error.raw_os_error() {
                    // A super-packet of a kind that a virtio header cannot describe.
                    Some(libc::EINVAL) => self.refused += 1,
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN) => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
        Ok(false)
    }

    fn receive(&mut self, socket: &OwnedFd) -> io::Result<()> {
        (self.next, self.count) = (0, 0);
        let mut vectors: ArrayVec<libc::iovec, BATCH_FRAMES> = self
            .slots
            .chunks_exact_mut(STRIDE_BYTES)
            .map(|slot| libc::iovec {
                iov_base: slot[HEADROOM_BYTES..].as_mut_ptr().cast(),
                iov_len: CLEAR_BUFFER_BYTES,
            })
            .collect();
        let mut controls = [Control::EMPTY; BATCH_FRAMES];
        let mut messages: ArrayVec<libc::mmsghdr, BATCH_FRAMES> = ArrayVec::new();
        for (vector, control) in vectors.iter_mut().zip(&mut controls) {
            // SAFETY: all-zero is a valid value of this plain C structure.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.bytes.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = control.bytes.len();
            messages.push(message);
        }
        // SAFETY: each message points to a vector and a control block that outlive the call, and each vector to a
        // slot of that length that nothing else refers to.
        let count = kernel::check(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        })?;
        self.count = count as usize;
        let received = messages.iter().zip(&controls).take(self.count);
        for ((message, control), frame) in received.zip(self.frames.iter_mut()) {
            let bytes = message.msg_len as usize;
            let used = message.msg_hdr.msg_controllen.min(control.bytes.len());
            let tag = control::messages(&control.bytes[..used])
                .find(|(level, kind, _)| {
                    (*level, *kind) == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
                })
                .and_then(|(_, _, auxdata)| vlan::tag(auxdata));
            let truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            *frame = Frame {
                bytes,
                tag,
                whole: !truncated && bytes > VNET_HEADER_BYTES + 2 * 6,
            };
        }
        Ok(())
    }

    /// Frames lost so far, by the kernel or here.
    pub(super) fn dropped(&self, socket: &OwnedFd) -> u64 {
        let stats: io::Result<libc::tpacket_stats> =
            kernel::option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // It cannot fail on a packet socket.
        let new = stats.map_or(0, |stats| u64::from(stats.tp_drops));
        self.dropped.set(self.dropped.get() + new);
        self.dropped.get() + self.refused
    }
}
