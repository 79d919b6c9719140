//! The common settings of a set's cells, in words.

use plan::{Axis, Cell, Measurement, Tool, TransferDirection};
use units::human::counted;

/// The common settings of a set's cells.
pub(super) fn common(cell: &Cell, repeats: u32) -> String {
    let mut parts = Vec::new();
    let seconds = |duration_ns: u64| units::human::duration_ns(duration_ns as f64);
    let streams = |count: u16| counted(count, "stream");
    let trials = match &cell.measurement {
        Measurement::Tcp {
            streams: count,
            window_bytes,
            duration_ns,
            ..
        } => {
            // Values found by a search differ by cell, so they are no common words.
            match (cell.tune, window_bytes) {
                (true, _) => parts.push("streams and window searched per cell".into()),
                (false, Some(bytes)) => {
                    parts.extend([streams(*count), format!("window {bytes} B")])
                }
                (false, None) => parts.push(streams(*count)),
            }
            seconds(*duration_ns)
        }
        Measurement::Udp {
            rate_bps,
            streams: count,
            duration_ns,
            ..
        } => {
            match (cell.tune, rate_bps) {
                (true, _) => parts.push("rate and datagram size searched per cell".into()),
                (false, Some(bps)) => {
                    let rate = units::human::bit_rate(*bps as f64);
                    parts.extend([streams(*count), format!("intended load {rate}")]);
                }
                (false, None) => {
                    parts.extend([streams(*count), "as fast as the tool can send".into()]);
                }
            }
            seconds(*duration_ns)
        }
        Measurement::Ping {
            count, interval_ns, ..
        } => {
            parts.push(format!("one request every {}", seconds(*interval_ns)));
            counted(*count, "request")
        }
        // Not reached: other kinds are in no set.
        _ => cell.measurement.name().to_owned(),
    };
    // Sets that differ only in the tool would otherwise have equal words.
    let tool = cell.measurement.tool();
    parts.extend(
        tool.filter(|tool| *tool != Tool::default())
            .map(|tool| format!("by {}", tool.name())),
    );
    if let Some(direction) = cell.measurement.transfer_direction() {
        parts.extend(match direction {
            TransferDirection::AToB => None,
            TransferDirection::BToA => Some("from B to A".to_owned()),
            TransferDirection::Duplex => Some("both ways at once, sum of both".to_owned()),
        });
    }
    let congestion = cell.value(Axis::Congestion);
    let congestion = congestion.filter(|name| !Axis::Congestion.is_usual(name));
    parts.extend(Axis::Congestion.phrase(congestion.into_iter()));
    parts.extend(Axis::Offloads.phrase(cell.value(Axis::Offloads).into_iter()));
    let overlay = cell.value(Axis::Overlay);
    let overlay = overlay.filter(|name| !Axis::Overlay.is_usual(name));
    parts.extend(Axis::Overlay.phrase(overlay.into_iter()));
    let class = cell.value(Axis::Dscp);
    let class = class.filter(|name| !Axis::Dscp.is_usual(name));
    parts.extend(Axis::Dscp.phrase(class.into_iter()));
    parts.extend(Axis::Impair.phrase(cell.value(Axis::Impair).into_iter()));
    parts.push(format!("{} of {trials}", runs(repeats)));
    parts.join(", ")
}

/// `three runs`, `one run`, `20 runs`.
fn runs(count: u32) -> String {
    const WORDS: [&str; 13] = [
        "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let noun = if count == 1 { "run" } else { "runs" };
    match usize::try_from(count).ok().and_then(|at| WORDS.get(at)) {
        Some(word) => format!("{word} {noun}"),
        None => format!("{count} {noun}"),
    }
}
