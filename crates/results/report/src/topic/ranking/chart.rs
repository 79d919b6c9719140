//! Devices in the order of their ranks: horizontal bars with intervals, or marks on a logarithmic
//! axis if values span decades, next to payload per CPU-second.

use super::{Ranked, caption, name, rank_text, scale, standing};
use crate::kit::chart::scale::{Axis, Values};
use crate::kit::chart::{Anchor, Area, Spot, Svg, WIDTH, shortened_name};
use crate::kit::format::Scale;
use crate::layout::Run;
use maud::Markup;
use stats::{RankedBy, Ranking, Standing};

const BAR: f64 = 15.0;
const ROW: f64 = 23.0;
/// Widths of the columns of ranks and names at the left.
const RANKS: f64 = 44.0;
const NAMES: f64 = 236.0;
/// Room for the value at the end of the longest bar.
const VALUES: f64 = 92.0;
/// Width of the bars of the right half, if any.
const EFFICIENCY: f64 = 200.0;
/// Height above the plot, for the titles of the axes.
const HEAD: f64 = 26.0;
/// Gap above the references.
const GAP: f64 = 8.0;
/// Maximum end of the axis, as a multiple of the longest bar.
const INTERVAL_MAX: f64 = 1.5;

struct Chart<'r, 'a> {
    svg: Svg,
    run: &'r Run<'a>,
    left: Half<'r>,
    right: Option<Half<'r>>,
}

/// One ranking's bars.
struct Half<'r> {
    ranking: &'r Ranking,
    plot: Area,
    axis: Values,
    /// Unit of all values and of the axis.
    scale: Scale,
}

/// The chart of a ranking.
pub(super) fn draw(run: &Run<'_>, found: &Ranked<'_>, id: &str) -> Markup {
    let main = found.main;
    let rows = main.places.len() + main.references.len();
    let gap = if main.references.is_empty() { 0.0 } else { GAP };
    let efficiency = match found.efficiency {
        Some(_) => EFFICIENCY + VALUES,
        None => 0.0,
    };
    let width = WIDTH - RANKS - NAMES - VALUES - efficiency;
    let left = Area::new(RANKS + NAMES, HEAD, width, ROW * rows as f64 + gap);
    let right = Area::new(left.right() + VALUES, HEAD, EFFICIENCY, left.height);
    let mut chart = Chart {
        svg: Svg::new(id),
        run,
        left: Half::of(main, left, 5.0),
        right: found
            .efficiency
            .map(|ranking| Half::of(ranking, right, 3.0)),
    };
    chart.frame();
    let mut described = Vec::new();
    let mut y = HEAD;
    for (place, is_reference) in with_references(main) {
        // The gap separates the references from ranked devices, if there are any.
        if is_reference && y > HEAD && place.cell == main.references[0].cell {
            y += GAP;
        }
        chart.row(place, y);
        described.push(chart.words(place));
        y += ROW;
    }
    let title = format!("Ranking: {}", caption(found));
    chart
        .svg
        .finish(&title, &format!("{}.", described.join("; ")))
}

fn with_references(ranking: &Ranking) -> impl Iterator<Item = (&Standing, bool)> {
    let places = ranking.places.iter().map(|place| (place, false));
    places.chain(ranking.references.iter().map(|place| (place, true)))
}

impl<'r> Half<'r> {
    fn of(ranking: &'r Ranking, plot: Area, ticks: f64) -> Self {
        let values = || with_references(ranking).map(|(place, _)| place.value);
        let largest = values().fold(0.0, f64::max);
        let smallest = values().filter(|value| *value > 0.0);
        let smallest = smallest.fold(largest, f64::min);
        let ends = with_references(ranking).filter_map(|(place, _)| place.high);
        // Intervals of two repeats may be far wider than the bars: cut them off.
        let most = ends.fold(largest, f64::max).min(INTERVAL_MAX * largest);
        let scale = scale(ranking.by, most);
        Self {
            ranking,
            plot,
            axis: Values::spanning((smallest, most), ticks, scale.clone()),
            scale,
        }
    }

    fn title(&self) -> String {
        let what = match self.ranking.by {
            RankedBy::PayloadThroughput => "payload throughput",
            RankedBy::FrameRate => "frame rate",
            RankedBy::RoundTripP50 => "median round trip, less is better",
            RankedBy::LatencyP50 => "median latency, less is better",
            RankedBy::ReflectedP50 => "median round trip of frames, less is better",
            RankedBy::PayloadBitsPerCpuSecond => "payload per CPU-second",
            RankedBy::IpBitsPerCpuSecond => "IP per CPU-second",
        };
        self.axis.title(what)
    }
}

impl Chart<'_, '_> {
    fn frame(&mut self) {
        for half in [&self.left].into_iter().chain(&self.right) {
            self.svg.x_axis(half.plot, &half.axis);
            let position = (half.plot.x, half.plot.y - 9.0);
            let title = half.title();
            self.svg.text("tick", position, Anchor::Start, &title);
        }
    }

    fn row(&mut self, place: &Standing, y: f64) {
        let baseline = y + 16.0;
        let rank = rank_text(place.rank);
        self.svg
            .text("label strong", (0.0, baseline), Anchor::Start, &rank);
        let label = shortened_name("label", &name(self.run, place), NAMES - 8.0);
        let end = (RANKS + NAMES - 8.0, baseline);
        self.svg.text("label", end, Anchor::End, &label);
        let color = match self.run.cell(&place.cell) {
            Some(cell) => self.run.color(&cell.dut),
            None => 0,
        };
        bar(&mut self.svg, &self.left, place, color, y);
        let Some(right) = &self.right else { return };
        if let Some(place) = standing(right.ranking, &place.cell) {
            bar(&mut self.svg, right, place, color, y);
        }
    }

    /// Describes a row for screen readers.
    fn words(&self, place: &Standing) -> String {
        let scale = scale(self.left.ranking.by, place.value);
        let rank = match place.rank {
            Some(rank) => format!("rank {}", rank_text(Some(rank))),
            None => "not ranked".into(),
        };
        format!(
            "{rank}: {}, {}",
            name(self.run, place),
            scale.value(place.value)
        )
    }
}

fn bar(svg: &mut Svg, half: &Half<'_>, place: &Standing, color: usize, y: f64) {
    let at = |value: f64| half.plot.x_at(half.axis.share(value));
    let top = y + (ROW - BAR) / 2.0;
    let value = half.scale.number(place.value);
    let ends = place.low.zip(place.high);
    let interval = ends.map_or_else(
        || "one repeat".to_owned(),
        |(low, high)| {
            let number = |end| half.scale.number(end);
            let unit = &half.scale.unit;
            format!("95 % interval {}–{} {unit}", number(low), number(high))
        },
    );
    let unit = &half.scale.unit;
    let tooltip = format!("{}, {}: {value} {unit}; {interval}", place.dut, place.cell);
    let (x, middle) = (at(place.value), top + BAR / 2.0);
    // A device that protects nothing is an outline.
    let is_insecure = place.insecure.is_some();
    let is_log = half.axis.is_log();
    if !is_log {
        let area = half.plot.bar(top, x - half.plot.x, BAR);
        if is_insecure {
            svg.rect(&format!("ring stroke-{color}"), area, &tooltip)
        } else {
            svg.bar(color, area, &tooltip)
        }
    }
    // Intervals may be longer than the axis, which ends at a multiple of the longest bar.
    let cut = |end: f64| at(end).min(half.plot.right());
    let high = ends.map_or_else(|| at(place.value), |(_, high)| cut(high));
    if let Some((low, _)) = ends {
        svg.side_whisker(cut(low), high, middle);
    }
    if is_log {
        // A bar's length is meaningless on a logarithmic axis.
        let left = (half.plot.x, middle);
        svg.line("grid", left, (x, middle));
        let class = if is_insecure { "ring stroke" } else { "fill" };
        svg.mark(class, color, (x, middle), 5.0, &tooltip);
    }
    let text = match place.rank {
        // The number at the left is the rank by the other figure.
        Some(rank) if half.ranking.by.is_efficiency() => {
            format!("{value} ({})", rank_text(Some(rank)))
        }
        _ => value,
    };
    let end = high.max(x) + if is_log { 11.0 } else { 8.0 };
    svg.label("value", Spot::rightward((end, top + 12.0)), &text);
}
