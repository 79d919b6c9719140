//! `results.csv` (RFC 4180), for spreadsheets: one row per trial; for frame tests, one per figure.
//!
//! Header, rows and documentation (`docs/schema/results-csv.md`) come from the columns of all
//! topics.

use crate::kit::column::Context;
use crate::kit::column::figure::figures;
use crate::layout::Run;
use crate::topic::claims::columns::by_cell;
use crate::topic::columns;
use crate::topic::ranking::columns::standings;
use guard::visible_lines;
use stats::Warning;
use std::fmt::Write;

/// Writes a header and the rows of each trial in the order of measurement.
pub(super) fn write(run: &Run<'_>) -> String {
    let mut page = String::new();
    let columns = columns();
    line(
        &mut page,
        // The header is written by the same function as the rows, so it is quoted alike.
        columns.iter().map(|column| column.key().to_owned()),
    );
    // Indexed once, as a search in each row would be quadratic in the cells.
    let standings = standings(&run.results.rankings);
    let claims = by_cell(&run.results.claims);
    for trial in &run.journal.trials {
        // The journal may be damaged, so a trial may name a cell that the plan lacks.
        let Some(cell) = run.cell(&trial.cell) else {
            continue;
        };
        for figure in figures(trial) {
            let row = Context {
                cell,
                trial,
                counts: run.counts(trial),
                figure,
                standings: standings.get(cell.id.as_str()).copied().unwrap_or_default(),
                planned: run.planned(cell),
                claims: claims.get(cell.id.as_str()).map_or(&[], Vec::as_slice),
                warnings: warnings(&run.results.warnings, &cell.id),
            };
            line(
                &mut page,
                columns
                    .iter()
                    .map(|column| column.read(&row).unwrap_or_default()),
            );
        }
    }
    page
}

/// Returns the documentation of the columns, as Markdown.
pub(crate) fn documentation() -> String {
    let mut page = String::from(
        "# results.csv\n\nOne row per trial, in the order of measurement; for a frame test, one per goal, load or other figure of the trial, and for crypto devices one per case, device or start. RFC 4180, UTF-8, a header line. Keys carry units. Figures that do not apply, and figures of an invalid or failed trial, are empty: an invalid cell has no number. Raw counters of every trial are in \
         the journal ([journal.md](../journal.md)). A text that begins with `=`, `+`, `-`, `@`, a tab or a line's \
         end, which a spreadsheet would take for a formula, has an apostrophe in front.\n\nGenerated from the code; a test keeps it \
         true.\n\n| Column | Meaning |\n| --- | --- |\n",
    );
    for column in columns() {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{}` | {} |", column.key(), column.meaning());
    }
    page
}

fn line(page: &mut String, fields: impl Iterator<Item = String>) {
    // Texts come from a journal and may contain control characters.
    let visible = fields.map(|field| visible_lines(&field).into_owned());
    let fields: Vec<String> = visible.map(quoted).collect();
    page.push_str(&fields.join(","));
    // RFC 4180, section 2: lines end with CRLF.
    page.push_str("\r\n");
}

/// Spreadsheets take a text that begins with one of these for a formula, even between quotes, so it
/// is prefixed with an apostrophe (OWASP, CSV injection). Numbers stay numbers.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

fn quoted(mut field: String) -> String {
    if field.starts_with(FORMULA) && field.parse::<f64>().is_err() {
        field.insert(0, '\'');
    }
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

/// Kinds of the warnings about a cell or about the whole run.
fn warnings(all: &[Warning], cell: &str) -> String {
    let own = all
        .iter()
        // A warning without cells is about the whole run.
        .filter(|found| found.cells.is_empty() || found.cells.iter().any(|id| id == cell));
    let name = |found: &Warning| {
        // The serialized name, as in `results.json`.
        let kind = serde_json::to_value(found.kind).ok()?;
        kind.as_str().map(str::to_owned)
    };
    let names: Vec<String> = own.filter_map(name).collect();
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::column::Column;

    #[test]
    fn fields_with_separators_are_quoted() {
        let mut page = String::new();
        line(
            &mut page,
            ["a", "b,c", "say \"x\"", "two\nlines"]
                .map(str::to_owned)
                .into_iter(),
        );
        assert_eq!(page, "a,\"b,c\",\"say \"\"x\"\"\",\"two\nlines\"\r\n");
    }

    #[test]
    fn column_keys_are_unique() {
        let mut keys: Vec<_> = columns().iter().map(Column::key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), columns().len());
    }
}
