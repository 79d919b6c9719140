//! The screen of a run: a state as lines for a terminal of any size.

use super::state::{Phase, Row, State};
use crate::listing::{cut, wrapped};
use guard::visible;
use std::cmp::Reverse;
use std::time::Instant;
use unicode_width::UnicodeWidthStr;
use units::human::counted;

/// Columns that ids leave for figures in a table; otherwise a cell has several lines.
const FIGURE_WIDTH_MIN: usize = 24;
/// Columns of the repeats in a table, as wide as their heading.
const FAR_WIDTH: usize = 7;
/// Between two columns.
const GAP: usize = 2;
/// Columns of the bar.
const BAR_WIDTH: usize = 30;
/// Lines of texts that are cut after them.
const TEXT_LINES: usize = 3;
/// Marks the cell that is being measured.
const MARK: &str = "> ";
const INDENT: &str = "  ";

/// Returns the screen of a state: at most `rows` lines, none wider than `columns`.
pub(super) fn lines(state: &State, now: Instant, columns: usize, rows: usize) -> Vec<String> {
    let mut lines = head(state, now, columns);
    lines.extend(trial(state, now, columns));
    let room = rows.saturating_sub(lines.len() + 1);
    let table = table(state, columns, room);
    if !table.is_empty() {
        lines.push(String::new());
        lines.extend(table);
    }
    lines.truncate(rows);
    // Wide characters and a terminal of a few columns leave nothing else to cut.
    lines.iter().map(|line| cut(line, columns)).collect()
}

fn head(state: &State, now: Instant, columns: usize) -> Vec<String> {
    let title = match state.title.as_str() {
        "" => state.campaign.clone(),
        title => format!("{}: {title}", state.campaign),
    };
    let title = format!("{title}, in lab {}", state.lab);
    let mut lines = vec![cut(&visible(&title), columns)];
    let far = state.far(now).join(", ");
    let width = BAR_WIDTH.min(columns.saturating_sub(far.width() + 2));
    // A shorter bar shows nothing that the numbers do not.
    if width >= 10 {
        lines.push(format!("{}  {far}", bar(state, width)));
    } else {
        lines.extend(wrapped(&far, columns, TEXT_LINES));
    }
    lines
}

fn bar(state: &State, width: usize) -> String {
    let full = (width * state.made() / state.trials.max(1)).min(width);
    format!("{}{}", "━".repeat(full), "╌".repeat(width - full))
}

/// The trial in progress, or why there is none.
fn trial(state: &State, now: Instant, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(INDENT.len());
    let indented = |text: &str, lines_max| {
        let parts = wrapped(&visible(text), room, lines_max);
        parts.into_iter().map(|part| format!("{INDENT}{part}"))
    };
    match (&state.phase, &state.now) {
        (Phase::Waiting(reason), _) => indented(&format!("waits: {reason}"), TEXT_LINES).collect(),
        (Phase::Ended(reason), _) => indented(reason, TEXT_LINES).collect(),
        (Phase::Measuring, None) => Vec::new(),
        (Phase::Measuring, Some(trial)) => {
            let repeat = trial
                .repeat
                .map_or_else(String::new, |repeat| format!(" #{repeat}"));
            let room = columns.saturating_sub(repeat.len());
            let mut lines = broken(&visible(&trial.cell), room);
            if let Some(last) = lines.last_mut() {
                last.push_str(&repeat);
            }
            if !trial.facts.is_empty() {
                lines.extend(indented(&trial.facts.join(", "), TEXT_LINES));
            }
            lines.extend(indented(&trial.time(now), 1));
            lines
        }
    }
}

/// The table in at most `room` lines: all cells in the order of the plan, or, if there is no room
/// for them, the ones with the newest results.
fn table(state: &State, columns: usize, room: usize) -> Vec<String> {
    let current = state.now.as_ref().map(|now| now.cell.as_str());
    let is_current = |row: &Row| Some(row.cell.as_str()) == current;
    let widths = state.rows.iter().map(|row| visible(&row.cell).width());
    let layout = Layout {
        columns,
        id_width: widths.max().unwrap_or(0),
    };
    let mut lines = Vec::new();
    if layout.is_table() {
        lines.push(layout.line("", "Cell", "Repeats", "Last figure"));
    }
    let all = state.rows.iter();
    let mut rows: Vec<(&Row, Vec<String>)> = all
        .map(|row| (row, layout.row(row, is_current(row))))
        .collect();
    let height: usize = rows.iter().map(|(_, lines)| lines.len()).sum();
    if lines.len() + height <= room {
        lines.extend(rows.into_iter().flat_map(|(_, lines)| lines));
        return lines;
    }
    let number = |row: &Row| row.newest.map_or(0, |(_, number)| number);
    rows.sort_by_key(|(row, _)| Reverse((is_current(row), number(row))));
    // The line about the others takes one.
    let mut left = room.saturating_sub(lines.len() + 1);
    let fitting = rows.iter().take_while(|(_, lines)| {
        let fits = lines.len() <= left;
        left = left.saturating_sub(lines.len());
        fits
    });
    let fitting = fitting.count();
    if fitting == 0 {
        return Vec::new();
    }
    let others = rows.split_off(fitting);
    let empty = others.iter().filter(|(row, _)| row.newest.is_none());
    let more = counted(others.len() as u64, "more cell");
    lines.extend(rows.into_iter().flat_map(|(_, lines)| lines));
    lines.push(match empty.count() {
        0 => format!("… and {more}"),
        empty => format!("… and {more}, {empty} without a figure"),
    });
    lines
}

/// The layout of a table.
struct Layout {
    columns: usize,
    /// Of the longest id.
    id_width: usize,
}

impl Layout {
    /// Whether a cell has one line, with its whole id and enough of its figure.
    const fn is_table(&self) -> bool {
        self.id_width + MARK.len() + FAR_WIDTH + 2 * GAP + FIGURE_WIDTH_MIN <= self.columns
    }

    fn row(&self, row: &Row, is_current: bool) -> Vec<String> {
        let mark = if is_current { MARK } else { INDENT };
        let id = visible(&row.cell);
        let far = format!("{}/{}", row.results.len(), row.repeats);
        let figure = row.last().map_or("", |last| last.text.as_str());
        let figure = visible(figure);
        if self.is_table() {
            return vec![self.line(mark, &id, &far, &figure)];
        }
        // The whole id, over several lines if need be: parts of ids are the same for many cells.
        let room = self.columns.saturating_sub(MARK.len() + far.len() + 1);
        let mut lines: Vec<String> = Vec::new();
        for part in broken(&id, room) {
            let lead = if lines.is_empty() { mark } else { INDENT };
            lines.push(format!("{lead}{part}"));
        }
        if let Some(last) = lines.last_mut() {
            let gap = self.columns.saturating_sub(last.width() + far.len());
            *last += &format!("{}{far}", " ".repeat(gap));
        }
        if !figure.is_empty() {
            let room = self.columns.saturating_sub(2 * INDENT.len());
            lines.push(format!("{INDENT}{INDENT}{}", cut(&figure, room)));
        }
        lines
    }

    fn line(&self, mark: &str, id: &str, far: &str, figure: &str) -> String {
        let gap = " ".repeat(self.id_width.saturating_sub(id.width()));
        let line = format!("{mark:2}{id}{gap}  {far:>FAR_WIDTH$}  {figure}");
        cut(line.trim_end(), self.columns)
    }
}

/// Breaks an id between its words, if there is no room for it in one line.
fn broken(id: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in id.split_inclusive('/') {
        // There is always a last line.
        let last = lines.last_mut().expect("the list begins with a line");
        if last.is_empty() || last.width() + word.width() <= room {
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| cut(line, room)).collect()
}
