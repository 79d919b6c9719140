//! A load over time, with marks at events: one panel per device.

use crate::kit::chart::scale::Linear;
use crate::kit::chart::time::{TimePlot, Times};
use crate::kit::chart::{Anchor, Area, Key, LEGEND_HEIGHT, Spot, Svg, WIDTH, shortened};
use crate::kit::format::{Scale, time_ns};
use crate::layout::Run;
use crate::layout::evidence::measured;
use crate::topic::frames::chart::Mix;
use journal::record::{Disturbance, DutEvent, FrameResult, Timeline};
use maud::Markup;
use plan::ProcedureKind;
use stats::CellResult;

const LEFT: f64 = 56.0;
/// Height above a panel: its name, and below that two lines of the events' names.
const ABOVE: f64 = 52.0;
const NAME_LINES: [f64; 2] = [10.0, 22.0];
const BELOW: f64 = 30.0;
const RATE_HEIGHT: f64 = 110.0;
const LATENCY_HEIGHT: f64 = 80.0;
const GAP: f64 = 28.0;
/// Maximum steps of a line; longer timelines are merged.
const MAX_STEPS: usize = 450;
/// Above this number, events are ticks without names.
const MAX_NAMED: usize = 12;

/// One trial of a device.
struct Panel<'a> {
    cell: &'a CellResult,
    repeat: u32,
    disturbance: &'a Disturbance,
    /// The trial without events.
    quiet: Option<&'a Disturbance>,
    steps: Vec<Step>,
    directions: f64,
}

/// Intended and received frames between two moments, per second and direction.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    start_s: f64,
    end_s: f64,
    intended: f64,
    received: f64,
    latency_ns: u64,
}

/// The chart of one mix; `None` if no trial has a timeline, or under attack, since nothing is done
/// to the device then.
pub(super) fn draw(mix: Mix<'_>, id: &str) -> Option<Markup> {
    if mix.set.kind == ProcedureKind::Hostile {
        return None;
    }
    let directions = if mix.point.traffic.duplex { 2.0 } else { 1.0 };
    let panel = |cell| Panel::of(mix.run, cell, directions);
    let panels: Vec<Panel<'_>> = mix.cells().filter_map(panel).collect();
    let all = || panels.iter().flat_map(|panel| &panel.steps);
    let end_s = all().map(|step| step.end_s).fold(0.0, f64::max);
    if end_s <= 0.0 {
        return None;
    }
    let with_latency = mix.set.kind == ProcedureKind::Rekey;
    let below = if with_latency {
        GAP + LATENCY_HEIGHT
    } else {
        0.0
    };
    let panel_height = ABOVE + RATE_HEIGHT + below + BELOW;
    let times = Times::seconds(end_s, 10.0);
    let highest = all().map(|step| step.intended.max(step.received));
    // Room above the highest rate, so that a line at the intended rate is visible.
    let rates = Linear::si(1.05 * highest.fold(0.0, f64::max), 3.0, "pps");
    let mut svg = Svg::new(id);
    svg.legend([
        (Key::Swatch("lost-area"), "lost"),
        (Key::Line("mark"), "events"),
    ]);
    for (index, panel) in panels.iter().enumerate() {
        let top = LEGEND_HEIGHT + panel_height * index as f64 + ABOVE;
        let plot = Area::new(LEFT, top, WIDTH - LEFT - 8.0, RATE_HEIGHT);
        // Ticks and events apply to both plots of a panel.
        let whole = plot.bar(top, plot.width, RATE_HEIGHT + below);
        panel.name(&mut svg, mix.run, plot);
        svg.y_axis(plot, &rates, rates.unit());
        panel.rates(&mut svg, mix.run, plot, &rates, &times);
        if with_latency {
            let plot = plot.bar(plot.bottom() + GAP, plot.width, LATENCY_HEIGHT);
            panel.latency(&mut svg, mix.run, plot, &times);
        }
        times.draw(&mut svg, whole, " s");
        panel.marks(&mut svg, whole, &times);
    }
    let title = format!("{}: frames received over time", mix.set.kind.title());
    let words = panels.iter().map(Panel::words);
    Some(mix.finish(svg, &title, words))
}

impl<'a> Panel<'a> {
    /// Chooses the first repeat in which the device did not recover, else the first one with a
    /// figure; in it, the first trial with an event.
    fn of(run: &Run<'a>, cell: &'a CellResult, directions: f64) -> Option<Self> {
        let figures = cell.frames()?.disturbance()?;
        // The worst repeat shows what a mean of the repeats would hide.
        let worst = figures.not_recovered().first().map(|event| event.repeat);
        let mut trials = run.trials(cell);
        trials.find_map(|trial| {
            if worst.is_some_and(|worst| worst != trial.repeat) {
                return None;
            }
            let found: &FrameResult = measured(trial)?.frames()?;
            let all = || found.disturbances().iter();
            let disturbance = all().find(|one| !one.events.is_empty())?;
            let steps = steps(&disturbance.timeline, directions);
            (!steps.is_empty()).then_some(Self {
                cell,
                repeat: trial.repeat,
                disturbance,
                // The load without events is measured first.
                quiet: all().next().filter(|one| one.events.is_empty()),
                steps,
                directions,
            })
        })
    }

    fn name(&self, svg: &mut Svg, run: &Run<'_>, plot: Area) {
        let name = format!("{}, repeat {}", run.label(&self.cell.dut), self.repeat);
        let name = shortened("label strong", &name, 400.0);
        let position = (plot.x, plot.y - 36.0);
        svg.text("label strong", position, Anchor::Start, &name);
    }

    fn rates(&self, svg: &mut Svg, run: &Run<'_>, plot: Area, axis: &Linear, times: &Times) {
        let rates = |of: fn(&Step) -> f64| {
            let steps = self.steps.iter();
            steps.map(move |step| (step.start_s, step.end_s, of(step)))
        };
        let received = rates(|step| step.received);
        // Frames from a queue may exceed the intended ones of their time: then nothing is lost.
        let intended = rates(|step| step.intended.max(step.received));
        let device = (&*self.cell.dut, run.color(&self.cell.dut));
        let plot = TimePlot { plot, times, axis };
        plot.received_and_lost(svg, device, received, Some(intended));
    }

    /// Draws the slowest frame of each step, and that of the trial without events.
    fn latency(&self, svg: &mut Svg, run: &Run<'_>, plot: Area, times: &Times) {
        let quiet = self
            .quiet
            .map_or_else(Vec::new, |quiet| steps(&quiet.timeline, self.directions));
        let all = || self.steps.iter().chain(&quiet);
        let slowest = all().map(|step| step.latency_ns).max().unwrap_or(0) as f64;
        let axis = Linear::new(slowest, 3.0, Scale::time(slowest));
        svg.y_axis(plot, &axis, axis.unit());
        let color = format!("trace stroke-{}", run.color(&self.cell.dut));
        for (class, steps) in [("trace stroke-0", &quiet), (&color, &self.steps)] {
            // The load without events may have lasted longer than the chart.
            let within = steps.iter().filter(|step| times.share(step.end_s) <= 1.0);
            let values = within.map(|step| (step.start_s, step.end_s, step.latency_ns as f64));
            let axis = &axis;
            let corners = TimePlot { plot, times, axis }.corners(values);
            svg.polyline(class, &corners, "slowest frame");
        }
    }

    /// Draws a line at each event; an event that lasted is named with its duration.
    fn marks(&self, svg: &mut Svg, plot: Area, times: &Times) {
        let events = &self.disturbance.events;
        let place = |event: &DutEvent| plot.x_at(times.share(event.at_ns as f64 / 1e9));
        if events.len() > MAX_NAMED {
            for event in events {
                let x = place(event);
                svg.line("mark", (x, plot.y - 7.0), (x, plot.y - 1.0));
            }
            return;
        }
        for event in events {
            let x = place(event);
            svg.line("mark", (x, plot.y - 5.0), (x, plot.bottom()));
        }
        // A name that would cover another moves to the next line or is left out; its mark stays.
        for event in events {
            let x = place(event);
            let spots = NAME_LINES.into_iter().flat_map(|above| {
                let y = plot.y - above;
                [Spot::start((x - 2.0, y)), Spot::end((x + 2.0, y))]
            });
            svg.label("tick", spots.collect(), &words(event));
        }
    }

    fn words(&self) -> String {
        let events: Vec<String> = self
            .disturbance
            .events
            .iter()
            .take(MAX_NAMED)
            .map(|event| format!("{} at {}", words(event), time_ns(event.at_ns as f64)))
            .collect();
        format!("{}: {}", self.cell.dut, events.join(", "))
    }
}

/// `restart, 1.20 s`: the event, and for how long frames were lost after it.
fn words(event: &DutEvent) -> String {
    match event.outage_ns {
        Some(0) | None => event.name.clone(),
        Some(outage) => format!("{}, {}", event.name, time_ns(outage as f64)),
    }
}

/// Rates of the bins, merged if there are too many to draw.
fn steps(timeline: &Timeline, directions: f64) -> Vec<Step> {
    let merge = timeline.bins.len().div_ceil(MAX_STEPS).max(1);
    let second = |bins: usize| (bins as u64 * timeline.bin_ns) as f64 / 1e9;
    let mut start = 0;
    let merged = timeline.bins.chunks(merge).map(|bins| {
        let (start_s, end_s) = (second(start), second(start + bins.len()));
        start += bins.len();
        let rate = |frames: u64| frames as f64 / (end_s - start_s) / directions;
        Step {
            start_s,
            end_s,
            intended: rate(bins.iter().map(|bin| bin.intended).sum()),
            received: rate(bins.iter().map(|bin| bin.received).sum()),
            latency_ns: bins.iter().map(|bin| bin.latency_ns_max).max().unwrap_or(0),
        }
    });
    let steps: Vec<Step> = merged.collect();
    // A damaged journal may contain bins without a width.
    match timeline.bin_ns {
        0 => Vec::new(),
        _ => steps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::TimeBin;

    #[test]
    fn long_timelines_keep_their_frames_and_their_slowest() {
        let bin = |index: u64| TimeBin {
            intended: 10,
            received: index % 10,
            latency_ns_max: index,
        };
        let timeline = Timeline {
            bin_ns: 1_000_000,
            bins: (0..3_001).map(bin).collect(),
        };
        let steps = steps(&timeline, 2.0);
        assert!(steps.len() <= MAX_STEPS, "{}", steps.len());
        let frames = |rate: fn(&Step) -> f64| -> f64 {
            let of = |step: &Step| 2.0 * rate(step) * (step.end_s - step.start_s);
            steps.iter().map(of).sum()
        };
        assert!((frames(|step| step.intended) - 30_010.0).abs() < 1e-6);
        assert!((frames(|step| step.received) - 13_500.0).abs() < 1e-6);
        assert_eq!(steps.iter().map(|step| step.latency_ns).max(), Some(3_000));
    }

    #[test]
    fn bins_without_a_width_are_no_timeline() {
        let timeline = Timeline {
            bin_ns: 0,
            bins: vec![TimeBin::default()],
        };
        assert_eq!(steps(&timeline, 1.0), []);
    }
}
