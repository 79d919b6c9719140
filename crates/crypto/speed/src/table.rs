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

    /// The table below its title, with a newline at the end. If it is wider than `most` columns, it
    /// has several parts, each with the words.
    pub(crate) fn text(&self, most: usize) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            // Characters, not bytes: units and signs are not all ASCII.
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.rows[0].len()).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for (at, part) in self.parts(&widths, most).iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            for row in &self.rows {
                let cell = |&column: &usize| {
                    let (cell, width) = (row[column].as_str(), widths[column]);
                    if column < self.words {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                };
                let cells: Vec<_> = part.iter().map(cell).collect();
                // Without blanks at the end: pages and diffs show them.
                text.push_str(&format!("  {}\n", cells.join("  ").trim_end()));
            }
        }
        text
    }

    /// The columns of each part, at least one figure in each.
    fn parts(&self, widths: &[usize], most: usize) -> Vec<Vec<usize>> {
        let words: Vec<usize> = (0..self.words).collect();
        // Each column has two blanks before it.
        let total = |part: &[usize]| part.iter().map(|&column| widths[column] + 2).sum::<usize>();
        let mut parts = vec![words.clone()];
        for (column, width) in widths.iter().enumerate().skip(self.words) {
            let last = parts.last().expect("the list begins with a part");
            if last.len() > self.words && total(last) + width + 2 > most {
                parts.push(words.clone());
            }
            parts.last_mut().expect("as above").push(column);
        }
        parts
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
        assert_eq!(table.text(80), expected);
    }

    #[test]
    fn a_table_too_wide_has_parts_with_all_its_words() {
        let cells = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let mut table = Table::new(
            "a title".to_owned(),
            cells(["engine", "64 B", "128 B", "256 B"]),
            1,
        );
        table.push(cells(["null", "1", "22", "333"]));
        let expected = "a title\n  engine  64 B  128 B\n  null       1     22\n\n  engine  256 B\n  null      333\n";
        assert_eq!(table.text(24), expected);
        assert!(table.text(80).lines().count() == 3);
    }
}
