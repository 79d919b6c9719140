//! The watch on a link: the kinds of its frames, and whether any shows the stations' data in clear.
//!
//! A sample inspects whole frames, including super-packets of 64 KB, in both directions, during one
//! request. It keeps no frame except a few sealed packets on request ([`packets`]). A [`Watch`]
//! lasts a whole trial and sees only frames that do not belong on the cipher link.

mod classify;
mod contents;
mod expected;
pub(crate) mod filter;
mod forms;
mod packets;
mod watch;

pub(crate) use expected::Expected;
pub(crate) use watch::Watch;

use crate::packet_socket::{FRAME_BYTES_MAX, PacketSocket};
use classify::{Classifier, Kind};
use contents::contents_of;
use journal::record::CipherLink;
use packets::PacketTap;
use plan::Dscp;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};
use testbed::protocol::Sample;
use wire::ecn;
use wire::ethernet::{HEADER_BYTES, IPV4, IPV6};
use wire::headers::be16;
use wire::overhead::IPV4_HEADER_BYTES;

/// Most SPIs, or equivalents in other forms, that are listed; no link of this lab has more.
const SPIS_MAX: usize = 256;

/// The extent of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// Most frames to inspect.
    pub(crate) frames: u32,
    /// Most whole sealed packets to return.
    pub(crate) packets: u32,
    /// Whether to inspect the contents of sealed packets.
    pub(crate) contents: bool,
    /// Whether to leave out frames that the interface sends.
    pub(crate) received_only: bool,
}

/// Inspects frames on an interface, for up to `limit`.
///
/// # Errors
/// If the interface does not exist or the kernel refuses a packet socket.
pub(crate) fn sample(
    interface: &str,
    wanted: Wanted,
    limit: Duration,
    expected: Expected<'_>,
) -> io::Result<Sample> {
    let deadline = Instant::now() + limit;
    // Opened first, so that it misses no frame that the other socket receives.
    let tap = (wanted.packets > 0 || wanted.contents)
        .then(|| PacketTap::open(interface))
        .transpose()?;
    let socket = PacketSocket::open(interface, false, wanted.received_only)?;
    let mut tally = Tally::new(expected);
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    while tally.link.frames < u64::from(wanted.frames) {
        // A link without traffic ends the sample at its limit, with fewer frames.
        let left = deadline.saturating_duration_since(Instant::now());
        match socket.receive(&mut buffer, left)? {
            Some(bytes) => tally.count(&buffer[..bytes]),
            None => break,
        }
    }
    let link = tally.finish();
    let Some(tap) = tap else {
        return Ok(Sample {
            link,
            ..Sample::default()
        });
    };
    let taken = tap.take(expected, wanted.frames, link.esp_frames > 0)?;
    Ok(Sample {
        link,
        contents: wanted.contents.then(|| contents_of(&taken.packets)),
        not_whole: taken.not_whole,
        packets: taken.at_most(wanted.packets),
    })
}

struct Tally<'a> {
    link: CipherLink,
    classifier: Classifier<'a>,
    spis: BTreeSet<u32>,
}

impl<'a> Tally<'a> {
    fn new(expected: Expected<'a>) -> Self {
        Self {
            link: CipherLink::default(),
            classifier: Classifier::new(expected),
            spis: BTreeSet::new(),
        }
    }

    fn count(&mut self, frame: &[u8]) {
        self.link.frames += 1;
        match self.classifier.kind(frame) {
            Kind::Sealed { id } => {
                self.link.esp_frames += 1;
                self.count_class(frame);
                if let Some(spi) = id.filter(|_| self.spis.len() < SPIS_MAX) {
                    self.spis.insert(spi);
                }
            }
            Kind::Channel => self.link.channel_frames += 1,
            Kind::Control => {}
            Kind::Other => {
                self.link.other_frames += 1;
                self.count_class(frame);
            }
        }
        self.link.marker_frames += u64::from(self.classifier.shows_marker(frame));
    }

    /// Counts the class of service of the outermost IP header, if there is one.
    fn count_class(&mut self, frame: &[u8]) {
        let Some((ethernet, packet)) = frame.split_at_checked(HEADER_BYTES) else {
            return;
        };
        let is_ip = matches!(be16(ethernet, 12), IPV4 | IPV6);
        // The shortest header with addresses is IPv4's.
        if is_ip && packet.len() >= IPV4_HEADER_BYTES {
            let name = Dscp::name_of(ecn::tos(packet) >> 2);
            *self.link.dscp.entry(name).or_default() += 1;
        }
    }

    fn finish(mut self) -> CipherLink {
        self.link.spis = self.spis.iter().map(|spi| format!("{spi:08x}")).collect();
        self.link
    }
}

#[cfg(test)]
mod tests;
