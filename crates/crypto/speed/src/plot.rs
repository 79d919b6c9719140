//! The page's charts as text, for a terminal of 72 columns.

use crate::chart::{Axis, Chart, Series};
use units::human;

/// Columns of the chart itself: seven doublings of length, from 64 to 8192 bytes, in steps of
/// eight.
const COLUMNS: usize = 57;
/// Maximum number of rows with two rows per doubling; taller charts have one.
const ROWS_MAX: usize = 24;
/// Sign for overlapping lines.
const SEVERAL: char = '*';
/// Sign for a change of the fastest engine.
const MARK: char = '^';

/// Draws the chart with one letter per line and two logarithmic axes. Each row ends in a newline.
pub(crate) fn draw(chart: &Chart) -> String {
    let [x_axis, y_axis] = chart.axes();
    let rows_a_doubling = match 2 * y_axis.doublings() + 1 {
        ..=ROWS_MAX => 2,
        _ => 1,
    };
    let rows = y_axis.doublings() * rows_a_doubling + 1;
    let letters = letters(&chart.series);
    let mut cells = vec![[' '; COLUMNS]; rows];
    for (series, &letter) in chart.series.iter().zip(&letters) {
        for &(x, y) in &series.points {
            let column = place(x_axis.share(x), COLUMNS);
            // Rows are counted from the top, figures from the bottom.
            let row = place(1.0 - y_axis.share(y), rows);
            if let (Some(column), Some(row)) = (column, row) {
                // Lines of several engines may meet in a cell, and one line may enter it twice.
                let cell = &mut cells[row][column];
                *cell = match *cell {
                    ' ' => letter,
                    there if there == letter => letter,
                    _ => SEVERAL,
                };
            }
        }
    }
    // Labels at doublings only; a row in between would need a fraction.
    let label = |row: usize| match row % rows_a_doubling {
        0 => human::number(y_axis.below_end(row / rows_a_doubling)),
        _ => String::new(),
    };
    let labels: Vec<_> = (0..rows).map(label).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0);
    let mut text = format!("{}, {}\n", chart.title, chart.unit);
    for (label, cells) in labels.iter().zip(&cells) {
        let cells = cells.iter().collect::<String>();
        text += format!("  {label:>width$} |{cells}").trim_end();
        text.push('\n');
    }
    let [line, lengths] = bottom(x_axis, &chart.marks);
    text += &format!("  {:width$}  {line}\n", "");
    text += &format!("  {:width$}  {lengths} B\n", "");
    text += &legend(chart, &letters);
    text
}

/// The index among `places` for a share from 0 to 1; `None` outside.
fn place(share: f64, places: usize) -> Option<usize> {
    let inside = (0.0..=1.0).contains(&share);
    inside.then(|| (share * (places - 1) as f64).round() as usize)
}

/// The axis with its marks, and the lengths below it.
fn bottom(axis: Axis, marks: &[usize]) -> [String; 2] {
    let mut line = ['-'; COLUMNS];
    let mut lengths = String::new();
    for halvings in (0..=axis.doublings()).rev() {
        let length = axis.below_end(halvings);
        if let Some(column) = place(axis.share(length), COLUMNS) {
            line[column] = '+';
            let label = length.to_string();
            // In the middle below its tick.
            let start = column.saturating_sub(label.len() / 2);
            lengths = format!("{lengths:<start$}{label}");
        }
    }
    for &mark in marks {
        if let Some(column) = place(axis.share(mark as f64), COLUMNS) {
            line[column] = MARK;
        }
    }
    [line.into_iter().collect(), lengths]
}

/// A line with the meaning of letters, and one with the meaning of signs, if any.
fn legend(chart: &Chart, letters: &[char]) -> String {
    let names = chart.series.iter().zip(letters);
    let names: Vec<_> = names
        .map(|(series, letter)| format!("{letter} {}", series.name))
        .collect();
    let mut signs = Vec::new();
    if letters.len() > 1 {
        signs.push(format!("{SEVERAL} several"));
    }
    if !chart.marks.is_empty() {
        signs.push(format!("{MARK} another is faster from here on"));
    }
    let lines = [names, signs].into_iter().filter(|words| !words.is_empty());
    lines
        .map(|words| format!("  {}\n", words.join("   ")))
        .collect()
}

/// A distinct letter of each line's name, or a digit.
fn letters(series: &[Series]) -> Vec<char> {
    let mut letters = Vec::new();
    for (index, series) in series.iter().enumerate() {
        let free = |letter: &char| letter.is_ascii_alphabetic() && !letters.contains(letter);
        let digit = char::from_digit(index as u32 % 10, 10).unwrap_or('?');
        // The first free letter of the name, so that most engines keep their initial.
        letters.push(series.name.chars().find(free).unwrap_or(digit));
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A straight line, which the axes bend.
    fn series(name: &str, ns_a_packet: f64, ns_a_byte: f64) -> Series {
        let lengths = (0..=56).map(|step| 64.0 * (f64::from(step) / 8.0).exp2());
        Series {
            name: name.to_owned(),
            points: lengths
                .map(|length| (length, ns_a_packet + ns_a_byte * length))
                .collect(),
            dots: Vec::new(),
        }
    }

    #[test]
    fn crossovers_are_visible() {
        let chart = Chart {
            title: "a-suite, seal in batches of 32".to_owned(),
            unit: "ns per packet",
            series: vec![series("steep", 4.0, 0.5), series("flat", 100.0, 0.0625)],
            marks: vec![219],
        };
        let expected = "\
a-suite, seal in batches of 32, ns per packet
  8192 |
       |
  4096 |                                                      sss
       |                                                  ssss
  2048 |                                              ssss
       |                                          ssss
  1024 |                                      ssss
       |                                  ssss                  f
   512 |                              ssss                 fffff
       |                          ssss                fffff
   256 |                      ssss             fffffff
       |                  ssss        fffffffff
   128 |        ffffff****ffffffffffff
       |ffffffff  ssss
    64 |      ssss
       | sssss
    32 |s
        +-------+-----^-+-------+-------+-------+-------+-------+
        64     128     256     512    1024    2048    4096    8192 B
  s steep   f flat
  * several   ^ another is faster from here on
";
        assert_eq!(draw(&chart), expected);
    }

    #[test]
    fn lines_have_distinct_letters() {
        let names = ["aws-lc", "aes", "ae", "null (insecure)"];
        let series = names.map(|name| series(name, 1.0, 1.0));
        assert_eq!(letters(&series), ['a', 'e', '2', 'n']);
    }

    #[test]
    fn without_measurements_a_chart_is_empty() {
        let chart = Chart {
            title: "a-suite, open".to_owned(),
            unit: "ns per packet",
            series: vec![series("free", 0.0, 0.0)],
            marks: Vec::new(),
        };
        let text = draw(&chart);
        assert!(text.starts_with("a-suite, open, ns per packet\n"), "{text}");
        assert!(text.ends_with("  f free\n"), "{text}");
    }
}
