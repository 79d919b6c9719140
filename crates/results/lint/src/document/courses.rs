//! The cells of a table that differ only in size, which rules compare with each other.

use super::{Axis, Cell, Column, Table};
use crate::unit::Quantity;
use yaml::Place;

/// Cells that differ only in size.
pub(crate) struct Course<'a> {
    /// The row or column: `row A`.
    pub(crate) of: String,
    /// Its place.
    pub(crate) place: &'a Place,
    /// The cells that have figures, in the order of the file.
    pub(crate) cells: Vec<Cell<'a>>,
}

impl Table {
    /// Returns the cells that differ only in size, with what they are of: each row of a table of
    /// sizes, and each column of a table of devices. Of several columns of one device, which state
    /// one rate, it is that of frame rates, or else the first.
    pub(crate) fn courses(&self) -> Vec<Course<'_>> {
        self.courses_of(|column| self.is_leading(column))
    }

    /// Returns the courses of every column of rates.
    pub(crate) fn rate_courses(&self) -> Vec<Course<'_>> {
        self.courses_of(|column| {
            let quantity = self.quantity(column);
            matches!(quantity, Some(Quantity::BitRate | Quantity::FrameRate))
        })
    }

    fn courses_of(&self, is_read: impl Fn(&Column) -> bool) -> Vec<Course<'_>> {
        if self.has_sizes() || self.axis == Axis::Mix {
            let rows = self.rows.iter();
            let courses = rows.map(|row| Course {
                of: format!("row {}", row.name),
                place: &row.place,
                cells: self.cells_of(row).collect(),
            });
            return courses.collect();
        }
        // The rates in a table of one frame rate are those of the load, which has any order.
        if self.axis != Axis::Devices {
            return Vec::new();
        }
        let mut courses: Vec<Course<'_>> = Vec::new();
        for column in self.columns.iter().filter(|it| is_read(it)) {
            let mut systems: Vec<&str> = self.rows.iter().map(|row| row.system.as_str()).collect();
            systems.sort_unstable();
            systems.dedup();
            for system in systems {
                let cells = self
                    .cells()
                    .filter(|cell| std::ptr::eq(cell.column, column) && cell.row.system == system);
                let cells: Vec<Cell<'_>> = cells.collect();
                let Some(first) = cells.first() else { continue };
                // Two rows of one size differ in a setting that no column of text names, and their
                // order is unknown.
                let mut sizes: Vec<Option<u64>> =
                    cells.iter().map(|it| it.size().map(f64::to_bits)).collect();
                sizes.sort_unstable();
                sizes.dedup();
                if sizes.len() < cells.len() {
                    continue;
                }
                let of = match system {
                    "" => format!("column {}", column.name),
                    system => format!("column {} of {system}", column.name),
                };
                courses.push(Course {
                    of,
                    place: &first.figure.place,
                    cells,
                });
            }
        }
        courses
    }

    /// Whether a column is the one of its device that states its rate: of frame rates, or else the
    /// first.
    fn is_leading(&self, column: &Column) -> bool {
        let mut own = self.columns.iter().filter(|it| it.device == column.device);
        let mut of_frames = own.clone();
        let of_frames = of_frames.find(|it| self.quantity(it) == Some(Quantity::FrameRate));
        let first = || own.find(|it| self.quantity(it) == Some(Quantity::BitRate));
        of_frames
            .or_else(first)
            .is_some_and(|it| std::ptr::eq(it, column))
    }

    fn quantity(&self, column: &Column) -> Option<Quantity> {
        let unit = column.unit.as_ref().or(self.unit.as_ref());
        unit.map(|unit| unit.quantity)
            .or_else(|| self.quantity_of_figures(column))
    }

    /// The quantity of the units in the cells of a column, if all have the same.
    fn quantity_of_figures(&self, column: &Column) -> Option<Quantity> {
        let mut columns = self.columns.iter();
        let at = columns.position(|it| std::ptr::eq(it, column))?;
        let figures = self
            .rows
            .iter()
            .filter_map(|row| row.cells.get(at)?.as_ref());
        let mut quantities = figures.map(|figure| Some(figure.unit.as_ref()?.quantity));
        let first = quantities.next()??;
        quantities
            .all(|other| other == Some(first))
            .then_some(first)
    }
}
