//! One entry of `duts`: its name and, if settings are lists, one DUT for each combination.

use crate::axis::Axes;
use plan::{Adapter, Dut};
use wire::Suite;
use yaml::Absent::{Default, Depends};
use yaml::{Key, Map, Node, Reported, Spanned, Value};

/// Tables and charts with more DUTs cannot be read.
pub(crate) const DUTS_MAX: usize = 100;
/// Longest name, so that tables stay readable.
const NAME_CHARS_MAX: usize = 40;

#[rustfmt::skip]
pub(crate) const NAME: Key = Key::new("name", Value::Text, Depends("the kind"),
    "What tables call it").range("40 letters, digits, blanks, `-_.+`");

const SUITES: Value = Value::Name(|| Suite::ALL.map(Suite::name).to_vec());
const COMMON_SUITES: Value = Value::Name(|| Suite::COMMON.map(Suite::name).to_vec());
#[rustfmt::skip]
pub(crate) const SUITE: Key = Key::new("suite", Value::Axis(&SUITES), Default("aes-256-gcm"),
    "ESP suite").range("see below");
/// A suite that IPsec implementations other than ours have too.
#[rustfmt::skip]
pub(crate) const COMMON_SUITE: Key = Key::new("suite", Value::Axis(&COMMON_SUITES),
    Default("aes-256-gcm"), "ESP suite").range("as for `cipherbench`");
pub(crate) const LEGACY: Key = Key::new(
    "legacy",
    Value::Switch,
    Default("off"),
    "Allows suites with DES, triple DES or MD5",
);
pub(crate) const INSECURE: Key = Key::new(
    "insecure",
    Value::Switch,
    Default("off"),
    "Allows suites without encryption",
);

/// DUTs of an entry: what is added to its name, and the settings.
pub(crate) type Duts = Vec<(String, Adapter)>;

/// An entry of `duts`.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Name of the entry: the prefix of the names of all its DUTs.
    pub(crate) name: String,
    /// Its DUTs, with their full names.
    pub(crate) duts: Vec<Dut>,
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
}

impl<T: Clone + PartialEq> Variants<T> {
    /// One DUT with these settings.
    pub(crate) fn of(settings: T) -> Self {
        Self {
            duts: vec![(String::new(), settings)],
        }
    }

    /// Multiplies by an axis. `set` applies a value to the settings and returns the word for the
    /// name if the axis varies; it may be empty. Values with equal settings make one DUT. Only as
    /// many DUTs are kept as needed to report too many.
    pub(crate) fn by<V: Clone, W: AsRef<str>>(
        self,
        values: &[Spanned<V>],
        set: impl Fn(&mut T, V) -> W,
    ) -> Self {
        let mut duts: Vec<(String, T)> = Vec::new();
        for (suffix, settings) in self.duts {
            // Only values of this axis can make equal settings: DUTs that an earlier axis
            // distinguishes remain different. So each new one is compared with its siblings
            // alone.
            let first = duts.len();
            for value in values {
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
        Self { duts }
    }

    /// The DUTs.
    pub(crate) fn duts(self, adapter: impl Fn(T) -> Adapter) -> Duts {
        let duts = self.duts.into_iter();
        duts.map(|(suffix, settings)| (suffix, adapter(settings)))
            .collect()
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
            legacy: map.get("legacy"),
            insecure: map.get("insecure"),
        }
    }

    /// Fails axes that depend on a flag that could not be read: it may have allowed a suite.
    pub(crate) fn fail(&self, axes: &Axes<'_, '_>) {
        axes.and(self.legacy);
        axes.and(self.insecure);
    }

    /// Reads the axis `suite`.
    pub(crate) fn suites(
        &self,
        axes: &Axes<'_, '_>,
        read: impl for<'n> Fn(Node<'n>, &Self) -> Result<Suite, Reported>,
    ) -> Vec<Spanned<Suite>> {
        self.fail(axes);
        axes.read("suite", |node| read(node, self))
    }
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
