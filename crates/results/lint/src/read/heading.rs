//! Headings: sizes, units and names of mixes in the spellings of reports.

use crate::unit::{Quantity, Unit};

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
    if let Some((bare, rest)) = name.split_once(['[', '(']) {
        let inside = rest.split([']', ')']).next().unwrap_or_default();
        return (bare.trim(), Unit::parse(inside));
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

/// Whether a unit is recognised without brackets: a letter alone may be any word.
fn is_plain(unit: &Unit) -> bool {
    unit.text.chars().count() > 1 || unit.quantity == Quantity::Percent
}

/// A size in bytes: `1518`, `1518 B`, `1518 byte`, `64-byte`, `MTU 1500`, `1KB`, `16 KiB`. `KB` and
/// `K` of sizes count 1024, as in the output of `openssl speed`; `kB` counts 1000.
pub(super) fn size(text: &str) -> Option<f64> {
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
        ] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "0", "fast", "1.5", "64 cores", "B", "10.5 KB"] {
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
        ] {
            let (found, its) = with_unit(heading);
            assert_eq!(
                (found, its.map(|it| it.text).as_deref()),
                (bare, unit),
                "{heading}"
            );
        }
    }
}
