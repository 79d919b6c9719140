//! Frames to the kernel: small ones gathered, large ones sent at once in place.

use super::BATCH_FRAMES;
use crate::kernel;
use crate::wait::wait_writable;
use arrayvec::ArrayVec;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;
use wire::coalesce::SEGMENTS_MAX;
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};

/// Frames up to this length are copied and gathered; for a longer one the copy would cost more than
/// it saves.
const GATHERED_BYTES_MAX: usize = 2048;
/// Distance between slots: an odd number of cache lines.
const STRIDE_BYTES: usize = ((VNET_HEADER_BYTES + GATHERED_BYTES_MAX).div_ceil(64) | 1) * 64;
/// Longest wait for room in the send buffer before frames count as lost.
const SEND_WAIT: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Sender {
    slots: Box<[u8]>,
    /// Lengths of the waiting frames, with virtio headers.
    lengths: ArrayVec<usize, BATCH_FRAMES>,
    /// Lost since the last `flush`.
    lost: u64,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            slots: vec![0; BATCH_FRAMES * STRIDE_BYTES].into_boxed_slice(),
            lengths: ArrayVec::new(),
            lost: 0,
        }
    }

    /// Sends a frame, at once or with later ones.
    #[inline]
    pub(super) fn send(
        &mut self,
        socket: &OwnedFd,
        vnet: &VnetHeader,
        headers: &[u8],
        payload: &[&[u8]],
    ) -> io::Result<()> {
        let parts = payload.iter().map(|part| part.len()).sum::<usize>();
        let bytes = headers.len() + parts;
        if vnet.gso != Gso::None || bytes > GATHERED_BYTES_MAX {
            // The waiting frames come first.
            self.push(socket)?;
            return self.send_now(socket, vnet, headers, payload);
        }
        if self.lengths.is_full() {
            self.push(socket)?;
        }
        let slot = &mut self.slots[self.lengths.len() * STRIDE_BYTES..];
        let mut room = &mut slot[..VNET_HEADER_BYTES + bytes];
        let vnet = vnet.to_bytes();
        for piece in [&vnet, headers].iter().chain(payload) {
            let (now, later) = room.split_at_mut(piece.len());
            now.copy_from_slice(piece);
            room = later;
        }
        self.lengths.push(VNET_HEADER_BYTES + bytes);
        Ok(())
    }

    /// Sends one frame from its pieces.
    pub(super) fn send_now(
        &mut self,
        socket: &OwnedFd,
        vnet: &VnetHeader,
        headers: &[u8],
        payload: &[&[u8]],
    ) -> io::Result<()> {
        let vnet = vnet.to_bytes();
        let mut vectors: ArrayVec<libc::iovec, { SEGMENTS_MAX + 2 }> = ArrayVec::new();
        for piece in [&vnet, headers].iter().chain(payload) {
            vectors
                .try_push(vector(piece))
                .map_err(|_| io::ErrorKind::InvalidInput)?;
        }
        let mut waited = false;
        loop {
            // SAFETY: the vectors point to pieces that outlive the call, which only reads them.
            let written = unsafe {
                libc::writev(
                    socket.as_raw_fd(),
                    vectors.as_ptr(),
                    vectors.len() as libc::c_int,
                )
            };
            if written >= 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) if !waited => {
                    waited = true;
                    wait_writable(socket.as_fd(), SEND_WAIT);
                }
                _ => return Err(error),
            }
        }
    }

    /// Sends waiting frames; returns how many were lost since the last call.
    pub(super) fn flush(&mut self, socket: &OwnedFd) -> io::Result<u64> {
        self.push(socket)?;
        Ok(std::mem::take(&mut self.lost))
    }

    /// Sends waiting frames, and counts those that cannot be sent.
    fn push(&mut self, socket: &OwnedFd) -> io::Result<()> {
        let (mut next, mut waited, mut gone) = (0, false, None);
        while next < self.lengths.len() {
            let error = match self.send_from(socket, next) {
                Ok(count) => {
                    next += count;
                    continue;
                }
                Err(error) => error,
            };
            let lost = match error.raw_os_error() {
                Some(libc::EINTR) => 0,
                Some(libc::EAGAIN) if !waited => {
                    waited = true;
                    wait_writable(socket.as_fd(), SEND_WAIT);
                    0
                }
                Some(libc::EAGAIN) => self.lengths.len() - next,
                // The driver dropped this one, or it is longer than the MTU, or not a frame.
                Some(libc::ENOBUFS | libc::EMSGSIZE | libc::EINVAL) => 1,
                _ => {
                    gone = Some(error);
                    self.lengths.len() - next
                }
            };
            next += lost;
            self.lost += lost as u64;
        }
        self.lengths.clear();
        gone.map_or(Ok(()), Err)
    }

    /// Sends the waiting frames from `first` on, in one call; returns how many it took.
    fn send_from(&self, socket: &OwnedFd, first: usize) -> io::Result<usize> {
        let slots = self.slots.chunks_exact(STRIDE_BYTES);
        let mut vectors: ArrayVec<libc::iovec, BATCH_FRAMES> = slots
            .zip(&self.lengths)
            .skip(first)
            .map(|(slot, bytes)| vector(&slot[..*bytes]))
            .collect();
        let mut messages: ArrayVec<libc::mmsghdr, BATCH_FRAMES> = ArrayVec::new();
        for vector in &mut vectors {
            // SAFETY: all-zero is a valid value of this plain C structure.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            messages.push(message);
        }
        // SAFETY: each message points to a vector, and that to a slot, all of which outlive the
        // call; the kernel only reads the slots.
        let sent = kernel::check(unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                messages.as_mut_ptr(),
                messages.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        });
        sent.map(|sent| sent as usize)
    }
}

fn vector(piece: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: piece.as_ptr().cast_mut().cast(),
        iov_len: piece.len(),
    }
}
