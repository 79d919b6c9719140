//! Whether packets that left a host are encrypted, from their bytes.
//!
//! The payloads are one mark, repeated. So readable packets show the mark, packets without a fresh
//! nonce are equal to each other, and the output of a cipher is uniform. A conclusion needs 90 % of
//! the sent packets, with the right lengths; otherwise the answer is unknown.

use crate::findings::{Seal, Unsealed};
use memchr::memmem::Finder;
use std::collections::BTreeMap;
use wire::headers::be16;

/// Length of the mark.
pub(crate) const MARK_BYTES: usize = 16;

/// Most bytes that a tunnel adds to a packet, the Ethernet header included.
const ADDED_BYTES_MAX: u32 = 220;
/// Ciphers pad packets up to this length.
const PADDING_BYTES: u32 = 16;
/// The least share of the packets that must be found, in per cent.
const FOUND_PERCENT: u32 = 90;
/// Bytes that are equal at one place of two packets, in per cent: of two encrypted ones 0.4.
const EQUAL_PERCENT_MAX: usize = 5;
/// Pearson's statistic of uniform bytes has the mean 255 and the standard deviation 22.6; this is
/// 10 of them above.
const CHI_SQUARE_MAX: f64 = 481.0;

/// A frame that left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// Its length on the interface.
    pub(crate) whole_bytes: u32,
    /// Its beginning.
    pub(crate) bytes: Vec<u8>,
}

/// The frames during one burst of marked packets.
#[derive(Debug, Clone)]
pub(crate) struct Burst {
    /// Length of the marked IP packets.
    pub(crate) inner_bytes: u32,
    /// Bytes at their end that are the same in each.
    pub(crate) same_bytes: usize,
    pub(crate) frames: Vec<Left>,
}

/// What left an interface.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    pub(crate) interface: String,
    /// Two, of different lengths.
    pub(crate) bursts: Vec<Burst>,
}

/// Looks at the frames of all interfaces. `sent` packets were sent in each burst. `None`: they were
/// not found.
pub(crate) fn look(watched: &[Watched], mark: &[u8; MARK_BYTES], sent: u32) -> Option<Seal> {
    // Readable packets anywhere outweigh sealed ones elsewhere.
    let readable = watched.iter().find_map(|at| readable(at, mark, sent));
    readable.or_else(|| watched.iter().find_map(|at| sealed(at, sent)))
}

fn readable(at: &Watched, mark: &[u8; MARK_BYTES], sent: u32) -> Option<Seal> {
    let finder = Finder::new(mark);
    let frames = at.bursts.iter().flat_map(|burst| &burst.frames);
    let mut marked = frames.filter(|frame| finder.find(&frame.bytes).is_some());
    let first = marked.next()?;
    let packets = 1 + marked.count() as u32;
    Some(Seal::No {
        interface: at.interface.clone(),
        form: form_of_frame(&first.bytes),
        why: Unsealed::Readable,
        // A super-packet, or a path twice over one interface, is not another packet.
        packets: packets.min(sent * at.bursts.len() as u32),
    })
}

/// The frames of both bursts that have one length each, and lengths that differ like those of the
/// marked packets.
fn sealed(at: &Watched, sent: u32) -> Option<Seal> {
    let [short, long] = &*at.bursts else {
        return None;
    };
    let needed = (sent * FOUND_PERCENT).div_ceil(100) as usize;
    let differ = long.inner_bytes - short.inner_bytes;
    let pairs = lengths(short, needed).into_iter().flat_map(|short_bytes| {
        let longer = lengths(long, needed).into_iter();
        longer.map(move |long_bytes| (short_bytes, long_bytes))
    });
    let mut pairs = pairs.filter(|(short_bytes, long_bytes)| {
        let found = long_bytes.saturating_sub(*short_bytes);
        found.abs_diff(differ) <= PADDING_BYTES
    });
    let (short_bytes, long_bytes) = pairs.next()?;
    let of = |burst: &Burst, length: u32| -> Vec<Vec<u8>> {
        let frames = burst
            .frames
            .iter()
            .filter(|left| left.whole_bytes == length);
        let ends = frames
            .map(|left| left.bytes[left.bytes.len().saturating_sub(burst.same_bytes)..].to_vec());
        ends.collect()
    };
    let groups = [of(short, short_bytes), of(long, long_bytes)];
    let packets = groups.iter().map(Vec::len).sum::<usize>() as u32;
    let first = short
        .frames
        .iter()
        .find(|left| left.whole_bytes == short_bytes)?;
    let (interface, form) = (at.interface.clone(), form_of_frame(&first.bytes));
    if groups.iter().any(|group| repeats(group)) {
        return Some(Seal::No {
            interface,
            form,
            why: Unsealed::Repeats,
            packets,
        });
    }
    if groups
        .iter()
        .any(|group| chi_square(group) > CHI_SQUARE_MAX)
    {
        let reason = format!(
            "packets left {interface} as {form}, neither readable nor as uniform as a cipher's"
        );
        return Some(Seal::Unknown { reason });
    }
    Some(Seal::Yes {
        interface,
        form,
        packets,
    })
}

/// Lengths that enough frames of a burst have.
fn lengths(burst: &Burst, needed: usize) -> Vec<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for left in &burst.frames {
        *counts.entry(left.whole_bytes).or_default() += 1;
    }
    let range = burst.inner_bytes..=burst.inner_bytes + ADDED_BYTES_MAX;
    let enough = counts
        .into_iter()
        .filter(|(length, count)| *count >= needed && range.contains(length));
    enough.map(|(length, _)| length).collect()
}

/// Whether neighbouring packets are equal at more places than chance explains.
fn repeats(packets: &[Vec<u8>]) -> bool {
    let (mut equal, mut all) = (0, 0);
    for pair in packets.windows(2) {
        let both = pair[0].iter().zip(&pair[1]);
        equal += both.clone().filter(|(a, b)| a == b).count();
        all += both.count();
    }
    equal * 100 > all * EQUAL_PERCENT_MAX
}

fn chi_square(packets: &[Vec<u8>]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in packets.iter().flatten() {
        counts[usize::from(*byte)] += 1;
    }
    let expected = f64::from(counts.iter().sum::<u32>()) / 256.0;
    let square = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
    counts.iter().map(square).sum()
}

/// Returns the form of a frame in words: `ESP in UDP`, `WireGuard`, `UDP to port 5000`. Any bytes
/// are a frame.
#[must_use]
pub fn form_of_frame(frame: &[u8]) -> String {
    const ESP_IN_UDP: u16 = 4500;
    /// Type of WireGuard's data, and three zero bytes.
    const WIREGUARD: [u8; 4] = [4, 0, 0, 0];
    let path = capture::dissect(frame, &[ESP_IN_UDP]).path;
    let has = |name: &str| path.contains(&name);
    // Behind an Ethernet header without a VLAN tag; others only lose the port.
    let transport = match path.get(1) {
        Some(&"ip") => 14 + usize::from(frame[14] & 15) * 4,
        _ => 14 + 40,
    };
    let port = (frame.len() >= transport + 4).then(|| be16(frame, transport + 2));
    let to_port =
        |name: &str| port.map_or_else(|| name.to_owned(), |port| format!("{name} to port {port}"));
    let payload = frame.get(transport + 8..);
    if has("esp") {
        return if has("udp") { "ESP in UDP" } else { "ESP" }.to_owned();
    }
    if has("wg") || has("udp") && payload.is_some_and(|payload| payload.starts_with(&WIREGUARD)) {
        return "WireGuard".to_owned();
    }
    match path.last() {
        Some(&"openvpn") => "OpenVPN".to_owned(),
        Some(&"udp") => to_port("UDP"),
        Some(&"tcp") => to_port("TCP"),
        Some(&"eth") => format!("Ethernet type {:04x}", be16(frame, 12)),
        Some(name) => name.to_uppercase(),
        None => "packets".to_owned(),
    }
}

#[cfg(test)]
mod tests;
