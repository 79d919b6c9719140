//! Sending by AF_XDP.

use super::ring::{Ring, Which};
use super::{SEND_BYTES_MAX, bind, memory_of, socket, zero_copy_or_copy};
use crate::frame::xdp_mode::{XdpMemory, XdpMode};
use crate::frame::{FRAME_SLOT_BYTES, FramePortStats, FrameSender};
use crate::kernel::{self, Interface, Mapping};
use crate::wait::wait_writable;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

/// Slots, and entries of the rings: a slot always has room. 5 MB are locked, which an unprivileged
/// user may.
const SLOTS: u32 = 512;
/// Distance between slots that the kernel copies from: an odd number of cache lines, so that the
/// first lines of slots share no cache set.
const COPY_STRIDE_BYTES: usize = FRAME_SLOT_BYTES + 64;
/// Distance between slots that a device reads: whole pages, since it reads a frame from one page.
const ZERO_COPY_STRIDE_BYTES: usize = FRAME_SLOT_BYTES.next_multiple_of(SEND_BYTES_MAX);
/// Frames passed to the kernel at a time.
const BATCH_FRAMES: usize = 64;
/// `XDP_MAX_TX_SKB_BUDGET` of linux/if_xdp.h: frames sent per call, 32 before it was an option.
const MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// Send buffer requested from the kernel, in bytes: all slots as the kernel counts them.
const SEND_BUFFER_BYTES: libc::c_int = 16 << 20;
/// The shortest frame: an Ethernet header.
const SEND_BYTES_MIN: usize = 14;
/// Longest wait of `flush` before frames that have not left count as lost.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

/// Sends frames of up to a page by AF_XDP.
#[derive(Debug)]
pub struct XdpSender {
    sending: Ring<libc::xdp_desc>,
    completed: Ring<u64>,
    frames: Mapping,
    memory: XdpMemory,
    /// Addresses of free slots, the most recently used on top.
    free: Vec<u64>,
    socket: OwnedFd,
    /// Completed frames: sent, or dropped by the driver.
    completed_count: u64,
    /// Of these, frames that the driver dropped.
    dropped_count: u64,
    /// Frames that the kernel cannot accept.
    refused_count: u64,
    /// Frames that a `flush` abandoned.
    overdue_count: u64,
}

impl XdpSender {
    /// Opens one queue of the interface for sending.
    ///
    /// # Errors
    /// The kernel's error: EPERM, EBUSY when another socket has the queue, EINVAL for a missing
    /// queue.
    pub(in crate::frame) fn open(interface: &Interface, queue: u32) -> io::Result<Self> {
        zero_copy_or_copy(|memory| Self::open_with(interface, queue, memory))
    }

    fn open_with(interface: &Interface, queue: u32, memory: XdpMemory) -> io::Result<Self> {
        let (stride_bytes, placed) = match memory {
            XdpMemory::ZeroCopy => (ZERO_COPY_STRIDE_BYTES, 0),
            // Slots begin anywhere in the kernel's chunks.
            XdpMemory::Copy => (COPY_STRIDE_BYTES, libc::XDP_UMEM_UNALIGNED_CHUNK_FLAG),
        };
        let frames = Mapping::anonymous(SLOTS as usize * stride_bytes)?;
        let socket = socket(&frames, SEND_BYTES_MAX, placed)?;
        let sending = Ring::new(&socket, Which::Send, SLOTS)?;
        let completed = Ring::new(&socket, Which::Completion, SLOTS)?;
        // Required for binding, though nothing is received.
        let _fill: Ring<u64> = Ring::new(&socket, Which::Fill, 1)?;
        // Older kernels lack this option, and send 32 frames per call.
        let _ = kernel::set_option(
            &socket,
            libc::SOL_XDP,
            MAX_TX_SKB_BUDGET,
            &(BATCH_FRAMES as u32),
        );
        kernel::set_send_buffer(&socket, SEND_BUFFER_BYTES)?;
        let flags = libc::XDP_USE_NEED_WAKEUP;
        bind(&socket, interface, queue, memory, flags)?;
        Ok(Self {
            sending,
            completed,
            frames,
            memory: memory_of(&socket)?,
            free: (0..u64::from(SLOTS))
                .map(|slot| slot * stride_bytes as u64)
                .collect(),
            socket,
            completed_count: 0,
            dropped_count: 0,
            refused_count: 0,
            overdue_count: 0,
        })
    }

    /// How it sends.
    #[must_use]
    pub const fn mode(&self) -> XdpMode {
        XdpMode {
            attach: None,
            memory: self.memory,
        }
    }

    /// Takes back the slots of frames that have left.
    fn reclaim(&mut self) {
        let count = self.completed.produced();
        for nth in 0..count {
            self.free.push(self.completed.read(nth));
        }
        self.completed.release(count);
        self.completed_count += u64::from(count);
        // A frame that a `flush` gave up and that leaves later is not lost.
        self.overdue_count = self.overdue_count.saturating_sub(count.into());
    }

    /// Fills up to `count` free slots and passes them to the kernel's ring; returns their number.
    fn fill(&mut self, count: usize, fill: &mut impl FnMut(&mut [u8]) -> usize) -> usize {
        let count = count.min(self.free.len());
        let mut submitted = 0;
        for _ in 0..count {
            let Some(address) = self.free.pop() else {
                break;
            };
            let start = self.frames.at(address as usize, FRAME_SLOT_BYTES);
            // SAFETY: within the frame memory; the slot is free, so neither the kernel nor another
            // slice uses it.
            let slot = unsafe { std::slice::from_raw_parts_mut(start, FRAME_SLOT_BYTES) };
            let bytes = fill(slot);
            if (SEND_BYTES_MIN..=SEND_BYTES_MAX).contains(&bytes) {
                let frame = libc::xdp_desc {
                    addr: address,
                    len: bytes as u32,
                    options: 0,
                };
                self.sending.write(submitted, frame);
                submitted += 1;
            } else {
                self.free.push(address);
                self.refused_count += 1;
            }
        }
        self.sending.submit(submitted);
        count
    }

    /// Makes the kernel send the frames in its ring; returns whether none is left.
    fn kick(&mut self) -> io::Result<bool> {
        while self.sending.unconsumed() > 0 {
            // SAFETY: no data and no address: the kernel takes frames from the ring.
            let result = kernel::check(unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    ptr::null(),
                    0,
                ) as libc::c_int
            });
            let Err(error) = result else {
                match self.memory {
                    XdpMemory::Copy => continue,
                    // The device takes them when it can.
                    XdpMemory::ZeroCopy => return Ok(self.sending.unconsumed() == 0),
                }
            };
            match error.raw_os_error() {
                // The driver dropped one, which still completes.
                Some(libc::EBUSY) => self.dropped_count += 1,
                Some(libc::EINTR) => {}
                // It stopped at the end of its budget, or no buffer is free.
                Some(libc::EAGAIN | libc::ENOBUFS) => return Ok(false),
                _ => return Err(error),
            }
        }
        Ok(true)
    }
}

impl FrameSender for XdpSender {
    fn send(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        let mut filled = 0;
        while filled < count {
            self.reclaim();
            let batch = self.fill((count - filled).min(BATCH_FRAMES), &mut fill);
            filled += batch;
            if !self.kick()? || batch == 0 {
                break;
            }
        }
        Ok(filled)
    }

    fn flush(&mut self) -> io::Result<()> {
        let until = Instant::now() + FLUSH_WAIT;
        loop {
            // Kicked again and again: in copy mode the kernel sends only during the call.
            let handed_over = self.kick()?;
            self.reclaim();
            let left = SLOTS as usize - self.free.len();
            if left == 0 {
                return Ok(());
            }
            if Instant::now() > until {
                self.overdue_count = left as u64;
                return Ok(());
            }
            if handed_over {
                thread::yield_now();
            } else {
                wait_writable(self.socket.as_fd(), Duration::from_millis(1));
            }
        }
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats {
            sent: self.completed_count.saturating_sub(self.dropped_count),
            send_failed: self.dropped_count + self.refused_count + self.overdue_count,
            receive_dropped: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};

    /// The request itself fails, and not something before it: the loopback device has no zero-copy.
    #[test]
    fn zero_copy_is_requested_and_copies_replace_it() {
        let test = || {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                eprintln!("SKIPPED: no network namespace here ({error}): run as root");
                return;
            }
            let interface = Interface::find("lo").unwrap();
            let refused = XdpSender::open_with(&interface, 0, XdpMemory::ZeroCopy).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP), "{refused}");
            let port = XdpSender::open(&interface, 0).unwrap();
            assert_eq!(port.mode().memory, XdpMemory::Copy);
        };
        thread::spawn(test).join().unwrap();
    }
}
