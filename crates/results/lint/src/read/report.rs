//! Reports of this program, which are Markdown with words and marks next to the figures.

use super::columns::Raw;
use crate::figure::Figure;
use yaml::Place;

/// Marks behind figures: what limits them (`T`, `L`, `M`, `?`), and repeats after a resume.
const MARKS: [&str; 5] = [" T", " L", " M", " ?", " †"];
/// Lines from the start that the line with the program and its version is in.
const HEAD_LINES: usize = 8;

/// Whether a text is a report of this program: one of its first lines begins with the date, and
/// names the program.
pub(super) fn is_report(text: &str) -> bool {
    text.lines().take(HEAD_LINES).any(|line| {
        line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(", cipherbench ")
    })
}

/// Leaves out the marks behind the figures of columns.
pub(super) fn without_marks(columns: &mut [Raw]) {
    let cells = columns.iter_mut().flat_map(|column| &mut column.cells);
    for (text, place) in cells {
        let mut bare = text.as_str();
        while let Some(rest) = MARKS.iter().find_map(|mark| bare.strip_suffix(mark)) {
            bare = rest.trim_end();
        }
        // A letter may end a text as well.
        if bare.len() < text.len() && figure(bare, place).is_some() {
            *text = bare.to_owned();
        }
    }
}

/// Returns the figure of a cell; `None` for anything else, which a report has its reasons for.
pub(super) fn figure(text: &str, place: &Place) -> Option<Figure> {
    let figure = Figure::parse(text, place).ok()?;
    // A letter directly behind the number is of a count, as in `1.26M`.
    figure.prefix.is_none().then_some(figure)
}
