//! Loads, bursts, recovery and services in a few words and numbers.

use super::{Fact, repeats};
use crate::format::{Scale, percent, time_ns};
use crate::layout::Run;
use crate::layout::frames::{FrameKind, FrameSet};
use crate::tables::frames::{mean_rate, share};
use stats::{CellResult, LoadResult};

/// One fact per set with a figure of the device.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let sets = run.frame_sets();
    sets.iter().filter_map(|set| fact(device, set)).collect()
}

fn fact(device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    match set.kind {
        FrameKind::Mrr | FrameKind::Load => of_smallest(device, set, |cell, size| {
            let load = cell.frames()?.loads().first()?;
            Some(single(set, load, cell, size))
        }),
        FrameKind::LossCurve => of_smallest(device, set, |cell, size| {
            curve(set, cell.frames()?.loads(), size)
        }),
        FrameKind::BackToBack => of_smallest(device, set, |cell, size| burst(set, cell, size)),
        FrameKind::Recovery => of_smallest(device, set, |cell, size| recovery(set, cell, size)),
        FrameKind::Service => of_smallest(device, set, |cell, size| service(set, cell, size)),
        _ => None,
    }
}

/// The first figure of the device; smaller frames come first.
fn of_smallest(
    device: &str,
    set: &FrameSet<'_>,
    fact: impl Fn(&CellResult, &str) -> Option<Fact>,
) -> Option<Fact> {
    let cells = super::frames::cells(device, set);
    cells.iter().find_map(|(size, cell)| fact(cell, size))
}

/// `Maximum receive rate of 64 B frames, both`.
pub(super) fn label(set: &FrameSet<'_>, what: &str, size: &str) -> String {
    let direction = set.test.traffic.direction.name();
    let load = set
        .load()
        .map_or_else(String::new, |load| format!(", {load}"));
    format!("{what} of {size} frames, {direction}{load}")
}

/// The received part of a load with its loss, as a rate means little without it.
fn single(set: &FrameSet<'_>, load: &LoadResult, cell: &CellResult, size: &str) -> Fact {
    let received = &load.forwarded.frames_per_s;
    let scale = Scale::si(received.mean, "pps");
    let lost = match load.account.lost {
        0 => "none lost".to_owned(),
        lost => format!("{} lost", share(lost, load.lost_ppm.mean)),
    };
    let mut detail = format!("of {} offered", mean_rate(&load.offered.frames_per_s));
    if let Some(verdict) = cell.verdict() {
        detail.push_str(&format!("; {}", verdict.limit.name()));
    }
    // A device that carries the whole load may carry more.
    let at_least = if set.kind == FrameKind::Mrr && load.account.lost == 0 {
        "at least "
    } else {
        ""
    };
    Fact {
        label: label(set, set.kind.name(), size),
        figure: format!("{at_least}{}", scale.number(received.mean)),
        unit: format!("{}, {lost}", scale.unit),
        range: repeats(received, &scale),
        detail,
    }
}

/// The highest load without loss, and the loss at the next load and at the highest.
fn curve(set: &FrameSet<'_>, loads: &[LoadResult], size: &str) -> Option<Fact> {
    // The highest load comes first.
    let highest = loads.first()?;
    let percent_lost = |load: &LoadResult| percent(load.lost_ppm.mean / 1e4);
    let at_highest = format!(
        "{} lost at the highest load, {}",
        percent_lost(highest),
        mean_rate(&highest.offered.frames_per_s)
    );
    let lossy = loads.iter().rposition(|load| load.account.lost > 0);
    // Loads below the lowest lossy one carried everything.
    let lossless = loads.get(lossy.map_or(0, |at| at + 1));
    let label = label(set, set.kind.name(), size);
    Some(match lossless {
        Some(load) => {
            let offered = &load.offered.frames_per_s;
            let scale = Scale::si(offered.mean, "pps");
            let next = lossy.and_then(|at| loads.get(at));
            let detail = next.map_or_else(
                || "the highest load offered".to_owned(),
                |next| {
                    format!(
                        "{} lost at the next load, {}; {at_highest}",
                        percent_lost(next),
                        mean_rate(&next.offered.frames_per_s)
                    )
                },
            );
            Fact {
                label,
                figure: scale.number(offered.mean),
                unit: format!("{} without loss", scale.unit),
                range: repeats(offered, &scale),
                detail,
            }
        }
        None => {
            let lowest = loads.last()?;
            Fact {
                label,
                figure: percent_lost(lowest),
                unit: "lost at the lowest load".to_owned(),
                range: String::new(),
                detail: format!(
                    "{} offered; {at_highest}",
                    mean_rate(&lowest.offered.frames_per_s)
                ),
            }
        }
    })
}

fn burst(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let found = cell.frames()?.back_to_back()?;
    let scale = Scale::plain();
    let least = if found.longest_tried_passed {
        "≥ "
    } else {
        ""
    };
    let mut detail = Vec::new();
    if let Some(rate) = found.burst_frames_per_s {
        detail.push(format!("at {}", Scale::si(rate, "pps").value(rate)));
    }
    if let Some(buffer) = found.implied_buffer_ns {
        detail.push(format!("{least}{} of buffer", time_ns(buffer)));
    }
    Some(Fact {
        label: label(set, "Longest burst", size),
        figure: format!("{least}{}", scale.number(found.burst_frames.mean)),
        unit: "frames without loss".to_owned(),
        range: repeats(&found.burst_frames, &scale),
        detail: detail.join(", "),
    })
}

fn recovery(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let found = cell.frames()?.recovery()?;
    let label = label(set, "Recovery", size);
    let detail = format!(
        "after an overload of {}; relief: {}",
        mean_rate(&found.overload_frames_per_s),
        mean_rate(&found.relief_frames_per_s)
    );
    Some(match &found.recovery_ns {
        Some(time) => {
            let scale = Scale::time(time.mean);
            Fact {
                label,
                figure: scale.number(time.mean),
                range: repeats(time, &scale),
                unit: format!("{} to the last loss", scale.unit),
                detail,
            }
        }
        None => Fact {
            label,
            figure: match found.not_overloaded {
                0 => "none".to_owned(),
                _ => "no overload".to_owned(),
            },
            unit: match found.not_overloaded {
                0 => "before the time was up".to_owned(),
                _ => "lost a frame".to_owned(),
            },
            range: String::new(),
            detail,
        },
    })
}

fn service(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let found = cell.frames()?.service()?;
    let failed = found.steps.iter().filter(|step| !step.failures.is_empty());
    let failed: Vec<_> = failed.collect();
    let detail = match failed.first() {
        None => String::new(),
        Some(step) => format!("{}: {}", step.step, step.failures[0].trim_end_matches('.')),
    };
    Some(Fact {
        label: label(set, "Service", size),
        figure: if failed.is_empty() {
            "passed".to_owned()
        } else {
            "failed".to_owned()
        },
        unit: match failed.len() {
            0 => format!("all {} steps", found.steps.len()),
            some => format!("{some} of {} steps", found.steps.len()),
        },
        range: String::new(),
        detail,
    })
}
