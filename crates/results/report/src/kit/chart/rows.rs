//! One row per cell of a set, below the name of its point.

use super::{Anchor, Svg, shortened, shortened_name, widest};
use crate::layout::Set;
use stats::CellResult;

/// Sizes of rows and of their columns of names.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) height: f64,
    /// Gap between points.
    pub(crate) gap: f64,
    pub(crate) point_names: f64,
    pub(crate) dut_names: f64,
    /// Distance from the top of a row to the baselines of these names.
    pub(crate) baselines: [f64; 2],
}

impl Rows {
    /// The same sizes, with columns of names no wider than needed: on a narrow screen they take
    /// room from the bars.
    pub(crate) fn fitted(self, set: &Set<'_>) -> Self {
        let points = widest(
            "label strong",
            set.points.iter().map(|point| set.name_of(point)),
        );
        let duts = widest("label", set.duts.iter());
        Self {
            point_names: (points + 14.0).min(self.point_names),
            dut_names: (duts + 15.0).min(self.dut_names),
            ..self
        }
    }

    /// Width of both columns of names.
    pub(crate) const fn names(&self) -> f64 {
        self.point_names + self.dut_names
    }

    /// Height of all rows.
    pub(crate) fn total_height(&self, set: &Set<'_>) -> f64 {
        // Points may lack devices of the others, so rows are counted, not multiplied.
        let cells: usize = set.points.iter().map(|point| point.cells.len()).sum();
        self.height * cells as f64 + self.gap * (set.points.len() - 1) as f64
    }

    /// Draws the rows from `top` on. Given the cell, its point's name and the row's top, `row`
    /// draws the rest of a row and returns its description. Returns all descriptions.
    pub(crate) fn draw(
        &self,
        svg: &mut Svg,
        set: &Set<'_>,
        top: f64,
        row: impl Fn(&mut Svg, &CellResult, &str, f64) -> String,
    ) -> String {
        let mut described = Vec::new();
        let mut y = top;
        for point in &set.points {
            let name = set.name_of(point);
            let label = shortened("label strong", &name, self.point_names - 8.0);
            let position = (0.0, y + self.baselines[0]);
            svg.text("label strong", position, Anchor::Start, &label);
            for cell in &point.cells {
                let label = shortened_name("label", &cell.dut, self.dut_names - 14.0);
                let position = (self.names() - 8.0, y + self.baselines[1]);
                svg.text("label", position, Anchor::End, &label);
                described.push(format!(
                    "{name}, {}: {}",
                    cell.dut,
                    row(svg, cell, &name, y)
                ));
                y += self.height;
            }
            y += self.gap;
        }
        format!("{}.", described.join("; "))
    }
}
