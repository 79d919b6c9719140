//! Netlink (netlink(7)): a routing socket, its messages and their attributes.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    setsockopt, socket, sockopt,
};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// More than the kernel puts into one reply or report.
pub(super) const MESSAGES_BYTES: usize = 128 << 10;
/// Room for unread reports.
const BUFFER_BYTES: usize = 1 << 20;
/// Time limit for an answer; the kernel answers immediately.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// `struct nlmsghdr`, and the alignment of messages and attributes.
const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
const ALIGNMENT: usize = 4;
/// Flags of an attribute's type: nested, and in network byte order.
const TYPE_MASK: u16 = 0x3fff;

/// A socket of `NETLINK_ROUTE`.
pub(super) struct RouteSocket(OwnedFd);

impl RouteSocket {
    /// Opens a socket as a member of these groups (`RTMGRP_*`, one bit per group, from group 1).
    pub(super) fn open(groups: u32) -> io::Result<Self> {
        let fd = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        setsockopt(&fd, sockopt::RcvBuf, &BUFFER_BYTES)?;
        // With the number 0 the kernel assigns an unused one to the socket.
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
        Ok(Self(fd))
    }

    /// Receives messages. `ENOBUFS` means that the kernel discarded some for lack of space.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> nix::Result<usize> {
        loop {
            // Readers wait by poll, some of them for other descriptors too.
            match recv(self.0.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EINTR) => {}
                other => return other,
            }
        }
    }

    /// Returns all objects of a kind: `request` is `RTM_GET*`, `body` the structure of its family.
    pub(super) fn dump(&self, request: u16, body: &[u8]) -> io::Result<Vec<Message>> {
        let length = HEADER_BYTES + body.len();
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend((length as u32).to_ne_bytes());
        bytes.extend(request.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        // Sequence number and sender stay 0, because the socket has one request at a time.
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(body);
        send(self.0.as_raw_fd(), &bytes, MsgFlags::empty())?;
        let mut buffer = vec![0; MESSAGES_BYTES];
        let mut found = Vec::new();
        loop {
            self.await_readable()?;
            let length = self.receive(&mut buffer)?;
            for message in messages(&buffer[..length]) {
                match i32::from(message.kind) {
                    libc::NLMSG_DONE => return Ok(found),
                    libc::NLMSG_ERROR => {
                        let code = message.body.first_chunk().copied().map(i32::from_ne_bytes);
                        // The kernel reports errors as negative numbers.
                        let code = code.unwrap_or(0).saturating_neg();
                        return Err(io::Error::from_raw_os_error(code));
                    }
                    _ => found.push(message),
                }
            }
        }
    }

    fn await_readable(&self) -> io::Result<()> {
        let timeout = PollTimeout::try_from(ANSWER_LIMIT).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        loop {
            match poll(&mut fds, timeout) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
        }
    }
}

impl AsFd for RouteSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// `RTM_*`, or `NLMSG_*`.
    pub(super) kind: u16,
    /// The message after its header.
    pub(super) body: Vec<u8>,
}

/// Splits received bytes into messages; stops at an incomplete message.
pub(super) fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut found = Vec::new();
    while let Some(header) = bytes.first_chunk::<HEADER_BYTES>() {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        // A length below that of the header gives a range that does not exist, and ends the loop
        // too.
        let Some(body) = bytes.get(HEADER_BYTES..length) else {
            break;
        };
        found.push(Message {
            kind: u16::from_ne_bytes([header[4], header[5]]),
            body: body.to_vec(),
        });
        // The last message may lack its padding.
        let next = length.next_multiple_of(ALIGNMENT).min(bytes.len());
        bytes = &bytes[next..];
    }
    found
}

/// Returns the attributes of a message after the `family_bytes` of its family's structure, or the
/// attributes nested in another one: type and value, in order.
pub(super) fn attributes(body: &[u8], family_bytes: usize) -> Vec<(u16, &[u8])> {
    let mut bytes = body.get(family_bytes..).unwrap_or_default();
    let mut found = Vec::new();
    while let Some(header) = bytes.first_chunk::<ATTRIBUTE_HEADER_BYTES>() {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let Some(value) = bytes.get(ATTRIBUTE_HEADER_BYTES..length) else {
            break;
        };
        let kind = u16::from_ne_bytes([header[2], header[3]]) & TYPE_MASK;
        found.push((kind, value));
        let next = length.next_multiple_of(ALIGNMENT).min(bytes.len());
        bytes = &bytes[next..];
    }
    found
}

/// The first 32-bit number of a value.
pub(super) fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_ne_bytes)
}

/// A text that ends at a zero byte.
pub(super) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&value[..end.unwrap_or(value.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = (ATTRIBUTE_HEADER_BYTES + value.len()) as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    #[test]
    fn messages_and_attributes_are_split_at_their_alignment() {
        let body = [
            vec![7; 8],
            attribute(3, b"w0\0"),
            attribute(4 | 0x8000, &1500_u32.to_ne_bytes()),
        ]
        .concat();
        let mut bytes = ((HEADER_BYTES + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(16_u16.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(&body);
        let twice = [&bytes[..], &bytes, &bytes[..20]].concat();
        let found = messages(&twice);
        assert_eq!(found.len(), 2, "the third is cut off");
        assert_eq!((found[1].kind, &found[1].body), (16, &body));
        let attributes = attributes(&found[0].body, 8);
        assert_eq!(attributes.len(), 2);
        assert_eq!(
            (attributes[0].0, text(attributes[0].1)),
            (3, "w0".to_owned())
        );
        assert_eq!((attributes[1].0, number(attributes[1].1)), (4, Some(1500)));
    }

    #[test]
    fn lengths_that_cannot_be_end_the_list() {
        assert_eq!(messages(&[0; 64]), []);
        assert_eq!(messages(&[0xff; 64]), []);
        assert_eq!(attributes(&[0; 64], 8), []);
        assert_eq!(attributes(&[0xff; 64], 100), []);
    }
}
