//! Plain-text tables.

/// A table with left-aligned first columns and right-aligned figures.
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
    /// Number of left-aligned columns.
    words: usize,
}

impl Table {
    pub(crate) fn new(title: String, head: Vec<String>, words: usize) -> Self {
        Self {
            title,
            rows: vec![head],
            words,
        }
    }

    /// Adds a row with the same number of cells as the head.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table below its title, with a newline at the end.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            // Characters, not bytes: units and signs are not all ASCII.
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.rows[0].len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for row in &self.rows {
            let cell = |(column, (cell, &width)): (usize, (&String, &usize))| {
                if column < self.words {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            };
            let cells: Vec<_> = row.iter().zip(&widths).enumerate().map(cell).collect();
            // Without blanks at the end: pages and diffs show them.
            text.push_str(&format!("  {}\n", cells.join("  ").trim_end()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_aligned_and_figures_right_aligned() {
        let cells = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let mut table = Table::new("a title".to_owned(), cells(["engine", "64 B"]), 1);
        table.push(cells(["null", "1"]));
        table.push(cells(["ipsec-mb", "±100 %"]));
        let expected = "a title\n  engine      64 B\n  null           1\n  ipsec-mb  ±100 %\n";
        assert_eq!(table.text(), expected);
    }
}
