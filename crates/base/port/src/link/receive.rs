//! Frames from the kernel by a ring of shared slots (TPACKET_V2), each delivered as it arrives.
//!
//! A frame longer than a slot, such as a super-packet, waits in the socket's queue; its slot is
//! marked.

use crate::arrivals::Arrivals;
use crate::kernel::{self, Interface, Mapping};
use crate::vlan::{self, TAG_BYTES};
use crate::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use wire::vnet::{NEEDS_CSUM, VNET_HEADER_BYTES};

/// Size of the whole ring: thousands of frames of an ordinary link.
const RING_BYTES: usize = 8 << 20;
/// With long frames the ring still has this many slots: 10 ms of 200 000 small frames/s.
const SLOTS_MIN: usize = 2048;
/// But not more memory.
const RING_BYTES_MAX: usize = 32 << 20;
/// The kernel allocates memory in pieces of this size.
const BLOCK_BYTES: usize = 64 << 10;
/// More than the kernel's header in a slot and its gap before the frame.
const SLOT_HEADER_BYTES: usize = 128;
/// Ethernet header with two tags.
const LINK_HEADER_BYTES: usize = 14 + 2 * TAG_BYTES;
/// Free bytes in front of the virtio header, for a VLAN tag.
const HEADROOM_BYTES: usize = 16;

#[derive(Debug)]
pub(super) struct Receiver {
    ring: Mapping,
    slot_bytes: usize,
    slots: usize,
    next: usize,
    /// The slot that is lent, to be returned to the kernel.
    lent: Option<usize>,
    /// Buffer for frames longer than a slot.
    long: Box<[u8]>,
    /// Frames lost so far: no slot was free, or truncated because the socket's queue was full.
    missed: u64,
    /// A slot has reported losses since the kernel's count was last read.
    losing: bool,
    /// Converts the frames' arrival times, if requested.
    arrivals: Option<Arrivals>,
    /// Whether the ring was empty since the clocks were last read.
    was_empty: bool,
}

/// A received frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    /// Offset of its virtio header in the ring; `None` if it is in `long`.
    start: Option<usize>,
    /// Length with virtio header, without the tag.
    bytes: usize,
    tag: Option<[u8; TAG_BYTES]>,
    /// When the kernel received it, by CLOCK_REALTIME.
    came_ns: i64,
}

impl Receiver {
    /// Creates the ring; must be called before the socket is bound.
    pub(super) fn new(socket: &OwnedFd, interface: &Interface) -> io::Result<Self> {
        let set = |option, value: libc::c_int| {
            kernel::set_option(socket, libc::SOL_PACKET, option, &value)
        };
        set(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as libc::c_int,
        )?;
        // A tag is restored by moving the header forward into this room; the payload stays.
        set(libc::PACKET_RESERVE, HEADROOM_BYTES as libc::c_int)?;
        // Has the kernel queue a copy of a frame that is longer than its slot. By default it
        // would only be cut.
        set(libc::PACKET_COPY_THRESH, 1)?;
        let whole = SLOT_HEADER_BYTES + interface.mtu + LINK_HEADER_BYTES + CLEAR_ROOM_BYTES;
        let slot_bytes = whole.next_power_of_two().min(BLOCK_BYTES);
        let ring_bytes = (SLOTS_MIN * slot_bytes).clamp(RING_BYTES, RING_BYTES_MAX);
        let slots = ring_bytes / slot_bytes;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as libc::c_uint,
            tp_block_nr: (ring_bytes / BLOCK_BYTES) as libc::c_uint,
            tp_frame_size: slot_bytes as libc::c_uint,
            tp_frame_nr: slots as libc::c_uint,
        };
        kernel::set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let long = TAG_BYTES + CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES;
        Ok(Self {
            ring: Mapping::of_socket(socket, ring_bytes, 0)?,
            slot_bytes,
            slots,
            next: 0,
            lent: None,
            long: vec![0; long].into_boxed_slice(),
            missed: 0,
            losing: false,
            arrivals: None,
            was_empty: true,
        })
    }

    /// The status word of a slot, which is its owner.
    #[inline]
    fn status(&self, slot: usize) -> &AtomicU32 {
        // SAFETY: `at` checks the bounds; slots are aligned to their size; the kernel writes this
        // word atomically.
        unsafe { AtomicU32::from_ptr(self.ring.at(slot * self.slot_bytes, 4).cast()) }
    }

    /// Returns the lent slot to the kernel.
    #[inline]
    fn give_back(&mut self) {
        if let Some(slot) = self.lent.take() {
            self.status(slot)
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
    }

    /// The next frame; `None` if no frame waits. The slot lent before returns to the kernel.
    #[inline]
    pub(super) fn next(&mut self, socket: &OwnedFd) -> io::Result<Option<Received>> {
        loop {
            self.give_back();
            let status = self.status(self.next).load(Ordering::Acquire);
            // Acquire: the frame and its header are written before the status.
            if status & libc::TP_STATUS_USER == 0 {
                self.was_empty = true;
                self.count_losses(socket);
                return Ok(None);
            }
            self.losing |= status & libc::TP_STATUS_LOSING != 0;
            let offset = self.next * self.slot_bytes;
            // SAFETY: `at` checks the bounds; the kernel does not write to a slot that is ours; any
            // bytes are a value.
            let header = unsafe {
                self.ring
                    .at(offset, size_of::<libc::tpacket2_hdr>())
                    .cast::<libc::tpacket2_hdr>()
                    .read()
            };
            self.lent = Some(self.next);
            self.next = (self.next + 1) % self.slots;
            if self.next == 0 {
                // Once per round: under overload every slot reports losses.
                self.count_losses(socket);
                self.was_empty = true;
            }
            let came_ns = i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec);
            let tag = vlan::tag(status, header.tp_vlan_tci, header.tp_vlan_tpid);
            if status & libc::TP_STATUS_COPY != 0 {
                let Some(bytes) = self.take_long(socket)? else {
                    self.missed += 1;
                    continue;
                };
                return Ok(Some(Received {
                    start: None,
                    bytes,
                    tag,
                    came_ns,
                }));
            }
            let bytes = VNET_HEADER_BYTES + header.tp_snaplen as usize;
            let start = usize::from(header.tp_mac) - VNET_HEADER_BYTES;
            let fits = start + bytes + CLEAR_ROOM_BYTES <= self.slot_bytes;
            if header.tp_snaplen == header.tp_len && fits {
                return Ok(Some(Received {
                    start: Some(offset + start),
                    bytes,
                    tag,
                    came_ns,
                }));
            }
            self.missed += 1;
        }
    }

    /// Reads a frame from the socket's queue; returns its length, or `None` when it is too long or
    /// cannot be described.
    fn take_long(&mut self, socket: &OwnedFd) -> io::Result<Option<usize>> {
        let buffer = &mut self.long[TAG_BYTES..TAG_BYTES + CLEAR_BUFFER_BYTES];
        // SAFETY: the buffer outlives the call, and its length is given.
        let bytes = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                // The call returns the whole length even if not all of it fits.
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        let Ok(bytes) = usize::try_from(bytes) else {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EINVAL | libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        };
        Ok((bytes <= buffer.len()).then_some(bytes))
    }

    /// The frame behind its virtio header, with its VLAN tag restored, and its length.
    #[inline]
    pub(super) fn lend(&mut self, received: Received) -> (&mut [u8], usize) {
        let Received {
            start, bytes, tag, ..
        } = received;
        // Starts at the room for a tag.
        let slot = match start {
            None => &mut self.long[..],
            Some(start) => {
                let start = start - TAG_BYTES;
                let end = start - start % self.slot_bytes + self.slot_bytes;
                let pointer = self.ring.at(start, end - start);
                // SAFETY: within one slot, which is ours until `give_back`; `&mut self` makes the
                // slice the only one.
                unsafe { std::slice::from_raw_parts_mut(pointer, end - start) }
            }
        };
        // The kernel also marks the checksums that it has verified.
        slot[TAG_BYTES] &= NEEDS_CSUM;
        let Some(tag) = tag else {
            return (&mut slot[TAG_BYTES..], bytes);
        };
        vlan::insert(slot, tag);
        (slot, bytes + TAG_BYTES)
    }

    /// Reads the kernel's count of losses if there were any; the kernel then resets it.
    #[inline]
    fn count_losses(&mut self, socket: &OwnedFd) {
        if std::mem::take(&mut self.losing) {
            let stats: io::Result<libc::tpacket_stats> =
                kernel::option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
            // It cannot fail on a packet socket.
            self.missed += stats.map_or(0, |stats| u64::from(stats.tp_drops));
        }
    }

    /// Has frames' times of arrival converted from now on.
    pub(super) fn keep_times(&mut self) {
        self.arrivals = Some(Arrivals::new());
    }

    /// When a frame arrived, by CLOCK_MONOTONIC. Clocks are read once for frames that came without
    /// a pause.
    pub(super) fn arrived_ns(&mut self, received: &Received) -> Option<u64> {
        let arrivals = self.arrivals.as_mut()?;
        if std::mem::take(&mut self.was_empty) {
            arrivals.update();
        }
        arrivals.monotonic_ns(received.came_ns)
    }

    /// Frames lost so far, by the kernel or here. The kernel's losses are counted once a later
    /// frame has arrived.
    pub(super) const fn missed(&self) -> u64 {
        self.missed
    }
}
