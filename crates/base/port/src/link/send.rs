//! Frames to the kernel: small ones gathered, large ones sent immediately in place.

use super::ETHERNET_BYTES;
use super::batch::BatchProgram;
use super::gathered::{GATHERED_BYTES_MAX, GATHERED_FRAMES_MAX, Gathered};
use crate::kernel::{self, Interface};
use crate::wait::wait_writable;
use arrayvec::ArrayVec;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;
use wire::coalesce::SEGMENTS_MAX;
use wire::vnet::{Gso, VnetHeader};

/// Number of frames by the packet socket that cost the same as one call of the program.
const BATCH_FRAMES_MIN: usize = 4;
/// Longest wait for room in the send buffer before frames count as lost.
const SEND_WAIT: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct Sender {
    gathered: Gathered,
    /// How many of these the program can send.
    plain: usize,
    program: Option<BatchProgram>,
    frame_bytes_max: usize,
    /// Lost since the last `flush`.
    lost: u64,
}

impl Sender {
    pub(super) fn new(interface: &Interface) -> io::Result<Self> {
        Ok(Self {
            gathered: Gathered::in_own_memory()?,
            plain: 0,
            program: None,
            frame_bytes_max: interface.mtu + ETHERNET_BYTES,
            lost: 0,
        })
    }

    /// Has batches sent by a program in the kernel. No frame may be waiting.
    pub(super) fn send_by_program(&mut self, interface: u32) -> io::Result<()> {
        let (program, gathered) = BatchProgram::load(interface)?;
        self.gathered = gathered;
        self.program = Some(program);
        Ok(())
    }

    /// Sends a frame, immediately or with later ones.
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
        if self.gathered.is_full() {
            self.push(socket)?;
        }
        // The program neither completes checksums nor knows the interface's limits.
        let completes = self.program.is_some();
        let is_complete = self.gathered.put(vnet, headers, payload, completes);
        let is_accepted = (ETHERNET_BYTES..=self.frame_bytes_max).contains(&bytes);
        self.plain += usize::from(is_complete && is_accepted);
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

    /// Sends waiting frames, and counts frames that cannot be sent.
    fn push(&mut self, socket: &OwnedFd) -> io::Result<()> {
        let plain = std::mem::take(&mut self.plain);
        if plain >= BATCH_FRAMES_MIN
            && plain == self.gathered.len()
            && let Some(program) = &self.program
        {
            match program.send(&mut self.gathered) {
                Ok(lost) => {
                    self.gathered.clear();
                    self.lost += lost;
                    return Ok(());
                }
                // The process has given up the right to run it, or the kernel has no memory.
                Err(_) => self.program = None,
            }
        }
        let (mut next, mut waited, mut gone) = (0, false, None);
        while next < self.gathered.len() {
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
                Some(libc::EAGAIN) => self.gathered.len() - next,
                // The driver dropped this one, or it is longer than the MTU, or not a frame.
                Some(libc::ENOBUFS | libc::EMSGSIZE | libc::EINVAL) => 1,
                _ => {
                    gone = Some(error);
                    self.gathered.len() - next
                }
            };
            next += lost;
            self.lost += lost as u64;
        }
        self.gathered.clear();
        gone.map_or(Ok(()), Err)
    }

    /// Sends the waiting frames from `first` on, in one call; returns how many it took.
    fn send_from(&self, socket: &OwnedFd, first: usize) -> io::Result<usize> {
        let mut vectors = self.gathered.vectors(first);
        let mut messages: ArrayVec<libc::mmsghdr, GATHERED_FRAMES_MAX> = ArrayVec::new();
        for vector in &mut vectors {
            // SAFETY: all-zero is a valid value of this plain C structure.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            messages.push(message);
        }
        // SAFETY: each message points to a vector, and that to a slot; all of them outlive the
        // call, and the kernel only reads the slots.
        unsafe { kernel::send_messages(socket, &mut messages) }
    }
}

fn vector(piece: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: piece.as_ptr().cast_mut().cast(),
        iov_len: piece.len(),
    }
}
