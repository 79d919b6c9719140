//! Control messages of a datagram (RFC 3542 §20, cmsg(3)): written and read as bytes.
//!
//! A block is a sequence of messages, each a header (length with header, level, type), data, and
//! padding to the size of a machine word. No pointers are followed, so any bytes can be parsed.

use std::mem::size_of;

/// Length of a message's header in bytes.
const HEADER_BYTES: usize = size_of::<usize>() + 2 * size_of::<libc::c_int>();
/// Room for all messages of a lane.
pub(crate) const CONTROL_BYTES: usize = 96;

const _: () = assert!(HEADER_BYTES == size_of::<libc::cmsghdr>());

/// A control block under construction, or to be filled by the kernel.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    pub(crate) bytes: [u8; CONTROL_BYTES],
    pub(crate) used: usize,
}

impl Control {
    /// A block without messages.
    pub(crate) const EMPTY: Self = Self {
        bytes: [0; CONTROL_BYTES],
        used: 0,
    };

    /// Adds a message.
    ///
    /// # Panics
    /// When the block is full; the writer knows its messages.
    #[inline]
    pub(crate) fn put<const N: usize>(
        &mut self,
        level: libc::c_int,
        kind: libc::c_int,
        data: [u8; N],
    ) {
        let message = &mut self.bytes[self.used..][..padded(HEADER_BYTES + N)];
        let (header, rest) = message.split_at_mut(HEADER_BYTES);
        let (length, header) = header.split_at_mut(size_of::<usize>());
        length.copy_from_slice(&(HEADER_BYTES + N).to_ne_bytes());
        let (to_level, to_kind) = header.split_at_mut(size_of::<libc::c_int>());
        to_level.copy_from_slice(&level.to_ne_bytes());
        to_kind.copy_from_slice(&kind.to_ne_bytes());
        rest[..N].copy_from_slice(&data);
        self.used += padded(HEADER_BYTES + N);
    }
}

/// The messages of a control block, in order: level, type, data.
///
/// Ends at the first incomplete message.
#[inline]
pub(crate) fn messages(block: &[u8]) -> impl Iterator<Item = (libc::c_int, libc::c_int, &[u8])> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let (length, header) = rest.split_first_chunk()?;
        let (level, header) = header.split_first_chunk()?;
        let (kind, _) = header.split_first_chunk()?;
        let length = usize::from_ne_bytes(*length);
        let data = rest.get(HEADER_BYTES..length)?;
        // The padding of the last may be missing. No overflow: `length` is within the block.
        rest = rest.get(padded(length)..).unwrap_or_default();
        let int = libc::c_int::from_ne_bytes;
        Some((int(*level), int(*kind), data))
    })
}

/// The kernel's metadata of a received train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ancillary {
    /// Length of each datagram but the last (`UDP_GRO`), if there are several.
    pub datagram_bytes: Option<u16>,
    /// DSCP and ECN of the outer header (`IP_TOS`, `IPV6_TCLASS`); 0 if missing.
    pub tos: u8,
}

impl Ancillary {
    /// Parses a control block; safe on any bytes; unknown messages are skipped.
    #[inline]
    #[must_use]
    pub fn parse(block: &[u8]) -> Self {
        let mut found = Self::default();
        for (level, kind, data) in messages(block) {
            match (level, kind) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let size = int(data).and_then(|size| u16::try_from(size).ok());
                    found.datagram_bytes = size.filter(|size| *size > 0);
                }
                // One byte, unlike all the others.
                (libc::IPPROTO_IP, libc::IP_TOS) => found.tos = data.first().copied().unwrap_or(0),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    found.tos = int(data).map_or(0, |class| class as u8);
                }
                _ => {}
            }
        }
        found
    }
}

/// The time in a message, in nanoseconds; `None` for other messages.
pub(crate) fn time_ns(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Option<i64> {
    if (level, kind) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    let (seconds, rest) = data.split_first_chunk()?;
    let nanoseconds = rest.first_chunk()?;
    Some(i64::from_ne_bytes(*seconds) * 1_000_000_000 + i64::from_ne_bytes(*nanoseconds))
}

fn int(data: &[u8]) -> Option<libc::c_int> {
    data.first_chunk()
        .map(|int| libc::c_int::from_ne_bytes(*int))
}

const fn padded(length: usize) -> usize {
    length.next_multiple_of(size_of::<usize>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_messages_are_read_by_us_and_by_the_c_library() {
        let mut control = Control::EMPTY;
        control.put(libc::SOL_UDP, libc::UDP_GRO, 1400i32.to_ne_bytes());
        control.put(libc::IPPROTO_IP, libc::IP_TOS, [0xb9]);
        let block = &control.bytes[..control.used];
        let expected = Ancillary {
            datagram_bytes: Some(1400),
            tos: 0xb9,
        };
        assert_eq!(Ancillary::parse(block), expected);
        // SAFETY: all-zero is a valid value of this plain C structure.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.bytes.as_mut_ptr().cast();
        header.msg_controllen = control.used;
        // SAFETY: the header points to a block of that length, which is aligned and outlives the
        // loop.
        let kinds = unsafe {
            let first = libc::CMSG_FIRSTHDR(&raw const header);
            let second = libc::CMSG_NXTHDR(&raw const header, first);
            assert!(libc::CMSG_NXTHDR(&raw const header, second).is_null());
            [(*first).cmsg_type, (*second).cmsg_type]
        };
        assert_eq!(kinds, [libc::UDP_GRO, libc::IP_TOS]);
    }

    #[test]
    fn no_block_of_any_length_is_read_beyond_its_end() {
        let mut control = Control::EMPTY;
        control.put(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 7i32.to_ne_bytes());
        control.put(libc::SOL_UDP, libc::UDP_GRO, 9i32.to_ne_bytes());
        let whole = (0..=control.used).map(|end| Ancillary::parse(&control.bytes[..end]));
        let gro: Vec<_> = whole.map(|found| found.datagram_bytes).collect();
        let second = padded(HEADER_BYTES + 4);
        assert!(gro[..second + HEADER_BYTES + 4].iter().all(Option::is_none));
        assert_eq!(gro[second + HEADER_BYTES + 4], Some(9));
        for length in [
            0,
            1,
            HEADER_BYTES - 1,
            HEADER_BYTES,
            97,
            usize::MAX - 3,
            usize::MAX,
        ] {
            control.bytes[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(
                Ancillary::parse(&control.bytes).datagram_bytes,
                None,
                "{length}"
            );
        }
    }

    #[test]
    fn impossible_sizes_are_ignored() {
        for size in [0, -1, 65_536, libc::c_int::MIN] {
            let mut control = Control::EMPTY;
            control.put(libc::SOL_UDP, libc::UDP_GRO, size.to_ne_bytes());
            assert_eq!(
                Ancillary::parse(&control.bytes).datagram_bytes,
                None,
                "{size}"
            );
        }
    }
}
