//! The watch over a whole trial: a packet socket with a filter that passes only frames that do not
//! belong on the cipher link.
//!
//! The kernel counts foreign frames and keeps the first ones up to the size of the socket's buffer;
//! it counts the others without copying. So a link costs one run of the filter per frame, whether
//! it is clean or entirely foreign. A watch can be read at its end, or between trials while it
//! continues.

use super::classify::{self, Classifier, Kind};
use super::expected::Expected;
use super::filter;
use crate::packet_socket::{BytesFilter, FRAME_BYTES_MAX, PacketSocket};
use journal::record::CipherWatch;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use std::io;
use std::time::Duration;
use testbed::protocol::{ControlPort, SealedPort};

/// Room for the first dozens of foreign frames; the kernel doubles it.
const BUFFER_BYTES: usize = 128 << 10;

/// More than the buffer holds even of the smallest frames; later frames are not awaited.
const FRAMES_MAX: usize = 1024;

/// Most control ports of a DUT: the filter tests them with short jumps.
const CONTROL_PORTS_MAX: usize = 8;

/// An active watch.
pub(crate) struct Watch {
    socket: PacketSocket,
    interface: String,
    /// The interface's index: a later interface with the same name is not watched.
    index: u32,
    sealed: Vec<SealedPort>,
    control: Vec<ControlPort>,
    markers: Vec<Vec<u8>>,
    /// The socket's filter, for frames without their VLAN tags.
    untagged: BytesFilter,
}

impl Watch {
    /// Starts to watch received frames of an interface, and sent frames unless `received_only`.
    /// With `inside`, sealed packets that show a marker are foreign too.
    ///
    /// # Errors
    /// If the interface does not exist, the kernel refuses a packet socket, or there are more than
    /// about a thousand UDP ports or more than eight TCP ports.
    pub(crate) fn start(
        (interface, received_only): (&str, bool),
        expected: Expected<'_>,
        inside: bool,
    ) -> io::Result<Self> {
        if expected.control.len() > CONTROL_PORTS_MAX {
            let what = format!("more than {CONTROL_PORTS_MAX} control ports");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        // Also kept for `read`: it runs once more there, on frames without their VLAN tags.
        let program = filter::foreign_only(expected, inside);
        // Before the socket is bound: `read` notices an interface that is replaced in between.
        let index = if_nametoindex(interface)?;
        let socket = PacketSocket::open_filtered(interface, received_only, &program, BUFFER_BYTES)?;
        Ok(Self {
            socket,
            interface: interface.to_owned(),
            index,
            sealed: expected.sealed.to_vec(),
            control: expected.control.to_vec(),
            markers: expected.markers.to_vec(),
            untagged: BytesFilter::new(&program)?,
        })
    }

    /// Ends the watch and returns the foreign frames.
    ///
    /// # Errors
    /// If the interface went down or vanished meanwhile, which leaves a gap in the watch.
    pub(crate) fn end(self) -> io::Result<CipherWatch> {
        let watch = self.read()?;
        if watch.interrupted {
            Err(Errno::ENETDOWN.into())
        } else {
            Ok(watch)
        }
    }

    /// Returns the foreign frames since the start or the last reading. An interface that is down
    /// passes no frames; the kernel resumes the watch when it comes up again.
    ///
    /// # Errors
    /// If the interface vanished, which ends the watch.
    pub(crate) fn read(&self) -> io::Result<CipherWatch> {
        // Taken before frames are read: a pending error would fail the first `receive`.
        let interrupted = self.socket.take_error()?.is_some();
        if if_nametoindex(self.interface.as_str()) != Ok(self.index) {
            let what = format!("`{}` is not the interface that it was", self.interface);
            return Err(io::Error::other(what));
        }
        let mut watch = CipherWatch {
            foreign_frames: self.socket.frames()?,
            interrupted,
            ..CipherWatch::default()
        };
        // Anew for each reading: fragments of an earlier trial must not explain frames of this one.
        let mut classifier = Classifier::new(Expected {
            sealed: &self.sealed,
            control: &self.control,
            markers: &self.markers,
        });
        let mut buffer = vec![0; FRAME_BYTES_MAX];
        let looked_at = watch.foreign_frames.min(FRAMES_MAX as u64);
        for _ in 0..looked_at {
            let Some(bytes) = self.socket.receive(&mut buffer, Duration::ZERO)? else {
                break;
            };
            let frame = &buffer[..bytes];
            watch.foreign_bytes += bytes as u64;
            // At any offset of the frame, unlike in the filter, which looks at few.
            watch.marker_frames += u64::from(classifier.shows_marker(frame));
            let reason = Reason::of(classifier.kind(frame), self.untagged.passes(frame)?);
            watch.clear_sealed_frames += u64::from(reason == Reason::ClearTextInside);
            let example = classify::words(frame) + reason.words();
            if watch.examples.len() < CipherWatch::EXAMPLES_MAX
                && !watch.examples.contains(&example)
            {
                watch.examples.push(example);
            }
        }
        Ok(watch)
    }
}

/// Why the filter passed a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// Its form.
    Form,
    /// It has the device's form, and the stations' data inside.
    ClearTextInside,
    /// A VLAN tag, which the kernel has removed from the frame.
    VlanTag,
}

impl Reason {
    /// `is_foreign` is the filter's verdict without the tag, the only metadata that it reads.
    fn of(kind: Kind, is_foreign: bool) -> Self {
        match kind {
            _ if !is_foreign => Self::VlanTag,
            Kind::Sealed { .. } => Self::ClearTextInside,
            _ => Self::Form,
        }
    }

    /// The end of an example.
    const fn words(self) -> &'static str {
        match self {
            Self::Form => "",
            Self::ClearTextInside => ", with clear text inside",
            Self::VlanTag => ", with a VLAN tag",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::{ipv4, sealed, udp};

    const PORTS: [SealedPort; 1] = [SealedPort::esp(4500)];

    #[test]
    fn the_reason_is_only_what_was_seen() {
        let markers = [b"0123456789".to_vec()];
        let expected = Expected {
            markers: &markers,
            ..sealed(&PORTS)
        };
        let untagged = BytesFilter::new(&filter::foreign_only(expected, true)).unwrap();
        let reason = |frame: &[u8]| {
            let kind = Classifier::new(expected).kind(frame);
            Reason::of(kind, untagged.passes(frame).unwrap())
        };
        let esp = [&[0, 0, 1, 2, 0, 0, 0, 1][..], &[0xa5; 400]].concat();
        let clear = [&esp[..8], &b"0123456789".repeat(40)].concat();
        // The kernel passes frames that it expects only if they have a tag.
        assert_eq!(reason(&ipv4(50, &esp)), Reason::VlanTag);
        assert_eq!(reason(&udp(4500, 4500, &esp)), Reason::VlanTag);
        assert_eq!(reason(&ipv4(50, &clear)), Reason::ClearTextInside);
        assert_eq!(reason(&udp(4500, 4500, &clear)), Reason::ClearTextInside);
        assert_eq!(reason(&ipv4(6, &clear)), Reason::Form);
        // ESP over IPv6, which no device here sends.
        let mut over_ipv6 = vec![0; 14 + 40];
        over_ipv6[12..14].copy_from_slice(&[0x86, 0xdd]);
        over_ipv6[20] = 50;
        over_ipv6.extend(&esp);
        assert_eq!(reason(&over_ipv6), Reason::Form);
    }
}
