//! The parts of sections: charts, tables, and text with code in it.

use super::rich::{Span, spans};
use super::table::{Cell, HOW_TO_READ, Kind, Row, Table};
use maud::{Markup, html};

/// From this number of columns on, a table is wider than a telephone, which then says so.
const SCROLLING_COLUMNS: usize = 5;
/// The same for tables whose parts that stay in one line are together wider than this, in
/// characters, each with the space around it.
const SCROLLING_CHARACTERS: usize = 40;
/// The least width of sentences and long labels in the style sheet, in characters.
const BROKEN_LEAST: usize = 19;
/// The space around a column, in characters.
const AROUND: usize = 2;
/// From this number of columns on, a table uses a smaller font.
const MANY_COLUMNS: usize = 9;
/// The same for tables with figures that are together wider than this.
const WIDE_CHARACTERS: usize = 100;
/// Above either of these, the font is smaller still.
const MOST_COLUMNS: usize = 11;
const WIDEST_CHARACTERS: usize = 125;
/// Labels with more characters may be broken into lines.
const LONG_LABEL: usize = 26;

/// A chart with its caption.
pub(crate) fn figure(chart: &Markup, title: &str, how_to_read: &str) -> Markup {
    html! {
        figure {
            figcaption {
                span.title { (title) }
                @if !how_to_read.is_empty() { span.note { (how_to_read) } }
            }
            div.chart { (chart) }
        }
    }
}

/// A sentence, with `code` between backticks and no line break inside a figure.
pub(crate) fn rich(text: &str) -> Markup {
    html! {
        @for span in spans(text) {
            @match span {
                Span::Text(text) => { (unbroken(text)) },
                Span::Code(code) => { code { (breakable(code)) } },
            }
        }
    }
}

/// An id that a narrow screen breaks behind its separators and not within a word:
/// `tcp/mtu=1500/cores=2`.
pub(crate) fn breakable(id: &str) -> Markup {
    let mut parts = id.split_inclusive(['/', '=', ',']);
    html! {
        (parts.next().unwrap_or_default())
        @for part in parts { wbr; (part) }
    }
}

/// Keeps the parts of a figure together: `25.7 ± 2.0`, `8 %`, `< 1`, `CPU-s`.
fn unbroken(text: &str) -> String {
    text.replace(" ± ", "\u{a0}±\u{a0}")
        .replace(" %", "\u{a0}%")
        .replace("< ", "<\u{a0}")
        // U+2011 is a hyphen without a line break.
        .replace("CPU-s", "CPU\u{2011}s")
}

/// A table with its caption; a wide table scrolls separately.
pub(crate) fn table(table: &Table) -> Markup {
    html! {
        div.table.scrolls[scrolls(table)] {
            table class=[density(table)] {
                caption {
                    span.title { (table.caption) }
                    (note(table))
                }
                (head(table))
                tbody {
                    @for (index, row) in table.rows.iter().enumerate() {
                        tr class=[row.begins_block.then_some("block")] {
                            @for (column, cell) in row.cells.iter().enumerate() {
                                (table_cell(table, index, column, cell))
                            }
                        }
                    }
                }
            }
            @if let Some(footnote) = table.footnote() { p.note { (footnote) } }
        }
    }
}

/// The conditions, and folded an explanation of the columns.
fn note(table: &Table) -> Markup {
    let (conditions, method) = (table.conditions(), table.method());
    html! {
        @if !conditions.is_empty() { span.note { (rich(conditions)) } }
        @if !method.is_empty() {
            details.method {
                summary { (HOW_TO_READ) }
                (rich(method))
            }
        }
    }
}

/// The headings; headings with a common setting are grouped below its name.
fn head(table: &Table) -> Markup {
    // Adjacent columns of one group: its name, its first column, and their number.
    let mut groups: Vec<(&str, usize, usize)> = Vec::new();
    for (index, column) in table.columns.iter().enumerate() {
        match groups.last_mut() {
            Some((group, _, count)) if *group == column.group => *count += 1,
            _ => groups.push((&column.group, index, 1)),
        }
    }
    let is_grouped = groups.iter().any(|(group, ..)| !group.is_empty());
    let columns = table.columns.iter().enumerate();
    html! {
        thead {
            @if is_grouped {
                tr.groups {
                    @for (group, first, count) in groups {
                        @if group.is_empty() {
                            // Their headings span both rows of the head.
                            @for (index, column) in columns.clone().skip(first).take(count) {
                                @let class = class(index, column.right, None);
                                th scope="col" rowspan="2" class=[class] { (column.title) }
                            }
                        } @else {
                            th scope="colgroup" colspan=(count) { (group) }
                        }
                    }
                }
            }
            tr {
                // In a grouped head, columns without a group have their headings in the row above.
                @for (index, column) in columns.filter(|(_, one)| !is_grouped || !one.group.is_empty()) {
                    @let class = class(index, column.right, None);
                    th scope="col" class=[class] { (column.title) }
                }
            }
        }
    }
}

/// Whether a table may be wider than a telephone.
fn scrolls(table: &Table) -> bool {
    if table.columns.len() >= SCROLLING_COLUMNS {
        return true;
    }
    let columns = table.columns.iter().enumerate().map(|(index, column)| {
        let cells = table.rows.iter().map(|row| &row.cells[index]);
        let cells = cells.map(|cell| {
            let whole = cell.text.chars().count();
            // Sentences and long labels are broken into lines.
            let is_broken = !column.right && whole > LONG_LABEL;
            if is_broken || cell.kind == Kind::Reason {
                longest_word(&cell.text).max(BROKEN_LEAST)
            } else {
                whole
            }
        });
        let title = longest_word(&column.title);
        cells.max().unwrap_or(0).max(title) + AROUND
    });
    columns.sum::<usize>() > SCROLLING_CHARACTERS
}

/// Characters of the longest part that stays in one line.
fn longest_word(text: &str) -> usize {
    let words = text.split_whitespace().map(|word| word.chars().count());
    words.max().unwrap_or(0)
}

/// The class of a table that needs a smaller font.
fn density(table: &Table) -> Option<&'static str> {
    let columns = table.columns.iter().enumerate();
    let figures = columns.filter(|(_, column)| column.right);
    let longest = figures.map(|(column, _)| {
        let cells = table.rows.iter().map(|row| &row.cells[column]);
        // Reasons are sentences, which may be broken into lines.
        let kept_whole = cells.filter(|cell| cell.kind != Kind::Reason);
        let widths = kept_whole.map(|cell| cell.text.chars().count());
        widths.max().unwrap_or(0)
    });
    let characters = longest.sum::<usize>();
    match table.columns.len() {
        _ if characters > WIDEST_CHARACTERS => Some("dense densest"),
        MOST_COLUMNS.. => Some("dense densest"),
        MANY_COLUMNS.. => Some("dense"),
        _ => (characters > WIDE_CHARACTERS).then_some("dense"),
    }
}

fn table_cell(table: &Table, row: usize, column: usize, cell: &Cell) -> Markup {
    let right = table.columns[column].right;
    let is_long = cell.text.chars().count() > LONG_LABEL;
    let kind = match cell.kind {
        Kind::Derived => Some("derived"),
        Kind::Missing => Some("missing"),
        Kind::Term => Some("term"),
        // Only short words are kept in one line.
        Kind::Word => Some(if is_long { "word" } else { "term word" }),
        Kind::Reason => Some("reason"),
        Kind::Label => is_long.then_some("long"),
        Kind::Plain => (is_long && !right).then_some("words"),
        Kind::Repeated | Kind::File => None,
    };
    // A sentence reads from the left, even in a column of figures.
    let class = class(column, right && cell.kind != Kind::Reason, kind);
    // Whatever names rows may span them: labels, but also outcomes.
    let rows = span(&table.rows, row, column);
    html! {
        @match cell.kind {
            // The label above spans this row.
            Kind::Repeated => {},
            Kind::Label => th scope="row" rowspan=[rows] class=[class] {
                @if is_long { (breakable(&cell.text)) } @else { (cell.text) }
            },
            Kind::Reason => td rowspan=[rows] class=[class] {
                (rich(&cell.text))
                @if !cell.counters.is_empty() {
                    details.counters { summary { "Counters" } (rich(&cell.counters)) }
                }
            },
            Kind::File => td rowspan=[rows] class=[class] {
                @match cell.link() {
                    Some(link) => a href=(link) { (cell.text) },
                    None => (cell.text),
                }
            },
            _ => td rowspan=[rows] class=[class] {
                // A figure may be broken only before a remark in brackets.
                @match cell.text.split_once(" (").filter(|_| right) {
                    Some((figure, remark)) => {
                        span.whole { (figure) } " "
                        // An interval may also be broken before its upper end.
                        @match remark.split_once(" to ") {
                            Some((low, high)) => {
                                span.whole { "(" (low) } " " span.whole { "to " (high) }
                            },
                            None => span.whole { "(" (remark) },
                        }
                    },
                    None if right => (cell.text),
                    // Remarks and names of commands.
                    None => (rich(&cell.text)),
                }
            },
        }
    }
}

fn class(column: usize, right: bool, kind: Option<&str>) -> Option<String> {
    let classes = [
        (column == 0).then_some("first"),
        right.then_some("right"),
        kind,
    ];
    let classes: Vec<&str> = classes.into_iter().flatten().collect();
    (!classes.is_empty()).then(|| classes.join(" "))
}

/// Number of rows that a label spans, if more than one.
fn span(rows: &[Row], row: usize, column: usize) -> Option<usize> {
    let below = rows[row + 1..].iter();
    // A label is merged only with the rows directly below it.
    let repeated = below
        .take_while(|below| below.cells[column].kind == Kind::Repeated)
        .count();
    (repeated > 0).then_some(repeated + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_of_tables_have_their_code_set_apart_too() {
        let mut remarks = Table::new("", "").labels(["a"]).figures(["b"]).texts(["c"]);
        let remark = "measured by `cipherbench run <x>`";
        remarks.push(vec![
            Cell::label("1"),
            Cell::plain("2 `"),
            Cell::plain(remark),
        ]);
        let text = table(&remarks).into_string();
        let code = "measured by <code>cipherbench run &lt;x&gt;</code>";
        assert!(text.contains(code), "{text}");
        assert_eq!(text.matches('`').count(), 1, "{text}");
    }

    #[test]
    fn ids_break_behind_their_separators() {
        let text = rich("`tcp/mtu=1500/cores=2`").into_string();
        assert_eq!(
            text,
            "<code>tcp/<wbr>mtu=<wbr>1500/<wbr>cores=<wbr>2</code>"
        );
        let mut long = Table::new("", "").labels(["a"]).figures(["b"]);
        let id = "tcp/mtu=1500/cores=2/offloads=off/direct";
        long.push(vec![Cell::label(id), Cell::plain("1")]);
        let text = table(&long).into_string();
        assert!(
            text.contains("offloads=<wbr>off/<wbr>direct</th>"),
            "{text}"
        );
    }

    #[test]
    fn code_is_set_apart_and_figures_stay_whole() {
        let text = rich("use `a < b` & 25.7 ± 2.0 Gbit/CPU-s (< 1 %)").into_string();
        assert_eq!(
            text,
            "use <code>a &lt; b</code> &amp; 25.7\u{a0}±\u{a0}2.0 Gbit/CPU\u{2011}s \
             (&lt;\u{a0}1\u{a0}%)"
        );
    }
}
