//! Grids of figures: one row per device and condition, one column per setting, shaded by the
//! figure. They show a matrix with too many figures for bars.

use super::{
    Anchor, Area, BAR_MIN, Font, Key, Spot, Svg, WIDTH, absence, hover, shortened_name, widest,
};
use crate::kit::format::{Scale, counted, si};
use crate::layout::frames::{Device, FrameSet};
use crate::layout::{Run, Set, payload_name};
use crate::order::{sorted, unique};
use maud::Markup;
use stats::{CellResult, Estimate};

/// Shades from the lowest to the highest figure.
pub(super) const SHADES: usize = 7;
const CLASSES: [&str; SHADES] = [
    "shade shade-0",
    "shade shade-1",
    "shade shade-2",
    "shade shade-3",
    "shade shade-4",
    "shade shade-5",
    "shade shade-6",
];

/// Width of the column of names at the left.
const NAMES: f64 = 236.0;
/// Maximum width of a column.
const COLUMN_MAX: f64 = 150.0;
const ROW: f64 = 26.0;
/// Height of a line of a column's title.
const LINE: f64 = 14.0;
/// A matrix of fewer figures needs no grid.
const FIGURES_MIN: usize = 12;
/// From this ratio of the largest to the smallest figure on, shades follow the logarithm.
const LOG_RATIO: f64 = 10.0;

/// A grid to draw.
struct Grid<'r> {
    /// Names of the lines in the columns' titles.
    heads: Vec<&'static str>,
    columns: Vec<Vec<String>>,
    rows: Vec<Row<'r>>,
    /// Unit of the figures (`bit/s`).
    unit: &'static str,
}

struct Row<'r> {
    name: String,
    cells: Vec<Option<Figure<'r>>>,
}

struct Figure<'r> {
    cell: &'r CellResult,
    estimate: Option<&'r Estimate>,
    setting: String,
}

/// A combination of payload, MTU and cores.
type Column = (Option<u32>, u16, u16);

/// The grid of the throughput of all sets of a protocol; `None` if bars show it better.
pub(crate) fn of_sets(run: &Run<'_>, sets: &[Set<'_>], id: &str) -> Option<Markup> {
    let points = sets.iter().flat_map(|set| &set.points);
    let columns = sorted(points.map(|point| (point.payload, point.mtu, point.cores)));
    // Without columns the closure that indexes the first one does not run.
    let varies = |of: fn(&Column) -> u32| columns.iter().any(|one| of(one) != of(&columns[0]));
    let (payloads, mtus, cores) = (
        varies(|(payload, ..)| payload.unwrap_or(0)),
        varies(|(_, mtu, _)| u32::from(*mtu)),
        varies(|(.., cores)| u32::from(*cores)),
    );
    // A coordinate that does not vary would repeat one word above all columns.
    let title = |(payload, mtu, count): &Column| {
        let lines = [
            payloads.then(|| payload_name(*payload)),
            mtus.then(|| format!("{mtu} B")),
            cores.then(|| count.to_string()),
        ];
        lines.into_iter().flatten().collect()
    };
    let heads = [
        (payloads, "payload"),
        (mtus, "MTU"),
        (cores, "cores per station"),
    ];
    let alike: Vec<&Set<'_>> = sets.iter().collect();
    let duts = unique(sets.iter().flat_map(|set| set.duts.iter().copied()));
    // The rows of a device are adjacent, so that its conditions can be compared.
    let rows = duts.iter().flat_map(|dut| {
        let with = alike.iter().filter(|set| set.duts.contains(dut));
        with.map(|set| row_of_set(run, set, dut, &alike, &columns))
    });
    let grid = Grid {
        heads: heads
            .iter()
            .filter(|(varies, _)| *varies)
            .map(|(_, head)| *head)
            .collect(),
        columns: columns.iter().map(title).collect(),
        rows: rows.collect(),
        unit: "bit/s",
    };
    // Cells without a figure count as well, as the grid shows why it is missing.
    let figures: usize = grid
        .rows
        .iter()
        .map(|row| row.cells.iter().flatten().count())
        .sum();
    let is_matrix = figures >= FIGURES_MIN && grid.columns.len() > 1 && grid.rows.len() > 1;
    let protocol = sets.first()?.protocol.name();
    let title = format!("{protocol} payload throughput of every device and setting");
    is_matrix.then(|| grid.draw(id, &title))?
}

fn row_of_set<'r>(
    run: &Run<'_>,
    set: &'r Set<'_>,
    dut: &str,
    alike: &[&Set<'_>],
    columns: &[Column],
) -> Row<'r> {
    let mut name = vec![run.label(dut)];
    name.extend(set.own_words(alike).map(str::to_owned));
    // Sets of a protocol may have different matrices: a combination that this one lacks stays
    // empty.
    let cells = columns.iter().map(|column| {
        let mut points = set.points.iter();
        let point = points.find(|point| (point.payload, point.mtu, point.cores) == *column)?;
        let cell = point.cell(dut)?;
        let cores = counted(point.cores, "core");
        Some(Figure {
            cell,
            estimate: cell.throughput_bps(),
            setting: format!("MTU {} B, {cores}, {}", point.mtu, set.common),
        })
    });
    Row {
        name: name.join(", "),
        cells: cells.collect(),
    }
}

/// The grid of a set of frame tests: devices by sizes.
pub(crate) fn of_frames<'r>(
    run: &Run<'_>,
    set: &'r FrameSet<'r>,
    devices: &[Device<'r>],
    id: &str,
    rate: impl Fn(&'r CellResult) -> Option<&'r Estimate>,
) -> Option<Markup> {
    let rows = devices.iter().map(|device| {
        let cells = set.points.iter().map(|point| {
            let cell = point.cell(*device)?;
            Some(Figure {
                cell,
                estimate: rate(cell),
                setting: format!("{}, {}", point.name(), set.common),
            })
        });
        Row {
            name: device.label(run),
            cells: cells.collect(),
        }
    });
    let names = set.points.iter().map(|point| vec![point.short_name()]);
    let grid = Grid {
        heads: vec!["frames"],
        columns: names.collect(),
        rows: rows.collect(),
        unit: "pps",
    };
    grid.draw(id, "Throughput by frame size")
}

impl Grid<'_> {
    /// Draws the grid; `None` without a figure.
    fn draw(&self, id: &str, title: &str) -> Option<Markup> {
        let shades = Shades::of(self)?;
        // A few columns would otherwise be stretched over the whole width.
        let width = ((WIDTH - NAMES) / self.columns.len() as f64).min(COLUMN_MAX);
        let mut svg = Svg::new(id);
        svg.legend(shades.legend(self.unit));
        let top = self.titles(&mut svg, width);
        for (index, row) in self.rows.iter().enumerate() {
            let y = top + ROW * index as f64;
            let name = shortened_name("label", &row.name, NAMES - 10.0);
            svg.text("label", (NAMES - 8.0, y + 17.0), Anchor::End, &name);
            for (column, figure) in row.cells.iter().enumerate() {
                let area = Area::new(NAMES + width * column as f64, y, width, ROW);
                // A combination that was not planned stays empty; one without a figure has its
                // reason.
                if let Some(figure) = figure {
                    self.figure(&mut svg, &shades, figure, area);
                }
            }
        }
        let described: Vec<String> = self.rows.iter().map(|row| self.words(row)).collect();
        Some(svg.finish(title, &format!("{}.", described.join("; "))))
    }

    /// Draws the columns' titles: a line for each coordinate, or turned if one is wider than its
    /// column. Returns the top of the rows.
    fn titles(&self, svg: &mut Svg, width: f64) -> f64 {
        let class = "label strong";
        if widest(class, self.columns.iter().flatten()) <= width - 4.0 {
            for (line, head) in self.heads.iter().enumerate() {
                let y = LINE * (line as f64 + 1.0);
                svg.text("tick", (NAMES - 8.0, y), Anchor::End, head);
                for (index, column) in self.columns.iter().enumerate() {
                    let x = NAMES + width * (index as f64 + 0.5);
                    let text = column.get(line).map_or("", String::as_str);
                    svg.text(class, (x, y), Anchor::Middle, text);
                }
            }
            return LINE * self.heads.len() as f64 + 8.0;
        }
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.join(", "))
            .collect();
        // Turned titles are as high as the longest of them is wide.
        let height = widest(class, titles.iter());
        let head = self.heads.join(", ");
        svg.text("tick", (NAMES - 8.0, height), Anchor::End, &head);
        // Columns narrower than a line is high have no room for a title.
        if width >= BAR_MIN {
            for (index, title) in titles.iter().enumerate() {
                let x = NAMES + width * (index as f64 + 0.5) + 4.0;
                svg.draw_text(class, Spot::turned((x, height)), title);
            }
        }
        height + 8.0
    }

    fn figure(&self, svg: &mut Svg, shades: &Shades, figure: &Figure<'_>, area: Area) {
        let (cell, setting) = (figure.cell, &figure.setting);
        let (class, text) = match figure.estimate {
            Some(found) => {
                let shade = shades.shade(found.mean);
                let scale = Scale::si(found.mean, self.unit);
                svg.rect(
                    CLASSES[shade],
                    area,
                    &hover(&cell.dut, setting, &scale, found),
                );
                // No ink can be read on all shades, so each shade has another.
                (format!("on-h{shade}"), figure.text())
            }
            None => {
                let why = absence(cell, "no figure");
                let tooltip = format!("{}, {setting}: {why}", cell.dut);
                svg.rect("ground absent", area, &tooltip);
                ("reason".to_owned(), why.to_owned())
            }
        };
        // A figure that does not fit is in the tooltip and in the table.
        if Font::of(&class).width(&text) <= area.width - 6.0 {
            let position = (area.middle(), area.y + 17.0);
            svg.text(&class, position, Anchor::Middle, &text);
        }
    }

    fn words(&self, row: &Row<'_>) -> String {
        let figures = row.cells.iter().zip(&self.columns);
        let figures = figures.filter_map(|(figure, column)| {
            let figure = figure.as_ref()?;
            let value = match figure.estimate {
                Some(found) => si(found.mean, self.unit),
                None => absence(figure.cell, "no figure").to_owned(),
            };
            let heads = self.heads.iter().zip(column);
            let setting: Vec<String> = heads.map(|(head, one)| format!("{head} {one}")).collect();
            Some(format!("{}: {value}", setting.join(", ")))
        });
        let figures: Vec<String> = figures.collect();
        format!("{}: {}", row.name, figures.join(", "))
    }
}

impl Figure<'_> {
    /// `7.11 G`: figures of one grid may have different SI prefixes.
    fn text(&self) -> String {
        self.estimate
            .map_or_else(String::new, |found| si(found.mean, ""))
    }
}

/// Maps figures to shades.
struct Shades {
    low: f64,
    high: f64,
}

impl Shades {
    fn of(grid: &Grid<'_>) -> Option<Self> {
        let figures = grid.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let means = figures.filter_map(|figure| Some(figure.estimate?.mean));
        let found = means
            .map(|mean| (mean, mean))
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)));
        found.map(|(low, high)| Self { low, high })
    }

    fn shade(&self, value: f64) -> usize {
        // On a linear scale, one figure far above the others would leave them all in the lowest
        // shade.
        let share = if self.low > 0.0 && self.high / self.low >= LOG_RATIO {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        // If all figures are equal, they have the middle shade.
        let share = if share.is_finite() { share } else { 0.5 };
        // The highest figure has the share 1, which would be one shade too many.
        ((share * SHADES as f64) as usize).min(SHADES - 1)
    }

    /// The lowest and the highest figure with their shades.
    fn legend(&self, unit: &str) -> Vec<(Key, String)> {
        let of = |word: &str, value: f64| {
            let name = format!("{word}: {}", si(value, unit));
            (Key::Swatch(CLASSES[self.shade(value)]), name)
        };
        vec![of("lowest", self.low), of("highest", self.high)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_run_from_the_lowest_to_the_highest() {
        let near = Shades {
            low: 2.0,
            high: 9.0,
        };
        assert_eq!([2.0, 5.5, 9.0].map(|value| near.shade(value)), [0, 3, 6]);
        let far = Shades {
            low: 1e6,
            high: 1e9,
        };
        assert_eq!([1e6, 3e7, 1e9].map(|value| far.shade(value)), [0, 3, 6]);
        let same = Shades {
            low: 5.0,
            high: 5.0,
        };
        assert_eq!(same.shade(5.0), 3);
    }
}
