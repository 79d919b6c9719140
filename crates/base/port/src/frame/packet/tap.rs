//! Copies of the frames of an interface, for a capture: the traffic itself is left alone.

use super::blocks::{BLOCK_BYTES, BlockRing, Noted};
use crate::frame::FramePortStats;
use crate::kernel::{self, Interface, filter_step};
use crate::vlan::{self, ADDRESSES_BYTES, TAG_BYTES};
use crate::wait_readable;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Size of the ring. A frame that does not fit costs its sender almost nothing, since it is not
/// copied.
const RING_BYTES: usize = 16 << 20;

/// The selection of frames that a [`Tap`] copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapSettings<'a> {
    /// Interface name.
    pub interface: &'a str,
    /// Bytes of each frame that are copied, at most.
    pub snap_bytes: u32,
    /// One frame in this many is copied, at random; 1: every frame.
    pub one_in: u32,
}

/// A copied frame.
#[derive(Debug, Clone, Copy)]
pub struct TapFrame<'a> {
    /// Arrival by CLOCK_REALTIME, in nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Its first bytes, from the Ethernet header; with the VLAN tag that the kernel removed.
    pub bytes: &'a [u8],
    /// Its length, without FCS; for a super-packet, the length of all of its packets.
    pub whole_bytes: u32,
    /// Whether the interface sent it.
    pub is_outgoing: bool,
}

/// An open tap on an interface: copies received and sent frames, except frames sent past its queue
/// (`PACKET_QDISC_BYPASS`, AF_XDP), which the kernel does not show.
#[derive(Debug)]
pub struct Tap {
    ring: BlockRing,
    /// Room for a frame with a VLAN tag.
    tagged: Vec<u8>,
}

impl Tap {
    /// Opens a tap: frames are copied from here on.
    ///
    /// # Errors
    /// The kernel's error: ENODEV, EPERM without CAP_NET_RAW, ENOMEM.
    pub fn open(settings: TapSettings<'_>) -> io::Result<Self> {
        let interface = Interface::find(settings.interface)?;
        let socket = kernel::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        attach_filter(&socket, settings)?;
        let ring = BlockRing::new(socket, RING_BYTES / BLOCK_BYTES)?;
        kernel::bind_packet(&ring.socket, &interface, libc::ETH_P_ALL)?;
        kernel::pending_error(&ring.socket)?;
        Ok(Self {
            ring,
            tagged: Vec::new(),
        })
    }

    /// Passes on copied frames, waiting for them up to `limit`. Returns the number of frames.
    ///
    /// # Errors
    /// ENETDOWN once after the interface went down; the tap continues when it comes up again.
    pub fn read(
        &mut self,
        limit: Duration,
        mut read: impl FnMut(TapFrame<'_>),
    ) -> io::Result<usize> {
        if !self.ring.is_ready() {
            wait_readable(&[self.ring.readable()], Some(limit))?;
        }
        let tagged = &mut self.tagged;
        let frames = self.ring.read(|frame, noted| {
            let (tci, tpid) = noted.vlan;
            let (bytes, whole_bytes) = match vlan::tag(noted.status, tci, tpid) {
                Some(tag) if frame.len() >= ADDRESSES_BYTES => {
                    let (addresses, rest) = frame.split_at(ADDRESSES_BYTES);
                    tagged.clear();
                    [addresses, &tag, rest]
                        .iter()
                        .for_each(|part| tagged.extend_from_slice(part));
                    (&tagged[..], noted.whole_bytes + TAG_BYTES as u32)
                }
                _ => (&*frame, noted.whole_bytes),
            };
            let Noted {
                came_ns,
                is_outgoing,
                ..
            } = noted;
            read(TapFrame {
                at_unix_ns: u64::try_from(came_ns).unwrap_or(0),
                bytes,
                whole_bytes,
                is_outgoing,
            });
        });
        match frames {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            frames => frames,
        }
    }

    /// Selected frames that were not copied because the ring was full, so far.
    #[must_use]
    pub fn stats(&self) -> FramePortStats {
        self.ring.stats()
    }
}

/// Selects frames in the kernel, before any copy: one in `one_in` at random, cut to `snap_bytes`.
fn attach_filter(socket: &OwnedFd, settings: TapSettings<'_>) -> io::Result<()> {
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM).cast_unsigned();
    let one_in = settings.one_in.max(1);
    let filter = [
        filter_step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, random),
        filter_step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, 0, 0, one_in),
        filter_step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, 0),
        filter_step(libc::BPF_RET | libc::BPF_K, 0, 0, settings.snap_bytes),
        filter_step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    kernel::attach_filter(socket, filter)
}
