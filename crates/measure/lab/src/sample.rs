//! The watch on a link: what kind of frames it carries, and whether any shows the stations' data in
//! clear.
//!
//! A sample looks at whole frames, super-packets of 64 KB included, in both directions, for the
//! time of one request, and keeps none. A [`Watch`] goes on over a whole trial, and sees only what
//! does not belong on the cipher link.

mod classify;
mod filter;
mod forms;
mod socket;
mod watch;

pub(crate) use watch::Watch;

use crate::protocol::{ControlPort, SealedPort};
use classify::{Classifier, Kind};
use journal::record::CipherLink;
use memchr::memmem::Finder;
use socket::PacketSocket;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// The longest frame: a super-packet of 64 KB with its Ethernet header and a VLAN tag.
const FRAME_BYTES_MAX: usize = 65_536 + 18;

/// Different SPIs, or what other forms have for them, that are listed; a link with more is not one
/// of ours.
const SPIS_MAX: usize = 256;

/// What belongs between the gateways, beside ARP and neighbour discovery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    /// What the DUT sealed, and a key exchange that shares its ports.
    pub(crate) sealed: &'a [SealedPort],
    /// TCP of the DUT's own.
    pub(crate) control: &'a [ControlPort],
}

/// Looks at up to `frames` frames on an interface, for up to `limit`.
///
/// # Errors
/// When the interface does not exist or the kernel refuses a packet socket.
pub(crate) fn sample(
    interface: &str,
    frames: u32,
    limit: Duration,
    marker: &[u8],
    expected: Expected<'_>,
) -> io::Result<CipherLink> {
    let deadline = Instant::now() + limit;
    let socket = PacketSocket::open(interface)?;
    let mut tally = Tally::new(marker, expected);
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    while tally.link.frames < u64::from(frames) {
        let left = deadline.saturating_duration_since(Instant::now());
        match socket.receive(&mut buffer, left)? {
            Some(bytes) => tally.count(&buffer[..bytes]),
            None => break,
        }
    }
    Ok(tally.finish())
}

/// What finds the marker in a frame; an empty marker, which would be found everywhere, never is.
fn finder(marker: &[u8]) -> Option<Finder<'_>> {
    (!marker.is_empty()).then(|| Finder::new(marker))
}

struct Tally<'a> {
    link: CipherLink,
    classifier: Classifier<'a>,
    marker: Option<Finder<'a>>,
    spis: BTreeSet<u32>,
}

impl<'a> Tally<'a> {
    fn new(marker: &'a [u8], expected: Expected<'a>) -> Self {
        Self {
            link: CipherLink::default(),
            classifier: Classifier::new(expected),
            marker: finder(marker),
            spis: BTreeSet::new(),
        }
    }

    fn count(&mut self, frame: &[u8]) {
        self.link.frames += 1;
        match self.classifier.kind(frame) {
            Kind::Sealed { id } => {
                self.link.esp_frames += 1;
                if let Some(spi) = id.filter(|_| self.spis.len() < SPIS_MAX) {
                    self.spis.insert(spi);
                }
            }
            Kind::Channel => self.link.channel_frames += 1,
            Kind::Control => {}
            Kind::Other => self.link.other_frames += 1,
        }
        if self
            .marker
            .as_ref()
            .is_some_and(|marker| marker.find(frame).is_some())
        {
            self.link.marker_frames += 1;
        }
    }

    fn finish(mut self) -> CipherLink {
        self.link.spis = self.spis.iter().map(|spi| format!("{spi:08x}")).collect();
        self.link
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classify::tests::{GATEWAYS, channel, segment};

    const NOTHING: Expected<'_> = Expected {
        sealed: &[],
        control: &[],
    };

    #[test]
    fn a_channel_is_counted_apart_and_its_marker_all_the_same() {
        let control = [channel()];
        let expected = Expected {
            control: &control,
            ..NOTHING
        };
        let mut tally = Tally::new(b"MARK", expected);
        tally.count(&segment(GATEWAYS, (40_000, 4500), b"hello"));
        tally.count(&segment(GATEWAYS, (40_000, 4500), b"xxMARKxx"));
        tally.count(&segment(GATEWAYS, (40_000, 5201), b"hello"));
        let link = tally.finish();
        assert_eq!((link.frames, link.channel_frames), (3, 2));
        assert_eq!((link.other_frames, link.marker_frames), (1, 1));
    }

    #[test]
    fn a_marker_is_counted_whatever_the_kind_of_frame_that_shows_it() {
        let mut tally = Tally::new(b"MARK", NOTHING);
        let mut esp = classify::tests::ipv4(50, &[0, 0, 1, 2, 0, 0, 0, 1]);
        tally.count(&esp);
        esp.extend_from_slice(b"xxMARKxx");
        tally.count(&esp);
        tally.count(b"xxMARK");
        let link = tally.finish();
        assert_eq!(
            (
                link.frames,
                link.esp_frames,
                link.marker_frames,
                link.other_frames
            ),
            (3, 2, 2, 1)
        );
        assert_eq!(link.spis, ["00000102"]);
    }

    #[test]
    fn an_empty_marker_is_never_seen() {
        let mut tally = Tally::new(b"", NOTHING);
        tally.count(b"anything");
        assert_eq!(tally.finish().marker_frames, 0);
    }
}
