//! Captures a sample of the frames that leave by an interface: the kernel's queue is short on
//! purpose.

use crate::frame::{FramePortStats, FrameReceiver};
use crate::kernel::{self, ErrorWatch, Interface, filter_step};
use crate::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use wire::checksum;
use wire::ethernet::EthernetView;
use wire::segment::{Segmenter, complete_checksum};
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};

/// Limit of the queue as the kernel counts it: some tens of frames. A frame for a full queue costs
/// its sender almost nothing, since it is not copied.
const QUEUE_BYTES: libc::c_int = 64 << 10;
/// Maximum number of frames per `recv`.
const BATCH_FRAMES: usize = 128;

/// Captures frames that leave by an interface, from any sender, as they would be on the wire: of a
/// super-packet the first frame, and checksums complete.
///
/// The record is incomplete: between reads only the first few frames are kept. Frames sent by a
/// [`PacketSender`] or AF_XDP are missing, as both pass theirs to the driver behind the kernel's
/// capture point.
///
/// [`PacketSender`]: super::PacketSender
#[derive(Debug)]
pub struct OutgoingReceiver {
    socket: OwnedFd,
    buffer: Box<[u8]>,
    errors: ErrorWatch,
}

impl OutgoingReceiver {
    /// Opens the interface for capturing.
    ///
    /// # Errors
    /// The kernel's error: EPERM without CAP_NET_RAW.
    pub(in crate::frame) fn open(interface: &Interface) -> io::Result<Self> {
        // Protocol 0: no frames arrive before it is bound.
        let socket = kernel::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        kernel::set_option(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        kernel::set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &QUEUE_BYTES)?;
        attach_filter(&socket)?;
        kernel::bind_packet(&socket, interface, libc::ETH_P_ALL)?;
        kernel::pending_error(&socket)?;
        Ok(Self {
            socket,
            buffer: vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES].into_boxed_slice(),
            errors: ErrorWatch::default(),
        })
    }

    /// Reads one frame with its virtio header and returns its length, or `None` when none waits.
    fn read(&mut self) -> io::Result<Option<usize>> {
        // SAFETY: the buffer outlives the call, and its length is given.
        let bytes = unsafe {
            libc::recv(
                self.socket.as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        if let Ok(bytes) = usize::try_from(bytes) {
            return Ok(Some(bytes));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(None),
            // A frame that a virtio header cannot describe.
            Some(libc::EINVAL) => Ok(Some(0)),
            _ => Err(error),
        }
    }
}

/// Accepts outgoing frames only: `return pkttype == PACKET_OUTGOING ? whole frame : nothing`.
fn attach_filter(socket: &OwnedFd) -> io::Result<()> {
    let packet_type = (libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE).cast_unsigned();
    let outgoing = u32::from(libc::PACKET_OUTGOING);
    let filter = [
        filter_step(
            libc::BPF_LD | libc::BPF_B | libc::BPF_ABS,
            0,
            0,
            packet_type,
        ),
        filter_step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, outgoing),
        filter_step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        filter_step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    kernel::attach_filter(socket, filter)
}

/// The first wire frame of a captured frame behind its virtio header; `None` when it is none.
fn first_on_the_wire(captured: &mut [u8]) -> Option<&mut [u8]> {
    let (header, frame) = captured.split_first_chunk_mut::<VNET_HEADER_BYTES>()?;
    let vnet = VnetHeader::parse(header)?;
    if vnet.gso == Gso::None {
        complete_checksum(&vnet, frame, checksum::portable).ok()?;
        return Some(frame);
    }
    let link_bytes = EthernetView::parse(frame)?.header_bytes;
    let mut segmenter = Segmenter::with_link(&vnet, frame, link_bytes).ok()?;
    let first = segmenter.next(frame, checksum::portable)?;
    frame.get_mut(first)
}

impl FrameReceiver for OutgoingReceiver {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        let mut frames = 0;
        for _ in 0..BATCH_FRAMES {
            let Some(bytes) = self.read()? else { break };
            if let Some(frame) = first_on_the_wire(&mut self.buffer[..bytes]) {
                read(frame);
                frames += 1;
            }
        }
        match frames {
            0 => Err(self.errors.empty(&self.socket)),
            _ => Ok(frames),
        }
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.errors.note_wait();
        Some(self.socket.as_fd())
    }

    /// No counts: a frame that the sample misses is not lost.
    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}
