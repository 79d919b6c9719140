//! Keys, each declared once: its declaration reads the value, fills the row in the documents, and
//! describes the key to editors.

use std::time::Duration;
use strum::VariantArray;
use units::{Layer, Ratio};

/// A key of a map.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub(crate) name: &'static str,
    pub(crate) value: Value,
    pub(crate) absent: Absent,
    pub(crate) meaning: &'static str,
    pub(crate) words: Option<&'static str>,
    pub(crate) range: Option<&'static str>,
    pub(crate) excludes: &'static [&'static str],
    pub(crate) apart: bool,
}

/// The value of a key that a file does not have.
#[derive(Debug, Clone, Copy)]
pub enum Absent {
    /// None: the key is required.
    Required,
    /// The value of this text, as a file would have it.
    Default(&'static str),
    /// A value that depends on more than this key; the words describe it in documents.
    Depends(&'static str),
}

/// The values that a key takes. Bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// On or off.
    Switch,
    /// A whole number.
    Integer(u64, u64),
    /// A duration with its unit.
    Time(Duration, Duration),
    /// A size in bytes with its unit.
    Size(u64, u64),
    /// A bit rate in bit/s at a layer, with its unit.
    BitRate(Layer, u64, u64),
    /// A ratio in per cent.
    Ratio(Ratio, Ratio),
    /// A whole number of per cent.
    Percent(u16, u16),
    /// One of these names.
    Name(fn() -> Vec<&'static str>),
    /// A name of up to this many characters from `a-z`, `0-9` and `-`.
    Identifier(usize),
    /// Any text.
    Text,
    /// Text in the notation of this regular expression.
    Notation(&'static str),
    /// A path.
    Path,
    /// An IPv4 or IPv6 address.
    Ip,
    /// An IPv4 address.
    Ipv4,
    /// An address with a port.
    SocketAddress,
    /// An IP prefix.
    Prefix,
    /// The word, or the other value.
    Or(&'static str, &'static Self),
    /// A list.
    List(&'static Self),
    /// A list of at least one value, or a single value.
    OneOrMany(&'static Self),
    /// A list of at least one value, or a single value; the values multiply into measurements.
    Axis(&'static Self),
    /// A map with these keys.
    Map(&'static [Key]),
    /// The name of a kind, or a map of it to the settings of that kind, which have these keys.
    Kinds(fn() -> Vec<(&'static str, &'static [Key])>),
    /// No value: these keys stand in the map in place of this one, see [`Key::group`].
    Group(&'static [Key]),
    /// A map with values as its keys.
    Entries(&'static Self),
    /// Any of these forms.
    Any(&'static [Self]),
}

impl Key {
    /// A key; documents and editors show its meaning.
    #[must_use]
    pub const fn new(
        name: &'static str,
        value: Value,
        absent: Absent,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            value,
            absent,
            meaning,
            words: None,
            range: None,
            excludes: &[],
            apart: false,
        }
    }

    /// Keys that several maps have. The name is that of their table in documents, which is
    /// separate from the tables of the maps.
    #[must_use]
    pub const fn group(name: &'static str, keys: &'static [Self]) -> Self {
        Self::new(name, Value::Group(keys), Absent::Depends(""), "")
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The beginning of the meaning, to follow a colon: without links, and with a small first
    /// letter unless the first word is an abbreviation.
    pub(crate) fn clause(&self) -> String {
        let plain = without_links(self.meaning);
        let ends = [". ", "; ", ", see "];
        let end = ends.iter().filter_map(|mark| plain.find(mark)).min();
        let clause = plain[..end.unwrap_or(plain.len())].trim_end_matches('.');
        let mut letters = clause.chars();
        match (letters.next(), letters.clone().next()) {
            (Some(first), Some(second)) if !second.is_uppercase() => {
                first.to_lowercase().chain(letters).collect()
            }
            _ => clause.to_owned(),
        }
    }

    /// The same key with another meaning.
    #[must_use]
    pub const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// The same key with a default that depends on more.
    #[must_use]
    pub const fn depends(self, words: &'static str) -> Self {
        Self {
            absent: Absent::Depends(words),
            ..self
        }
    }

    /// The same key with another default.
    #[must_use]
    pub const fn default(self, text: &'static str) -> Self {
        Self {
            absent: Absent::Default(text),
            ..self
        }
    }

    /// Describes the value in documents by these words, not by the words of its [`Value`].
    #[must_use]
    pub const fn words(self, words: &'static str) -> Self {
        Self {
            words: Some(words),
            ..self
        }
    }

    /// The same for the range, in tables with a column for it.
    #[must_use]
    pub const fn range(self, range: &'static str) -> Self {
        Self {
            range: Some(range),
            ..self
        }
    }

    /// Keys of the same map that cannot be given with this one.
    #[must_use]
    pub const fn excludes(self, others: &'static [&'static str]) -> Self {
        Self {
            excludes: others,
            ..self
        }
    }

    /// Documents its map in a separate table, not below its own row.
    #[must_use]
    pub const fn apart(self) -> Self {
        Self {
            apart: true,
            ..self
        }
    }
}

impl Value {
    /// The names of a list for [`one_of`](crate::Node::one_of).
    pub fn names<T>(known: &[(&'static str, T)]) -> Vec<&'static str> {
        known.iter().map(|(name, _)| *name).collect()
    }

    /// The names of an enum, for [`choice`](crate::Node::choice).
    pub fn variants<T: VariantArray + Copy + Into<&'static str>>() -> Vec<&'static str> {
        T::VARIANTS
            .iter()
            .map(|variant| (*variant).into())
            .collect()
    }

    /// The keys of the map, or of the maps in the list.
    pub(crate) const fn keys(&self) -> Option<&'static [Key]> {
        match self {
            Self::Map(keys) => Some(keys),
            Self::List(item) | Self::OneOrMany(item) | Self::Or(_, item) => item.keys(),
            _ => None,
        }
    }
}

/// `[text](target)` becomes `text`: targets are relative to the documents.
pub(crate) fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        plain += before;
        rest = match after.split_once("](") {
            Some((words, target)) if !words.contains(']') => {
                plain += words;
                target.split_once(')').map_or("", |(_, after)| after)
            }
            _ => {
                plain.push('[');
                after
            }
        };
    }
    plain + rest
}

/// The keys of a map: groups are replaced by theirs.
pub(crate) fn flat(keys: &[Key]) -> Vec<&Key> {
    let mut all = Vec::new();
    for key in keys {
        match key.value {
            Value::Group(group) => all.extend(flat(group)),
            _ => all.push(key),
        }
    }
    all
}
