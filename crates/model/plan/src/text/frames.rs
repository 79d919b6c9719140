//! Frame tests in words.

use crate::words::{highest_load, time};
use crate::{Axis, Cell, FrameTest, Goal, LabPlan, ThroughputSearch};
use units::human;
use units::{FrameRate, Ratio};

/// The traffic of a group, in one line.
pub(super) fn in_words(test: &FrameTest, group: &[Cell]) -> String {
    let mix = &test.traffic.frames.mix;
    let frames = match mix.shares.len() {
        1 => format!("frames of {mix} B"),
        // The campaign spells it out, and its sizes are in the line below.
        _ if mix.name == "mix" => "a mix of frames".to_owned(),
        _ => format!("frames of {}", mix.name),
    };
    // Values of the whole group: flows and tunnels may depend on the DUT.
    let phrase = |axis: Axis| axis.phrase(group.iter().filter_map(|cell| cell.value(axis)));
    let mut parts = vec![test.procedure.kind().name().to_owned(), frames];
    parts.extend(Axis::all().filter_map(phrase));
    let stations = group.first().and_then(|cell| cell.stations);
    parts.extend(stations.map(|stations| format!("MTU {} B", stations.mtu)));
    parts.join(", ")
}

/// Further lines about a group: the mix, its line rate, the procedure.
pub(super) fn details(test: &FrameTest, group: &[Cell], lab: &LabPlan) -> Vec<String> {
    let mut lines = Vec::new();
    let mix = &test.traffic.frames.mix;
    // A single size is in the heading already.
    if mix.shares.len() > 1 {
        let mean = human::number(mix.mean_bytes());
        lines.push(format!("sizes {mix} B, {mean} B on average"));
    }
    lines.extend(line_rates(test, group, lab));
    if let Some(search) = test.procedure.search() {
        lines.extend(search.goals.iter().map(goal));
        lines.push(searched(search));
    }
    lines.extend(test.procedure.plan().in_words());
    lines
}

/// The line rates of a group's cells, with the encapsulation if the station seals.
fn line_rates(test: &FrameTest, group: &[Cell], lab: &LabPlan) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in group {
        let Some(line_rate) = lab.line_rate(cell) else {
            continue;
        };
        let line = match test.traffic.sealed_by_station(&cell.dut.adapter) {
            Some(carrier) => format!("line rate {line_rate} frames/s in {}", carrier.in_words()),
            None => format!("line rate {line_rate} frames/s"),
        };
        // The DUTs of a group often have the same rate: one line is enough for them.
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn goal(goal: &Goal) -> String {
    let ratio = |ppm: u32| Ratio::from_ppm(ppm.into());
    // Some profiles have one length, such as `tst009`.
    let trials = if goal.criteria.initial_trial_ns == goal.criteria.final_trial_ns {
        format!("trials of {}", time(goal.criteria.final_trial_ns))
    } else {
        format!(
            "trials of {} to {}",
            time(goal.criteria.initial_trial_ns),
            time(goal.criteria.final_trial_ns)
        )
    };
    format!(
        "goal {}: loss {}, exceeded in up to {} of {}, {trials}, width {}",
        goal.name,
        ratio(goal.criteria.loss_ratio_ppm),
        ratio(goal.criteria.exceed_ratio_ppm),
        time(goal.criteria.duration_sum_ns),
        ratio(goal.criteria.width_ppm)
    )
}

fn searched(search: &ThroughputSearch) -> String {
    format!(
        "search by profile {} from {} to {}, drain {}, {} at most",
        search.profile.name(),
        FrameRate::new(search.min_load),
        highest_load(search.max_load),
        time(search.drain_ns),
        time(search.timeout_ns)
    )
}
