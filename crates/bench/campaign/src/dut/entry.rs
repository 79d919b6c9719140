//! One entry of `duts`: its name and, if settings are lists, one DUT for each combination.

use crate::axis::{AxisValues, axis};
use wire::Suite;
use yaml::{Map, Node, Reported};

/// Tables and charts with more DUTs cannot be read.
pub(crate) const DUTS_MAX: usize = 100;
/// Longest name, so that tables stay readable.
const NAME_CHARS_MAX: usize = 40;

/// An entry of `duts` as an adapter reads it.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    /// Name of the entry: the prefix of the names of all its DUTs.
    pub(crate) name: String,
    /// Full name and settings of each DUT.
    pub(crate) duts: Vec<(String, T)>,
}

impl<T> Entry<T> {
    /// An entry without settings: one DUT of the entry's name.
    pub(crate) fn plain(map: &Map<'_>, default: &str, settings: T) -> Result<Self, Reported> {
        let name = name(map, default)?;
        Ok(Self {
            duts: vec![(name.clone(), settings)],
            name,
        })
    }

    /// The entry with each DUT's settings converted.
    pub(crate) fn map<U>(self, convert: impl Fn(T) -> U) -> Entry<U> {
        let duts = self.duts.into_iter();
        Entry {
            name: self.name,
            duts: duts
                .map(|(name, settings)| (name, convert(settings)))
                .collect(),
        }
    }
}

/// A DUT's name: short, and without the characters that separate the parts of cell ids.
pub(crate) fn name(map: &Map<'_>, default: &str) -> Result<String, Reported> {
    map.with_default("name", default.to_owned(), |node| {
        let text = node.text()?;
        let fits = |c: char| c.is_alphanumeric() || " -_.+".contains(c);
        // HTML and Markdown show several blanks as one, and none at the edge of a cell: names
        // that differ in these alone would look the same.
        let trimmed = text.trim() == text && !text.contains("  ");
        if trimmed && text.chars().all(fits) && text.chars().count() <= NAME_CHARS_MAX {
            return Ok(text.to_owned());
        }
        let help = format!("use up to {NAME_CHARS_MAX} letters, digits, single blanks and - _ . +");
        Err(node.mistake("this name cannot be used", help))
    })
}

/// The DUTs of an entry while axes multiply them, the last axis varying fastest.
#[derive(Debug)]
pub(crate) struct Variants<T> {
    /// The suffix to the entry's name, and the settings.
    duts: Vec<(String, T)>,
    outcome: Result<(), Reported>,
}

impl<T: Clone + PartialEq> Variants<T> {
    /// One DUT with these settings.
    pub(crate) fn of(settings: T) -> Self {
        Self {
            duts: vec![(String::new(), settings)],
            outcome: Ok(()),
        }
    }

    /// Multiplies by an axis. `set` applies a value to the settings and returns the word for the
    /// name if the axis varies; it may be empty. Values with equal settings make one DUT. Only as
    /// many DUTs are kept as needed to report too many.
    pub(crate) fn by<V: Clone, W: AsRef<str>>(
        mut self,
        axis: AxisValues<V>,
        set: impl Fn(&mut T, V) -> W,
    ) -> Self {
        let values = match axis.all() {
            Ok(values) => values,
            Err(reported) => {
                self.outcome = Err(reported);
                return self;
            }
        };
        let mut duts: Vec<(String, T)> = Vec::new();
        for (suffix, settings) in self.duts {
            // Only values of this axis can make equal settings: DUTs that an earlier axis
            // distinguishes remain different. So each new one is compared with its siblings
            // alone.
            let first = duts.len();
            for value in &values {
                let mut settings = settings.clone();
                let word = set(&mut settings, value.value.clone());
                // An axis with one value is not in names, so a DUT keeps its name when the file
                // spells out a default.
                let blank = match (values.len() > 1, word.as_ref()) {
                    (false, _) | (_, "") => String::new(),
                    (true, word) => format!(" {word}"),
                };
                if duts[first..].iter().all(|(_, known)| *known != settings) {
                    duts.push((format!("{suffix}{blank}"), settings));
                }
            }
        }
        duts.truncate(DUTS_MAX + 1);
        Self { duts, ..self }
    }

    /// The entry with that name.
    pub(crate) fn named(self, name: Result<String, Reported>) -> Result<Entry<T>, Reported> {
        let name = name?;
        self.outcome?;
        let duts = self.duts.into_iter();
        let duts = duts.map(|(suffix, settings)| (format!("{name}{suffix}"), settings));
        Ok(Entry {
            duts: duts.collect(),
            name,
        })
    }
}

/// The flags that allow suites which protect badly.
#[derive(Debug)]
pub(crate) struct WeakAllowed {
    legacy: Result<bool, Reported>,
    insecure: Result<bool, Reported>,
}

impl WeakAllowed {
    pub(crate) fn read(map: &Map<'_>) -> Self {
        Self {
            legacy: map.with_default("legacy", false, Node::bool),
            insecure: map.with_default("insecure", false, Node::bool),
        }
    }
}

/// Reads the axis `suite`.
pub(crate) fn suites<'d>(
    map: &Map<'d>,
    usual: Suite,
    allowed: &WeakAllowed,
    read: impl Fn(Node<'d>, &WeakAllowed) -> Result<Suite, Reported>,
) -> AxisValues<Suite> {
    // A flag that could not be read fails the axis: it may have allowed the suite.
    let suites = axis(map, "suite", usual, |node| read(node, allowed));
    suites.and(allowed.legacy).and(allowed.insecure)
}

/// Reads a suite. Weak suites need `legacy: true` next to them, suites without encryption
/// `insecure: true`.
pub(crate) fn suite(
    node: Node<'_>,
    known: &[Suite],
    WeakAllowed { legacy, insecure }: &WeakAllowed,
) -> Result<Suite, Reported> {
    // A flag that could not be read counts as given here, so that its mistake causes no second
    // one.
    let suites: Vec<_> = known.iter().map(|suite| (suite.name(), *suite)).collect();
    let suite = node.one_of("suite", &suites)?;
    let reads_as_off = |flag: &Result<bool, Reported>| flag.as_ref().is_ok_and(|on| !on);
    let missing = if suite.is_legacy() && reads_as_off(legacy) {
        "legacy: true"
    } else if suite.is_bare() && reads_as_off(insecure) {
        "insecure: true"
    } else {
        return Ok(suite);
    };
    let why = suite.insecure().unwrap_or("it protects badly");
    let help = format!("for a comparison write `{missing}` beside it; reports name it insecure");
    Err(node.mistake(format!("`{suite}` is insecure: {why}"), help))
}

/// Reads a suite that IPsec implementations other than ours have too.
pub(crate) fn common_suite(node: Node<'_>, allowed: &WeakAllowed) -> Result<Suite, Reported> {
    // A suite that exists elsewhere gets a message of its kind, not a list of similar names.
    let ours = Suite::from_name(node.text()?).filter(|suite| !Suite::COMMON.contains(suite));
    if let Some(ours) = ours {
        let what = format!("neither strongSwan nor the kernel has `{ours}`");
        return Err(node.mistake(what, "to measure it use `cipherbench`"));
    }
    suite(node, &Suite::COMMON, allowed)
}
