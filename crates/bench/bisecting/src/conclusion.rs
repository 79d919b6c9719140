//! The result of a bisection, for people and programs.

use crate::figures::Figures;
use crate::record::Header;
use crate::words::{change, percent, probability};
use crate::{Others, Version};
use bisect::{Bisection, Change, Estimate, LocatedChange, Outcome, Rest, Undecided};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use units::human::counted;

/// Name and version of the JSON form.
const SCHEMA: &str = "cipherbench-bisect/1";
/// Other changes that the text lists.
const LISTED_MAX: usize = 12;

/// How a bisection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The change was found.
    Found,
    /// The ends do not differ by the size searched for.
    NoChange,
    /// The bad end is the better one.
    Swapped,
    /// The change was not found.
    Undecided,
}

/// The result of a bisection.
#[derive(Debug, Clone, Serialize)]
pub struct Conclusion {
    /// `cipherbench-bisect/1`.
    pub schema: &'static str,
    /// Folder of the bisection.
    pub folder: PathBuf,
    /// How it ended.
    pub outcome: End,
    /// Why it is undecided.
    pub why: Option<&'static str>,
    /// The gate, as given.
    pub gate: String,
    /// The cell that was measured.
    pub cell: String,
    /// The device.
    pub dut: String,
    /// Key of the quantity.
    pub quantity: Option<&'static str>,
    /// All versions, from the good to the bad end.
    pub versions: Vec<ListedVersion>,
    /// Index of the first version that may have the change.
    pub first: Option<usize>,
    /// Index of the last one; equal to the first, unless versions between them were skipped.
    pub last: Option<usize>,
    /// The version `last` against the one before `first`.
    pub change: Option<Interval>,
    /// Figure of the version before `first`, for people.
    pub figure_before: Option<String>,
    /// Figure of the version `last`, for people.
    pub figure: Option<String>,
    /// The probability that the change is among these versions, if there is one change.
    pub probability: Option<f64>,
    /// The bad end against the good one.
    pub total: Option<Interval>,
    /// Other changes between the good end and the version before `first`.
    pub before: Option<Side>,
    /// Other changes between the version `last` and the bad end.
    pub after: Option<Side>,
    /// Pairs measured.
    pub pairs: usize,
    /// What else changed.
    pub others: Option<Others>,
    #[serde(skip)]
    noun: &'static str,
    #[serde(skip)]
    size: String,
}

/// A version in the result.
#[derive(Debug, Clone, Serialize)]
pub struct ListedVersion {
    /// The version.
    #[serde(flatten)]
    pub version: Version,
    /// Whether it was measured.
    pub measured: bool,
    /// Why it was skipped.
    pub skipped: Option<String>,
}

/// A ratio with its interval of 95 %.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Interval {
    /// The ratio.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite (`null` in JSON) if nothing bounds it.
    pub high: f64,
    /// Pairs that it is from.
    pub pairs: usize,
}

/// Whether one side of the result has another change.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case", tag = "result")]
pub enum Side {
    /// No version is on that side.
    Adjacent,
    /// None of the size.
    Excluded(Interval),
    /// Another change.
    Change(Interval),
    /// Not decided.
    Undecided,
}

impl From<Estimate> for Interval {
    fn from(of: Estimate) -> Self {
        let Estimate {
            ratio,
            low,
            high,
            pairs,
        } = of;
        Self {
            ratio,
            low,
            high,
            pairs,
        }
    }
}

impl From<Rest> for Side {
    fn from(rest: Rest) -> Self {
        match rest {
            Rest::Adjacent => Self::Adjacent,
            Rest::Excluded(of) => Self::Excluded(of.into()),
            Rest::Change(of) => Self::Change(of.into()),
            Rest::Undecided => Self::Undecided,
        }
    }
}

impl Interval {
    fn in_words(self) -> String {
        let Self {
            ratio,
            low,
            high,
            pairs,
        } = self;
        change(&Estimate {
            ratio,
            low,
            high,
            pairs,
        })
    }
}

impl Conclusion {
    pub(crate) fn new(
        folder: &Path,
        header: Header,
        bisection: &Bisection,
        outcome: Outcome,
        mut reasons: BTreeMap<usize, String>,
        figures: &Figures,
        others: Option<Others>,
    ) -> Self {
        let measured: &BTreeSet<usize> = bisection.measured();
        let noun = header.versions.first().map_or("version", Version::noun);
        let question = header.question;
        let size = match question.change {
            Change::Drop => format!("a drop of {} %", f64::from(question.size_ppm) / 1e4),
            Change::Rise => format!("a rise of {} %", f64::from(question.size_ppm) / 1e4),
        };
        let versions = header.versions.into_iter().enumerate();
        let versions = versions.map(|(at, version)| ListedVersion {
            version,
            // The bisection leaves the good end out: it is the reference of the first pair.
            measured: measured.contains(&at) || (at == 0 && !measured.is_empty()),
            skipped: reasons.remove(&at),
        });
        let mut conclusion = Self {
            schema: SCHEMA,
            folder: folder.to_owned(),
            outcome: End::Undecided,
            why: None,
            gate: question.gate,
            cell: question.cell,
            dut: question.dut,
            quantity: figures.quantity.map(stats::Quantity::key),
            versions: versions.collect(),
            first: None,
            last: None,
            change: None,
            figure_before: None,
            figure: None,
            probability: None,
            total: None,
            before: None,
            after: None,
            pairs: bisection.pairs(),
            others,
            noun,
            size,
        };
        match outcome {
            Outcome::NoChange(total) => {
                conclusion.outcome = End::NoChange;
                conclusion.total = Some(total.into());
            }
            Outcome::Swapped(total) => {
                conclusion.outcome = End::Swapped;
                conclusion.total = Some(total.into());
            }
            Outcome::Found(found) => conclusion.found(&found, figures),
            Outcome::Undecided {
                why,
                suspects,
                total,
            } => {
                conclusion.why = Some(match why {
                    Undecided::Limit => "limit",
                    Undecided::Spread => "spread",
                });
                conclusion.first = suspects.as_ref().map(|suspects| *suspects.start());
                conclusion.last = suspects.as_ref().map(|suspects| *suspects.end());
                conclusion.total = Some(total.into());
            }
        }
        conclusion
    }

    fn found(&mut self, found: &LocatedChange, figures: &Figures) {
        self.outcome = End::Found;
        self.first = Some(found.first);
        self.last = Some(found.last);
        self.change = Some(found.change.into());
        self.probability = Some(found.probability);
        self.total = Some(found.total.into());
        self.before = Some(found.before.into());
        self.after = Some(found.after.into());
        self.figure_before = figures.print(found.first - 1);
        self.figure = figures.print(found.last);
    }

    /// As JSON, indented.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain data with string keys always has a JSON form.
        let text = serde_json::to_string_pretty(self);
        text.expect("a conclusion can be written as JSON") + "\n"
    }

    /// As a text for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let name = |at: usize| self.versions[at].version.name();
        let last = self.versions.len() - 1;
        let (good, bad) = (name(0), name(last));
        let total = self.total.map_or_else(String::new, Interval::in_words);
        // Writing to a string cannot fail.
        match (self.outcome, self.first, self.last) {
            (End::Found, Some(first), Some(changed)) => {
                // Several only if all but the last were skipped: the last one was confirmed by
                // pairs.
                let versions = &self.versions[first..=changed];
                if let [one] = versions {
                    let _ = writeln!(text, "changed by  {}", one.version.in_words());
                } else {
                    let count = counted(versions.len() as u64, self.noun);
                    let _ = writeln!(
                        text,
                        "changed by  one of {count}: all but the last cannot be measured"
                    );
                    for one in versions {
                        let _ = writeln!(text, "            {}", one.version.in_words());
                    }
                }
                self.write_found(&mut text, first, changed);
            }
            (End::NoChange, ..) => {
                let _ = writeln!(
                    text,
                    "no change   {bad} against {good}: {total}\n            {} or more is excluded between \
                     the ends, and nothing between them was {}",
                    self.size,
                    self.made()
                );
            }
            (End::Swapped, ..) => {
                let _ = writeln!(
                    text,
                    "opposite    {bad} against {good}: {total}\n            the bad end is the better one: the ends \
                     are swapped, or the gate names the other direction; nothing between them was {}",
                    self.made()
                );
            }
            _ => {
                let why = match self.why {
                    Some("limit") => "the limit on pairs was reached; allow more with `--pairs`",
                    _ => "the change is spread over several versions, or smaller than the size",
                };
                let _ = writeln!(text, "undecided   {why}");
                if let (Some(first), Some(until)) = (self.first, self.last) {
                    let count = counted((until + 1 - first) as u64, self.noun);
                    let _ = writeln!(
                        text,
                        "suspects    {count}, from {} to {}",
                        self.versions[first].version.in_words(),
                        self.versions[until].version.in_words()
                    );
                }
                let _ = writeln!(text, "in all      {bad} against {good}: {total}");
            }
        }
        self.write_rest(&mut text);
        text
    }

    /// What is done with a version before anything else.
    fn made(&self) -> &'static str {
        match self.versions[0].version {
            Version::Settings { .. } => "measured",
            Version::Revision { .. } | Version::Program { .. } => "built",
        }
    }

    fn write_found(&self, text: &mut String, first: usize, changed: usize) {
        if let before @ Version::Settings { .. } = &self.versions[first - 1].version {
            let _ = writeln!(text, "before it   {}", before.in_words());
        }
        let name = |at: usize| self.versions[at].version.name();
        let last = self.versions.len() - 1;
        let (before, good, bad) = (name(first - 1), name(0), name(last));
        let interval = |of: Option<Interval>| of.map_or_else(String::new, Interval::in_words);
        let figures = match (&self.figure, &self.figure_before) {
            (Some(figure), Some(before)) => format!("{figure}, before {before}: "),
            _ => String::new(),
        };
        let _ = writeln!(text, "figure      {figures}{}", interval(self.change));
        let _ = writeln!(
            text,
            "probability {}",
            probability(self.probability.unwrap_or_default())
        );
        // Between neighbouring ends the line would repeat the figure above.
        if (first, changed) != (1, last) {
            let _ = writeln!(
                text,
                "in all      {bad} against {good}: {}",
                interval(self.total)
            );
        }
        let sides = [
            ("before it", self.before, good, before),
            ("after it", self.after, name(changed), bad),
        ];
        for (place, side, from, to) in sides {
            let words = match side {
                None | Some(Side::Adjacent) => continue,
                Some(Side::Excluded(of)) => {
                    format!("no other change of this size: {}", of.in_words())
                }
                Some(Side::Change(of)) => format!(
                    "another change: {}; bisect again between {from} and {to}",
                    of.in_words()
                ),
                Some(Side::Undecided) => {
                    format!("not decided whether there is another change between {from} and {to}")
                }
            };
            let _ = writeln!(text, "{place:<11} {words}");
        }
    }

    fn write_rest(&self, text: &mut String) {
        let measured = self.versions.iter().filter(|one| one.measured).count();
        let _ = writeln!(
            text,
            "measured    {} of {}, {}",
            counted(measured as u64, self.noun),
            self.versions.len(),
            counted(self.pairs as u64, "pair")
        );
        for one in &self.versions {
            if let Some(reason) = &one.skipped {
                let _ = writeln!(text, "skipped     {}: {reason}", one.version.name());
            }
        }
        if let Some(others) = &self.others {
            let count = counted(others.repeats, "repeat");
            let _ = writeln!(
                text,
                "also        {} of {} changed surely, {count} each",
                others.changes.len(),
                counted(others.compared as u64, "figure")
            );
            for change in others.changes.iter().take(LISTED_MAX) {
                let [low, high] = [change.low, change.high]
                    .map(|end| end.map_or_else(|| "?".to_owned(), percent));
                let _ = writeln!(
                    text,
                    "            {} {}: {} ({low} to {high})",
                    change.cell,
                    change.quantity_in_words(),
                    percent(change.ratio)
                );
            }
            if others.changes.len() > LISTED_MAX {
                let more = others.changes.len() - LISTED_MAX;
                let _ = writeln!(text, "            and {more} more");
            }
            if !others.without.is_empty() {
                let _ = writeln!(text, "without     {}", others.without.join(", "));
            }
            let _ = writeln!(
                text,
                "report      {}",
                others.run.join("report.html").display()
            );
        }
        let _ = writeln!(text, "answers     {}", self.folder.display());
    }
}
