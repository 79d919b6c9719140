//! One entry of `duts`: its name and, where settings are lists, one DUT for each combination.

use wire::Suite;
use yaml::{Map, Node, Reported};

/// Tables and charts with more DUTs cannot be read.
pub(crate) const DUTS_MAX: usize = 100;
/// Longest name, so that tables stay readable.
const NAME_CHARS_MAX: usize = 40;

/// An entry of `duts` as an adapter reads it.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    /// Name of the entry: what the names of all its DUTs begin with.
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
        let trimmed = text.trim() == text && !text.contains("  ");
        if trimmed && text.chars().all(fits) && text.chars().count() <= NAME_CHARS_MAX {
            return Ok(text.to_owned());
        }
        let help = format!("use up to {NAME_CHARS_MAX} letters, digits, single blanks and - _ . +");
        Err(node.mistake("this name cannot be used", help))
    })
}

/// The entry's name followed by the settings that vary; of switches, by those that are on.
pub(crate) fn with_suffix<const N: usize>(name: &str, words: [(bool, &str); N]) -> String {
    let varying = words.into_iter().filter(|(varies, _)| *varies);
    let suffix: String = varying.map(|(_, word)| format!(" {word}")).collect();
    format!("{name}{suffix}")
}

/// Reads a suite. Weak suites need `legacy: true` beside them, suites without encryption
/// `insecure: true`.
pub(crate) fn suite(
    node: Node<'_>,
    known: &[Suite],
    legacy: &Result<bool, Reported>,
    insecure: &Result<bool, Reported>,
) -> Result<Suite, Reported> {
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
pub(crate) fn common_suite(
    node: Node<'_>,
    legacy: &Result<bool, Reported>,
    insecure: &Result<bool, Reported>,
) -> Result<Suite, Reported> {
    let ours = Suite::from_name(node.text()?).filter(|suite| !Suite::COMMON.contains(suite));
    if let Some(ours) = ours {
        let what = format!("neither strongSwan nor the kernel has `{ours}`");
        return Err(node.mistake(what, "to measure it use `cipherbench`"));
    }
    suite(node, &Suite::COMMON, legacy, insecure)
}
