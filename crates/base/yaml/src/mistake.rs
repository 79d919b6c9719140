//! Mistakes: what is wrong, where, and what to do. Rendered as compilers do.

use std::fmt;
use std::sync::Arc;
use unicode_width::UnicodeWidthChar;
use units::human::counted;

/// Maximum number of mistakes kept per file; further ones are only counted.
pub const MISTAKES_MAX: usize = 200;

/// From so many places on one mistake is shown once: of fewer each is shown with its line.
const MERGED_FROM: usize = 4;

/// A place in a file, kept with checked values so that later checks can report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// The place within it; `None` for the file as a whole.
    pub spot: Option<Spot>,
    /// The path of keys, for example `trials[0].tcp.mtu`; empty at the root.
    pub path: String,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// In characters, at least 1.
    pub length: usize,
    /// The whole line; `None` when the file holds secrets.
    pub source_line: Option<Arc<str>>,
}

/// One mistake. `Display` renders it with its source line; no newline at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where it is.
    pub place: Place,
    /// What is wrong, in one line: lower case, present tense, with the value.
    pub what: String,
    /// What to do about it; may be empty.
    pub help: String,
}

impl Place {
    /// The file as a whole.
    #[must_use]
    pub fn whole_file(file: &str) -> Self {
        Self {
            file: file.into(),
            spot: None,
            path: String::new(),
        }
    }

    /// A mistake at this place.
    #[must_use]
    pub fn mistake(&self, what: impl Into<String>, help: impl Into<String>) -> Mistake {
        Mistake {
            place: self.clone(),
            what: what.into(),
            help: help.into(),
        }
    }

    fn order(&self) -> (usize, usize) {
        self.spot
            .as_ref()
            .map_or((0, 0), |spot| (spot.line, spot.column))
    }
}

/// `campaigns/ipv4.yaml:18:14`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.spot {
            Some(spot) => write!(f, "{}:{}:{}", self.file, spot.line, spot.column),
            None => f.write_str(&self.file),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As wide as the number, so that the bars of the three lines stand below each other.
        let gutter = self
            .place
            .spot
            .as_ref()
            .map_or(1, |spot| spot.line.to_string().len());
        write!(f, "error: {}\n{:gutter$}--> {}", self.what, "", self.place)?;
        if !self.place.path.is_empty() {
            write!(f, "  ({})", self.place.path)?;
        }
        if let Some(spot) = &self.place.spot
            && let Some(line) = &spot.source_line
        {
            let (shown, carets) = excerpt(line, spot.column, spot.length);
            write!(
                f,
                "\n{:gutter$} |\n{} | {shown}\n{:gutter$} | {carets}",
                "", spot.line, ""
            )?;
        }
        if !self.help.is_empty() {
            write!(f, "\nhelp: {}", self.help)?;
        }
        Ok(())
    }
}

/// The part of a line around a column (from 1), and carets below `length` characters there.
fn excerpt(line: &str, column: usize, length: usize) -> (String, String) {
    // A line longer than this is cut at both ends: generated files may have any length.
    const BEFORE_CHARS: usize = 100;
    const SHOWN_CHARS: usize = 160;

    // Not negative: columns count from 1.
    let first = (column - 1).saturating_sub(BEFORE_CHARS);
    let (mut shown, mut carets) = (String::new(), String::new());
    if first > 0 {
        shown.push('…');
        carets.push(' ');
    }
    let mut rest = line.chars().skip(first);
    for (index, c) in rest.by_ref().take(SHOWN_CHARS).enumerate() {
        // Characters that would move the cursor are replaced by one character, which keeps the
        // carets aligned.
        let c = if c != '\t' && c.width().is_none() {
            '\u{fffd}'
        } else {
            c
        };
        shown.push(c);
        let marked = (column..column + length).contains(&(first + index + 1));
        match (marked, c) {
            // Columns are characters, and a terminal shows some of them two cells wide.
            (true, _) => carets.extend(std::iter::repeat_n('^', c.width().unwrap_or(1))),
            // A tab below a tab keeps the carets aligned at any width of tabs.
            (false, '\t') => carets.push('\t'),
            (false, _) => carets.extend(std::iter::repeat_n(' ', c.width().unwrap_or(1))),
        }
    }
    if rest.next().is_some() {
        shown.push('…');
    }
    // The place may be past the end of the line: a value that is missing there.
    if !carets.contains('^') {
        carets.push('^');
    }
    (shown, carets.trim_end().to_owned())
}

/// All mistakes of a file, in file order; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    list: Vec<Mistake>,
    not_kept: usize,
}

impl Mistakes {
    /// Puts mistakes in file order; `None` when there are none.
    #[must_use]
    pub fn new(mistakes: Vec<Mistake>) -> Option<Self> {
        Self::with_more(mistakes, 0)
    }

    pub(crate) fn with_more(mut list: Vec<Mistake>, not_kept: usize) -> Option<Self> {
        // A stable sort: several mistakes at one place remain as they were found.
        list.sort_by_key(|mistake| mistake.place.order());
        (!list.is_empty()).then_some(Self { list, not_kept })
    }

    /// The same with further mistakes, except where there is one at the same place.
    #[must_use]
    pub fn and(self, more: Vec<Mistake>) -> Self {
        let Self { mut list, not_kept } = self;
        let is_new = |mistake: &Mistake| list.iter().all(|known| known.place != mistake.place);
        let more: Vec<_> = more.into_iter().filter(is_new).collect();
        list.extend(more);
        list.sort_by_key(|mistake| mistake.place.order());
        Self { list, not_kept }
    }

    /// The mistakes, in file order; at most [`MISTAKES_MAX`].
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.list.iter()
    }

    /// The mistakes by what is wrong and what to do, in file order: each with all places that have
    /// it.
    #[must_use]
    pub fn merged(&self) -> Vec<Merged<'_>> {
        let mut all: Vec<Merged<'_>> = Vec::new();
        for mistake in &self.list {
            match all.iter_mut().find(|known| known.is_of(mistake)) {
                Some(known) => known.add(&mistake.place),
                None => all.push(Merged::of(mistake)),
            }
        }
        all
    }

    /// The number of mistakes, including those not kept; at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len() + self.not_kept
    }
}

/// Mistakes that say the same of several places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged<'m> {
    /// The first one.
    pub mistake: &'m Mistake,
    /// The places of the others.
    pub others: Vec<&'m Place>,
}

impl<'m> Merged<'m> {
    /// Whether a mistake says the same.
    #[must_use]
    pub fn is_of(&self, mistake: &Mistake) -> bool {
        (&self.mistake.what, &self.mistake.help) == (&mistake.what, &mistake.help)
    }

    /// One mistake, so far.
    #[must_use]
    pub const fn of(mistake: &'m Mistake) -> Self {
        Self {
            mistake,
            others: Vec::new(),
        }
    }

    /// Adds a place that has it too.
    pub fn add(&mut self, place: &'m Place) {
        if self.mistake.place != *place && !self.others.contains(&place) {
            self.others.push(place);
        }
    }
}

/// As [`Mistake`], and a line with the other places.
impl fmt::Display for Merged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Further places are counted.
        const SHOWN_MAX: usize = 6;
        write!(f, "{}", self.mistake)?;
        let shown: Vec<String> = self
            .others
            .iter()
            .take(SHOWN_MAX)
            .map(|at| at.to_string())
            .collect();
        if !shown.is_empty() {
            write!(f, "\nalso: {}", shown.join(", "))?;
        }
        match self.others.len().saturating_sub(SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, " and {}", counted(more as u64, "more place")),
        }
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self {
            list: vec![mistake],
            not_kept: 0,
        }
    }
}

impl<'a> IntoIterator for &'a Mistakes {
    type Item = &'a Mistake;
    type IntoIter = std::slice::Iter<'a, Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Every mistake followed by a blank line, and their number; no newline at the end. One that many
/// places have is shown once.
impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let merged = self.merged();
        for mistake in &self.list {
            let same = merged.iter().find(|merged| merged.is_of(mistake));
            match same.filter(|merged| merged.others.len() + 1 >= MERGED_FROM) {
                Some(merged) if std::ptr::eq(merged.mistake, mistake) => {
                    write!(f, "{merged}\n\n")?;
                }
                // It is among those of an earlier one.
                Some(_) => {}
                None => write!(f, "{mistake}\n\n")?,
            }
        }
        // Places in several files are possible (`Node::mistake_at`): the first one is named for
        // all.
        let file = self.list.first().map_or("", |mistake| &mistake.place.file);
        match (self.count(), self.not_kept) {
            (1, _) => write!(f, "1 mistake in {file}"),
            (count, 0) => write!(f, "{count} mistakes in {file}"),
            (count, hidden) => write!(f, "{count} mistakes in {file}, {hidden} of them not shown"),
        }
    }
}

impl std::error::Error for Mistakes {}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(line: usize, column: usize, length: usize, source_line: &str) -> Mistake {
        let spot = Spot {
            line,
            column,
            length,
            source_line: Some(source_line.into()),
        };
        let place = Place {
            file: "c.yaml".into(),
            spot: Some(spot),
            path: "a.b".to_owned(),
        };
        place.mistake("what is wrong", "what to do")
    }

    #[test]
    fn renders_as_compilers_do() {
        let mistake = Mistake {
            what: "MTU 40 B is below the IPv4 minimum of 68 B".to_owned(),
            help: "use 576 B or more".to_owned(),
            place: Place {
                file: "campaigns/ipv4.yaml".into(),
                spot: Some(Spot {
                    line: 18,
                    column: 15,
                    length: 4,
                    source_line: Some("        mtu: [40 B, 1500 B]".into()),
                }),
                path: "trials[0].tcp.mtu".to_owned(),
            },
        };
        let expected = "\
error: MTU 40 B is below the IPv4 minimum of 68 B
  --> campaigns/ipv4.yaml:18:15  (trials[0].tcp.mtu)
   |
18 |         mtu: [40 B, 1500 B]
   |               ^^^^
help: use 576 B or more";
        assert_eq!(mistake.to_string(), expected);
    }

    #[test]
    fn carets_align_with_wide_characters_and_tabs() {
        let text = mistake(7, 6, 2, "a: 漢字漢字").to_string();
        assert!(
            text.contains("\n7 | a: 漢字漢字\n  |        ^^^^\n"),
            "{text}"
        );
        let text = mistake(7, 4, 1, "a:\tx").to_string();
        assert!(text.contains("\n7 | a:\tx\n  |   \t^\n"), "{text}");
    }

    #[test]
    fn a_long_line_is_truncated_around_the_place() {
        let line = format!("{}HERE{}", "x".repeat(5000), "y".repeat(5000));
        let text = mistake(1, 5001, 4, &line).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[3].starts_with("1 | …x") && lines[3].ends_with("y…"),
            "{}",
            lines[3]
        );
        let caret = lines[4].chars().position(|c| c == '^').unwrap();
        assert_eq!(
            lines[3].chars().skip(caret).take(4).collect::<String>(),
            "HERE"
        );
        assert!(text.len() < 1000);
    }

    #[test]
    fn a_place_past_the_end_of_its_line_still_has_a_caret() {
        assert!(
            mistake(1, 5, 1, "a: b")
                .to_string()
                .contains("\n  |     ^\n")
        );
    }

    #[test]
    fn a_mistake_without_spot_names_the_file() {
        let text = Place::whole_file("gone.yaml")
            .mistake("cannot read it", "")
            .to_string();
        assert_eq!(text, "error: cannot read it\n --> gone.yaml");
    }

    #[test]
    fn all_are_printed_in_file_order_and_counted() {
        let list = vec![
            mistake(9, 1, 1, "z"),
            mistake(2, 5, 1, "a: b"),
            mistake(2, 1, 1, "a: b"),
        ];
        let mistakes = Mistakes::new(list).unwrap();
        assert_eq!(mistakes.to_string().matches("error: ").count(), 3);
        let lines: Vec<_> = mistakes.iter().map(|m| m.place.to_string()).collect();
        assert_eq!(lines, ["c.yaml:2:1", "c.yaml:2:5", "c.yaml:9:1"]);
        assert!(mistakes.to_string().ends_with("\n\n3 mistakes in c.yaml"));
        assert_eq!(Mistakes::new(Vec::new()), None);
    }

    #[test]
    fn one_mistake_at_many_places_is_shown_once_and_its_places_are_counted() {
        let at = |line| mistake(line, 1, 1, "z");
        let other = Mistake {
            help: "another remedy".to_owned(),
            ..at(3)
        };
        let mut list: Vec<Mistake> = (1..=24).map(at).collect();
        list[2] = other;
        let shown = Mistakes::new(list).unwrap().to_string();
        assert_eq!(shown.matches("error: ").count(), 2, "{shown}");
        assert!(shown.contains("c.yaml:8:1 and 16 more places\n"), "{shown}");
        assert!(shown.ends_with("\n\n24 mistakes in c.yaml"), "{shown}");
        let eight = Mistakes::new((1..=8).map(at).collect())
            .unwrap()
            .to_string();
        assert!(eight.contains("and 1 more place\n"), "{eight}");
        let one = at(1);
        let mut merged = Merged::of(&one);
        merged.add(&one.place);
        assert_eq!(merged.others.len(), 0);
    }
}
