//! Sending by UDP sockets, one per source address and port.

use super::BATCH_FRAMES;
use super::headers::Datagram;
use crate::frame::{FRAME_SLOT_BYTES, FramePortStats, FrameSender};
use crate::kernel::{self, Interface};
use crate::wait::wait_writable;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::HashMap;
use std::io;
use std::mem::zeroed;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// Maximum number of sockets: source addresses and ports of one sender.
const SOCKETS_MAX: usize = 4096;
/// Send buffer requested from the kernel for each socket, in bytes; it may grant less.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// Longest wait of `flush` for room before the remaining frames count as lost.
const FLUSH_WAIT: Duration = Duration::from_secs(1);

/// Sends the payload of frames by sockets bound to their sources.
#[derive(Debug)]
pub struct SocketSender {
    interface: String,
    sockets: Vec<Socket>,
    by_source: HashMap<SocketAddr, usize>,
    slots: Box<[u8]>,
    /// Frames of the batch, grouped by socket, in order.
    batch: Vec<Outgoing>,
    /// Frames of the batch that are sent or lost.
    done: usize,
    stats: FramePortStats,
}

#[derive(Debug)]
struct Outgoing {
    socket: usize,
    slot: usize,
    start: usize,
    bytes: usize,
    target: SockAddr,
}

impl SocketSender {
    pub(in crate::frame) fn open(interface: &Interface) -> Self {
        Self {
            interface: interface.name.clone(),
            sockets: Vec::new(),
            by_source: HashMap::new(),
            slots: vec![0; BATCH_FRAMES * FRAME_SLOT_BYTES].into_boxed_slice(),
            batch: Vec::with_capacity(BATCH_FRAMES),
            done: 0,
            stats: FramePortStats::default(),
        }
    }

    /// The socket of a source, opened when it is first used.
    fn socket(&mut self, source: SocketAddr) -> io::Result<usize> {
        if let Some(socket) = self.by_source.get(&source) {
            return Ok(*socket);
        }
        let refused = |error: String| {
            io::Error::other(format!(
                "cannot send from {source} by a socket on `{}`: {error}",
                self.interface
            ))
        };
        if self.sockets.len() == SOCKETS_MAX {
            return Err(refused(format!(
                "{SOCKETS_MAX} sources are in use; choose fewer flows or another port"
            )));
        }
        let socket = open(&self.interface, source).map_err(|error| {
            refused(format!(
                "{error}; the address must be the interface's and the port free"
            ))
        })?;
        self.sockets.push(socket);
        self.by_source.insert(source, self.sockets.len() - 1);
        Ok(self.sockets.len() - 1)
    }

    /// Fills up to `count` slots and sorts them by socket.
    fn fill(&mut self, count: usize, fill: &mut impl FnMut(&mut [u8]) -> usize) -> io::Result<()> {
        self.batch.clear();
        self.done = 0;
        for slot in 0..count {
            let bytes = &mut self.slots[slot * FRAME_SLOT_BYTES..][..FRAME_SLOT_BYTES];
            let length = fill(bytes).min(FRAME_SLOT_BYTES);
            let Some(datagram) = Datagram::parse(&bytes[..length]) else {
                self.stats.send_failed += 1;
                continue;
            };
            let socket = self.socket(datagram.source)?;
            self.batch.push(Outgoing {
                socket,
                slot,
                start: slot * FRAME_SLOT_BYTES + datagram.payload.start,
                bytes: datagram.payload.len(),
                target: datagram.target.into(),
            });
        }
        self.batch
            // One call per socket sends a whole run. Frames of one flow share a socket and keep
            // their order.
            .sort_unstable_by_key(|frame| (frame.socket, frame.slot));
        Ok(())
    }

    /// Sends waiting frames; returns the socket without room, if there is one.
    fn push(&mut self) -> io::Result<Option<usize>> {
        while let Some(first) = self.batch.get(self.done) {
            let socket = first.socket;
            let same = |frame: &&Outgoing| frame.socket == socket;
            let run = self.batch[self.done..].iter().take_while(same).count();
            let frames = &self.batch[self.done..self.done + run];
            match send_run(&self.sockets[socket], &self.slots, frames) {
                Ok(sent) => {
                    self.stats.sent += sent as u64;
                    self.done += sent;
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(Some(socket)),
                    Some(libc::EINTR) => {}
                    Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => {
                        self.lose(self.batch.len() - self.done);
                        return Err(error);
                    }
                    // This one was refused: too long, no route, no buffer.
                    _ => self.lose(1),
                },
            }
        }
        Ok(None)
    }

    fn lose(&mut self, count: usize) {
        self.stats.send_failed += count as u64;
        self.done += count;
    }
}

fn open(interface: &str, source: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(source),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_nonblocking(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    // Frames are never fragmented: don't fragment, for any MTU that a router reports.
    let (level, option, probe) = if source.is_ipv4() {
        (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
        )
    } else {
        (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        )
    };
    kernel::set_option(&socket, level, option, &probe)?;
    if source.is_ipv6() {
        // The frames have no flow label; the kernel would choose one.
        kernel::set_option(&socket, level, libc::IPV6_AUTOFLOWLABEL, &0)?;
    }
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&source.into())?;
    Ok(socket)
}

/// Sends frames of one socket in one call; returns how many it took.
fn send_run(socket: &Socket, slots: &[u8], frames: &[Outgoing]) -> io::Result<usize> {
    // SAFETY: all-zero is a valid value of these plain C structures.
    let (mut messages, mut vectors): ([libc::mmsghdr; BATCH_FRAMES], [libc::iovec; BATCH_FRAMES]) =
        unsafe { (zeroed(), zeroed()) };
    for ((message, vector), frame) in messages.iter_mut().zip(&mut vectors).zip(frames) {
        let payload = &slots[frame.start..frame.start + frame.bytes];
        vector.iov_base = payload.as_ptr().cast_mut().cast();
        vector.iov_len = payload.len();
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        message.msg_hdr.msg_name = frame.target.as_ptr().cast_mut().cast();
        message.msg_hdr.msg_namelen = frame.target.len();
    }
    // SAFETY: the first `frames.len()` messages (at most a batch) point to vectors, addresses and
    // payload that outlive the call and that the kernel only reads.
    unsafe { kernel::send_messages(socket, &mut messages[..frames.len()]) }
}

impl FrameSender for SocketSender {
    fn send(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        let mut filled = 0;
        while self.push()?.is_none() && filled < count {
            let batch = (count - filled).min(BATCH_FRAMES);
            self.fill(batch, &mut fill)?;
            filled += batch;
        }
        Ok(filled)
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(socket) = self.push()? {
            if !wait_writable(self.sockets[socket].as_fd(), FLUSH_WAIT) {
                self.lose(self.batch.len() - self.done);
            }
        }
        Ok(())
    }

    fn stats(&self) -> FramePortStats {
        self.stats
    }
}
