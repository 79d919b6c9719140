//! A table independent of its output: the same for Markdown, terminal and HTML.

mod joined;
mod short;

pub(crate) use joined::joined;

use super::format::time_ns;
use crate::order::grouped;
use guard::RelativePath;
use journal::record::Explanation;
use std::borrow::Cow;

/// Suffix of figures, names and ratios with repeats measured after a resume.
pub(crate) const LATE_MARK: &str = " †";
/// Before the upper bound of a search without a lower one.
pub(crate) const BELOW: &str = "< ";
/// Sign before a figure's largest distance of a repeat from the mean.
const DEVIATION: &str = "±";
/// The words before the explanation of a table's columns.
pub(crate) const HOW_TO_READ: &str = "How to read it";
/// Legend of [`DEVIATION`], for tables whose note does not explain it.
const DEVIATION_MEANING: &str =
    "±: largest distance of a repeat from the mean (per cent of the mean)";
/// Marks after figures, and their meanings. The legend below a table explains the marks used in it.
const MARKS: [(&str, &str); 6] = [
    // Each has the word that the charts use.
    ("T", "limited by the tester, a lower bound"),
    ("L", "limited by the link"),
    ("M", "limited by this machine's cores"),
    ("?", "unsure what limits it"),
    ("*", "irregular search result"),
    (
        "†",
        "with repeats that were measured after a resume, later than those they are compared with",
    ),
];

/// A table with its caption.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    /// Title, without a full stop.
    pub(crate) caption: String,
    /// Its conditions, then after a semicolon the explanation of its columns; may be empty.
    pub(crate) note: String,
    /// The first `labels` columns name the row.
    pub(crate) labels: usize,
    /// Headings.
    pub(crate) columns: Vec<Column>,
    /// Rows, each as wide as `columns`.
    pub(crate) rows: Vec<Row>,
    /// Whether letters after its figures are marks ([`MARKS`]), not units.
    pub(crate) has_marks: bool,
    /// Whether each row shows all its labels, even if they repeat the row above.
    pub(crate) is_whole: bool,
}

/// A column's heading and alignment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    /// A setting that adjacent columns share; empty if none.
    pub(crate) group: String,
    pub(crate) title: String,
    pub(crate) right: bool,
}

impl Column {
    /// Returns the whole heading in one line: `MTU 1500 B: Ratio`.
    pub(crate) fn heading(&self) -> String {
        if self.group.is_empty() {
            self.title.clone()
        } else {
            format!("{}: {}", self.group, self.title)
        }
    }
}

/// A row, and whether it begins a new block (after a rule or a gap).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) begins_block: bool,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// Counters after the text, which a page folds; usually empty.
    pub(crate) counters: String,
}

/// The kind of a cell, which determines its format in each document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Names the row.
    Label,
    /// Repeats the label of the row above; printed if the document has no spanning cells.
    Repeated,
    /// A figure, or other plain content.
    Plain,
    /// A word that is never broken.
    Term,
    /// The path of a file, relative to the run's folder.
    File,
    /// Derived from other figures.
    Derived,
    /// The reason for a missing figure.
    Reason,
    /// The same as one word, in place of a figure.
    Word,
    /// A figure that is missing without a fault.
    Missing,
}

impl Table {
    pub(crate) fn new(caption: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            caption: caption.into(),
            note: note.into(),
            ..Self::default()
        }
    }

    /// What the figures hold for, in few words: the beginning of the note.
    pub(crate) fn conditions(&self) -> &str {
        self.note.split("; ").next().unwrap_or("")
    }

    /// How to read the columns: the note after its conditions.
    pub(crate) fn method(&self) -> &str {
        self.note.split_once("; ").map_or("", |(_, method)| method)
    }

    /// Adds columns that name rows; call it before adding others.
    pub(crate) fn labels(self, titles: impl IntoIterator<Item: Into<String>>) -> Self {
        let mut table = self.columns(titles, false);
        // Columns that name rows come first, so all columns so far are labels.
        table.labels = table.columns.len();
        table
    }

    /// Prints all labels in each row, for labels that are figures, such as ranks.
    pub(crate) fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    /// Adds columns of figures.
    pub(crate) fn figures(self, titles: impl IntoIterator<Item: Into<String>>) -> Self {
        self.columns(titles, true)
    }

    /// Adds columns of text.
    pub(crate) fn texts(self, titles: impl IntoIterator<Item: Into<String>>) -> Self {
        self.columns(titles, false)
    }

    /// Adds columns of figures that share a setting.
    pub(crate) fn figures_of(
        mut self,
        group: impl Into<String>,
        titles: impl IntoIterator<Item: Into<String>>,
    ) -> Self {
        let known = self.columns.len();
        self = self.figures(titles);
        let group = group.into();
        for column in &mut self.columns[known..] {
            column.group.clone_from(&group);
        }
        self
    }

    fn columns(mut self, titles: impl IntoIterator<Item: Into<String>>, right: bool) -> Self {
        for title in titles {
            self.columns.push(Column {
                group: String::new(),
                title: title.into(),
                right,
            });
        }
        self
    }

    /// Replaces columns that lack every figure, for one reason, by a remark in the note.
    pub(crate) fn condensed(mut self) -> Self {
        // Without any figure, only labels would remain.
        let mut figures = self.rows.iter().flat_map(|row| &row.cells[self.labels..]);
        if figures.all(|cell| cell.kind == Kind::Missing) {
            return self;
        }
        let lacking = |column: &usize| {
            let mut cells = self.rows.iter().map(|row| &row.cells[*column]);
            // There is a first row: without rows, the condition above returns.
            let first = &self.rows[0].cells[*column];
            cells.all(|cell| cell == first && cell.kind == Kind::Missing)
        };
        let columns: Vec<usize> = (self.labels..self.columns.len()).filter(lacking).collect();
        let reasons = grouped(columns.iter().map(|&column| {
            let text = self.rows[0].cells[column].text.clone();
            (text, self.columns[column].heading())
        }));
        // From the right, so that the remaining indices stay valid.
        for column in columns.into_iter().rev() {
            self.columns.remove(column);
            for row in &mut self.rows {
                row.cells.remove(column);
            }
        }
        for (text, headings) in reasons {
            // A dash alone is no reason.
            let what = match text.as_str() {
                "–" => "no figure in any row".to_owned(),
                text => format!("in every row {text}"),
            };
            let separator = if self.note.is_empty() { "" } else { "; " };
            self.note
                .push_str(&format!("{separator}{}: {what}", headings.join(", ")));
        }
        self
    }

    /// Returns the table; `None` if it has no rows.
    pub(crate) fn with_rows(self) -> Option<Self> {
        (!self.rows.is_empty()).then_some(self)
    }

    /// Returns the meaning of the marks in the table, to be printed below it.
    pub(crate) fn footnote(&self) -> Option<String> {
        self.legend(&self.note, self.rows.iter().flat_map(|row| &row.cells))
    }

    /// Returns the meaning of the marks in some of the table's cells, below a printed note.
    pub(crate) fn legend<'a>(
        &self,
        note: &str,
        cells: impl Iterator<Item = &'a Cell> + Clone,
    ) -> Option<String> {
        let is_in = |mark: &str| match mark {
            // Unlike the letters, this mark cannot be a unit, so it needs no `has_marks`.
            "†" => cells.clone().any(|cell| cell.text.ends_with(LATE_MARK)),
            mark => {
                self.has_marks
                    && cells
                        .clone()
                        .any(|cell| marks(&cell.text).any(|own| own == mark))
            }
        };
        let mut parts: Vec<String> = MARKS
            .iter()
            .filter(|(mark, _)| is_in(mark))
            .map(|(mark, meaning)| format!("{mark}: {meaning}"))
            .collect();
        // In tables with marks these stand for a search without a figure.
        let words = [
            (BELOW, "<: no lower bound, only this upper one"),
            ("none", "none: the searches found no lower bound"),
            (
                "invalid",
                "invalid: a check failed; the reasons are listed apart",
            ),
        ];
        for (begin, meaning) in words {
            let mut words = cells.clone().filter(|cell| cell.kind == Kind::Word);
            if self.has_marks && words.any(|cell| cell.text.starts_with(begin)) {
                parts.push(meaning.to_owned());
            }
        }
        if cells.clone().any(Cell::is_partly) {
            parts.push(
                "[m of n]: of m of the n planned repeats; the others are invalid, failed, not run or \
                 without such a bound"
                    .to_owned(),
            );
            // The quotient of the two figures is another one, and a reader would compute it.
            if cells.clone().any(|cell| cell.kind == Kind::Derived) {
                parts.push("ratio: of the repeats that both have".to_owned());
            }
        }
        if !note.contains(DEVIATION) && cells.clone().any(Cell::has_deviation) {
            // It explains every figure, the other marks only some, so it comes first.
            parts.insert(0, DEVIATION_MEANING.to_owned());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Adds a row. A label equal to that of the row above is marked as repeated if all labels to
    /// its left are, too.
    pub(crate) fn push(&mut self, mut cells: Vec<Cell>) {
        // A row of another width would shift figures below wrong headings.
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.caption);
        let mut begins_block = !self.rows.is_empty() && !self.is_whole;
        if let Some(above) = self.rows.last().filter(|_| !self.is_whole) {
            // The last label distinguishes the rows of a block, so it is always printed.
            for (cell, above) in cells
                .iter_mut()
                .zip(&above.cells)
                .take(self.labels.saturating_sub(1))
            {
                if cell.text != above.text {
                    break;
                }
                cell.kind = Kind::Repeated;
                begins_block = false;
            }
        }
        // With a single label, each row would begin a block.
        begins_block &= self.labels > 1;
        self.rows.push(Row {
            cells,
            begins_block,
        });
    }
}

/// Returns the marks at the end of a cell's text.
fn marks(text: &str) -> impl Iterator<Item = &str> {
    let is_mark = |word: &&str| MARKS.iter().any(|(mark, _)| mark == word);
    // A figure may have several marks, all of them at its end.
    text.rsplit(' ').take_while(is_mark)
}

impl Cell {
    /// Whether it shows how far repeats are from their mean.
    fn has_deviation(&self) -> bool {
        // At the beginning of a text, the sign is a limit in both directions, not a deviation.
        let mut words = self.text.split(' ').skip(1);
        self.kind == Kind::Plain && words.any(|word| word == DEVIATION)
    }

    /// Whether its figure is for only some of the repeats.
    fn is_partly(&self) -> bool {
        let Some((_, rest)) = self.text.rsplit_once(" [") else {
            return false;
        };
        let Some((count, rest)) = rest.split_once(" of ") else {
            return false;
        };
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        // The failed check may follow the number.
        let planned: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits(count) && digits(&planned)
    }

    fn of(kind: Kind, text: impl Into<String>) -> Self {
        let text = text.into();
        let counters = String::new();
        Self {
            text,
            kind,
            counters,
        }
    }

    /// Returns the text with the counters, for documents that cannot fold them.
    pub(crate) fn whole(&self) -> Cow<'_, str> {
        match self.counters.as_str() {
            "" => Cow::Borrowed(&self.text),
            counters => Cow::Owned(format!("{} Counters: {counters}", self.text)),
        }
    }

    pub(crate) fn label(text: impl Into<String>) -> Self {
        Self::of(Kind::Label, text)
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::of(Kind::Plain, text)
    }

    pub(crate) fn term(text: impl Into<String>) -> Self {
        Self::of(Kind::Term, text)
    }

    pub(crate) fn file(path: impl Into<String>) -> Self {
        Self::of(Kind::File, path)
    }

    /// Returns the link to a file in the run's folder; `None` for any other text of a journal. The
    /// link contains no scheme and nothing that would end a link in Markdown.
    pub(crate) fn link(&self) -> Option<String> {
        // Only a path below the run's folder becomes a link: the text comes from a journal.
        let path = RelativePath::new(self.text.clone()).ok()?;
        let mut link = String::new();
        for byte in path.as_str().bytes() {
            match byte {
                // Colons, which end a scheme, and brackets are missing here.
                b'/' | b'.' | b'-' | b'_' | b'~' | b',' | b'=' | b'+' => {
                    link.push(char::from(byte))
                }
                byte if byte.is_ascii_alphanumeric() => link.push(char::from(byte)),
                // Percent-encoding of RFC 3986, section 2.1.
                byte => link.push_str(&format!("%{byte:02X}")),
            }
        }
        Some(link)
    }

    pub(crate) fn derived(text: impl Into<String>) -> Self {
        Self::of(Kind::Derived, text)
    }

    /// The reason for a missing figure; joins the lines of an error and its help.
    pub(crate) fn reason(text: impl AsRef<str>) -> Self {
        let lines = text.as_ref().lines().map(str::trim);
        let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        Self::of(Kind::Reason, lines.join("; "))
    }

    /// Why a trial is invalid: the difference, the likely cause, and the remedy; then the counters.
    pub(crate) fn explained(check: &str, explanation: &Explanation, counters: &str) -> Self {
        let Explanation {
            difference,
            cause,
            advice,
        } = explanation;
        // The difference comes first: from counters alone, a reader would have to find it.
        let text =
            format!("{check} failed: {difference}. Likely cause: {cause}. What to do: {advice}.");
        Self {
            counters: counters.to_owned(),
            ..Self::reason(text)
        }
    }

    pub(crate) fn word(text: impl Into<String>) -> Self {
        Self::of(Kind::Word, text)
    }

    pub(crate) fn missing() -> Self {
        Self::absent("–")
    }

    /// A note in place of a figure that is missing without a fault.
    pub(crate) fn absent(text: impl Into<String>) -> Self {
        Self::of(Kind::Missing, text)
    }

    /// A count of faults, highlighted unless it is 0.
    pub(crate) fn faults(count: u64) -> Self {
        match count {
            0 => Self::plain("0"),
            count => Self::word(count.to_string()),
        }
    }

    /// A time in nanoseconds, or a dash.
    pub(crate) fn time(value_ns: Option<u64>) -> Self {
        Self::or_missing(value_ns.map(|value| time_ns(value as f64)))
    }

    /// A figure derived from others, or a dash.
    pub(crate) fn derived_or_missing(text: Option<String>) -> Self {
        text.map_or_else(Self::missing, Self::derived)
    }

    /// The cell in the first of several rows, and an empty one in the others.
    pub(crate) fn once(self, row: usize) -> Self {
        if row == 0 { self } else { Self::plain("") }
    }

    /// The text, or a dash.
    pub(crate) fn or_missing(text: Option<String>) -> Self {
        text.map_or_else(Self::missing, Self::plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_in_a_table_is_explained_below_it() {
        let mut table = Table::new("", "").labels(["a"]).figures(["b", "c"]);
        table.push(vec![
            Cell::label("x"),
            Cell::plain("1.20 ± 0.01 L *"),
            Cell::plain("3 ± 0 ?"),
        ]);
        let legend = table.footnote().unwrap();
        assert!(
            legend.starts_with("±: ") && !legend.contains("L: "),
            "letters may be units: {legend}"
        );
        table.note = "mean ± largest distance from it".into();
        assert_eq!(table.footnote(), None);
        table.has_marks = true;
        let legend = table.footnote().unwrap();
        for mark in ["L: ", "?: ", "*: "] {
            assert!(legend.contains(mark), "{legend}");
        }
        assert!(
            !legend.contains("T: ") && !legend.contains("M: "),
            "{legend}"
        );
        let row = vec![
            Cell::label("y †"),
            Cell::plain("4 [4 of 5]"),
            Cell::plain("5"),
        ];
        table.push(row);
        let legend = table.footnote().unwrap();
        assert!(
            legend.contains("†: ") && legend.contains("[m of n]: ") && !legend.contains("2 of 3"),
            "{legend}"
        );
    }

    #[test]
    fn a_reason_with_help_below_it_stands_in_one_line() {
        let cell = Cell::reason("failed: `x` is not here\nhelp: sudo apt install x\n");
        assert_eq!(
            cell.text,
            "failed: `x` is not here; help: sudo apt install x"
        );
        assert_eq!(Cell::reason("dead").text, "dead");
    }

    #[test]
    fn an_explanation_comes_before_the_counters() {
        let explanation = Explanation::new("1 frame was readable", "it is broken", "repair it");
        let cell = Cell::explained("no-clear-text", &explanation, "1 of 300 frames");
        let text = "no-clear-text failed: 1 frame was readable. Likely cause: it is broken. What to do: repair it.";
        assert_eq!(cell.text, text);
        assert_eq!(cell.whole(), format!("{text} Counters: 1 of 300 frames"));
        assert_eq!(Cell::reason("dead").whole(), "dead");
    }

    #[test]
    fn a_column_without_any_figure_becomes_a_note() {
        let mut table = Table::new("", "note")
            .labels(["a"])
            .figures(["b", "c", "d"]);
        for b in ["1", "2"] {
            table.push(vec![
                Cell::label(b),
                Cell::plain(b),
                Cell::absent("n = 2: no interval"),
                Cell::missing(),
            ]);
        }
        let condensed = table.condensed();
        assert_eq!(condensed.columns.len(), 2);
        assert!(condensed.rows.iter().all(|row| row.cells.len() == 2));
        assert_eq!(
            condensed.note,
            "note; c: in every row n = 2: no interval; d: no figure in any row"
        );
    }

    #[test]
    fn a_table_without_any_figure_stays_as_it_is() {
        let mut table = Table::new("", "").labels(["a"]).figures(["b"]);
        table.push(vec![Cell::label("x"), Cell::absent("not run")]);
        assert_eq!(table.clone().condensed(), table);
    }

    #[test]
    fn repeated_labels_are_marked_only_while_all_left_of_them_repeat() {
        let mut table = Table::new("", "").labels(["a", "b", "c"]).figures(["d"]);
        for (a, b) in [("1", "x"), ("1", "x"), ("1", "y"), ("2", "y")] {
            table.push(vec![
                Cell::label(a),
                Cell::label(b),
                Cell::label("dut"),
                Cell::plain("0"),
            ]);
        }
        let repeated: Vec<Vec<bool>> = table
            .rows
            .iter()
            .map(|row| {
                row.cells
                    .iter()
                    .map(|cell| cell.kind == Kind::Repeated)
                    .collect()
            })
            .collect();
        assert_eq!(repeated[1], [true, true, false, false]);
        assert_eq!(repeated[2], [true, false, false, false]);
        assert_eq!(repeated[3], [false, false, false, false]);
        let blocks: Vec<bool> = table.rows.iter().map(|row| row.begins_block).collect();
        assert_eq!(blocks, [false, false, false, true]);
    }
}
