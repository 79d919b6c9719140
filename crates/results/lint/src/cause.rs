//! The common cause of several like findings.
//!
//! Three findings of one rule that are off by the same factor, by the same bytes per frame, or
//! against the same figure are one slip rather than three.

use crate::finding::{Finding, Rule};
use serde::Serialize;
use units::human::number;
use yaml::Place;

/// The fewest findings with a common cause.
const FINDINGS_MIN: usize = 3;
/// Factors count as equal within this share of their distance from 1: the factors of small slips
/// are all near 1.
const FACTOR_SPREAD: f64 = 1.0 / 3.0;
/// Bytes per frame count as the same within this distance.
const BYTES_SPREAD: f64 = 1.0;

/// The common cause of several findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The rule of the findings.
    pub rule: Rule,
    /// The place of the first finding.
    #[serde(skip)]
    pub place: Place,
    /// The table, column or figure that they are compared with.
    pub against: String,
    /// The number of findings.
    pub findings: usize,
    /// The cause, in one sentence without a full stop.
    pub says: String,
}

/// Factors and their usual reasons; a ratio may be off by `KNOWN_WITHIN`.
const FACTORS: [(f64, &str); 8] = [
    (2.0, "the rates of both directions may be added"),
    (0.5, "the rates of one direction may be half of a sum"),
    (8.0, "bits may be printed as bytes"),
    (0.125, "bytes may be printed as bits"),
    (1000.0, "the prefix of the unit may be wrong"),
    (0.001, "the prefix of the unit may be wrong"),
    (1.048_576, "the prefix may be binary: 1 MiB is 1.048576 MB"),
    (
        1.073_741_824,
        "the prefix may be binary: 1 GiB is 1.073741824 GB",
    ),
];
const KNOWN_WITHIN: f64 = 0.005;

/// Bytes per frame that layers differ by.
const HEADERS: [(f64, &str); 6] = [
    (4.0, "the FCS"),
    (14.0, "the Ethernet header"),
    (18.0, "the Ethernet header and FCS"),
    (20.0, "preamble and gap, or the IPv4 header"),
    (28.0, "the headers of IPv4 and UDP"),
    (38.0, "Ethernet header, FCS, preamble and gap"),
];

/// The causes of findings, in the order of the first finding of each.
#[must_use]
pub fn causes(findings: &[Finding]) -> Vec<Cause> {
    let mut causes: Vec<Cause> = Vec::new();
    for finding in findings {
        let Some(against) = finding.likeness.as_ref().map(|it| &it.against) else {
            continue;
        };
        // Findings are grouped by rule and by the figure or table that they are compared with. The
        // first finding of a group reports the cause for all.
        let is_known = causes
            .iter()
            .any(|it| it.rule == finding.rule && it.against == *against);
        let like = findings.iter().filter(|other| {
            let same = other
                .likeness
                .as_ref()
                .is_some_and(|it| it.against == *against);
            same && other.rule == finding.rule
        });
        let like: Vec<&Finding> = like.collect();
        if is_known || like.len() < FINDINGS_MIN {
            continue;
        }
        causes.extend(says(&like, against).map(|says| Cause {
            rule: finding.rule,
            place: finding.place.clone(),
            against: against.clone(),
            findings: like.len(),
            says,
        }));
    }
    causes
}

/// Returns the common cause of findings; `None` if they have none.
fn says(findings: &[&Finding], against: &str) -> Option<String> {
    let likenesses = || findings.iter().filter_map(|it| it.likeness.as_ref());
    if matches!(
        findings[0].rule,
        Rule::FasterWithDevice | Rule::FasterByLittle
    ) {
        return Some(format!(
            "all are compared with {against}: that one figure explains them if it is too low"
        ));
    }
    // Bytes are tried before factors: a missing header is the same number of bytes at every size,
    // and a different factor at each.
    let bytes: Vec<f64> = likenesses().filter_map(|it| it.bytes).collect();
    if let Some((low, high)) = ends(&bytes).filter(|(low, high)| high - low <= BYTES_SPREAD) {
        let middle = f64::midpoint(low, high);
        let known = HEADERS
            .iter()
            .find(|it| (middle.abs() - it.0).abs() <= BYTES_SPREAD / 2.0);
        let header = known
            .map(|(_, name)| format!(": {name}"))
            .unwrap_or_default();
        let side = if middle < 0.0 { "fewer" } else { "more" };
        return Some(format!(
            "each counts {:.0} B {side} per frame than its layer{header}",
            middle.abs()
        ));
    }
    let ratios: Vec<f64> = likenesses().map(|it| it.ratio).collect();
    let (low, high) = ends(&ratios).filter(|(low, _)| *low > 0.0)?;
    // Factors of 1.01 and 1.02 are near each other and yet twice as far from 1, so the spread is
    // compared with the distance.
    let distance = (f64::midpoint(low, high) - 1.0).abs();
    if high - low > FACTOR_SPREAD * distance {
        return None;
    }
    let middle = f64::midpoint(low, high);
    let known = FACTORS
        .iter()
        .find(|it| (middle / it.0 - 1.0).abs() <= KNOWN_WITHIN);
    let known = known
        .map(|(_, words)| format!(": {words}"))
        .unwrap_or_default();
    Some(format!(
        "all are off by nearly one factor, {} to {}{known}: look for one cause before slips in single figures",
        number(low),
        number(high)
    ))
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some((low, high))
}
