//! A comparison for a terminal.

use crate::table::{DIRECTIONS, HEADINGS, ROWS_MAX, WITHOUT_RATIO, counted_title};
use crate::{Comparison, Difference, RunPair, WithoutRatio};
use guard::visible;
use stats::grouped;
use std::borrow::Cow;
use std::fmt::Write;
use units::human::counted;

/// How much of a comparison is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Only the first few differences in machine and settings.
    #[default]
    Short,
    /// All differences, with whole values.
    Full,
}

/// Differences per list in the short form.
const DIFFERENCES_MAX: usize = 8;

/// Returns the comparison as text: the answer, the gates, the changes with regressions first; then
/// reasons for doubt; then the runs and their differences in machine and settings.
#[must_use]
pub fn text(comparison: &Comparison, detail: Detail) -> String {
    text_within(comparison, detail, usize::MAX)
}

/// The same for a terminal of `width` columns: wider tables have several lines for each row.
#[must_use]
pub fn text_within(comparison: &Comparison, detail: Detail, width: usize) -> String {
    let mut text = String::new();
    for pair in &comparison.pairs {
        let _ = writeln!(text, "{}", visible(&comparison.answer(pair)));
    }
    gates(&mut text, comparison);
    for pair in &comparison.pairs {
        changes(&mut text, comparison, pair, width);
    }
    let doubts = comparison.doubts();
    if !doubts.is_empty() {
        let _ = writeln!(text, "\nDoubts ({})", doubts.len());
        for doubt in doubts {
            let _ = writeln!(text, "  - {}", visible(&doubt));
        }
    }
    text.push_str("\nRuns\n");
    for (place, run) in comparison.runs.iter().enumerate() {
        let _ = writeln!(
            text,
            "  {}  {}: {}, {}, {} of {} trials measured",
            letter(place),
            visible(run.name.as_ref()),
            visible(run.campaign.as_ref()),
            run.started_utc,
            run.trials_measured,
            run.trials_planned,
        );
    }
    for pair in &comparison.pairs {
        let lists = [
            ("Environment that differs", &pair.environment),
            ("Settings and devices that differ", &pair.settings),
        ];
        for (title, found) in lists {
            let title = titled(comparison, pair, title);
            differences(&mut text, &title, found, (detail, width));
        }
    }
    if !comparison.pairs.is_empty() {
        let _ = writeln!(text, "\n{}", comparison.method());
    }
    text
}

/// Appends the changes of a run, and the cells that could not be compared.
fn changes(text: &mut String, comparison: &Comparison, pair: &RunPair, width: usize) {
    for direction in DIRECTIONS {
        let rows = comparison.rows(pair, direction);
        let (title, meaning) = comparison.title(direction);
        let title = counted_title(&titled(comparison, pair, &title), rows.len());
        let title = match meaning {
            Some(meaning) => format!("{title}: {meaning}"),
            None => title,
        };
        section(text, &title, &HEADINGS, rows, width);
    }
    let all = pair.without_change.iter();
    let alike = grouped(all.map(|found| ((kind(&found.reason), &found.help), found)));
    let without = alike.into_iter().map(|(_, found)| {
        // The alike ones differ in their numbers only.
        let first = found[0];
        vec![
            and_more(&first.cell, found.len()),
            format!("{}; {}", first.reason, first.help),
        ]
    });
    let without: Vec<_> = without.collect();
    let title = titled(comparison, pair, "Cells that cannot be compared");
    section(
        text,
        &counted_title(&title, pair.without_change.len()),
        &[],
        without,
        width,
    );
    let lacking = pair.without_ratio.iter();
    let lacking: Vec<_> = lacking.map(WithoutRatio::row).collect();
    let title = titled(comparison, pair, WITHOUT_RATIO);
    section(
        text,
        &counted_title(&title, lacking.len()),
        &[],
        lacking,
        width,
    );
    for (ids, place) in [(&pair.only_in_base, 0), (&pair.only_in_other, pair.run)] {
        let rows: Vec<_> = ids.iter().map(|id| vec![id.clone()]).collect();
        // Within one run the other device is missing and not the other run.
        let title = match pair.run {
            0 => "Cells without the other device".to_owned(),
            _ => format!("Cells only in {}", comparison.runs[place].name),
        };
        section(text, &counted_title(&title, rows.len()), &[], rows, width);
    }
}

/// A reason without the numbers of its trial: those of one check differ in every cell.
fn kind(reason: &str) -> &str {
    reason
        .split_once(" failed: ")
        .map_or(reason, |(kind, _)| kind)
}

/// `CELL`, or `CELL and 7 more cells`.
fn and_more(cell: &str, count: usize) -> String {
    match count {
        0 | 1 => cell.to_owned(),
        _ => format!("{cell} and {}", counted(count as u64 - 1, "more cell")),
    }
}

/// The title, preceded by the run's name if several runs are compared with the base.
fn titled(comparison: &Comparison, pair: &RunPair, title: &str) -> String {
    match comparison.pairs.len() {
        1 => title.to_owned(),
        _ => format!("{}: {title}", comparison.runs[pair.run].name),
    }
}

/// Appends differences, settings that both runs could share first. The short form has one value of
/// each of the first few.
fn differences(
    text: &mut String,
    title: &str,
    found: &[Difference],
    (detail, width): (Detail, usize),
) {
    let mut shown: Vec<(&Difference, usize)> = Vec::new();
    for one in found {
        match shown.iter_mut().find(|(known, _)| known.what == one.what) {
            // One key may differ in several ways, as a setting that cells vary: the short form has
            // the first and counts the others.
            Some((_, more)) if detail == Detail::Short => *more += 1,
            _ => shown.push((one, 0)),
        }
    }
    // A device's settings and facts come last: between two devices they differ by design. Facts
    // mostly follow from the settings.
    shown.sort_by_key(|(one, _)| (one.what.contains(": "), one.what.starts_with("dut.")));
    let all = shown.len();
    let most = match detail {
        Detail::Short => DIFFERENCES_MAX,
        Detail::Full => usize::MAX,
    };
    let mut rows: Vec<(Vec<&Difference>, usize)> = Vec::new();
    for (one, more) in shown {
        // The gateways report what the campaign sets: the short form has one line for one change.
        let same = rows.iter_mut().find(|(known, known_more)| {
            detail == Detail::Short && (*known_more, more) == (0, 0) && is_same(known[0], one)
        });
        match same {
            Some((known, _)) => known.push(one),
            None => rows.push((vec![one], more)),
        }
    }
    let left: usize = rows.iter().skip(most).map(|(known, _)| known.len()).sum();
    let rows = rows.into_iter().take(most).map(|(known, more)| {
        let mut row = difference(known[0], detail).to_vec();
        row[0] = names(&known);
        if more > 0 {
            row[1].push_str(&format!(" (and {more} more)"));
        }
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    section_of(
        text,
        &format!("{title} ({all})"),
        &[],
        &rows,
        (usize::MAX, width),
    );
    if left > 0 {
        let left = counted(left as u64, "more difference");
        let _ = writeln!(text, "  {left}: `--full`");
    }
}

/// Whether two differences are of one change: with the same last key, values and number of cells.
fn is_same(a: &Difference, b: &Difference) -> bool {
    let last = |one: &'_ Difference| {
        let end = one.what.rfind(['.', '/', ' ']).map_or(0, |at| at + 1);
        one.what[end..].to_owned()
    };
    last(a) == last(b) && (&a.base, &a.other, a.cells) == (&b.base, &b.other, b.cells)
}

/// The keys of one change, each device once: `dut.adapter.suite, cipherbench: gw1/suite,
/// gw2/suite`.
fn names(known: &[&Difference]) -> String {
    let device = |one: &'_ Difference| one.what.find(": ").map(|at| one.what[..at + 2].to_owned());
    let mut names: Vec<&str> = vec![&known[0].what];
    for pair in known.windows(2) {
        let name = &pair[1].what;
        let shared = device(pair[1]).filter(|own| Some(own) == device(pair[0]).as_ref());
        names.push(&name[shared.map_or(0, |own| own.len())..]);
    }
    names.join(", ")
}

/// Returns a run's letter, by its position in the order given.
pub(crate) fn letter(place: usize) -> String {
    // The alphabet ends before the number of runs that may be given.
    match u8::try_from(place).ok().filter(|place| *place < 26) {
        Some(place) => char::from(b'A' + place).to_string(),
        None => format!("run {}", place + 1),
    }
}

/// The key, its values and the number of cells.
pub(crate) fn difference(found: &Difference, detail: Detail) -> [String; 3] {
    let shown = |value: &str| match value {
        "" => "(none)".to_owned(),
        value if detail == Detail::Full => value.to_owned(),
        value => shortened(value),
    };
    let cells = found.cells.map(|cells| counted(cells as u64, "cell"));
    [
        found.what.clone(),
        format!("{} → {}", shown(&found.base), shown(&found.other)),
        cells.unwrap_or_default(),
    ]
}

/// Cuts lists of CPUs and the like; `--full` prints them whole.
fn shortened(value: &str) -> String {
    const CHARS_MAX: usize = 100;
    match value.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Appends aligned columns; nothing without rows.
fn section(
    text: &mut String,
    title: &str,
    headings: &[&str],
    rows: Vec<Vec<String>>,
    width: usize,
) {
    section_of(text, title, headings, &rows, (ROWS_MAX, width));
}

fn section_of(
    text: &mut String,
    title: &str,
    headings: &[&str],
    rows: &[Vec<String>],
    (most, columns): (usize, usize),
) {
    let Some(first) = rows.first() else { return };
    let _ = writeln!(text, "\n{}", visible(title));
    let headings: Vec<String> = headings.iter().map(|&one| one.to_owned()).collect();
    // Sections without headings get no heading line, as `get` fails for them. Rows without the last
    // column get the first headings.
    let heading = headings.get(..first.len()).map(<[String]>::to_vec);
    let rows = heading.iter().chain(rows.iter().take(most));
    let rows = rows.map(|row| {
        // Names come from other people's journals: escape sequences must not reach the terminal.
        // Before the widths, as visible forms are longer.
        let cells = row.iter().map(|cell| visible(cell));
        cells.collect::<Vec<_>>()
    });
    let rows: Vec<_> = rows.collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..first.len()).map(width).collect();
    let whole: usize = widths.iter().map(|width| width + 2).sum();
    if whole > columns {
        rows.iter().for_each(|row| narrow(text, row, columns));
        return;
    }
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
}

/// Appends a row over several lines: the first cell, and the others below it. Cells are broken at
/// spaces only, and only if they are longer than a line.
fn narrow(text: &mut String, row: &[Cow<'_, str>], columns: usize) {
    let mut line = String::from("  ");
    let mut is_begun = false;
    let mut put = |word: &str, gap: usize, line: &mut String, is_begun: &mut bool| {
        let length = line.chars().count() + gap + word.chars().count();
        if *is_begun && length > columns {
            let _ = writeln!(text, "{}", line.trim_end());
            *line = String::from("    ");
            *is_begun = false;
        }
        if *is_begun {
            line.push_str(&" ".repeat(gap));
        }
        line.push_str(word);
        *is_begun = true;
    };
    for (at, cell) in row.iter().filter(|cell| !cell.is_empty()).enumerate() {
        // What follows the name of the row begins a line.
        let gap = if at == 1 { columns } else { 2 };
        if cell.chars().count() + 4 <= columns {
            put(cell, gap, &mut line, &mut is_begun);
            continue;
        }
        for (word, part) in cell.split(' ').enumerate() {
            let gap = if word == 0 { gap } else { 1 };
            put(part, gap, &mut line, &mut is_begun);
        }
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

fn gates(text: &mut String, comparison: &Comparison) {
    if comparison.gates.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", comparison.gates_in_words());
    for gate in &comparison.gates {
        let cells = counted(gate.cells.len() as u64, "cell");
        let of_run = |run: usize| match comparison.runs.len() {
            1 | 2 => String::new(),
            _ => format!(" of {}", visible(&comparison.runs[run].name)),
        };
        let _ = writeln!(
            text,
            "  {}: {} ({cells}): {}",
            gate.outcome.name(),
            visible(&gate.gate),
            visible(gate.in_words())
        );
        let alike = grouped(gate.bad().map(|cell| {
            let (outcome, reason) = (cell.outcome.name(), kind(&cell.reason));
            ((outcome, &cell.quantity, cell.run, reason), cell)
        }));
        for (_, found) in alike.into_iter().take(ROWS_MAX) {
            let cell = found[0];
            let _ = writeln!(
                text,
                "    {}: {} {}{}: {}",
                cell.outcome.name(),
                visible(&and_more(&cell.cell, found.len())),
                visible(&cell.quantity),
                of_run(cell.run),
                visible(&cell.reason)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_numbers_are_one() {
        let reasons = [
            "r: every repeat is invalid: machine-was-ours failed: others took 2 s",
            "r: it was not run",
            "r: every repeat is invalid: machine-was-ours failed: others took 934 ms",
            "r: every repeat is invalid: no-clear-text failed: 1 frame",
        ];
        let groups = grouped(reasons.iter().map(|reason| (kind(reason), reason)));
        let sizes: Vec<usize> = groups.iter().map(|(_, own)| own.len()).collect();
        assert_eq!(sizes, [2, 1, 1]);
        assert_eq!(and_more("a", 1), "a");
        assert_eq!(and_more("a", 2), "a and 1 more cell");
        assert_eq!(and_more("a", 3), "a and 2 more cells");
    }
}
