//! TOML keys with their places; a key that nothing reads is a mistake.

use crate::figure::Figure;
use crate::source::Source;
use std::cell::RefCell;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use yaml::Place;

/// The form of keys, for those that are no TOML.
const HELP: &str = "write one key in each line, without commas: `unit = \"Mbit/s\"`, `columns = \"frame\"`; in Markdown \
                    between a line `<!-- lint` and a line `-->`";

/// The keys of one table in a file.
pub(super) struct Keys<'a> {
    pub(super) source: &'a Source,
    table: &'a DeTable<'a>,
    /// The first byte of the parsed text in the file.
    base: usize,
    place: Place,
    read: RefCell<Vec<&'static str>>,
}

/// One value.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) source: &'a Source,
    value: &'a Spanned<DeValue<'a>>,
    base: usize,
}

impl<'a> Keys<'a> {
    /// Parses TOML that begins at a byte of the file and calls the reader with its keys. Each line
    /// with a syntax error is a mistake; the reader then gets no keys, to find those of the cells.
    pub(super) fn parse(source: &Source, base: usize, text: &str, read: impl FnOnce(&Keys<'_>)) {
        let place = source.place(&(base..base + 1));
        let none = DeTable::new();
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut lines = Vec::new();
        for error in &errors {
            let range = error.span().unwrap_or(0..1);
            let place = source.place(&shifted(&range, base));
            let line = place.spot.as_ref().map(|spot| spot.line);
            if !lines.contains(&line) {
                lines.push(line);
                let first = error.message().lines().next().unwrap_or_default();
                source.mistake(&place, format!("no TOML: {first}"), HELP);
            }
        }
        let keys = |table| Keys {
            source,
            table,
            base,
            place,
            read: RefCell::default(),
        };
        if errors.is_empty() {
            read(&keys(table.get_ref()));
        } else {
            source.read_without_keys(|| read(&keys(&none)));
        }
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn optional(&self, key: &'static str) -> Option<Value<'a>> {
        // Noted even if the key is absent: `refuse_others` lists all keys that this reader knows.
        self.read.borrow_mut().push(key);
        let value = self.table.get(key)?;
        Some(Value {
            source: self.source,
            value,
            base: self.base,
        })
    }

    pub(super) fn required(&self, key: &'static str) -> Option<Value<'a>> {
        let found = self.optional(key);
        if found.is_none() {
            let what = format!("the key `{key}` is missing");
            self.mistake(what, "reference/README.md lists the keys");
        }
        found
    }

    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        self.optional(key)?.text()
    }

    pub(super) fn mistake(&self, what: impl Into<String>, help: impl Into<String>) {
        self.source.mistake(&self.place, what, help);
    }

    /// Every key and its value, in file order.
    pub(super) fn entries(&self) -> Vec<(String, Place, Value<'a>)> {
        let mut entries: Vec<_> = self.table.iter().collect();
        // The parser's table is sorted by key. The rows of a table of figures are keys, and their
        // order is the report's.
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, &'a Spanned<DeValue<'a>>)| {
            let place = self.source.place(&shifted(&key.span(), self.base));
            let value = Value {
                source: self.source,
                value,
                base: self.base,
            };
            (AsRef::<str>::as_ref(key.get_ref()).to_owned(), place, value)
        };
        entries.into_iter().map(entry).collect()
    }

    /// Reports every key that was not read; call it last.
    pub(super) fn refuse_others(&self) {
        let read = self.read.borrow();
        for (key, place, _) in self.entries() {
            if !read.contains(&key.as_str()) {
                let what = format!("unknown key `{key}`");
                let help = yaml::names::help(&key, "key", &read);
                self.source.mistake(&place, what, help);
            }
        }
    }
}

impl Keys<'_> {
    /// Reports keys that are of no table: only statements may stand alone.
    pub(super) fn refuse_without_table(&self) {
        let read = self.read.borrow();
        let others = self.entries().into_iter();
        let mut others = others.filter(|(key, ..)| !read.contains(&key.as_str()));
        if let Some((key, place, _)) = others.next() {
            let what = format!("no table follows the comment with the key `{key}`");
            let help = "put the comment directly above the table, whose second line is made of dashes and bars; only \
                        [[mix]], [[sum]] and [[claim]] may stand alone";
            self.source.mistake(&place, what, help);
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn place(&self) -> Place {
        self.source.place(&shifted(&self.value.span(), self.base))
    }

    /// Reports a mistake here.
    pub(super) fn mistake(&self, what: impl Into<String>, help: impl Into<String>) {
        self.source.mistake(&self.place(), what, help);
    }

    fn not_a(&self, wanted: &str) {
        let what = format!(
            "{} where {wanted} is expected",
            self.value.get_ref().type_str()
        );
        self.mistake(what, format!("write {wanted}"));
    }

    pub(super) fn text(&self) -> Option<String> {
        let text = self.value.get_ref().as_str();
        if text.is_none() {
            self.not_a("a text in quotes");
        }
        text.map(str::to_owned)
    }

    /// `true` or `false`; `false` after a mistake.
    pub(super) fn flag(&self) -> bool {
        let flag = self.value.get_ref().as_bool();
        if flag.is_none() {
            self.not_a("`true` or `false`");
        }
        flag.unwrap_or(false)
    }

    /// A number or text as it is written, with the zeros at its end.
    pub(super) fn printed(&self) -> Option<String> {
        match self.value.get_ref() {
            // As written and not as a number: `9.40` promises another precision than `9.4`.
            DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::String(text) => Some(text.clone().into_owned()),
            _ => {
                self.not_a("a number, or a figure in quotes,");
                None
            }
        }
    }

    /// A figure; `None` for an empty one, or after a mistake.
    pub(super) fn figure(&self) -> Option<Figure> {
        let text = self.printed()?;
        figure(self.source, &text, &self.place())
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    pub(super) fn list(&self) -> Vec<Self> {
        let Some(items) = self.value.get_ref().as_array() else {
            self.not_a("a list");
            return Vec::new();
        };
        let item = |value| Self { value, ..*self };
        items.iter().map(item).collect()
    }

    pub(super) fn keys(&self) -> Option<Keys<'a>> {
        let Some(table) = self.value.get_ref().as_table() else {
            self.not_a("a table");
            return None;
        };
        Some(Keys {
            source: self.source,
            table,
            base: self.base,
            place: self.place(),
            read: RefCell::default(),
        })
    }
}

/// Reads a cell's text; `None` for an empty one, or after a mistake.
pub(super) fn figure(source: &Source, text: &str, place: &Place) -> Option<Figure> {
    if matches!(text.trim(), "" | "-" | "–" | "—") {
        return None;
    }
    Figure::parse(text, place)
        .inspect_err(|it| source.cell_mistake(place, it.what.as_str(), it.help))
        .ok()
}

fn shifted(range: &Range<usize>, base: usize) -> Range<usize> {
    range.start + base..range.end + base
}
