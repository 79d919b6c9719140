//! Limits of the rig without a device.

use super::{mean_rate, share};
use crate::format::Scale;
use crate::layout::Run;
use crate::table::{Cell, Table};
use stats::Calibration;

/// The tester's limits by group; `None` if no cell measures them.
pub(crate) fn calibration(run: &Run<'_>) -> Option<Table> {
    let found = &run.results.calibrations;
    found.first()?;
    let note = "the stations joined without a device; ceiling: relevant lower bound of the first \
                goal, or the highest forwarding rate; loss: in the trials whose evidence is \
                recorded; latency: at the lowest load that was timed, one way unless it says `round trip`";
    let mut table = Table::new("Calibration: the tester alone", note)
        .label("Group")
        .figures(["Ceiling", "L1", "Loss floor", "Timed at", "p50", "p99"])
        .figure("p99 − p50");
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
        (sent, 0) => Cell::plain(format!(
            "0 of {}",
            Scale::si(sent as f64, "").value(sent as f64)
        )),
        (_, lost) => Cell::plain(share(lost, found.loss_floor_ppm.unwrap_or(0.0))),
    };
    let load = found.latency_load_frames_per_s;
    [
        Cell::or_missing(ceiling.map(|rates| mean_rate(&rates.frames_per_s))),
        Cell::or_missing(
            ceiling.map(|rates| Scale::si(rates.l1_bps.mean, "bit/s").value(rates.l1_bps.mean)),
        ),
        loss,
        Cell::or_missing(load.map(|load| {
            let path = if found.latency_is_round_trip {
                ", round trip"
            } else {
                ""
            };
            Scale::si(load, "pps").value(load) + path
        })),
        Cell::time(found.latency_p50_ns),
        Cell::time(found.latency_p99_ns),
        Cell::time(found.latency_p99_less_p50_ns),
    ]
}
