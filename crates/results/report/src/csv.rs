//! `results.csv` (RFC 4180), for spreadsheets: one row per trial; for frame tests, one per figure.
//!
//! A column has a key, a meaning, and a function that reads it from a trial. Header, rows and
//! documentation (`docs/schema/results-csv.md`) come from the lists that [`columns`] joins; columns
//! of axes are declared with the axes.

mod captures;
mod claims;
mod compared;
mod device;
mod disturbed;
mod figure;
mod frames;
mod http;
mod monitored;
mod ping;
mod soak;
mod video;

use crate::evidence::{measured, outcome_name};
use crate::layout::Run;
use guard::visible_lines;
use journal::record::{Cpu, Latency, Outcome, TcpFacts, Transfer, TrialRecord};
use plan::{Axis, Cell};
use stats::{CellResult, ClaimResult, Warning, percentile};
use std::fmt::Write;

/// A trial and the data of its row.
struct Context<'a> {
    cell: &'a CellResult,
    /// The DUT's name in the plan.
    dut: &'a str,
    trial: &'a TrialRecord,
    /// Whether this is the last record of the trial.
    counts: bool,
    /// The figure of this row, if the trial has several.
    figure: Option<figure::Figure<'a>>,
    /// Ranks of the cell.
    standings: compared::Standings<'a>,
    /// The cell of the plan.
    planned: Option<&'a Cell>,
    /// Claims about the cell.
    claims: &'a [&'a ClaimResult],
    /// Kinds of the warnings about the cell or about the whole run.
    warnings: String,
}

/// A column's key, its meaning, and the function that reads it from a trial.
type Declared = (
    &'static str,
    &'static str,
    fn(&Context<'_>) -> Option<String>,
);

/// A column, declared in a list of this module or by an axis.
enum Column {
    Declared(Declared),
    Axis(Axis, plan::Column),
}

impl Column {
    const fn key(&self) -> &'static str {
        match self {
            Self::Declared((key, ..)) => key,
            Self::Axis(_, column) => column.key,
        }
    }

    const fn meaning(&self) -> &'static str {
        match self {
            Self::Declared((_, meaning, _)) => meaning,
            Self::Axis(_, column) => column.meaning,
        }
    }

    fn read(&self, row: &Context<'_>) -> Option<String> {
        match self {
            Self::Declared((.., read)) => read(row),
            Self::Axis(axis, _) => Some(row.planned?.value(*axis)?.plain()),
        }
    }
}

/// Keys include units. Figures that do not apply, or of invalid and failed trials, are empty.
const CELL: &[Declared] = &[
    ("cell", "id of the cell", |row| Some(row.cell.id.clone())),
    (
        "group",
        "id without the device: cells of a group are compared",
        |row| Some(row.cell.group.clone()),
    ),
    ("dut", "device under test", |row| Some(row.dut.to_owned())),
    (
        "insecure",
        "why the device must not protect data; empty if it may, or is not meant to",
        |row| row.cell.insecure.clone(),
    ),
    ("baseline", "true if nothing is encrypted", |row| {
        text(row.cell.baseline)
    }),
    (
        "protocol",
        "tcp, udp, ping, http, flows, video, a frame test's procedure, or for crypto devices kat, speed or fatigue",
        |row| Some(row.cell.protocol.clone()),
    ),
];

/// Axes of all traffic; the other axes belong to frame tests.
const STATIONS: [Axis; 3] = [Axis::Mtu, Axis::Cores, Axis::Offloads];

/// The trial's outcome, and the figures of tools.
const TRIAL: &[Declared] = &[
    ("repeat", "from 1", |row| text(row.trial.repeat)),
    ("started_utc", "start of the trial", |row| {
        Some(journal::time::utc(row.trial.started_unix_ns))
    }),
    ("duration_ns", "wall time of the whole trial", |row| {
        text(row.trial.duration_ns)
    }),
    ("outcome", "measured, invalid or failed", |row| {
        text(outcome_name(row.trial))
    }),
    (
        "counts",
        "false if a later trial of the same cell and repeat replaces this one",
        |row| text(row.counts),
    ),
    ("reasons", "why it is invalid or failed", |row| {
        reasons(row.trial)
    }),
    (
        "warnings",
        "kinds of the warnings about the cell or the whole run, as in results.json and separated by spaces; the report has their words",
        |row| Some(row.warnings.clone()),
    ),
    ("tool", "tool of a bulk transfer", |row| {
        row.cell.parameters.tool.clone()
    }),
    ("streams", "parallel streams over all processes", |row| {
        text(transfer(row)?.parameters.streams?)
    }),
    ("window_bytes", "requested socket buffer", |row| {
        text(transfer(row)?.parameters.window_bytes?)
    }),
    ("datagram_bytes", "UDP payload", |row| {
        text(transfer(row)?.parameters.datagram_bytes?)
    }),
    ("intended_payload_bps", "intended load", |row| {
        text(transfer(row)?.parameters.rate_bps?)
    }),
    ("measured_ns", "measured time, without warm-up", |row| {
        text(transfer(row)?.duration_ns)
    }),
    (
        "sent_bytes",
        "payload that the sender handed to its sockets; for a duplex transfer, like all columns of a transfer, from A to B",
        |row| text(transfer(row)?.sent_bytes),
    ),
    (
        "received_bytes",
        "payload that the other station received",
        |row| text(transfer(row)?.received_bytes),
    ),
    ("offered_payload_bps", "sent_bytes as a rate", |row| {
        bps(transfer(row)?, |found| found.sent_bytes)
    }),
    (
        "payload_throughput_bps",
        "received_bytes as a rate",
        |row| bps(transfer(row)?, |found| found.received_bytes),
    ),
    ("retransmits", "TCP segments retransmitted", |row| {
        text(transfer(row)?.retransmits?)
    }),
    ("datagrams_sent", "UDP datagrams sent", |row| {
        text(transfer(row)?.datagrams?.sent)
    }),
    (
        "datagrams_lost",
        "sent datagrams that were not received",
        |row| text(transfer(row)?.datagrams?.lost),
    ),
    (
        "datagrams_out_of_order",
        "out of order at the receiver",
        |row| text(transfer(row)?.datagrams?.out_of_order),
    ),
    (
        "rfc3550_jitter_ns",
        "interarrival jitter by RFC 3550 §6.4.1, as iperf computes it, mean over its streams",
        |row| text(transfer(row)?.datagrams?.jitter_ns),
    ),
    (
        "baseline_rtt_ns",
        "TCP: shortest echo on the idle path, just before the transfer",
        |row| text(tcp(row)?.baseline_rtt_ns?),
    ),
    (
        "loaded_rtt_ns",
        "TCP: mean round trip during the transfer, by the sender's kernel",
        |row| text(tcp(row)?.loaded_rtt_ns?),
    ),
    (
        "tcp_segment_bytes",
        "TCP: maximum segment size at the start",
        |row| text(tcp(row)?.segment_bytes?),
    ),
    (
        "congestion_used",
        "TCP: congestion control that the sender's kernel used",
        |row| tcp(row)?.congestion.clone(),
    ),
    (
        "reverse_offered_payload_bps",
        "for a duplex transfer from B to A; so are the other columns reverse_…",
        |row| bps(reverse(row)?, |found| found.sent_bytes),
    ),
    (
        "reverse_payload_throughput_bps",
        "as payload_throughput_bps",
        |row| bps(reverse(row)?, |found| found.received_bytes),
    ),
    ("reverse_retransmits", "as retransmits", |row| {
        text(reverse(row)?.retransmits?)
    }),
    ("reverse_datagrams_sent", "as datagrams_sent", |row| {
        text(reverse(row)?.datagrams?.sent)
    }),
    ("reverse_datagrams_lost", "as datagrams_lost", |row| {
        text(reverse(row)?.datagrams?.lost)
    }),
    ("reverse_rfc3550_jitter_ns", "as rfc3550_jitter_ns", |row| {
        text(reverse(row)?.datagrams?.jitter_ns)
    }),
    ("reverse_loaded_rtt_ns", "as loaded_rtt_ns", |row| {
        text(reverse(row)?.tcp.as_ref()?.loaded_rtt_ns?)
    }),
    ("requests_sent", "echo requests", |row| {
        text(latency(row)?.sent)
    }),
    ("replies_received", "echo replies", |row| {
        text(latency(row)?.received)
    }),
    ("round_trip_min_ns", "shortest round trip", |row| {
        text(latency(row)?.round_trips_ns.iter().min()?)
    }),
    (
        "round_trip_p50_ns",
        "median round trip, nearest rank",
        |row| round_trip(latency(row)?, 500),
    ),
    (
        "round_trip_p90_ns",
        "90th percentile; empty below 10 replies",
        |row| round_trip(latency(row)?, 900),
    ),
    (
        "round_trip_p99_ns",
        "99th percentile; empty below 100 replies",
        |row| round_trip(latency(row)?, 990),
    ),
    (
        "round_trip_p99_9_ns",
        "99.9th percentile; empty below 1000 replies",
        |row| round_trip(latency(row)?, 999),
    ),
    ("round_trip_max_ns", "longest round trip", |row| {
        text(latency(row)?.round_trips_ns.iter().max()?)
    }),
    ("cpu_wall_ns", "time over which CPU time was read", |row| {
        text(cpu(row)?.wall_ns)
    }),
    ("cpu_station_a_ns", "CPU time of station A's tools", |row| {
        text(cpu(row)?.station_a_ns)
    }),
    ("cpu_station_b_ns", "CPU time of station B's tools", |row| {
        text(cpu(row)?.station_b_ns)
    }),
    (
        "cpu_dut_ns",
        "CPU time of the device's processes; empty if it runs on separate machines",
        |row| text(cpu(row)?.dut_ns?),
    ),
    ("cpu_kernel_ns", "the rest of the busy time", |row| {
        text(cpu(row)?.kernel_ns)
    }),
    ("cpu_busy_ns", "busy time of all cores", |row| {
        text(cpu(row)?.busy_ns)
    }),
    ("checks_made", "checks of the evidence", |row| {
        text(crate::evidence::of_trial(row.trial)?.checks.len())
    }),
    ("checks_passed", "passed checks of the evidence", |row| {
        text(
            crate::evidence::of_trial(row.trial)?
                .checks
                .iter()
                .filter(|check| check.passed)
                .count(),
        )
    }),
];

fn columns() -> Vec<Column> {
    let declared = |list: &'static [Declared]| list.iter().copied().map(Column::Declared);
    let axes = |of_stations: bool| {
        let chosen = move |axis: &Axis| STATIONS.contains(axis) == of_stations;
        let axes = Axis::all().filter(chosen);
        axes.filter_map(|axis| Some(Column::Axis(axis, axis.column()?)))
    };
    declared(CELL)
        .chain(axes(true))
        .chain(declared(TRIAL))
        .chain(declared(ping::COLUMNS))
        .chain(declared(http::COLUMNS))
        .chain(declared(video::COLUMNS))
        .chain(declared(frames::TRAFFIC))
        .chain(axes(false))
        .chain(declared(frames::COLUMNS))
        .chain(declared(disturbed::COLUMNS))
        .chain(declared(soak::COLUMNS))
        .chain(declared(monitored::COLUMNS))
        .chain(declared(device::COLUMNS))
        .chain(declared(compared::COLUMNS))
        .chain(declared(claims::COLUMNS))
        .chain(declared(captures::COLUMNS))
        .collect()
}

/// Writes a header and the rows of each trial in the order of measurement.
pub(crate) fn write(run: &Run<'_>) -> String {
    let mut page = String::new();
    let columns = columns();
    line(
        &mut page,
        columns.iter().map(|column| column.key().to_owned()),
    );
    let standings = compared::standings(&run.results.rankings);
    let claims = claims::by_cell(&run.results.claims);
    for trial in &run.journal.trials {
        let Some(cell) = run.cell(&trial.cell) else {
            continue;
        };
        for figure in figure::figures(trial) {
            let row = Context {
                cell,
                dut: run
                    .planned(cell)
                    .map_or(&cell.dut, |planned| &planned.dut.name),
                trial,
                counts: run.counts(trial),
                figure,
                standings: standings.get(cell.id.as_str()).copied().unwrap_or_default(),
                planned: run.planned(cell),
                claims: claims.get(cell.id.as_str()).map_or(&[], Vec::as_slice),
                warnings: warnings(&run.results.warnings, &cell.id),
            };
            line(
                &mut page,
                columns
                    .iter()
                    .map(|column| column.read(&row).unwrap_or_default()),
            );
        }
    }
    page
}

/// Returns the documentation of the columns, as Markdown.
pub(crate) fn documentation() -> String {
    let mut page = String::from(
        "# results.csv\n\nOne row per trial, in the order of measurement; for a frame test, one per goal, load or other figure of the trial, and for crypto devices one per case, device or start. RFC 4180, UTF-8, a header line. Keys carry units. Figures that do not apply, and figures of an invalid or failed trial, are empty: an invalid cell has no number. Raw counters of every trial are in \
         the journal ([journal.md](../journal.md)). A text that begins with `=`, `+`, `-`, `@`, a tab or a line's \
         end, which a spreadsheet would take for a formula, has an apostrophe in front.\n\nGenerated from the code; a test keeps it \
         true.\n\n| Column | Meaning |\n| --- | --- |\n",
    );
    for column in columns() {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{}` | {} |", column.key(), column.meaning());
    }
    page
}

fn line(page: &mut String, fields: impl Iterator<Item = String>) {
    let visible = fields.map(|field| visible_lines(&field).into_owned());
    let fields: Vec<String> = visible.map(quoted).collect();
    page.push_str(&fields.join(","));
    page.push_str("\r\n");
}

/// Spreadsheets take a text that begins with one of these for a formula, even between quotes, so it
/// is prefixed with an apostrophe (OWASP, CSV injection). Numbers stay numbers.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

fn quoted(mut field: String) -> String {
    if field.starts_with(FORMULA) && field.parse::<f64>().is_err() {
        field.insert(0, '\'');
    }
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// Kinds of the warnings about a cell or about the whole run.
fn warnings(all: &[Warning], cell: &str) -> String {
    let own = all
        .iter()
        .filter(|found| found.cells.is_empty() || found.cells.iter().any(|id| id == cell));
    let name = |found: &Warning| {
        let kind = serde_json::to_value(found.kind).ok()?;
        kind.as_str().map(str::to_owned)
    };
    let names: Vec<String> = own.filter_map(name).collect();
    names.join(" ")
}

fn reasons(trial: &TrialRecord) -> Option<String> {
    match &trial.outcome {
        Outcome::Measured(_) => None,
        Outcome::Invalid { reasons, .. } => Some(reasons.join("; ")),
        Outcome::Failed { reason } => Some(reason.clone()),
    }
}

fn transfer<'a>(row: &Context<'a>) -> Option<&'a Transfer> {
    measured(row.trial)?.transfer()
}

/// The other direction of a duplex transfer.
fn reverse<'a>(row: &Context<'a>) -> Option<&'a Transfer> {
    transfer(row)?.reverse.as_deref()
}

fn tcp<'a>(row: &Context<'a>) -> Option<&'a TcpFacts> {
    transfer(row)?.tcp.as_ref()
}

fn latency<'a>(row: &Context<'a>) -> Option<&'a Latency> {
    measured(row.trial)?.latency()
}

fn cpu<'a>(row: &Context<'a>) -> Option<&'a Cpu> {
    measured(row.trial).map(|found| &found.cpu)
}

fn bps(transfer: &Transfer, bytes: fn(&Transfer) -> u64) -> Option<String> {
    let seconds = transfer.duration_ns as f64 / 1e9;
    (transfer.duration_ns > 0).then(|| format!("{:.0}", 8.0 * bytes(transfer) as f64 / seconds))
}

fn round_trip(latency: &Latency, per_mille: u64) -> Option<String> {
    let mut sorted = latency.round_trips_ns.clone();
    sorted.sort_unstable();
    text(percentile(&sorted, per_mille)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_separators_are_quoted() {
        let mut page = String::new();
        line(
            &mut page,
            ["a", "b,c", "say \"x\"", "two\nlines"]
                .map(str::to_owned)
                .into_iter(),
        );
        assert_eq!(page, "a,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\"\r\n");
    }

    #[test]
    fn column_keys_are_unique() {
        let mut keys: Vec<_> = columns().iter().map(Column::key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), columns().len());
    }
}
