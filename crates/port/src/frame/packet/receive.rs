//! Receiving by a ring of slots in memory shared with the kernel (TPACKET_V2).
//!
//! Each slot is handed over by itself the moment that its frame is there. The later format (TPACKET_V3) hands
//! over blocks, when full or when a timer of a millisecond or more runs out: that would be the latency measured.

use super::bind;
use crate::frame::kernel::{self, Interface, Mapping};
use crate::frame::{FRAME_SLOT_BYTES, FramePortStats, FrameReceiver};
use std::cell::Cell;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Size of the whole ring.
const RING_BYTES: usize = 64 << 20;
/// Size of the blocks that the kernel allocates the ring in; a multiple of every slot size.
const BLOCK_BYTES: usize = 64 << 10;
/// What the kernel puts in front of a frame in its slot: headers, alignment.
const SLOT_HEADER_BYTES: usize = libc::TPACKET2_HDRLEN + 32;
/// Frames that one `recv` hands out at most.
const BATCH_FRAMES: usize = 256;

/// Receives frames by AF_PACKET: all that come in by the interface, none that go out.
#[derive(Debug)]
pub struct PacketReceiver {
    ring: Mapping,
    slot_bytes: usize,
    slots: usize,
    next: usize,
    /// Frames lost so far; the kernel forgets its count when it is read.
    dropped: Cell<u64>,
    socket: OwnedFd,
}

impl PacketReceiver {
    /// Opens the interface for receiving frames of up to `max_frame_bytes`, by `threads` receivers among which
    /// flows are divided by a hash of their addresses and ports.
    ///
    /// # Errors
    /// What the kernel says: EPERM without CAP_NET_RAW, ENOMEM.
    pub(in crate::frame) fn open(
        interface: &Interface,
        max_frame_bytes: usize,
        threads: usize,
    ) -> io::Result<Vec<Self>> {
        let mut receivers = Vec::with_capacity(threads);
        let mut group = None;
        for _ in 0..threads {
            let receiver = Self::open_one(interface, max_frame_bytes, RING_BYTES / threads)?;
            if threads > 1 {
                group = Some(receiver.join(group)?);
            }
            receivers.push(receiver);
        }
        Ok(receivers)
    }

    fn open_one(
        interface: &Interface,
        max_frame_bytes: usize,
        ring_bytes: usize,
    ) -> io::Result<Self> {
        let slot_bytes =
            (max_frame_bytes.min(FRAME_SLOT_BYTES) + SLOT_HEADER_BYTES).next_power_of_two();
        let blocks = ring_bytes / BLOCK_BYTES;
        let slots = blocks * (BLOCK_BYTES / slot_bytes);
        let socket = kernel::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let set = |option, value: libc::c_int| {
            kernel::set_option(&socket, libc::SOL_PACKET, option, &value)
        };
        set(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as _,
        )?;
        set(libc::PACKET_IGNORE_OUTGOING, 1)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as libc::c_uint,
            tp_block_nr: blocks as libc::c_uint,
            tp_frame_size: slot_bytes as libc::c_uint,
            tp_frame_nr: slots as libc::c_uint,
        };
        kernel::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let ring = Mapping::of_socket(&socket, blocks * BLOCK_BYTES, 0)?;
        bind(&socket, interface, libc::ETH_P_ALL)?;
        kernel::pending_error(&socket)?;
        Ok(Self {
            ring,
            slot_bytes,
            slots,
            next: 0,
            dropped: Cell::new(0),
            socket,
        })
    }

    /// Joins a group of receivers, or founds one; its number.
    fn join(&self, group: Option<u16>) -> io::Result<u16> {
        let ours = match group {
            Some(group) => libc::c_uint::from(group),
            None => libc::PACKET_FANOUT_FLAG_UNIQUEID << 16,
        };
        let kind = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        let value = (ours | kind << 16) as libc::c_int;
        kernel::set_option(&self.socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &value)?;
        let joined: libc::c_int =
            kernel::option(&self.socket, libc::SOL_PACKET, libc::PACKET_FANOUT)?;
        Ok(joined as u16)
    }

    /// The status word of the next slot: whose it is.
    #[inline]
    fn status(&self) -> &AtomicU32 {
        let offset = self.next * self.slot_bytes + offset_of!(libc::tpacket2_hdr, tp_status);
        // SAFETY: `at` checks the bounds; slots are aligned to 16; the kernel writes this word atomically.
        unsafe { AtomicU32::from_ptr(self.ring.at(offset).cast()) }
    }

    /// The frame in the next slot, which must be ours.
    #[inline]
    fn frame(&mut self) -> &mut [u8] {
        let start = self.next * self.slot_bytes;
        // SAFETY: the header is within the ring (`at`) and ours until the status says otherwise.
        let header = unsafe { self.ring.at(start).cast::<libc::tpacket2_hdr>().read() };
        let offset = usize::from(header.tp_mac);
        let bytes = (header.tp_snaplen as usize).min(self.slot_bytes - offset);
        // SAFETY: the bytes are within this slot, and ours as the header is; `&mut self` makes the slice the only one.
        unsafe { std::slice::from_raw_parts_mut(self.ring.at(start + offset), bytes) }
    }
}

impl FrameReceiver for PacketReceiver {
    #[inline]
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        for count in 0..BATCH_FRAMES {
            if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                if count > 0 {
                    return Ok(count);
                }
                kernel::pending_error(&self.socket)?;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            read(self.frame());
            self.status()
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next += 1;
            if self.next == self.slots {
                self.next = 0;
            }
        }
        Ok(BATCH_FRAMES)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn stats(&self) -> FramePortStats {
        let stats: io::Result<libc::tpacket_stats> =
            kernel::option(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        // It cannot fail on a packet socket.
        let new = stats.map_or(0, |stats| u64::from(stats.tp_drops));
        self.dropped.set(self.dropped.get() + new);
        FramePortStats {
            receive_dropped: self.dropped.get(),
            ..FramePortStats::default()
        }
    }
}
