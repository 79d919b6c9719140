//! Trains to and from the kernel: one message each, many in a system call.

use super::UdpLane;
use super::control::{Ancillary, Control};
use crate::{Batch, TRAIN_BYTES_MAX, TRAINS_MAX, Train, kernel};
use arrayvec::ArrayVec;
use std::io;
use std::mem::zeroed;

/// Messages per system call.
const MESSAGES_MAX: usize = TRAINS_MAX;

/// A message of one part of a buffer and the first `length` bytes of a control block, without a
/// name. It points to both.
#[inline]
pub(super) fn message(
    vector: &mut libc::iovec,
    control: &mut Control,
    length: usize,
) -> libc::mmsghdr {
    // SAFETY: all-zero is a valid value of this plain C structure.
    let mut message: libc::mmsghdr = unsafe { zeroed() };
    let header = &mut message.msg_hdr;
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    if length > 0 {
        header.msg_control = control.bytes.as_mut_ptr().cast();
        header.msg_controllen = length;
    }
    message
}

impl UdpLane {
    /// Sends each train as one message; returns how many messages were sent.
    pub(super) fn send_messages(&self, buffer: &[u8], trains: &[Train]) -> io::Result<usize> {
        let trains = &trains[..trains.len().min(MESSAGES_MAX)];
        let mut vectors: ArrayVec<libc::iovec, MESSAGES_MAX> = ArrayVec::new();
        let mut controls: ArrayVec<Control, MESSAGES_MAX> = ArrayVec::new();
        for train in trains {
            let bytes = &buffer[train.start..train.start + train.bytes];
            vectors.push(libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            });
            controls.push(self.control(train));
        }
        let mut messages: ArrayVec<libc::mmsghdr, MESSAGES_MAX> = ArrayVec::new();
        for ((vector, control), train) in vectors.iter_mut().zip(&mut controls).zip(trains) {
            let used = control.used;
            let mut message = message(vector, control, used);
            let header = &mut message.msg_hdr;
            if self.peers.len() > 1 {
                let name = &self.peers[usize::from(train.peer)].name;
                header.msg_name = name.as_ptr().cast_mut().cast();
                header.msg_namelen = name.len();
            }
            messages.push(message);
        }
        // SAFETY: each message points to a vector, a control block and a name that outlive the
        // call; the vectors point into `buffer`. The kernel only reads buffer, block and name.
        unsafe { kernel::send_messages(&self.socket, &mut messages) }
    }

    /// The metadata that the kernel needs for a train.
    #[inline]
    fn control(&self, train: &Train) -> Control {
        let mut control = Control::EMPTY;
        if train.bytes > train.datagram_bytes {
            let size = train.datagram_bytes as u16;
            control.put(libc::SOL_UDP, libc::UDP_SEGMENT, size.to_ne_bytes());
        }
        if train.tos != 0 {
            let tos = libc::c_int::from(train.tos).to_ne_bytes();
            // By the family of the destination, which on a dual-stack socket is not the socket's.
            if self.peers[usize::from(train.peer)].address.is_ipv4() {
                control.put(libc::IPPROTO_IP, libc::IP_TOS, tos);
            } else {
                control.put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, tos);
            }
        }
        control
    }

    /// Receives trains, one per message.
    pub(super) fn receive_messages(&self, batch: &mut Batch) -> io::Result<()> {
        batch.trains.clear();
        let mut vectors: ArrayVec<libc::iovec, MESSAGES_MAX> = batch
            .buffer
            .chunks_exact_mut(TRAIN_BYTES_MAX)
            .take(MESSAGES_MAX)
            .map(|buffer| libc::iovec {
                iov_base: buffer.as_mut_ptr().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        let mut controls: ArrayVec<Control, MESSAGES_MAX> =
            vectors.iter().map(|_| Control::EMPTY).collect();
        let mut messages: ArrayVec<libc::mmsghdr, MESSAGES_MAX> = ArrayVec::new();
        for (vector, control) in vectors.iter_mut().zip(&mut controls) {
            let length = control.bytes.len();
            messages.push(message(vector, control, length));
        }
        // SAFETY: each message points to a vector and a control block that outlive the call, and
        // each vector to a buffer of that length without other references.
        let count = unsafe { kernel::receive_messages(&self.socket, &mut messages) }?;
        let received = messages[..count].iter().zip(&controls);
        for (at, (message, control)) in received.enumerate() {
            let bytes = message.msg_len as usize;
            let used = message.msg_hdr.msg_controllen.min(control.bytes.len());
            let ancillary = Ancillary::parse(&control.bytes[..used]);
            batch.trains.push(Train {
                start: at * TRAIN_BYTES_MAX,
                bytes,
                datagram_bytes: ancillary.datagram_bytes.map_or(bytes, usize::from),
                tos: ancillary.tos,
                ..Train::default()
            });
        }
        Ok(())
    }
}
