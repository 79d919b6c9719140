//! Figures of frame tests with one number per device and frame size.

use crate::chart::bars::{Bar, Bars, Lying};
use crate::format::{self, Scale, percent};
use crate::layout::Run;
use crate::layout::frames::{FramePoint, FrameSet};
use crate::tables::frames::mean_rate;
use maud::Markup;
use stats::{CellResult, LoadResult};

/// The received part of the offered load, for `mrr` and `load`; `None` without a figure.
pub(crate) fn loads(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let bars = bars(run, set, |cell| match cell.frames()?.loads() {
        [only] => Some(lying(only)),
        _ => None,
    });
    let title = format!("{}: share of the offered frames received", set.kind.name());
    drawn(run, title, "frames", bars, id, "pps")
}

/// The longest bursts without loss; `None` without a figure.
pub(crate) fn bursts(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let bars = bars(run, set, |cell| {
        let found = cell.frames()?.back_to_back()?;
        let least = if found.longest_tried_passed {
            "≥ "
        } else {
            ""
        };
        let text = Scale::plain().estimate(&found.burst_frames);
        Some(Lying::of(&found.burst_frames, format!("{least}{text}")))
    });
    let title = "Longest burst without loss".to_owned();
    drawn(run, title, "frames in a burst", bars, id, "")
}

/// The recovery times; `None` without a figure.
pub(crate) fn recovery(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let bars = bars(run, set, |cell| {
        let found = cell.frames()?.recovery()?.recovery_ns.as_ref()?;
        Some(Lying::of(found, format::time(found)))
    });
    let bars = Bars {
        title: "Time of recovery from an overload".to_owned(),
        quantity: "time to the last loss",
        lost: "",
        bars,
    };
    bars.draw(run, id, Scale::time)
}

/// The frames received in each step of a service test; `None` without a figure.
pub(crate) fn service(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let mut steps: Vec<&str> = Vec::new();
    for (_, cell) in set.rows() {
        let found = cell.frames().and_then(|found| found.service());
        for step in found.map_or(&[][..], |found| &found.steps) {
            if !steps.contains(&step.step.as_str()) {
                steps.push(&step.step);
            }
        }
    }
    let bars = steps.iter().flat_map(|step| {
        let own = bars(run, set, |cell| {
            let mut all = cell.frames()?.service()?.steps.iter();
            let found = all.find(|one| one.step == *step)?;
            let mut lying = lying(&found.load);
            let result = if found.failures.is_empty() {
                "passed"
            } else {
                "failed"
            };
            lying.text = format!("{}, {result}", lying.text);
            Some(lying)
        });
        own.into_iter().map(move |bar| Bar {
            setting: [step, bar.setting.as_str()]
                .join(", ")
                .trim_end_matches(", ")
                .to_owned(),
            ..bar
        })
    });
    let title = "Service test: share of the offered frames received".to_owned();
    drawn(run, title, "frames", bars.collect(), id, "pps")
}

fn drawn(
    run: &Run<'_>,
    title: String,
    quantity: &'static str,
    bars: Vec<Bar<'_>>,
    id: &str,
    unit: &str,
) -> Option<Markup> {
    let bars = Bars {
        title,
        quantity,
        lost: "offered, but lost",
        bars,
    };
    bars.draw(run, id, |most| Scale::si(most, unit))
}

fn bars<'r>(
    run: &Run<'_>,
    set: &FrameSet<'r>,
    figure: impl Fn(&CellResult) -> Option<Lying>,
) -> Vec<Bar<'r>> {
    let setting = |point: &FramePoint<'_>| match set.points.len() {
        1 => String::new(),
        _ => format!("{} frames", point.name()),
    };
    let bar = |(point, cell): (&FramePoint<'r>, &'r CellResult)| Bar {
        setting: setting(point),
        name: crate::layout::frames::Device::of(cell).label(run),
        cell,
        figure: figure(cell),
    };
    set.rows().map(bar).collect()
}

/// `402 of 1520 kpps, 73.6 % lost`.
fn lying(load: &LoadResult) -> Lying {
    let (received, offered) = (&load.forwarded.frames_per_s, &load.offered.frames_per_s);
    let scale = Scale::si(offered.mean, "pps");
    let lost = match load.account.lost {
        0 => "none lost".to_owned(),
        _ => format!("{} lost", percent(load.lost_ppm.mean / 1e4)),
    };
    let received_text = scale.number(received.mean);
    Lying {
        value: received.mean,
        reach: received.largest_distance,
        offered: Some(offered.mean),
        text: format!("{received_text} of {}, {lost}", mean_rate(offered)),
    }
}
