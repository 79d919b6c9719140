//! A soak over time: rate and loss, latency, memory and CPU time of the device, with ticks at key
//! changes. One block of panels per device.

use crate::kit::chart::scale::Linear;
use crate::kit::chart::time::{TimePlot, Times};
use crate::kit::chart::{Anchor, Area, Key, LEGEND_HEIGHT, Svg, WIDTH, shortened};
use crate::kit::format::{Scale, time_ns};
use crate::layout::Run;
use crate::layout::evidence::measured;
use crate::topic::frames::chart::Mix;
use journal::record::{FrameResult, SoakPoint, SoakSegment};
use maud::Markup;
use stats::{CellResult, SoakVerdict};

const LEFT: f64 = 56.0;
/// Height above a block: its name, and the ticks of rekeys.
const ABOVE: f64 = 44.0;
const BELOW: f64 = 30.0;
const RATE_HEIGHT: f64 = 90.0;
const SMALL_HEIGHT: f64 = 62.0;
const GAP: f64 = 28.0;
/// Maximum steps of a line; longer timelines are merged.
const MAX_STEPS: usize = 480;

/// Values of a step for up to three lines.
type Values = fn(&Step) -> [Option<f64>; 3];

/// One repeat of a device.
struct Block<'a> {
    cell: &'a CellResult,
    repeat: u32,
    verdict: SoakVerdict,
    /// Parts without pauses, with a pause between each two.
    parts: Vec<Vec<Step>>,
}

/// Points of a timeline, merged if there are too many to draw.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    start_s: f64,
    end_s: f64,
    intended: u64,
    received: u64,
    /// Intended rate, per second and direction.
    rate: f64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: u64,
    resident_bytes: Option<u64>,
    cores: Option<f64>,
    rekeys: u64,
    desyncs: u64,
}

/// A panel below the rate: its name, a step's values, and their unit.
type Lines = (&'static str, Values, fn(f64) -> Scale);

/// One panel per unit, the device's last; drawn if any step has a value.
static PANELS: [Lines; 3] = [
    (
        "latency: p50, p99, max",
        |step| {
            let time = |value: Option<u64>| value.map(|value| value as f64);
            // Without a frame, the slowest time is 0, which is no latency.
            let max = (step.received > 0).then_some(step.max_ns as f64);
            [time(step.p50_ns), time(step.p99_ns), max]
        },
        Scale::time,
    ),
    (
        "memory of the device, MiB",
        |step| {
            [
                step.resident_bytes
                    .map(|bytes| bytes as f64 / f64::from(1 << 20)),
                None,
                None,
            ]
        },
        |_| Scale::plain(),
    ),
    (
        "cores that it keeps busy",
        |step| [step.cores, None, None],
        |_| Scale::plain(),
    ),
];

/// The chart of one mix; `None` if no trial has a timeline.
pub(super) fn draw(mix: Mix<'_>, id: &str) -> Option<Markup> {
    let block = |cell| Block::of(mix.run, cell);
    let blocks: Vec<Block<'_>> = mix.cells().filter_map(block).collect();
    let all = || blocks.iter().flat_map(Block::steps);
    let end_s = all().map(|step| step.end_s).fold(0.0, f64::max);
    if end_s <= 0.0 {
        return None;
    }
    let times = Times::new(end_s, 10.0);
    let highest = all().map(|step| step.rate).fold(0.0, f64::max);
    let rates = Linear::si(1.05 * highest, 3.0, "pps");
    // Blocks have different heights, as only panels with values are drawn.
    let heights: Vec<f64> = blocks.iter().map(Block::height).collect();
    let mut svg = Svg::new(id);
    svg.legend([
        (Key::Swatch("lost-area"), "lost"),
        (Key::Line("mark"), "new keys"),
        (Key::Line("trace stroke-0"), "p50"),
    ]);
    let mut top = LEGEND_HEIGHT;
    for (block, height) in blocks.iter().zip(heights) {
        block.draw(&mut svg, mix.run, top, &rates, &times);
        top += height;
    }
    let words = blocks.iter().map(Block::words);
    Some(mix.finish(svg, "Soak over time", words))
}

impl<'a> Block<'a> {
    /// Chooses the first repeat with the worst verdict.
    fn of(run: &Run<'a>, cell: &'a CellResult) -> Option<Self> {
        let runs = &cell.frames()?.soak()?.runs;
        let worst = runs.iter().map(|one| one.verdict).max()?;
        // `max_by_key` would return the last one of several.
        let shown = runs.iter().find(|one| one.verdict == worst)?;
        let directions = match cell.traffic() {
            Some(traffic) if traffic.duplex => 2.0,
            _ => 1.0,
        };
        run.trials(cell).find_map(|trial| {
            if trial.repeat != shown.repeat {
                return None;
            }
            let found: &FrameResult = measured(trial)?.frames()?;
            let parts = parts(found.soak(), directions);
            (!parts.is_empty()).then_some(Self {
                cell,
                repeat: trial.repeat,
                verdict: shown.verdict,
                parts,
            })
        })
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.parts.iter().flatten()
    }

    /// The panels with something to draw.
    fn panels(&self) -> impl Iterator<Item = &'static Lines> {
        PANELS.iter().filter(|(_, values, _)| {
            self.steps()
                .any(|step| values(step).iter().any(Option::is_some))
        })
    }

    fn height(&self) -> f64 {
        let small = self.panels().count() as f64;
        ABOVE + RATE_HEIGHT + small * (GAP + SMALL_HEIGHT) + BELOW
    }

    fn draw(&self, svg: &mut Svg, run: &Run<'_>, top: f64, rates: &Linear, times: &Times) {
        let width = WIDTH - LEFT - 8.0;
        let mut plot = Area::new(LEFT, top + ABOVE, width, RATE_HEIGHT);
        let name = format!(
            "{}, repeat {}: {}",
            run.label(&self.cell.dut),
            self.repeat,
            self.verdict.name()
        );
        let (class, position) = ("label strong", (0.0, plot.y - 26.0));
        svg.text(
            class,
            position,
            Anchor::Start,
            &shortened(class, &name, 600.0),
        );
        self.marks(svg, plot, times);
        svg.y_axis(plot, rates, rates.unit());
        self.rates(svg, run, plot, rates, times);
        for (name, values, scale) in self.panels() {
            plot = plot.bar(plot.bottom() + GAP, plot.width, SMALL_HEIGHT);
            svg.text("tick", (plot.x + 4.0, plot.y - 6.0), Anchor::Start, name);
            self.lines(svg, run, plot, (*values, *scale), times);
        }
        times.draw(svg, plot, &format!(" {}", times.unit));
    }

    fn rates(&self, svg: &mut Svg, run: &Run<'_>, plot: Area, axis: &Linear, times: &Times) {
        let device = (&*self.cell.dut, run.color(&self.cell.dut));
        let plot = TimePlot { plot, times, axis };
        for part in &self.parts {
            let rates = |of: fn(&Step) -> f64| {
                let steps = part.iter();
                steps.map(move |step| (step.start_s, step.end_s, of(step)))
            };
            let has_lost = part.iter().any(|step| step.received < step.intended);
            // Frames from a queue may exceed the intended ones of their point: then nothing is
            // lost.
            let intended = has_lost.then(|| rates(|step| step.rate.max(step.received_rate())));
            plot.received_and_lost(svg, device, rates(Step::received_rate), intended);
        }
    }

    /// Draws up to three lines of one unit.
    fn lines(
        &self,
        svg: &mut Svg,
        run: &Run<'_>,
        plot: Area,
        (values, scale): (Values, fn(f64) -> Scale),
        times: &Times,
    ) {
        let highest = self.steps().flat_map(values).flatten().fold(0.0, f64::max);
        let axis = Linear::new(1.05 * highest, 3.0, scale(highest));
        svg.y_axis(plot, &axis, axis.unit());
        let color = format!("trace stroke-{}", run.color(&self.cell.dut));
        // For latency, the median is the grey line.
        let classes = if self.steps().any(|step| values(step)[1].is_some()) {
            ["trace stroke-0", &color, "breach-thin"]
        } else {
            [&*color, &color, &color]
        };
        let axis = &axis;
        let plot = TimePlot { plot, times, axis };
        for (index, class) in classes.into_iter().enumerate() {
            for part in &self.parts {
                let value = |step: &Step| Some((step.start_s, step.end_s, values(step)[index]?));
                let corners = plot.corners(part.iter().filter_map(value));
                if !corners.is_empty() {
                    svg.polyline(class, &corners, "");
                }
            }
        }
    }

    /// Draws a tick for each step with key changes; a long one if the keys fell out of step.
    fn marks(&self, svg: &mut Svg, plot: Area, times: &Times) {
        for step in self.steps() {
            let x = plot.x_at(times.share(f64::midpoint(step.start_s, step.end_s)));
            if step.desyncs > 0 {
                svg.line("breach", (x, plot.y - 12.0), (x, plot.bottom()));
            } else if step.rekeys > 0 {
                svg.line("mark", (x, plot.y - 8.0), (x, plot.y - 2.0));
            }
        }
    }

    fn words(&self) -> String {
        let sum = |of: fn(&Step) -> u64| self.steps().map(of).sum::<u64>();
        let slowest = self.steps().map(|step| step.max_ns).max().unwrap_or(0);
        format!(
            "{}: {}, {} of {} frames lost, slowest {}",
            self.cell.dut,
            self.verdict.name(),
            sum(|step| step.intended.saturating_sub(step.received)),
            sum(|step| step.intended),
            time_ns(slowest as f64)
        )
    }
}

impl Step {
    fn received_rate(&self) -> f64 {
        self.rate * self.received as f64 / self.intended.max(1) as f64
    }

    /// Merges points of one segment that began `since_s` after the first segment.
    fn of(points: &[SoakPoint], end_ns: u64, since_s: f64, directions: f64) -> Option<Self> {
        let first = points.first()?;
        let (start_s, end_s) = (first.at_ns as f64 / 1e9, end_ns as f64 / 1e9);
        let sum = |of: fn(&SoakPoint) -> u64| points.iter().map(of).sum::<u64>();
        let most = |of: fn(&SoakPoint) -> Option<u64>| points.iter().filter_map(of).max();
        let devices = || points.iter().filter_map(|point| point.device);
        let intended = sum(|point| point.intended);
        // The time of points without a reading must not dilute the load of the others.
        let spent = devices().filter_map(|one| Some((one.cpu_ns?, one.wall_ns)));
        let (cpu_ns, wall_ns) = spent.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        // A point without a length has no rate.
        (end_s > start_s).then(|| Self {
            start_s: since_s + start_s,
            end_s: since_s + end_s,
            intended,
            received: sum(|point| point.received),
            rate: intended as f64 / (end_s - start_s) / directions,
            // Percentiles cannot be merged, so the worst of the points is drawn.
            p50_ns: most(|point| point.p50_ns),
            p99_ns: most(|point| point.p99_ns),
            max_ns: most(|point| Some(point.max_ns)).unwrap_or(0),
            resident_bytes: devices().filter_map(|one| one.resident_bytes).max(),
            cores: (wall_ns > 0).then(|| cpu_ns as f64 / wall_ns as f64),
            rekeys: devices().filter_map(|one| one.rekeys).sum(),
            desyncs: devices().filter_map(|one| one.desyncs).sum(),
        })
    }
}

/// Returns the steps of each segment. A point ends at the next one. A segment's last point may be
/// cut off, so its end is estimated from its frames.
fn parts(segments: &[SoakSegment], directions: f64) -> Vec<Vec<Step>> {
    let points: usize = segments.iter().map(|segment| segment.points.len()).sum();
    let merge = points.div_ceil(MAX_STEPS).max(1);
    let first_ns = segments.first().map_or(0, |first| first.started_unix_ns);
    let parts = segments.iter().map(|segment| {
        // Wall clocks may be set back between segments.
        let since_s = segment.started_unix_ns.saturating_sub(first_ns) as f64 / 1e9;
        let points = &segment.points;
        let fullest = points
            .iter()
            .map(|point| point.intended)
            .max()
            .unwrap_or(0)
            .max(1);
        let end_ns = |index: usize| match points.get(index + 1) {
            Some(next) => next.at_ns,
            None => {
                let share = points[index].intended as f64 / fullest as f64;
                points[index].at_ns + (segment.point_ns as f64 * share) as u64
            }
        };
        let steps = (0..points.len()).step_by(merge).filter_map(|from| {
            let to = (from + merge).min(points.len());
            Step::of(&points[from..to], end_ns(to - 1), since_s, directions)
        });
        steps.collect::<Vec<Step>>()
    });
    parts.filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_timelines_keep_their_frames_their_slowest_and_their_pauses() {
        let point = |index: u64| SoakPoint {
            at_ns: index * 1_000_000_000,
            intended: 10,
            received: index % 10,
            max_ns: index,
            ..SoakPoint::default()
        };
        let segment = |start_s: u64| SoakSegment {
            started_unix_ns: start_s * 1_000_000_000,
            point_ns: 1_000_000_000,
            points: (0..1_000).map(point).collect(),
            ..SoakSegment::default()
        };
        let parts = parts(&[segment(50), segment(1_100)], 1.0);
        assert_eq!(parts.len(), 2);
        let steps: Vec<&Step> = parts.iter().flatten().collect();
        assert!(steps.len() <= MAX_STEPS + 2, "{}", steps.len());
        assert_eq!(steps.iter().map(|step| step.intended).sum::<u64>(), 20_000);
        assert_eq!(steps.iter().map(|step| step.received).sum::<u64>(), 9_000);
        assert_eq!(steps.iter().map(|step| step.max_ns).max(), Some(999));
        assert!((parts[0].last().unwrap().end_s - 1_000.0).abs() < 1e-6);
        assert!((parts[1][0].start_s - 1_050.0).abs() < 1e-6);
        assert!(steps.iter().all(|step| (step.rate - 10.0).abs() < 1e-6));
    }

    #[test]
    fn nothing_recorded_is_no_part() {
        assert!(parts(&[], 1.0).is_empty());
        assert!(parts(&[SoakSegment::default()], 1.0).is_empty());
    }
}
