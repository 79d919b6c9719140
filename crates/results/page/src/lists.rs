//! Lists that share a page's height: each shows its first rows, and folds the others.

use super::parts::table;
use maud::{Markup, html};
use units::human::counted;

/// Height of the shown rows of all lists together, in pixels at 400 px of width. The whole page is
/// then lower than two screens of 800 px.
pub const ROOM: u32 = 960;
/// Characters in a line of a row there.
const LINE_CHARS: usize = 42;
/// Pixels of a line, and of a row's margins.
const LINE: u32 = 20;
const ROW: u32 = 14;

/// A list of the page.
#[derive(Debug)]
pub struct List {
    /// Id of its section; the id of its folded part ends with `-others`.
    pub id: &'static str,
    /// Its title.
    pub title: String,
    /// Noun for a row.
    pub noun: &'static str,
    /// Text of an empty list; without it the section is omitted.
    pub none: Option<&'static str>,
    /// Headings of its columns.
    pub heads: &'static [&'static str],
    /// Its rows.
    pub rows: Vec<ListRow>,
    /// Text after the rows.
    pub note: Option<String>,
}

/// A row of a list.
#[derive(Debug)]
pub struct ListRow {
    cells: Markup,
    height: u32,
}

impl ListRow {
    /// Returns a row with these cells. `chars` has the characters of each group of cells that
    /// begins a line on a narrow screen.
    #[must_use]
    pub fn new(cells: Markup, chars: &[usize]) -> Self {
        let lines: usize = chars.iter().map(|chars| chars.div_ceil(LINE_CHARS)).sum();
        // Texts of others may be of any length, and the sum must not overflow.
        let lines = u32::try_from(lines).unwrap_or(u32::MAX);
        Self {
            cells,
            height: lines.saturating_mul(LINE).saturating_add(ROW),
        }
    }
}

/// Characters of a text.
#[must_use]
pub fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Renders all lists; together, their shown rows are at most `room` high.
#[must_use]
pub fn lists(lists: &[List], room: u32) -> Markup {
    let heights = lists
        .iter()
        .map(|list| list.rows.iter().map(|row| row.height).collect());
    let shown = shares(&heights.collect::<Vec<_>>(), room);
    html! {
        @for (list, shown) in lists.iter().zip(shown) {
            @if !list.rows.is_empty() || list.none.is_some() { (section(list, shown)) }
        }
    }
}

fn section(list: &List, shown: usize) -> Markup {
    let rows: Vec<&Markup> = list.rows.iter().map(|row| &row.cells).collect();
    let (first, others) = rows.split_at(shown);
    let note = || html! { @if let Some(note) = &list.note { p.note { (note) } } };
    html! {
        section id=(list.id) {
            h2 { (list.title) }
            @if rows.is_empty() { p.note { (list.none.unwrap_or_default()) } }
            @if !first.is_empty() { (table(list.heads, first)) }
            @if others.is_empty() { (note()) } @else {
                details.more id={ (list.id) "-others" } {
                    summary { (counted(others.len() as u64, &format!("more {}", list.noun))) }
                    (table(list.heads, others))
                    // The note is about the rows that the list leaves out at its end, so it follows
                    // the last row.
                    (note())
                }
            }
        }
    }
}

/// How many rows each list shows, by the heights of its rows: one of each in turn, while there is
/// room for it.
fn shares(heights: &[Vec<u32>], room: u32) -> Vec<usize> {
    let mut shown = vec![0; heights.len()];
    let mut is_full = vec![false; heights.len()];
    let mut left = room;
    while let Some(turn) = (0..heights.len())
        // Of lists with equally many rows, `min_by_key` returns the first, so lists at the top of
        // the page take their turn first.
        .filter(|list| !is_full[*list])
        .min_by_key(|list| shown[*list])
    {
        match heights[turn].get(shown[turn]) {
            Some(height) if *height <= left => {
                left -= height;
                shown[turn] += 1;
            }
            // A lower row behind it might fit, but would break the order of the list.
            _ => is_full[turn] = true,
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_turns_until_the_room_is_used() {
        assert_eq!(shares(&[vec![10; 9], vec![10; 9]], 50), [3, 2]);
        // Room that a short list leaves goes to the others.
        assert_eq!(shares(&[vec![10; 9], vec![10; 1], vec![]], 50), [4, 1, 0]);
        // One that does not fit ends its list only.
        assert_eq!(shares(&[vec![10, 90, 10], vec![10; 9]], 50), [1, 4]);
        assert_eq!(shares(&[vec![90], vec![10]], 50), [0, 1]);
        assert_eq!(shares(&[], 50), [0_usize; 0]);
    }

    #[test]
    fn a_row_is_as_high_as_its_lines() {
        let height = |chars: &[usize]| ListRow::new(Markup::default(), chars).height;
        assert_eq!(height(&[1]), LINE + ROW);
        assert_eq!(height(&[LINE_CHARS, LINE_CHARS + 1, 0]), 3 * LINE + ROW);
    }
}
