//! Tables of keys in documents.

use crate::key::{Absent, Key, Value, flat};
use units::{BitRate, Bytes};

/// Begins a line that is followed by a table of keys: `<!-- keys: tunnel, keys.handshake -->` for
/// the keys of these maps, with their paths; `<!-- keys of: peers -->` for those of one map,
/// without; a path of `.` is the file.
const MARKERS: [(&str, bool); 2] = [("<!-- keys: ", true), ("<!-- keys of: ", false)];

/// Rewrites the rows of a document's tables of keys. The heads remain, and choose the columns.
///
/// # Panics
/// When a marker names no map.
#[must_use]
pub fn with_tables(document: &str, keys: &'static [Key]) -> String {
    let mut lines = document.lines();
    let mut written: Vec<String> = Vec::new();
    let mut line = lines.next();
    while let Some(marker) = line {
        written.push(marker.to_owned());
        line = lines.next();
        let Some((paths, with_paths)) = MARKERS.iter().find_map(|(start, with_paths)| {
            let paths = marker.strip_prefix(start)?.strip_suffix(" -->")?;
            Some((paths, with_paths))
        }) else {
            continue;
        };
        // The heads are written by people: a document chooses its columns by them.
        let head = line.unwrap_or_default();
        let columns: Vec<&str> = head.trim_matches('|').split('|').map(str::trim).collect();
        written.extend([head.to_owned(), lines.next().unwrap_or_default().to_owned()]);
        for path in paths.split(", ") {
            let keys = at(keys, path).unwrap_or_else(|| panic!("`{path}` is no map"));
            let prefix = if *with_paths && path != "." {
                format!("{path}.")
            } else {
                String::new()
            };
            write(keys, &prefix, &columns[1..], &mut written);
        }
        // The old rows are dropped up to the first line that is none.
        line = lines.find(|line| !line.starts_with('|'));
    }
    // `lines` drops the newline at the end, and `join` puts it back after this.
    written.push(String::new());
    written.join("\n")
}

/// The keys of the map at a path: names of keys, of kinds and of groups, and numbers of forms.
fn at(mut keys: &'static [Key], path: &str) -> Option<&'static [Key]> {
    let mut steps = path.split('.').filter(|step| !step.is_empty());
    while let Some(step) = steps.next() {
        // Groups have a name here, and the keys in them, too.
        let mut all = keys.iter().chain(flat(keys));
        keys = below(&all.find(|key| key.name == step)?.value, &mut steps)?;
    }
    Some(keys)
}

/// The keys of a value, after the steps that choose among several maps.
fn below<'p>(
    value: &'static Value,
    steps: &mut impl Iterator<Item = &'p str>,
) -> Option<&'static [Key]> {
    match value {
        Value::Kinds(kinds) => {
            let name = steps.next()?;
            let (_, keys) = kinds().into_iter().find(|(known, _)| *known == name)?;
            Some(keys)
        }
        Value::Any(forms) => {
            let number: usize = steps.next()?.parse().ok()?;
            below(forms.get(number.checked_sub(1)?)?, steps)
        }
        Value::Group(keys) => Some(keys),
        Value::List(item)
        | Value::OneOrMany(item)
        | Value::Axis(item)
        | Value::Or(_, item)
        | Value::Entries(item) => below(item, steps),
        other => other.keys(),
    }
}

/// Writes a row for each key, and below it those of its map.
fn write(keys: &[Key], prefix: &str, columns: &[&str], rows: &mut Vec<String>) {
    // Keys of a group have a separate table.
    let shown = keys
        .iter()
        .filter(|key| !matches!(key.value, Value::Group(_)));
    for key in shown {
        let mut row = format!("| `{prefix}{}` |", key.name);
        for column in columns {
            let cell = match *column {
                "Value" => key.words.map_or_else(|| key.value.shown(), str::to_owned),
                "Type" => key.words.map_or_else(|| key.value.kind(), str::to_owned),
                "Range" => key
                    .range
                    .map_or_else(|| key.value.bounds(" to "), str::to_owned),
                "Default" => key.default_shown(columns.contains(&"Type")),
                _ => key.meaning.to_owned(),
            };
            let space = if cell.is_empty() { "" } else { " " };
            row += &format!("{space}{cell} |");
        }
        rows.push(row);
        // The keys of a separate table would be documented twice.
        if let Some(inner) = key.value.keys().filter(|_| !key.apart) {
            write(inner, &format!("{prefix}{}.", key.name), columns, rows);
        }
    }
}

impl Key {
    fn default_shown(&self, emphasized: bool) -> String {
        match self.absent {
            Absent::Required if emphasized => "*required*".to_owned(),
            Absent::Required => "required".to_owned(),
            Absent::Depends(words) => words.to_owned(),
            Absent::Default(text) if self.value.is_word(text) || text.starts_with('[') => {
                format!("`{text}`")
            }
            Absent::Default(text) => text.to_owned(),
        }
    }
}

impl Value {
    /// Whether the text is a word of this value, not a quantity.
    fn is_word(&self, text: &str) -> bool {
        match self {
            Self::Or(word, other) => *word == text || other.is_word(text),
            Self::List(item) | Self::OneOrMany(item) | Self::Axis(item) => item.is_word(text),
            Self::Any(forms) => forms.iter().any(|form| form.is_word(text)),
            Self::Name(names) => names().contains(&text),
            Self::Identifier(_) | Self::Text | Self::Path | Self::Prefix => true,
            _ => false,
        }
    }

    /// The accepted values: a range, names, or the kind of the value.
    fn shown(&self) -> String {
        match self {
            Self::Switch => "on, off".to_owned(),
            Self::Or(word, other) => format!("`{word}`, {}", other.shown()),
            Self::Identifier(most) => format!("1 … {most} of a-z, 0-9, -"),
            _ => match self.bounds(" … ") {
                bounds if bounds.is_empty() => self.kind(),
                bounds => bounds,
            },
        }
    }

    /// The kind of the value, for example `number`.
    fn kind(&self) -> String {
        let kind = match self {
            Self::Switch => "on or off",
            Self::Integer(..) => "number",
            Self::Time(..) => "time",
            Self::Size(..) => "size",
            Self::BitRate(..) => "bit rate",
            Self::Ratio(..) | Self::Percent(..) => "ratio",
            Self::Name(_) | Self::Identifier(_) => "name",
            Self::Text | Self::Notation(_) => "text",
            Self::Path => "path",
            Self::Ip => "IP address",
            Self::Ipv4 => "address",
            Self::SocketAddress => "address:port",
            Self::Prefix => "prefix",
            Self::Or(word, other) => return format!("{} or `{word}`", other.kind()),
            Self::List(_) => "list",
            Self::OneOrMany(item) => return format!("{} or list", item.kind()),
            Self::Axis(item) => return format!("{}, axis", item.kind()),
            Self::Map(_) | Self::Group(_) | Self::Entries(_) => "map",
            Self::Kinds(_) => "name or map",
            Self::Any(forms) => {
                let kinds: Vec<_> = forms.iter().map(Self::kind).collect();
                return kinds.join(" or ");
            }
        };
        kind.to_owned()
    }

    /// The range or the names; empty if there are no limits.
    fn bounds(&self, to: &str) -> String {
        let between = |min: String, max: String| format!("{min}{to}{max}");
        match *self {
            Self::Integer(min, max) => between(min.to_string(), max.to_string()),
            Self::Time(min, max) => between(units::time::print(min), units::time::print(max)),
            Self::Size(min, max) => {
                between(Bytes::new(min).to_string(), Bytes::new(max).to_string())
            }
            Self::BitRate(layer, min, max) => {
                let print = |bps| BitRate::new(bps, layer).to_string();
                between(print(min), print(max))
            }
            Self::Ratio(min, max) => between(min.to_string(), max.to_string()),
            Self::Percent(min, max) => format!("{min} %{to}{max} %, whole"),
            Self::Name(names) => {
                let names: Vec<_> = names().iter().map(|name| format!("`{name}`")).collect();
                names.join(", ")
            }
            Self::Identifier(most) => format!("1 to {most} of `a-z`, `0-9`, `-`"),
            Self::Or(_, other) | Self::List(other) | Self::OneOrMany(other) | Self::Axis(other) => {
                other.bounds(to)
            }
            _ => String::new(),
        }
    }
}
