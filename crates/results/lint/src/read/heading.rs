//! Headings: sizes, units and names of mixes in the spellings of reports.

use super::markup;
use crate::encapsulation;
use crate::unit::{Quantity, Unit};
use units::Layer;

/// Endings of names that programs give to columns, and their units: `avg_ms`, `ops_per_sec`.
const ENDINGS: [(&str, &str); 22] = [
    ("_ops_per_sec", "ops/s"),
    ("_ops_per_s", "ops/s"),
    ("_frames_per_s", "frames/s"),
    ("_packets_per_sec", "packets/s"),
    ("_bits_per_second", "bit/s"),
    ("_bits_per_sec", "bit/s"),
    ("_bytes_per_sec", "B/s"),
    ("_ns", "ns"),
    ("_us", "µs"),
    ("_µs", "µs"),
    ("_usec", "µs"),
    ("_ms", "ms"),
    ("_msec", "ms"),
    ("_sec", "s"),
    ("_bps", "bit/s"),
    ("_kbps", "kbit/s"),
    ("_mbps", "Mbit/s"),
    ("_gbps", "Gbit/s"),
    ("_pps", "pps"),
    ("_kpps", "kpps"),
    ("_mpps", "Mpps"),
    ("_percent", "%"),
];

/// A heading without its unit, and the unit: `L2 [Mbit/s]`, `rate (Mbps)`, `rate, Mbps`, `avg_ms`,
/// `Mpps`.
pub(super) fn with_unit(name: &str) -> (&str, Option<Unit>) {
    if let Some((bare, _)) = name.split_once(['[', '(']) {
        let bare = bare.trim();
        if let Some(unit) = in_brackets(name).find_map(bracketed) {
            return (bare, Some(unit));
        }
        // `Mbps (L2)`: the brackets hold something else.
        return match with_unit(bare) {
            (_, None) => (bare, behind_brackets(name)),
            found => found,
        };
    }
    if let Some(unit) = Unit::parse(name).filter(is_plain) {
        return (name, Some(unit));
    }
    // The list has longer endings before the ones that they end in, as `_ops_per_sec` before
    // `_sec`.
    let lower = name.to_lowercase();
    for (ending, unit) in ENDINGS {
        let bare = lower.len() - lower.strip_suffix(ending).map_or(lower.len(), str::len);
        let whole = lower == ending[1..];
        if bare > 0 || whole {
            // The lower case may have another length in bytes than the name, so that `end` may be
            // inside a character.
            let end = name.len().saturating_sub(bare);
            return (name.get(..end).unwrap_or(name), Unit::parse(unit));
        }
    }
    let last = name.rsplit_once([' ', ',']);
    if let Some((bare, last)) = last
        && let Some(unit) = Unit::parse(last).filter(is_plain)
    {
        let bare = bare.trim_end_matches([' ', ',']);
        return (bare.strip_suffix(" in").unwrap_or(bare), Some(unit));
    }
    (name, None)
}

/// The unit behind brackets: `rate (UDP) Mbit/s`.
fn behind_brackets(name: &str) -> Option<Unit> {
    let behind = name
        .rsplit([']', ')'])
        .next()?
        .trim_start_matches([' ', ',']);
    let behind = behind.strip_prefix("in ").unwrap_or(behind).trim();
    Unit::parse(behind).filter(is_plain)
}

/// The unit of a row: `Throughput (kpps)`, `Latency [µs]`. Only in brackets, as a row may name a
/// link of `10 Gbit/s`.
pub(super) fn of_row(name: &str) -> Option<Unit> {
    in_brackets(name).find_map(bracketed)
}

/// The texts in brackets.
fn in_brackets(name: &str) -> impl Iterator<Item = &str> {
    let after = name.split(['[', '(']).skip(1);
    after.filter_map(|rest| rest.split([']', ')']).next())
}

/// The unit in brackets, alone or with other words: `[Mbit/s]`, `(Mbit/s, L2)`.
fn bracketed(inside: &str) -> Option<Unit> {
    // A mark of a footnote may stand behind the unit: `[Mbit/s¹]`.
    let inside = inside.trim_end_matches(markup::is_footnote_mark);
    Unit::parse(inside).or_else(|| among_words(inside.split([' ', ',', ';'])))
}

/// The first unit among words. One after a number is of another rate, as in `on a 1 Gbit/s link`.
fn among_words<'a>(words: impl Iterator<Item = &'a str>) -> Option<Unit> {
    let mut is_after_number = false;
    for word in words.filter(|word| !word.is_empty()) {
        let unit = Unit::parse(word).filter(is_plain);
        if unit.is_some() && !is_after_number {
            return unit;
        }
        is_after_number = is_number(word);
    }
    None
}

/// Whether a word is a number, in any spelling.
pub(super) fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || ".,'".contains(c))
}

/// Words in headings of rates that name no device.
const RATE_WORDS: [&str; 18] = [
    "throughput",
    "rate",
    "rates",
    "speed",
    "bandwidth",
    "frame",
    "frames",
    "packet",
    "packets",
    "bit",
    "bits",
    "data",
    "per",
    "second",
    "in",
    "at",
    "of",
    "layer",
];

/// The layer that a heading names, and what is left of it without layer, unit and words for rates:
/// `CG-200 throughput (Mbit/s, L2)` is of L2 and of `cg-200`.
pub(super) fn device(name: &str) -> (Option<Layer>, String) {
    let is_end = |c: char| c.is_whitespace() || ",;:()[]".contains(c);
    let (bare, unit) = with_unit(name);
    // An ending as `_mbps` is part of its word, and gone in `bare`.
    let text = if name.contains(['[', '(']) {
        name
    } else {
        bare
    };
    let is_other = |word: &&str| {
        let lower = word.to_lowercase();
        let is_unit = Unit::parse(word).is_some_and(|unit| is_plain(&unit));
        let is_own = unit.as_ref().is_some_and(|unit| unit.text == *word);
        !word.is_empty() && !is_unit && !is_own && !RATE_WORDS.contains(&lower.as_str())
    };
    let mut words: Vec<&str> = text.split(is_end).filter(is_other).collect();
    let layer = match words.as_slice() {
        // Among other words, as in `IP forwarding`, these two need not be the layer.
        [word] if word.eq_ignore_ascii_case("ip") => Some(Layer::Ip),
        [word] if word.eq_ignore_ascii_case("payload") => Some(Layer::Payload),
        words => words.iter().find_map(|word| match *word {
            "L1" | "l1" => Some(Layer::L1),
            "L2" | "l2" => Some(Layer::L2),
            _ => None,
        }),
    };
    match layer {
        Some(Layer::Ip | Layer::Payload) => words.clear(),
        _ => words.retain(|word| !matches!(*word, "L1" | "l1" | "L2" | "l2")),
    }
    // A frame rate has no layer.
    let layer = layer.filter(|_| unit.is_none_or(|unit| unit.quantity != Quantity::FrameRate));
    (layer, words.join(" ").to_lowercase())
}

/// Whether a unit is recognised without brackets: a letter alone may be any word.
fn is_plain(unit: &Unit) -> bool {
    unit.text.chars().count() > 1 || unit.quantity == Quantity::Percent
}

/// The unit of the rates below a size: `16 bytes [MB/s]`.
pub(super) fn unit_of_size(text: &str) -> Option<Unit> {
    let (_, inside) = text.trim().split_once(['[', '('])?;
    let unit = Unit::parse(inside.strip_suffix([']', ')'])?)?;
    let is_rate = !matches!(unit.quantity, Quantity::Time | Quantity::Percent);
    is_rate.then_some(unit)
}

/// A size in bytes: `1518`, `1518 B`, `1518 byte`, `64-byte`, `MTU 1500`, `1KB`, `16 KiB`, also
/// with the unit of its rates, as in `16 bytes [MB/s]`. `KB` and `K` of sizes count 1024, as in the
/// output of `openssl speed`; `kB` counts 1000.
pub(super) fn size(text: &str) -> Option<f64> {
    let text = match text.split_once(['[', '(']) {
        Some((size, _)) if unit_of_size(text).is_some() => size,
        _ => text,
    };
    let text = text.trim();
    let text = text.strip_prefix("MTU").unwrap_or(text).trim_start();
    let digits = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (mut number, mut rest) = (text[..digits].to_owned(), &text[digits..]);
    // A size is a whole number: its mark is one of thousands.
    if let Some(group) = rest.strip_prefix([',', '.', ' ', '\'']) {
        let length = group.bytes().take_while(u8::is_ascii_digit).count();
        if length == 3 && (1..=3).contains(&digits) {
            number.push_str(&group[..3]);
            rest = &group[3..];
        }
    }
    let bytes: u32 = number.parse().ok()?;
    let unit = rest.trim_start().trim_start_matches('-');
    let factor = match unit {
        "" | "B" | "b" | "byte" | "bytes" | "Byte" | "Bytes" | "octets" => 1.0,
        "K" | "KB" | "KiB" => 1024.0,
        "k" | "kB" => 1000.0,
        "M" | "MB" | "MiB" => 1024.0 * 1024.0,
        _ => return None,
    };
    (bytes > 0).then_some(f64::from(bytes) * factor)
}

/// Whether a heading is the name of a mix that the file may not describe.
pub(super) fn is_mix(name: &str) -> bool {
    let name = name.to_lowercase();
    name.split(|c: char| !c.is_alphanumeric())
        .any(|word| word == "mix" || word.starts_with("imix") || word == "emix")
}

/// The frame size of UDP that the name of a row has among other words: `Firewall throughput 64 byte
/// UDP`; `None` for several ones, and for packets of a tunnel, whose size is that of the IP packet
/// as often as of the frame.
pub(super) fn frame_size_in(name: &str) -> Option<f64> {
    const SIZES: [f64; 8] = [64.0, 128.0, 256.0, 512.0, 1024.0, 1280.0, 1518.0, 9000.0];
    let words: Vec<&str> = name
        .split(|c: char| c.is_whitespace() || "()[],;-".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let sizes = words.windows(2).filter_map(|pair| {
        let is_unit = ["byte", "bytes", "B"].contains(&pair[1]);
        let bytes: f64 = pair[0].parse().ok()?;
        (is_unit && SIZES.contains(&bytes)).then_some(bytes)
    });
    let sizes: Vec<f64> = sizes.collect();
    match sizes.as_slice() {
        [one] if !encapsulation::names_tunnel(name) => Some(*one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_the_spellings_of_reports() {
        for (text, bytes) in [
            ("1518", 1518.0),
            ("1518 B", 1518.0),
            ("1518 byte", 1518.0),
            ("64-byte", 64.0),
            ("MTU 1500", 1500.0),
            ("1,518", 1518.0),
            ("1KB", 1024.0),
            ("16 KiB", 16_384.0),
            ("8 kB", 8000.0),
            ("16 bytes [MiB/s]", 16.0),
            ("1518 (Mbit/s)", 1518.0),
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in [
            "", "0", "fast", "1.5", "64 cores", "B", "10.5 KB", "64 [x]", "64 (ms)",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn units_are_found_in_headings() {
        for (heading, bare, unit) in [
            ("L2 [Gbit/s]", "L2", Some("Gbit/s")),
            ("rate (Mbps)", "rate", Some("Mbps")),
            ("rate in Mbps", "rate", Some("Mbps")),
            ("rate, Mbps", "rate", Some("Mbps")),
            ("Mpps", "Mpps", Some("Mpps")),
            ("avg_ms", "avg", Some("ms")),
            ("ops_per_sec", "ops_per_sec", Some("ops/s")),
            ("rate Gbps", "rate", Some("Gbps")),
            ("loss %", "loss", Some("%")),
            ("tests", "tests", None),
            ("class s", "class s", None),
            ("D2E", "D2E", None),
            ("rate (Mbit/s, L2)", "rate", Some("Mbit/s")),
            ("rate (L2) [Mbit/s]", "rate", Some("Mbit/s")),
            ("Mbps (L2)", "Mbps", Some("Mbps")),
            ("CG (new)", "CG", None),
            ("rate (UDP) in Mbps", "rate", Some("Mbps")),
            ("rate (on a 1 Gbit/s link)", "rate", None),
            (
                "Packets per second",
                "Packets per second",
                Some("Packets per second"),
            ),
        ] {
            let (found, its) = with_unit(heading);
            assert_eq!(
                (found, its.map(|it| it.text).as_deref()),
                (bare, unit),
                "{heading}"
            );
        }
    }

    #[test]
    fn a_heading_of_rates_names_a_layer_and_a_device() {
        for (heading, layer, of) in [
            ("Throughput (Mbps)", None, ""),
            ("Throughput L2 (Mbps)", Some(Layer::L2), ""),
            ("Throughput (Mbit/s, L1)", Some(Layer::L1), ""),
            ("IP [Mbit/s]", Some(Layer::Ip), ""),
            ("IP forwarding [Mbit/s]", None, "ip forwarding"),
            ("Packets/s", None, ""),
            ("Frame rate, kpps", None, ""),
            ("CG-200 (Mbit/s)", None, "cg-200"),
            ("CG-200 frames/s", None, "cg-200"),
            ("rx_mbps", None, "rx"),
            ("Latency [ms]", None, "latency"),
        ] {
            assert_eq!(device(heading), (layer, of.to_owned()), "{heading}");
        }
    }
}
