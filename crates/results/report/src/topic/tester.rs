//! The tester itself, and the bottleneck of each figure.

use super::frames::{mean_rate, share, verdict};
use crate::kit::format::{counted, si};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::grouped;
use stats::{Calibration, FrameFigures, PortUsed};

pub(super) const SECTION: Section = Section::result(
    "tester",
    "The tester, and what limits each figure",
    |run, out| {
        if run.frame_sets().is_empty() {
            return;
        }
        out.tables(calibration(run));
        out.tables(mixes(run));
        out.tables(ports(run));
        let title = "What limits each figure, and the evidence for it";
        out.details(title, verdicts(run));
        if out.is_empty() {
            out.note("No figure yet.");
        }
    },
)
.named("The tester")
.beside();

/// The tester's limits by group; `None` if no cell measures them.
fn calibration(run: &Run<'_>) -> Option<Table> {
    let found = &run.results.calibrations;
    found.first()?;
    let note = "the stations joined without a device; ceiling: relevant lower bound of the first \
                goal, or the highest forwarding rate; loss: in the trials whose evidence is \
                recorded; latency: at the lowest load that was timed, one way unless it says `round trip`";
    let mut table = Table::new("Calibration: the tester alone", note)
        .labels(["Group"])
        .figures(["Ceiling", "L1", "Loss floor", "Timed at", "p50", "p99"])
        .figures(["p99 − p50"]);
    for one in found {
        let mut cells = vec![Cell::label(&one.group)];
        cells.extend(figures(one));
        table.push(cells);
    }
    Some(table)
}

fn figures(found: &Calibration) -> [Cell; 7] {
    let ceiling = found.ceiling.as_ref();
    let loss = match (found.sent, found.lost) {
        (0, _) => Cell::missing(),
        // The number of frames shows how small a loss would have been seen.
        (sent, 0) => Cell::plain(format!("0 of {}", si(sent as f64, ""))),
        (_, lost) => Cell::plain(share(lost, found.loss_floor_ppm.unwrap_or(0.0))),
    };
    let load = found.latency_load_frames_per_s;
    [
        Cell::or_missing(ceiling.map(|rates| mean_rate(&rates.frames_per_s))),
        Cell::or_missing(ceiling.map(|rates| si(rates.l1_bps.mean, "bit/s"))),
        loss,
        Cell::or_missing(load.map(|load| {
            let path = if found.latency_is_round_trip {
                ", round trip"
            } else {
                ""
            };
            si(load, "pps") + path
        })),
        Cell::time(found.latency_p50_ns),
        Cell::time(found.latency_p99_ns),
        Cell::time(found.latency_p99_less_p50_ns),
    ]
}

/// Every verdict with its sentence; `None` without any.
fn verdicts(run: &Run<'_>) -> Option<Table> {
    let judged = || {
        let cells = run.results.cells.iter();
        cells.filter_map(|cell| Some((cell, cell.verdict()?)))
    };
    judged().next()?;
    let note = format!(
        "{} of frame tests; a figure is link-limited from {:.0} % of the link's rate on, \
         machine-limited if stations and device share cores or a station had no idle time, and \
         tester-limited if it is surely at least {:.0} % of the tester's rate without a device \
         (Student's t on logarithms of paired repeats, 5 % over all of these cells, Holm); one repeat decides nothing",
        counted(judged().count() as u64, "cell"),
        100.0 * stats::LINK_LIMITED_RATIO,
        100.0 * stats::TESTER_LIMITED_RATIO
    );
    let mut table = Table::new("What limits each figure", note)
        .labels(["Cell"])
        .texts(["Verdict", "Because"]);
    for (cell, found) in judged() {
        table.push(vec![
            Cell::label(&cell.id),
            verdict(cell),
            Cell::plain(&found.reason),
        ]);
    }
    Some(table)
}

/// How the stations sent and received, one row per path; `None` without frame tests.
fn ports(run: &Run<'_>) -> Option<Table> {
    let note = "the fastest that works is taken unless the campaign says otherwise";
    let mut table = Table::new("Ports of the tester", note)
        .labels(["End", "Port"])
        .figures(["Threads"])
        .texts(["Crypto"])
        .figures(["Cells"])
        .texts(["Why none faster"]);
    type Port = fn(&FrameFigures) -> &PortUsed;
    let ends: [(&str, Port); 2] = [
        ("sender", |found| &found.sender),
        ("receiver", |found| &found.receiver),
    ];
    for (end, port) in ends {
        let found = run.results.cells.iter().filter_map(|cell| cell.frames());
        let different = grouped(found.map(|found| (port(found), ())));
        for (used, cells) in different {
            let why = if used.passed_over.is_empty() {
                "–".to_owned()
            } else {
                used.passed_over.join("; ")
            };
            // The modes of XDP decide how fast the port can be, so they are part of its name.
            let mut port = used.ports.join(", ");
            if !used.xdp_modes.is_empty() {
                port = format!("{port} ({})", used.xdp_modes.join("; "));
            }
            table.push(vec![
                Cell::label(end),
                Cell::label(port),
                Cell::plain(used.threads.to_string()),
                Cell::or_missing(used.engine.clone()),
                Cell::plain(cells.len().to_string()),
                Cell::plain(why),
            ]);
        }
    }
    table.with_rows()
}

/// Composition of each mix; `None` if every test uses a fixed frame size.
fn mixes(run: &Run<'_>) -> Option<Table> {
    let note = "sizes include the FCS; numbers are of frames";
    let mut table = Table::new("Mixes of frame sizes", note)
        .labels(["Mix"])
        .texts(["Genome"])
        .figures(["Mean size"]);
    let traffic = run.results.cells.iter().filter_map(|cell| cell.traffic());
    let mixes = traffic.filter(|traffic| traffic.frame_bytes.is_none());
    // By genome, as a campaign may give one mix by its name and also spell it out.
    for (genome, alike) in grouped(mixes.map(|traffic| (&traffic.genome, traffic))) {
        table.push(vec![
            Cell::label(&alike[0].mix),
            Cell::plain(genome),
            Cell::plain(format!("{:.1} B", alike[0].mean_frame_bytes)),
        ]);
    }
    table.with_rows()
}
