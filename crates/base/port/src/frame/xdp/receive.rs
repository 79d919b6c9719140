//! Receiving by AF_XDP: one socket per queue, fed by a program on the interface.

use super::ring::{Ring, Which};
use super::{HEADROOM_BYTES, bind, memory_of, socket, zero_copy_or_copy};
use crate::frame::bpf::XdpRedirect;
use crate::frame::wanted::OpenFrames;
use crate::frame::xdp_mode::{XdpAttach, XdpMemory, XdpMode};
use crate::frame::{FramePortStats, FrameReceiver};
use crate::kernel::{self, ErrorWatch, Interface, Mapping};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Chunks of frame memory, and entries of the rings: a chunk always has room.
const CHUNKS: u32 = 4096;
/// Maximum number of frames per `recv`.
const BATCH_FRAMES: u32 = 256;

/// Receives frames to the test ports by AF_XDP; all other frames go to the stack.
#[derive(Debug)]
pub struct XdpReceiver {
    received: Ring<libc::xdp_desc>,
    free: Ring<u64>,
    frames: Mapping,
    chunk_bytes: usize,
    errors: ErrorWatch,
    socket: OwnedFd,
    mode: XdpMode,
    /// The program remains attached while one of its receivers is open.
    _redirect: Arc<XdpRedirect>,
}

impl XdpReceiver {
    /// Opens the first queues of the interface, one for each thread.
    ///
    /// # Errors
    /// The kernel's error: EPERM, EBUSY when the interface has a program or the queue a socket,
    /// ERANGE when its MTU is too long for the driver.
    pub(in crate::frame) fn open(
        interface: &Interface,
        attach: XdpAttach,
        max_frame_bytes: usize,
        wanted: &OpenFrames<'_>,
    ) -> io::Result<Vec<Self>> {
        let queues = wanted.threads as u32;
        let redirect = Arc::new(XdpRedirect::attach(
            interface.index,
            attach,
            queues,
            wanted,
        )?);
        let chunk_bytes = (max_frame_bytes + HEADROOM_BYTES)
            .next_power_of_two()
            .max(2048);
        let open = |queue| {
            let receiver = zero_copy_or_copy(|memory| {
                let chunks = (chunk_bytes, memory);
                Self::open_queue(interface, queue, chunks, attach, &redirect)
            })?;
            redirect.set(queue, &receiver.socket)?;
            Ok(receiver)
        };
        (0..queues).map(open).collect()
    }

    fn open_queue(
        interface: &Interface,
        queue: u32,
        (chunk_bytes, memory): (usize, XdpMemory),
        attach: XdpAttach,
        redirect: &Arc<XdpRedirect>,
    ) -> io::Result<Self> {
        let frames = Mapping::anonymous(CHUNKS as usize * chunk_bytes)?;
        let socket = socket(&frames, chunk_bytes, 0)?;
        let mut free = Ring::new(&socket, Which::Fill, CHUNKS)?;
        let _completion: Ring<u64> = Ring::new(&socket, Which::Completion, 1)?;
        let received = Ring::new(&socket, Which::Receive, CHUNKS)?;
        for chunk in 0..CHUNKS {
            free.write(chunk, u64::from(chunk) * chunk_bytes as u64);
        }
        free.submit(CHUNKS);
        // Without XDP_USE_NEED_WAKEUP a driver looks for free chunks by itself.
        bind(&socket, interface, queue, memory, 0)?;
        Ok(Self {
            received,
            free,
            frames,
            chunk_bytes,
            errors: ErrorWatch::default(),
            mode: XdpMode {
                attach: Some(attach),
                memory: memory_of(&socket)?,
            },
            socket,
            _redirect: Arc::clone(redirect),
        })
    }

    /// How it receives.
    #[must_use]
    pub const fn mode(&self) -> XdpMode {
        self.mode
    }
}

impl FrameReceiver for XdpReceiver {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        let count = self.received.produced().min(BATCH_FRAMES);
        if count == 0 {
            return Err(self.errors.empty(&self.socket));
        }
        for nth in 0..count {
            let frame = self.received.read(nth);
            let (start, bytes) = (frame.addr as usize, frame.len as usize);
            let pointer = self.frames.at(start, bytes);
            // SAFETY: within the frame memory; the chunk is ours until it goes to the fill ring;
            // `&mut self` makes the slice the only one.
            read(unsafe { std::slice::from_raw_parts_mut(pointer, bytes) });
            // The address points behind the headroom; the fill ring takes chunks.
            let chunk = start - start % self.chunk_bytes;
            self.free.write(nth, chunk as u64);
        }
        self.received.release(count);
        self.free.submit(count);
        Ok(count as usize)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.errors.note_wait();
        Some(self.socket.as_fd())
    }

    fn stats(&self) -> FramePortStats {
        let stats: io::Result<libc::xdp_statistics> =
            kernel::option(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS);
        // It cannot fail on this kind of socket.
        let lost = stats.map_or(0, |stats| stats.rx_dropped + stats.rx_ring_full);
        FramePortStats {
            receive_dropped: lost,
            ..FramePortStats::default()
        }
    }
}
