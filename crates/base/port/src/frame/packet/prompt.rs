//! Receiving each frame as it arrives, by `recvmmsg`.
//!
//! A ring of blocks ([`PacketReceiver`]) delivers frames up to a millisecond late. Latency by
//! arrival times does not include this delay, but the time until a frame is answered would, and
//! answers would leave in bursts.
//!
//! [`PacketReceiver`]: super::PacketReceiver

use super::Dropped;
use super::receive::End;
use crate::arrivals::Arrivals;
use crate::frame::wanted::OpenFrames;
use crate::frame::{FRAME_SLOT_BYTES, FramePortStats, FrameReceiver};
use crate::kernel::{self, ErrorWatch, Interface};
use crate::udp::control::{CONTROL_BYTES, Control, messages, time_ns};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Frames per system call.
const BATCH_FRAMES: usize = 64;
/// Receive buffer requested from the kernel, in bytes; it may grant less.
const RECEIVE_BUFFER_BYTES: libc::c_int = 16 << 20;

/// Receives frames by AF_PACKET without a delay: all frames that arrive at the interface, and none
/// that leave. The stack does not see the wanted frames.
#[derive(Debug)]
pub struct PromptReceiver {
    socket: OwnedFd,
    slots: Box<[u8]>,
    controls: Box<[Control]>,
    dropped: Dropped,
    arrivals: Arrivals,
    errors: ErrorWatch,
    end: Option<End>,
}

impl PromptReceiver {
    /// As [`PacketReceiver`](super::PacketReceiver): `threads` receivers that divide the flows.
    ///
    /// # Errors
    /// The kernel's error: EPERM without CAP_NET_RAW.
    pub(in crate::frame) fn open(
        interface: &Interface,
        wanted: &OpenFrames<'_>,
    ) -> io::Result<Vec<Self>> {
        let mut receivers = Vec::with_capacity(wanted.threads);
        let mut group = None;
        for _ in 0..wanted.threads {
            let receiver = Self::open_one(interface)?;
            if wanted.threads > 1 {
                group = Some(kernel::join_fanout(&receiver.socket, group)?);
            }
            receivers.push(receiver);
        }
        if let Some(first) = receivers.first_mut() {
            first.end = End::of(interface, wanted)?;
        }
        Ok(receivers)
    }

    fn open_one(interface: &Interface) -> io::Result<Self> {
        // Protocol 0: no frames arrive before it is bound.
        let socket = kernel::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        kernel::set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        kernel::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)?;
        kernel::set_receive_buffer(&socket, RECEIVE_BUFFER_BYTES)?;
        kernel::bind_packet(&socket, interface, libc::ETH_P_ALL)?;
        kernel::pending_error(&socket)?;
        Ok(Self {
            socket,
            slots: vec![0; BATCH_FRAMES * FRAME_SLOT_BYTES].into_boxed_slice(),
            controls: vec![Control::EMPTY; BATCH_FRAMES].into_boxed_slice(),
            dropped: Dropped::default(),
            arrivals: Arrivals::new(),
            errors: ErrorWatch::default(),
            end: None,
        })
    }
}

/// Arrival time by CLOCK_REALTIME, in nanoseconds.
fn came_ns(control: &[u8]) -> Option<i64> {
    messages(control).find_map(|(level, kind, data)| time_ns(level, kind, data))
}

impl FrameReceiver for PromptReceiver {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        self.recv_timed(|frame, _| read(frame))
    }

    fn recv_timed(&mut self, mut read: impl FnMut(&mut [u8], Option<u64>)) -> io::Result<usize> {
        // SAFETY: all-zero is a valid value of these plain C structures.
        let (mut batch, mut vectors): ([libc::mmsghdr; BATCH_FRAMES], [libc::iovec; BATCH_FRAMES]) =
            unsafe { (zeroed(), zeroed()) };
        let slots = self.slots.chunks_exact_mut(FRAME_SLOT_BYTES);
        for (((message, vector), slot), control) in batch
            .iter_mut()
            .zip(&mut vectors)
            .zip(slots)
            .zip(&mut self.controls)
        {
            vector.iov_base = slot.as_mut_ptr().cast();
            vector.iov_len = slot.len();
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.bytes.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL_BYTES;
        }
        // SAFETY: every message points to a distinct vector and control block, and the vector to a
        // distinct slot; all outlive the call.
        let received = unsafe { kernel::receive_messages(&self.socket, &mut batch) };
        let count = received.map_err(|error| match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => self.errors.empty(&self.socket),
            _ => error,
        })?;
        self.arrivals.update();
        let slots = self.slots.chunks_exact_mut(FRAME_SLOT_BYTES);
        for ((message, slot), control) in batch[..count].iter().zip(slots).zip(&self.controls) {
            let length = (message.msg_len as usize).min(FRAME_SLOT_BYTES);
            let used = message.msg_hdr.msg_controllen.min(CONTROL_BYTES);
            let came_ns = came_ns(&control.bytes[..used]);
            let came_ns = came_ns.and_then(|came_ns| self.arrivals.monotonic_ns(came_ns));
            read(&mut slot[..length], came_ns);
        }
        Ok(count)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.errors.note_wait();
        Some(self.socket.as_fd())
    }

    fn stats(&self) -> FramePortStats {
        self.dropped.stats(&self.socket)
    }
}
