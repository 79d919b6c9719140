//! Tables that do not fit a narrow terminal side by side.

use super::{GAP, INDENT, Page, Style};
use crate::documents::text::wrap::{pad, wrap};
use crate::kit::table::Table;
use guard::visible;
use unicode_width::UnicodeWidthStr;

impl Page {
    /// Prints a table with a line for each figure, below the labels of its row.
    pub(super) fn blocks(&mut self, table: &Table) {
        let columns = &table.columns[table.labels..];
        let headings: Vec<String> = columns
            .iter()
            .map(|column| visible(&column.heading()).into_owned())
            .collect();
        let widest = headings.iter().map(|heading| heading.width()).max();
        let width = widest.unwrap_or(0).min(self.width / 2);
        let room = self.width.saturating_sub(INDENT.len() + width + GAP);
        for row in &table.rows {
            self.line("");
            let (labels, figures) = row.cells.split_at(table.labels);
            let labels: Vec<&str> = labels.iter().map(|cell| cell.text.as_str()).collect();
            self.wrapped("", INDENT, &labels.join(", "), Style::bold);
            for (heading, cell) in headings.iter().zip(figures) {
                let heading = wrap(heading, width);
                let text = wrap(&self.shown(&cell.whole()), room);
                for line in 0..heading.len().max(text.len()) {
                    let part = |of: &[String]| of.get(line).cloned().unwrap_or_default();
                    let figure = self.style.cell(cell.kind, &part(&text));
                    let heading = pad(&part(&heading), width, false);
                    self.line(&format!("{INDENT}{heading}{}{figure}", " ".repeat(GAP)));
                }
            }
        }
    }
}
