//! Answers the campaign's question in a few sentences: the comparisons and their results.

use super::share::is_ranking;
use crate::layout::Run;
use crate::topic::claims;
use crate::topic::contrasts;
use crate::topic::expect;
use crate::topic::published::beside::summary;
use crate::topic::ranking::{best, ranked};
use crate::topic::scaling;
use crate::topic::suites;
use crate::topic::tools;

/// Maximum sentences about one kind of comparison; the sections have all.
const OF_A_KIND_MAX: usize = 4;
/// From this number of suites on, one device compares suites, not devices.
const SUITES_MIN: usize = 3;

/// Findings from comparisons of cells and from claims, the most specific first.
pub(crate) fn findings(run: &Run<'_>) -> Vec<String> {
    let results = &run.results;
    let mut found = expect::finding(run);
    found.extend(claims::finding(run));
    found.extend(summary(run));
    found.extend(contrasts::findings(run));
    let matrices = results.suites.iter();
    let matrices = matrices.filter(|one| one.entries.len() >= SUITES_MIN);
    // A run of one device with many suites compares these, and its ranking would say the same.
    let by_suite = limited(matrices.filter_map(|one| suites::finding(run, one)));
    if by_suite.is_empty() {
        let ranked = ranked(run);
        // The first one is in the answer.
        let said = usize::from(is_ranking(run));
        let others = ranked.iter().skip(said);
        found.extend(limited(others.filter_map(|one| best(run, one))));
    } else {
        found.extend(by_suite);
    }
    found.extend(limited(scaling::findings(run)));
    found.extend(tools::finding(run));
    found
}

/// The first few sentences, and the number of the others.
fn limited(sentences: impl Iterator<Item = String>) -> Vec<String> {
    let mut sentences: Vec<String> = sentences.collect();
    let more = sentences.len().saturating_sub(OF_A_KIND_MAX);
    // A line about a single further sentence would not be shorter than the sentence.
    if more > 1 {
        sentences.truncate(OF_A_KIND_MAX);
        sentences.push(format!("… and {more} more like these in the tables."));
    }
    sentences
}
