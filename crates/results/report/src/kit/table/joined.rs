//! Joins tables of one kind that differ in a setting into one table.

use super::{Cell, Column, Kind, Row, Table};
use crate::order::{grouped, unique};

/// Maximum columns of figures that are readable side by side.
const FIGURES_MAX: usize = 12;
/// Characters of a row, including gaps between its columns, that fit on a page.
const CHARACTERS_MAX: usize = 140;
const GAP: usize = 2;

/// Joins tables of `what`, each with its setting. Tables with the same labels and few columns are
/// placed side by side; otherwise tables with the same columns are stacked, with the setting as the
/// first label.
pub(crate) fn joined(what: &str, mut tables: Vec<(String, Table)>) -> Vec<Table> {
    // A setting without a figure must not decide how the others are joined.
    tables.retain(|(_, table)| !table.rows.is_empty());
    let [(_, first), others @ ..] = tables.as_slice() else {
        return Vec::new();
    };
    if others.is_empty() {
        return tables.into_iter().map(|(_, table)| table).collect();
    }
    let titles = |table: &Table, count: usize| -> Vec<String> {
        table.columns[..count].iter().map(Column::heading).collect()
    };
    let labels = titles(first, first.labels);
    // Rows of tables side by side are matched by their labels, so these must be unique.
    let same_labels = others
        .iter()
        .all(|(_, table)| titles(table, table.labels) == labels && has_unique_rows(table));
    if same_labels && has_unique_rows(first) && fit_side_by_side(&tables) {
        return vec![beside(&caption(what, &tables), &tables)];
    }
    let by_columns = tables.into_iter().map(|found| {
        let columns = titles(&found.1, found.1.columns.len());
        (columns, found)
    });
    let groups = grouped(by_columns);
    // A table that remains single may have the others' caption.
    let several = if groups.len() > 1 { ", by setting" } else { "" };
    let mut joined = Vec::new();
    for (_, mut alike) in groups {
        match alike.len() {
            1 => joined.extend(alike.pop().map(|(_, table)| table)),
            _ => joined.push(stacked(&(caption(what, &alike) + several), &alike)),
        }
    }
    joined
}

fn fit_side_by_side(tables: &[(String, Table)]) -> bool {
    let of = |(_, table): &(String, Table)| -> Vec<usize> {
        (table.labels..table.columns.len())
            .map(|column| width(table, column))
            .collect()
    };
    let figures: Vec<usize> = tables.iter().flat_map(of).collect();
    let labels = |(_, table): &(String, Table)| -> usize {
        (0..table.labels)
            .map(|column| width(table, column) + GAP)
            .sum()
    };
    // All tables have the same labels, so the widest ones count once.
    let labels = tables.iter().map(labels).max().unwrap_or(0);
    let characters = labels + figures.iter().map(|width| width + GAP).sum::<usize>();
    figures.len() <= FIGURES_MAX && characters <= CHARACTERS_MAX
}

/// Longest unbreakable text of a column: a remark in brackets may go below its figure.
fn width(table: &Table, column: usize) -> usize {
    let cells = table.rows.iter().map(|row| row.cells[column].text.as_str());
    let parts = cells.flat_map(|text| text.split(" ("));
    let widths = parts.map(|part| part.chars().count());
    widths.max().unwrap_or(0)
}

/// The common parts of the captions. If their beginnings differ, `what` replaces them: `Hostile
/// packets: forwarded, both`.
fn caption(what: &str, tables: &[(String, Table)]) -> String {
    let words: Vec<Vec<&str>> = tables
        .iter()
        .map(|(_, table)| table.caption.split(", ").collect())
        .collect();
    let is_shared = |word: &&str| words.iter().all(|others| others.contains(word));
    let shared: Vec<&str> = words[0].iter().copied().filter(is_shared).collect();
    if shared.first() == words[0].first() {
        return shared.join(", ");
    }
    // An aspect follows the colon: `lost` in `Load beside replays: lost`.
    let behind = |words: &Vec<&str>| Some(words[0].split_once(": ")?.1.to_owned());
    let aspect = behind(&words[0]).filter(|_| {
        let first = behind(&words[0]);
        words.iter().all(|others| behind(others) == first)
    });
    let what = match aspect {
        Some(aspect) => format!("{what}: {aspect}"),
        None => what.to_owned(),
    };
    [what.as_str()]
        .into_iter()
        .chain(shared)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the labels of a row, including labels shared with the row above.
fn key<'t>(table: &'t Table, row: &'t Row) -> Vec<&'t str> {
    let labels = row.cells[..table.labels].iter();
    labels.map(|cell| cell.text.as_str()).collect()
}

fn has_unique_rows(table: &Table) -> bool {
    let mut keys: Vec<_> = table.rows.iter().map(|row| key(table, row)).collect();
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair[0] != pair[1])
}

/// A cell before its label was marked as repeated.
fn labelled(cell: &Cell) -> Cell {
    match cell.kind {
        Kind::Repeated => Cell::label(&cell.text),
        _ => cell.clone(),
    }
}

fn beside(caption: &str, tables: &[(String, Table)]) -> Table {
    let (_, first) = &tables[0];
    let titles = first.columns[..first.labels].iter();
    let mut joined =
        Table::new(caption, notes(tables)).labels(titles.map(|column| column.title.clone()));
    for (setting, table) in tables {
        for column in &table.columns[table.labels..] {
            let group = if column.group.is_empty() {
                setting.clone()
            } else {
                format!("{setting}, {}", column.group)
            };
            // The title stays as it is; the setting goes above it.
            let mut column = column.clone();
            column.group = group;
            joined.columns.push(column);
        }
    }
    // Rows keep the order of the first table that contains them.
    let rows = tables.iter().flat_map(|(_, table)| {
        let rows = table.rows.iter();
        rows.map(move |row| key(table, row))
    });
    for wanted in unique(rows) {
        let mut cells: Vec<Cell> = wanted.iter().map(|label| Cell::label(*label)).collect();
        for (_, table) in tables {
            let row = table.rows.iter().find(|row| key(table, row) == wanted);
            match row {
                Some(row) => cells.extend(row.cells[table.labels..].iter().cloned()),
                None => cells.resize_with(
                    cells.len() + table.columns.len() - table.labels,
                    Cell::missing,
                ),
            }
        }
        joined.push(cells);
    }
    // Of tables of one kind, all have marks or none has.
    joined.has_marks = tables.iter().any(|(_, table)| table.has_marks);
    joined
}

fn stacked(caption: &str, tables: &[(String, Table)]) -> Table {
    let (_, first) = &tables[0];
    let mut joined = Table::new(caption, notes(tables)).labels(["Setting"]);
    joined.columns.extend(first.columns.iter().cloned());
    joined.labels = 1 + first.labels;
    for (setting, table) in tables {
        for row in &table.rows {
            // `push` marks repeated labels anew, as the setting precedes them here.
            let cells = row.cells.iter().map(labelled);
            joined.push([Cell::label(setting)].into_iter().chain(cells).collect());
        }
    }
    joined.has_marks = tables.iter().any(|(_, table)| table.has_marks);
    joined
}

/// Joins the notes: common parts once, and parts of a single table after its setting.
fn notes(tables: &[(String, Table)]) -> String {
    let notes: Vec<Vec<&str>> = tables
        .iter()
        .map(|(_, table)| table.note.split("; ").collect())
        .collect();
    let first = &notes[0];
    // Notes of different structure cannot be compared part by part.
    if notes.iter().any(|parts| parts.len() != first.len()) {
        return unique(notes.into_iter().flatten()).join("; ");
    }
    let mut joined: Vec<String> = Vec::new();
    for place in 0..first.len() {
        // Settings differ in single words, so parts are compared word by word.
        let words: Vec<Vec<&str>> = notes
            .iter()
            .map(|parts| parts[place].split(", ").collect())
            .collect();
        let is_shared = |word: &&str| words.iter().all(|others| others.contains(word));
        let shared: Vec<&str> = words[0].iter().copied().filter(is_shared).collect();
        if !shared.is_empty() {
            joined.push(shared.join(", "));
        }
        for ((setting, _), words) in tables.iter().zip(&words) {
            // Words that the setting already contains would be repeated after it.
            let own = words
                .iter()
                .copied()
                .filter(|word| !is_shared(word) && !setting.contains(word));
            let own: Vec<&str> = own.collect();
            if !own.is_empty() {
                joined.push(format!("{setting}: {}", own.join(", ")));
            }
        }
    }
    // An empty note consists of one empty part.
    joined.retain(|part| !part.is_empty());
    joined.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(note: &str, rows: &[(&str, &str)]) -> Table {
        let mut table = Table::new("alone", note)
            .labels(["Device"])
            .figures(["Rate"]);
        for (device, rate) in rows {
            table.push(vec![Cell::label(*device), Cell::plain(*rate)]);
        }
        table
    }

    #[test]
    fn few_columns_stand_side_by_side_below_their_settings() {
        let tables = vec![
            (
                "1 stream".into(),
                table("1 stream, 5 s; mean", &[("a", "1"), ("b", "2")]),
            ),
            (
                "4 streams".into(),
                table("4 streams, 5 s; mean", &[("b", "4"), ("c", "5")]),
            ),
        ];
        let found = joined("Rates", tables);
        let [one] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(one.note, "5 s; mean");
        let headings: Vec<String> = one.columns.iter().map(Column::heading).collect();
        assert_eq!(headings, ["Device", "1 stream: Rate", "4 streams: Rate"]);
        let rows: Vec<Vec<&str>> = one
            .rows
            .iter()
            .map(|row| row.cells.iter().map(|cell| cell.text.as_str()).collect())
            .collect();
        assert_eq!(rows, [["a", "1", "–"], ["b", "2", "4"], ["c", "–", "5"]]);
    }

    #[test]
    fn many_columns_stand_one_below_the_other() {
        let wide = || {
            let titles: Vec<String> = (0..7).map(|column| format!("c{column}")).collect();
            let mut table = Table::new("alone", "").labels(["Device"]).figures(titles);
            let figures = (0..7).map(|_| Cell::plain("1"));
            table.push([Cell::label("a")].into_iter().chain(figures).collect());
            table
        };
        let found = joined("Rates", vec![("x".into(), wide()), ("y".into(), wide())]);
        let [one] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!((one.labels, one.columns.len(), one.rows.len()), (2, 9, 2));
        assert_eq!(one.rows[1].cells[0].text, "y");
    }

    #[test]
    fn a_caption_keeps_what_all_share() {
        let of = |text: &str| (String::new(), Table::new(text, ""));
        let same = [
            of("Rates in kpps, encrypt, at 1 kpps"),
            of("Rates in kpps, both, at 1 kpps"),
        ];
        assert_eq!(caption("Rates", &same), "Rates in kpps, at 1 kpps");
        let other = [
            of("Load beside garbage: lost, both"),
            of("Load beside replays: lost, both"),
        ];
        assert_eq!(
            caption("Hostile packets", &other),
            "Hostile packets: lost, both"
        );
    }

    #[test]
    fn a_single_table_is_left_alone_and_empty_ones_left_out() {
        let only = table("", &[("a", "1")]);
        let tables = vec![("x".into(), only.clone()), ("y".into(), table("", &[]))];
        assert_eq!(joined("Rates", tables), [only]);
    }
}
