//! Answers the campaign's question in a few sentences: the comparisons and their results.

use super::share;
use crate::format::{Scale, capitalized, counted};
use crate::layout::Run;
use crate::order::grouped;
use crate::sections::is_curve;
use crate::tables::published_summary;
use crate::tables::ranking::{self, Ranked};
use crate::tables::suites::{entry_name, rate_of};
use stats::{ClaimVerdict, Estimate, SuiteMatrix};

/// Maximum sentences about one kind of comparison; the sections have all.
const OF_A_KIND_MAX: usize = 4;
/// From this number of suites on, one device compares suites, not devices.
const SUITES_MIN: usize = 3;

/// Findings from comparisons of cells and from claims, the most specific first.
pub(crate) fn findings(run: &Run<'_>) -> Vec<String> {
    let results = &run.results;
    let mut found = claims(run);
    found.extend(published_summary(run));
    found.extend(keys(run));
    found.extend(hybrids(run));
    let matrices = results.suites.iter();
    let matrices = matrices.filter(|one| one.entries.len() >= SUITES_MIN);
    let by_suite = limited(matrices.filter_map(|one| suites(run, one)));
    if by_suite.is_empty() {
        let ranked = ranking::ranked(run);
        // The first one is in the answer.
        let said = usize::from(share::is_ranking(run));
        let others = ranked.iter().skip(said);
        found.extend(limited(others.filter_map(|one| best(run, one))));
    } else {
        found.extend(by_suite);
    }
    found.extend(limited(scalings(run)));
    found.extend(tools(run));
    found
}

/// One sentence for all series of one measurement with the same verdict.
fn scalings(run: &Run<'_>) -> impl Iterator<Item = String> {
    let curves = run.results.scalings.iter().filter(|one| is_curve(one));
    let all = curves.map(|series| {
        let key = (series.axis, &series.series, &series.verdict);
        (key, series.dut.as_str())
    });
    grouped(all)
        .into_iter()
        .map(|((axis, series, verdict), duts)| {
            let by = if axis.adds() {
                String::new()
            } else {
                format!("{}: ", axis.name())
            };
            format!("{}, {series}: {by}{verdict}.", duts.join(", "))
        })
}

/// The first few sentences, and the number of the others.
fn limited(sentences: impl Iterator<Item = String>) -> Vec<String> {
    let mut sentences: Vec<String> = sentences.collect();
    let more = sentences.len().saturating_sub(OF_A_KIND_MAX);
    if more > 1 {
        sentences.truncate(OF_A_KIND_MAX);
        sentences.push(format!("… and {more} more like these in the tables."));
    }
    sentences
}

fn claims(run: &Run<'_>) -> Vec<String> {
    let all = &run.results.claims;
    if all.is_empty() {
        return Vec::new();
    }
    let count = |verdict| all.iter().filter(|one| one.verdict == verdict).count();
    vec![format!(
        "Of {}, {} met, {} not met, {} not decided.",
        counted(all.len() as u64, "claim"),
        count(ClaimVerdict::Met),
        count(ClaimVerdict::NotMet),
        count(ClaimVerdict::NotDecided)
    )]
}

fn keys(run: &Run<'_>) -> Option<String> {
    let costs = run.results.key_costs.iter();
    let ratios = costs.map(|cost| (&cost.ratio, cost.differs));
    compared("Sources of keys compared with static keys", ratios)
}

fn hybrids(run: &Run<'_>) -> Option<String> {
    let gains = run.results.hybrid_gains.iter();
    let ratios = gains.map(|gain| (&gain.ratio, gain.differs));
    compared("Hybrids compared with each engine alone", ratios)
}

/// The joint result of comparisons of one kind, from their ratios and whether each shows a
/// difference; `None` without any.
fn compared<'e>(
    what: &str,
    ratios: impl Iterator<Item = (&'e Estimate, Option<bool>)> + Clone,
) -> Option<String> {
    let range = range(ratios.clone())?;
    let differences = differences(ratios.map(|(_, differs)| differs));
    Some(format!("{what}: {differences} ({range})."))
}

/// `no difference shown in 16 comparisons`.
fn differences(all: impl Iterator<Item = Option<bool>>) -> String {
    let all: Vec<Option<bool>> = all.collect();
    let comparisons = counted(all.len() as u64, "comparison");
    let shown = all.iter().filter(|one| **one == Some(true)).count();
    let undecided = all.iter().filter(|one| one.is_none()).count();
    match (shown, undecided) {
        (0, 0) => format!("no difference shown in {comparisons}"),
        (_, undecided) if undecided == all.len() => {
            format!("one repeat decides none of {comparisons}")
        }
        (shown, 0) => format!("a difference shown in {shown} of {comparisons}"),
        (shown, undecided) => {
            format!("a difference shown in {shown} of {comparisons}, {undecided} undecided")
        }
    }
}

/// `ratios 0.988–1.005, 95 % intervals 0.970–1.020`.
fn range<'e>(ratios: impl Iterator<Item = (&'e Estimate, Option<bool>)>) -> Option<String> {
    let ratios: Vec<&Estimate> = ratios.map(|(ratio, _)| ratio).collect();
    let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
    let most = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
    let means = || ratios.iter().map(|ratio| ratio.mean);
    let mut text = format!(
        "ratios {:.3}–{:.3}",
        least(&mut means())?,
        most(&mut means())?
    );
    let ends = || ratios.iter().filter_map(|ratio| ratio.interval_95.ends());
    let low = least(&mut ends().map(|(low, _)| low));
    let high = most(&mut ends().map(|(_, high)| high));
    if let Some((low, high)) = low.zip(high) {
        text.push_str(&format!(", 95 % intervals {low:.3}–{high:.3}"));
    }
    Some(text)
}

/// The best device of a ranking, and the devices that cannot be distinguished from it.
pub(super) fn best(run: &Run<'_>, found: &Ranked<'_>) -> Option<String> {
    let main = found.main;
    let [first, others @ ..] = main.places.as_slice() else {
        return None;
    };
    let second = others.first()?;
    let scale = ranking::scale(main.by, first.value);
    let interval = first
        .low
        .zip(first.high)
        .map_or_else(String::new, |(low, high)| {
            format!(" (95 %: {}–{})", scale.number(low), scale.number(high))
        });
    let is_tied = |place: &&stats::Standing| place.rank.is_some_and(|rank| rank.first == 1);
    let tied = others.iter().filter(is_tied).count();
    let what = capitalized(&ranking::caption(found));
    let leader = ranking::name(run, first);
    let value = scale.value(first.value);
    Some(match tied {
        0 => {
            let ratio = ranking::to_best(second);
            let ratio = ratio.map_or_else(String::new, |ratio| format!(", {ratio} × that"));
            let next = ranking::name(run, second);
            format!("{what}: {leader} is best, {value}{interval}; next {next}{ratio}.")
        }
        tied if tied == others.len() => format!(
            "{what}: no difference shown between {}; highest mean {leader}, {value}{interval}{}.",
            counted(main.places.len() as u64, "device"),
            ranking::excluded(found).map_or_else(String::new, |found| format!("; {found}"))
        )
        .replace(
            "highest",
            if main.higher_is_better {
                "highest"
            } else {
                "lowest"
            },
        ),
        tied => format!(
            "{what}: {leader}, {value}{interval}, and {} are not distinguishable as the best of {}.",
            match tied {
                1 => ranking::name(run, second),
                tied => format!("{tied} others"),
            },
            main.places.len()
        ),
    })
}

/// The fastest and the slowest suite.
fn suites(run: &Run<'_>, matrix: &SuiteMatrix) -> Option<String> {
    let figures = matrix.entries.iter().filter_map(|entry| {
        let cell = run.cell(&entry.cell)?;
        let (found, unit) = rate_of(cell)?;
        Some((entry, found, unit))
    });
    let by_mean = |a: &(_, &Estimate, _), b: &(_, &Estimate, _)| a.1.mean.total_cmp(&b.1.mean);
    let (best, most, unit) = figures.clone().max_by(by_mean)?;
    let (worst, least, _) = figures.min_by(by_mean)?;
    let text = |found: &Estimate| {
        let scale = Scale::si(found.mean, unit);
        format!(
            "{} ({})",
            scale.value(found.mean),
            super::repeats(found, &scale)
        )
    };
    let words = run.group_words();
    let name = crate::layout::groups::words_of(&words, &matrix.group).name;
    let all = &run.results.suites;
    let device = if all.iter().all(|other| other.device == matrix.device) {
        String::new()
    } else {
        format!(", {}", matrix.device)
    };
    Some(format!(
        "{name}{device}: fastest {}, {}; slowest {}, {}.",
        entry_name(best),
        text(most),
        entry_name(worst),
        text(least)
    ))
}

fn tools(run: &Run<'_>) -> Option<String> {
    let checks = &run.results.tool_checks;
    if checks.is_empty() {
        return None;
    }
    let by_agreement = grouped(checks.iter().map(|check| (check.agree, check)));
    let disagree = by_agreement.iter().find(|(agree, _)| !agree);
    let disagree = disagree.map_or(0, |(_, some)| some.len());
    let widest = checks.iter().map(|check| check.difference_percent);
    let widest = widest.fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    Some(format!(
        "Tools disagree in {disagree} of {}; the largest difference is {widest:.1} %.",
        counted(checks.len() as u64, "transfer")
    ))
}
