//! Durations of events: one row per device, one dot per event.

use crate::kit::chart::scale::{Log, short_time};
use crate::kit::chart::{Anchor, Area, Font, Spot, Svg, WIDTH, shortened_name};
use crate::kit::format::time_ns;
use crate::topic::frames::chart::Mix;
use maud::Markup;
use stats::{CellResult, EventResult, EventTimes};

const ROW_HEIGHT: f64 = 46.0;
const LEFT: f64 = 190.0;
/// Room for events without an end.
const RIGHT: f64 = 130.0;
const TOP: f64 = 8.0;

/// A row of the chart.
struct Row<'a> {
    cell: &'a CellResult,
    /// The events' times; and the times of the first frames, or of the other method.
    times: (&'a EventTimes, &'a EventTimes),
    /// Name of the second times.
    second: &'static str,
}

/// The chart of one mix; `None` for other procedures, or if no event ended.
pub(super) fn draw(mix: Mix<'_>, id: &str) -> Option<Markup> {
    let rows: Vec<Row<'_>> = mix.cells().filter_map(Row::of).collect();
    let all = || rows.iter().flat_map(|row| [row.times.0, row.times.1]);
    // A time of 0 has no logarithm; its mark is at the beginning of the axis.
    let values = || all().flat_map(values).filter(|value| *value > 0.0);
    let (low, high) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    if high <= 0.0 {
        return None;
    }
    let axis = Log::new(0.8 * low, 1.1 * high);
    let height = ROW_HEIGHT * rows.len() as f64;
    let plot = Area::new(LEFT, TOP, WIDTH - LEFT - RIGHT, height);
    let mut svg = Svg::new(id);
    let mut free_from = f64::NEG_INFINITY;
    for value in axis.values() {
        let x = plot.x_at(axis.share(value));
        svg.line("grid", (x, plot.y), (x, plot.bottom()));
        let name = short_time(value);
        let half = Font::of("tick").width(&name) / 2.0;
        if x - half >= free_from {
            let position = (x, plot.bottom() + 17.0);
            svg.text("tick", position, Anchor::Middle, &name);
            free_from = x + half + 5.0;
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let y = plot.y + ROW_HEIGHT * (index as f64 + 0.5);
        row.draw(&mut svg, mix, &axis, Area { y, ..plot });
    }
    let words = rows.iter().map(Row::words);
    Some(mix.finish(svg, mix.set.kind.title(), words))
}

fn values(times: &EventTimes) -> impl Iterator<Item = f64> {
    let ended = times.ended_ns.iter().flat_map(|ended| &ended.values);
    ended.map(|sample| sample.value)
}

impl<'a> Row<'a> {
    fn of(cell: &'a CellResult) -> Option<Self> {
        let found = cell.frames()?.disturbance()?;
        let event = found.event.as_ref()?;
        let times = match event {
            EventResult::Failover(found) => (&found.outage_ns, &found.first_frame_ns),
            EventResult::Reset(found) => (&found.frame_loss_ns, &found.timestamp_ns),
            EventResult::Setup(found) => (&found.all_carry_ns, &found.first_frame_ns),
            // The time of the first frame is meaningless here: frames may arrive throughout.
            EventResult::Desync(found) => (&found.outage_ns, &found.outage_ns),
            EventResult::Rekey(_) | EventResult::Hostile(_) => return None,
        };
        let second = match event {
            EventResult::Reset(_) => "by timestamps",
            _ => "first frame after",
        };
        // Without an event there is nothing to mark, though the load was measured.
        (times.0.events > 0).then_some(Self {
            cell,
            times,
            second,
        })
    }

    /// Draws a row; `area.y` is its middle.
    fn draw(&self, svg: &mut Svg, mix: Mix<'_>, axis: &Log, area: Area) {
        let color = mix.run.color(&self.cell.dut);
        let (times, first) = self.times;
        let y = area.y;
        // The share of a time of 0 is negative infinity.
        let place = |value: f64| area.x_at(axis.share(value).max(0.0));
        let class = "label strong";
        let name = shortened_name(class, &mix.run.label(&self.cell.dut), LEFT - 16.0);
        svg.text(class, (0.0, y + 4.0), Anchor::Start, &name);
        svg.line("axis", (area.x, y), (area.right(), y));
        let named = format!("{}, {}", self.cell.dut, mix.point.name());
        // Outlined marks are below the filled ones, which are the events' times.
        for value in values(first) {
            let tooltip = format!("{named}: {} {}", self.second, time_ns(value));
            svg.mark("ring stroke", color, (place(value), y), 3.8, &tooltip);
        }
        for value in values(times) {
            let tooltip = format!("{named}: {}", time_ns(value));
            svg.mark("fill", color, (place(value), y), 4.8, &tooltip);
        }
        if let Some(median) = times.median_ns {
            let x = place(median);
            svg.line("upper", (x, y - 11.0), (x, y + 11.0));
            let text = time_ns(median);
            let above = [13.0, 17.0].map(|above| Spot::middle((x, y - above)));
            svg.label("value", above.to_vec(), &text);
        }
        if times.endless() > 0 {
            let text = format!("{} of {} no end", times.endless(), times.events);
            let spot = Spot::start((area.right() + 8.0, y + 4.0));
            svg.label("reason", vec![spot], &text);
        }
    }

    fn words(&self) -> String {
        let (times, _) = self.times;
        let text = |value: Option<f64>| value.map_or_else(|| "without end".into(), time_ns);
        format!(
            "{}: median of {} {}, longest {}",
            self.cell.dut,
            times.events,
            text(times.median_ns),
            text(times.max_ns)
        )
    }
}
