//! Soaks in a few words and numbers.

use super::{Fact, repeats};
use crate::format::{Scale, counted};
use crate::layout::Run;
use crate::layout::frames::{FrameKind, FrameSet};
use crate::tables::frames::change;
use stats::SoakRun;
use units::human::duration_ns;

/// One fact per soak of the device.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let sets = run.frame_sets_of(FrameKind::Soak);
    sets.iter().filter_map(|set| fact(device, set)).collect()
}

fn fact(device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let cell = set.own_cell(device)?;
    let found = cell.frames()?.soak()?;
    let worst = found.runs.iter().max_by_key(|run| run.verdict)?;
    let rate = found.load.forwarded.frames_per_s.mean;
    let mut detail = format!(
        "{} frames lost, {}",
        found.runs.iter().map(|run| run.lost).sum::<u64>(),
        counted(
            found
                .runs
                .iter()
                .map(|run| u64::from(run.stalls))
                .sum::<u64>(),
            "stall"
        )
    );
    detail.push_str(&drifts(worst));
    if let Some(first) = worst.reasons.first() {
        detail.push_str(&format!("; {first}"));
    }
    Some(Fact {
        label: format!("Soak, {}", duration_ns(found.asked_ns as f64)),
        figure: found.verdict.name().to_owned(),
        unit: format!("at {}", Scale::si(rate, "pps").value(rate)),
        range: repeats(&found.load.forwarded.frames_per_s, &Scale::si(rate, "pps")),
        detail,
    })
}

/// `; latency +1.20 %, memory 0.00 %`.
fn drifts(run: &SoakRun) -> String {
    let known = [
        ("latency", &run.latency_drift),
        ("memory", &run.memory_drift),
    ];
    let known = known.iter().filter_map(|(name, drift)| {
        let drift = drift.as_ref().filter(|drift| drift.is_estimated())?;
        Some(format!("{name} {}", change(drift.change_ratio)))
    });
    let known: Vec<String> = known.collect();
    if known.is_empty() {
        String::new()
    } else {
        format!("; {}", known.join(", "))
    }
}
