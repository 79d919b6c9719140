//! OpenMetrics text format, version 1.0.0 (github.com/prometheus/OpenMetrics).
//!
//! One gauge per quantity, with one sample per repeat. Times are in seconds, the base unit that the
//! specification demands.

use super::Points;
use stats::Quantity;
use std::fmt::Write;

/// Writes the gauges of a run, and `# EOF`.
pub(super) fn write(points: &Points<'_>) -> String {
    let mut text = String::new();
    // All samples of a family must be adjacent, so the outer loop is over quantities.
    for quantity in Quantity::ALL {
        family(&mut text, points, quantity);
    }
    // The specification requires this end, by which a reader detects a truncated file.
    text.push_str("# EOF\n");
    text
}

/// Name without the unit, unit, help.
const fn described(quantity: Quantity) -> (&'static str, &'static str, &'static str) {
    match quantity {
        Quantity::PayloadThroughput => {
            ("payload_throughput", "bits_per_second", "Payload received.")
        }
        Quantity::ObjectThroughput => (
            "object_throughput",
            "bits_per_second",
            "Bits of HTTP objects received.",
        ),
        Quantity::FrameRate => (
            "forwarded",
            "frames_per_second",
            "Frames forwarded in one direction: lower bound of a search, or highest rate.",
        ),
        Quantity::Transactions => (
            "http",
            "transactions_per_second",
            "HTTP transactions with the whole object.",
        ),
        Quantity::SetUps => (
            "ike",
            "set_ups_per_second",
            "Set-ups of IKEv2: completed, or the highest rate of a search.",
        ),
        Quantity::Operations => (
            "device",
            "operations_per_second",
            "Operations of crypto devices.",
        ),
        Quantity::PayloadBitsPerCpuSecond => (
            "payload_efficiency",
            "bits_per_cpu_second",
            "Payload received by CPU time of the machine.",
        ),
        Quantity::IpBitsPerCpuSecond => (
            "ip_efficiency",
            "bits_per_cpu_second",
            "IP packets forwarded by CPU time of the machine.",
        ),
        Quantity::LatencyP50 => (
            "latency_p50",
            "seconds",
            "Median round-trip time of ping, latency of frames, or time of a set-up of IKEv2.",
        ),
        Quantity::LatencyP99 => (
            "latency_p99",
            "seconds",
            "99th percentile of round-trip time, latency or set-up time.",
        ),
        Quantity::Burst => ("burst", "frames", "Longest burst without loss."),
        Quantity::Recovery => (
            "recovery",
            "seconds",
            "From the end of an overload to the last loss.",
        ),
    }
}

/// Appends one gauge; nothing if no cell has the quantity.
fn family(text: &mut String, points: &Points<'_>, quantity: Quantity) {
    let (stem, unit, help) = described(quantity);
    // The specification requires the unit as the last part of the name.
    let name = format!("cipherbench_{stem}_{unit}");
    let mut samples = String::new();
    for cell in &points.cells {
        let of_it = cell
            .readings
            .iter()
            .filter(|reading| reading.quantity == quantity);
        for reading in of_it {
            let mut labels = points.labels(cell.planned);
            let load = reading.load_percent.map(|percent| percent.to_string());
            labels.extend(load.map(|percent| ("load_percent", percent)));
            for sample in &reading.value.values {
                let repeat = ("repeat", sample.repeat.to_string());
                let labels = labels.iter().chain(std::iter::once(&repeat));
                let labels: Vec<String> = labels
                    .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
                    .collect();
                // Journals and results have nanoseconds.
                let value = if quantity.is_time() {
                    sample.value / 1e9
                } else {
                    sample.value
                };
                let began = points.began_ns(cell.planned, sample.repeat);
                // Time stamps are decimal seconds; a float could not hold today's nanoseconds.
                let (seconds, nanos) = (began / 1_000_000_000, began % 1_000_000_000);
                let labels = labels.join(",");
                let _ = writeln!(samples, "{name}{{{labels}}} {value} {seconds}.{nanos:09}");
            }
        }
    }
    if !samples.is_empty() {
        let _ = write!(
            text,
            "# TYPE {name} gauge\n# UNIT {name} {unit}\n# HELP {name} {help}\n{samples}"
        );
    }
}

/// Applies the three escapes of a label value.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::{described, escaped};
    use stats::Quantity;
    use std::collections::BTreeSet;

    #[test]
    fn quotes_backslashes_and_line_breaks_of_labels_are_escaped() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
    }

    #[test]
    fn every_quantity_has_a_name_of_its_own() {
        let names = Quantity::ALL
            .map(described)
            .map(|(stem, unit, _)| format!("{stem}_{unit}"));
        assert_eq!(BTreeSet::from(names).len(), Quantity::ALL.len());
    }
}
