//! Guesses the keys of tables that state none, from their headings. A remark states each guess.

use super::heading;
use crate::document::Axis;
use crate::unit::{Quantity, Unit};

/// Sizes of frames that a tester sends.
const FRAMES: std::ops::RangeInclusive<f64> = 60.0..=9_600.0;
/// Frame sizes that are no power of two (RFC 2544 §9.1, IMIX, jumbo frames). Other numbers may be
/// years.
const USUAL: [f64; 18] = [
    72.0, 78.0, 90.0, 570.0, 576.0, 594.0, 1280.0, 1300.0, 1400.0, 1418.0, 1420.0, 1450.0, 1472.0,
    1500.0, 1514.0, 1518.0, 1522.0, 9000.0,
];
/// Words in headings of sizes.
const WORDS: [&str; 6] = ["byte", "frame", "packet", "block", "size", "payload"];

/// Words in headings of sizes that are of no frames.
const OTHER_WORDS: [&str; 11] = [
    "mtu", "payload", "block", "buffer", "message", "datagram", "input", "key", "file", "window",
    "batch",
];

/// Whether the names below a heading are frame sizes, and mixes of them: only if the heading says
/// so, because numbers of flows or cores are powers of two as well.
pub(super) fn are_frames(heading: &str, names: &[&str]) -> bool {
    let lower = heading.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let is_size = |word: &&&str| {
        let size = ["size", "sizes", "length", "byte", "bytes", "octets", "b"];
        size.contains(*word)
    };
    let is_frame = |word: &&&str| {
        let frame = ["frame", "frames", "packet", "packets", "pkt", "ethernet"];
        frame.contains(*word)
    };
    let sizes = words.iter().filter(is_size).count();
    let frames = words.iter().filter(is_frame).count();
    let is_heading = match (frames, sizes) {
        (0, 0) => false,
        (0, _) => words.iter().all(|word| is_size(&word) || *word == "in"),
        (_, 0) => words.len() == 1,
        _ => true,
    };
    let sizes: Vec<f64> = names
        .iter()
        .filter_map(|name| heading::size(name))
        .collect();
    let is_other = |word: &&str| OTHER_WORDS.iter().any(|other| word.starts_with(other));
    is_heading
        && !words.iter().any(is_other)
        && !sizes.is_empty()
        && sizes.iter().all(|bytes| FRAMES.contains(bytes))
        && names
            .iter()
            .all(|name| heading::size(name).is_some() || heading::is_mix(name))
}

/// Guesses the kind of columns, from their headings, the heading of the sizes or else of the first
/// column, the names below it, and whether these are frame sizes.
pub(super) fn axis(corner: &str, headings: &[&str], rows: &[&str], has_frames: bool) -> Axis {
    let sizes: Vec<f64> = headings.iter().filter_map(|it| heading::size(it)).collect();
    let others = headings.iter().filter(|it| heading::size(it).is_none());
    // Sizes count as the axis only if all other columns are mixes: `1518` between words may be a
    // model or a year.
    let are_mixes = others.clone().all(|it| heading::is_mix(it));
    if !sizes.is_empty() && are_mixes {
        let names_mtu = |text: &str| text.to_lowercase().contains("mtu");
        if names_mtu(corner) || headings.iter().any(|it| names_mtu(it)) {
            return Axis::Mtu;
        }
        let words = |text: &str| {
            let text = text.to_lowercase();
            WORDS.iter().any(|word| text.contains(word)) || text.ends_with(" b")
        };
        let is_named = words(corner) || headings.iter().any(|it| words(it));
        let is_usual = |bytes: &&f64| {
            let power = (bytes.log2() - bytes.log2().round()).abs() < 1e-9 && **bytes >= 16.0;
            power || USUAL.iter().any(|usual| (usual - **bytes).abs() < 0.5)
        };
        // Neither a word nor the numbers suggest sizes. Wrong guesses would create findings, while
        // columns of names create few.
        if !is_named && 2 * sizes.iter().filter(is_usual).count() <= sizes.len() {
            return Axis::Names;
        }
        return if sizes.iter().all(|bytes| FRAMES.contains(bytes)) {
            Axis::Frame
        } else {
            Axis::Bytes
        };
    }
    let is_rate = |name: &&str| {
        let (bare, unit) = heading::with_unit(name);
        let quantity = unit.map(|unit| unit.quantity);
        match quantity {
            Some(Quantity::FrameRate) => Unit::parse(bare).is_some(),
            Some(Quantity::BitRate) => matches!(bare, "L1" | "L2" | "IP" | "payload"),
            _ => false,
        }
    };
    let are_rates = headings.len() > 1 && headings.iter().all(is_rate);
    let are_sizes = rows
        .iter()
        .all(|it| heading::size(it).is_some() || heading::is_mix(it));
    if are_rates && are_sizes {
        Axis::Rates
    } else if has_frames {
        Axis::Devices
    } else {
        Axis::Names
    }
}

/// Guesses the unit of the figures, from the heading of the first column or from the line above the
/// table; `None` if neither names exactly one.
pub(super) fn unit(corner: &str, above: &str) -> Option<Unit> {
    if let (_, Some(unit)) = heading::with_unit(corner) {
        return Some(unit);
    }
    let is_end = |c: char| c.is_whitespace() || "()[]:,;*`".contains(c);
    let words = above.split(is_end).map(|word| word.trim_end_matches('.'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let found = words.iter().enumerate().filter_map(|(at, word)| {
        // A unit after a number is of the link, as in `two 1 Gbit/s ports`.
        let is_of_number = at > 0 && heading::is_number(words[at - 1]);
        Unit::parse(word).filter(|_| !is_of_number)
    });
    let mut found = found.filter(|unit| {
        // A letter alone, or a time in the text, is no unit of the table.
        !matches!(unit.quantity, Quantity::Percent | Quantity::Time)
    });
    let first = found.next()?;
    // A line with two units may describe the link as well as the figures.
    found.all(|other| other.is_same(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_show_what_columns_are() {
        let of = |corner, headings: &[&str], rows: &[&str]| {
            axis(corner, headings, rows, are_frames(corner, rows))
        };
        assert_eq!(of("device", &["64", "512", "IMIX"], &["A"]), Axis::Frame);
        assert_eq!(of("MTU", &["1300", "1500"], &["A"]), Axis::Mtu);
        assert_eq!(of("type", &["16 bytes", "64 bytes"], &["aes"]), Axis::Bytes);
        assert_eq!(of("frame", &["Mpps", "L2 [Gbit/s]"], &["64"]), Axis::Rates);
        let rates = ["Throughput (Mbps)", "Packets/s"];
        for corner in [
            "Frame size",
            "Frame size (byte)",
            "frame",
            "Packet [B]",
            "Size",
            "bytes",
        ] {
            assert_eq!(
                of(corner, &rates, &["64", "1518 B", "IMIX"]),
                Axis::Devices,
                "{corner}"
            );
        }
        for corner in [
            "flows",
            "",
            "payload size",
            "MTU",
            "block size",
            "frames sent",
            "packets lost",
        ] {
            assert_eq!(of(corner, &rates, &["64", "512"]), Axis::Names, "{corner}");
        }
        assert_eq!(of("Frame size", &rates, &["16", "64"]), Axis::Names);
        assert_eq!(of("device", &["up", "down"], &["A"]), Axis::Names);
        assert_eq!(of("year", &["2019", "2020"], &["A"]), Axis::Names);
    }

    #[test]
    fn a_unit_is_taken_from_one_place_that_names_it() {
        let of = |corner, above| unit(corner, above).map(|unit| unit.text);
        assert_eq!(of("device [Mbit/s]", ""), Some("Mbit/s".to_owned()));
        assert_eq!(
            of("device", "Throughput (in Gbps), 10 s each:"),
            Some("Gbps".to_owned())
        );
        assert_eq!(of("device", "Mbps and kpps"), None);
        assert_eq!(of("device", "Throughput:"), None);
        assert_eq!(
            of(
                "Model",
                "Two 1 Gbit/s ports. RFC 2544, zero loss, Mbit/s (L2)."
            ),
            Some("Mbit/s".to_owned())
        );
        assert_eq!(of("Model", "Two 1 Gbit/s ports."), None);
    }
}
