//! The run in one sentence: the measured quantity, the share of the baseline, the bottleneck, the
//! certainty, and whether it may be published.

use super::Headline;
use super::share::{COMPARED, Share, compared, is_ranking};
use crate::kit::fact::Fact;
use crate::kit::format::{self, Scale, percent, si, uncapitalized};
use crate::kit::ratios::difference;
use crate::kit::table::Cell;
use crate::layout::Run;
use crate::layout::frames::frames_in_words;
use crate::order::{grouped, unique};
use crate::topic::transfer::lost;
use crate::topic::{ranking, trouble};
use plan::Adapter;
use stats::{
    CeilingBasis, CellResult, Comparison, Estimate, Limit, Metric, RankedBy, Reason, Status,
    Warning, WarningKind, Weight,
};
use std::cmp::Reverse;
use units::human::counted;

/// From this share of the link's rate on, a figure is limited by the link.
const OF_LINK: f64 = stats::LINK_LIMITED_RATIO;

/// `cipherbench carries 42–49 % of the TCP payload of direct (the same path without an encryptor),
/// at most 13.2 Gbit/s. Limit: …. Certainty: 3 repeats, ….`; `None` without any figure.
pub(crate) fn answer(run: &Run<'_>, headlines: &[Headline]) -> Option<String> {
    let Some(first) = headlines.iter().find(|found| found.without.is_none()) else {
        return nothing(run);
    };
    // Without a baseline, the best device of a ranking precedes the first one of the campaign.
    let found = carried(run, headlines)
        .or_else(|| ranked(run))
        .or_else(|| stated(run, headlines, first))?;
    let limit = limit(run, &found.cells);
    let certainty = certainty(run, &found);
    let print = in_print(run, &found.cells);
    Some(format!(
        "{}. Limit: {limit}. Certainty: {certainty}. Fit to print: {print}.",
        // Sentences of a ranking already end with a full stop.
        found.what.trim_end_matches('.')
    ))
}

/// Why no trial of a run gave a figure: `Nothing could be measured: in 41 of 42 trials other
/// programs ran on this machine …`; `None` if none was tried, or if some were measured.
fn nothing(run: &Run<'_>) -> Option<String> {
    let progress = &run.results.progress;
    let tried = progress.trials_invalid + progress.trials_failed;
    if progress.trials_measured > 0 || tried == 0 {
        return None;
    }
    let cells = run.results.cells.iter();
    let reasons = cells.flat_map(|cell| {
        let own = cell.reasons.iter();
        own.map(|reason| (trouble::kind(reason), (cell.id.as_str(), reason)))
    });
    let mut kinds: Vec<(&str, usize, &Reason)> = grouped(reasons)
        .into_iter()
        .filter_map(|(kind, places)| {
            let trials = unique(places.iter().map(|(cell, reason)| (*cell, reason.repeat)));
            Some((kind, trials.len(), places.first()?.1))
        })
        .collect();
    // Stable: reasons that are as frequent keep the order of the cells.
    kinds.sort_by_key(|(_, trials, _)| Reverse(*trials));
    let ((kind, trials, first), others) = kinds.split_first()?;
    let why = match &first.explanation {
        Some(found) => format!(
            "{} (`{kind}`), for example {}",
            found.cause, found.difference
        ),
        None => Cell::reason(kind).text,
    };
    let others = others
        .iter()
        .map(|(kind, trials, reason)| match reason.explanation {
            Some(_) => format!("`{kind}` failed in {trials}"),
            None => format!("{} in {trials}", Cell::reason(kind).text),
        });
    let others: Vec<String> = others.collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(". Besides, {}", others.join(", "))
    };
    let so_far = if progress.ended { "" } else { " so far" };
    Some(format!(
        "Nothing could be measured{so_far}: in {trials} of {} {why}{others}.",
        counted(tried, "trial")
    ))
}

/// Whether a warning is about the whole run or one of these cells.
fn concerns(warning: &Warning, cells: &[&CellResult]) -> bool {
    let own = |id: &String| cells.iter().any(|cell| cell.id == *id);
    warning.cells.is_empty() || warning.cells.iter().any(own)
}

/// Whether the figures of these cells may be published, and with which conditions: `no (too few
/// repeats, shared cores)`.
fn in_print(run: &Run<'_>, cells: &[&CellResult]) -> String {
    let all = run.results.warnings.iter();
    let about = all.filter(|warning| concerns(warning, cells));
    // Several warnings of one kind are one condition.
    let kinds = unique(about.map(|warning| warning.kind));
    let of = |weight: Weight| kinds.iter().filter(move |kind| kind.weight() == weight);
    let list = |weight: Weight| {
        let words = of(weight).map(|kind| kind.in_short());
        words.collect::<Vec<_>>().join(", ")
    };
    // One warning that spoils a figure outweighs all that only qualify it.
    if of(Weight::Spoils).next().is_some() {
        format!("no ({})", list(Weight::Spoils))
    } else if of(Weight::Qualifies).next().is_some() {
        format!(
            "together with these conditions ({})",
            list(Weight::Qualifies)
        )
    } else {
        "yes".to_owned()
    }
}

/// The first part of the sentence, with its cells.
#[derive(Default)]
struct LeadStatement<'r> {
    what: String,
    cells: Vec<&'r CellResult>,
    comparisons: Vec<&'r Comparison>,
    /// The smallest and the largest repeat in words, unless given by `cells`.
    range: String,
}

/// The devices' shares of the baseline, for the first quantity with a baseline.
fn carried<'r>(run: &'r Run<'_>, headlines: &[Headline]) -> Option<LeadStatement<'r>> {
    COMPARED.into_iter().find_map(|(metric, protocol, what)| {
        let mut shares: Vec<Share<'r>> = headlines
            .iter()
            .map(|device| Share::of(run, device, metric, protocol))
            .filter(|share| !share.comparisons.is_empty())
            .collect();
        // A device that protects nothing is not an answer, unless all devices are like it.
        if shares.iter().any(Share::protects) {
            shares.retain(Share::protects);
        }
        // The sentence names the first of them, and the last.
        // Stable: devices with equal shares are in the order of the plan.
        shares.sort_by(|a, b| b.highest().total_cmp(&a.highest()));
        let best = shares.first()?;
        // Shares without comparisons are filtered out above.
        let baseline = &best.comparisons[0].1.baseline;
        let others = others(run, &shares, metric);
        let setting = best.setting(run, &shares);
        let in_common = best.in_common(metric);
        let loss = lost(best.comparisons.iter().map(|(cell, _)| *cell));
        let loss = loss.map_or_else(String::new, |loss| format!(" and loses {loss}"));
        // A share without its figure and its conditions cannot be compared with anything.
        let (share, of) = (best.words(run), explained(run, baseline));
        let carried = match best.comparisons.as_slice() {
            [(cell, _)] => match carried_figure(cell, metric) {
                Some(figure) => format!("{figure}{setting}, {share} of {of}{in_common}"),
                None => format!("{share} of the {what} of {of}{setting}{in_common}"),
            },
            several => {
                let most = several.iter().map(|(cell, _)| *cell);
                let most = most.max_by(|a, b| rate(a, metric).total_cmp(&rate(b, metric)));
                let most = most.and_then(|cell| carried_figure(cell, metric));
                let most = most.map_or_else(String::new, |most| format!(", at most {most}"));
                format!("{share} of the {what} of {of}{in_common}{most}")
            }
        };
        Some(LeadStatement {
            what: format!(
                "{} carries {carried}{}{loss}{others}",
                best.device,
                best.bound_words()
            ),
            cells: best.comparisons.iter().map(|(cell, _)| *cell).collect(),
            comparisons: best.comparisons.iter().map(|(_, found)| *found).collect(),
            ..LeadStatement::default()
        })
    })
}

/// The other devices, in the settings that the best one has a figure of, and whether it is surely
/// the best: `, the most of 3 devices; the least is x with 8 %`. Empty for a single device.
fn others(run: &Run<'_>, shares: &[Share<'_>], metric: Metric) -> String {
    let [best, others @ ..] = shares else {
        return String::new();
    };
    let mut others: Vec<Share<'_>> = others.iter().map(|other| other.alike(best)).collect();
    others.retain(|other| !other.comparisons.is_empty());
    others.sort_by(|a, b| b.highest().total_cmp(&a.highest()));
    let Some(last) = others.last() else {
        return String::new();
    };
    let all = counted(others.len() + 1, "device");
    let most = if is_surely_best(run, best, metric) {
        format!("the most of {all}")
    } else {
        format!("the highest mean of {all}, whose order these repeats do not decide")
    };
    let least = last.words(run);
    format!(", {most}; the least is {} with {least}", last.device)
}

/// Whether each ranking that the figures of a device are in has it alone in the first place.
fn is_surely_best(run: &Run<'_>, best: &Share<'_>, metric: Metric) -> bool {
    let by = match metric {
        Metric::PayloadThroughput => RankedBy::PayloadThroughput,
        Metric::FrameRate => RankedBy::FrameRate,
        // Without a ranking the figures are all there is.
        _ => return true,
    };
    let rankings = run.results.rankings.iter();
    let mut places = rankings
        .filter(|ranking| ranking.by == by)
        .flat_map(|ranking| &ranking.places)
        .filter(|place| {
            best.comparisons
                .iter()
                .any(|(cell, _)| cell.id == place.cell)
        });
    places.all(|place| {
        place
            .rank
            .is_some_and(|rank| (rank.first, rank.last) == (1, 1))
    })
}

fn rate(cell: &CellResult, metric: Metric) -> f64 {
    compared(cell, metric).map_or(0.0, |found| found.mean)
}

/// `138 kpps of 64 B frames, both directions`, `2.66 Gbit/s of TCP payload`.
fn carried_figure(cell: &CellResult, metric: Metric) -> Option<String> {
    let mean = compared(cell, metric)?.mean;
    Some(match metric {
        Metric::FrameRate => {
            let traffic = &cell.frame_cell()?.traffic;
            format!("{} of {}", si(mean, "pps"), frames_in_words(traffic))
        }
        Metric::TransactionsPerSecond => format!("{} transactions/s", Scale::plain().number(mean)),
        _ => format!(
            "{} of {} payload",
            si(mean, "bit/s"),
            cell.protocol.to_uppercase()
        ),
    })
}

/// Without a baseline: the best device of the first ranking.
fn ranked<'r>(run: &'r Run<'_>) -> Option<LeadStatement<'r>> {
    if !is_ranking(run) {
        return None;
    }
    let ranked = ranking::ranked(run);
    let first = ranked.first()?;
    let best = first.main.places.first()?;
    Some(LeadStatement {
        what: ranking::best(run, first)?,
        cells: run.cell(&best.cell).into_iter().collect(),
        ..LeadStatement::default()
    })
}

/// Without a baseline or a ranking: the first figure.
fn stated<'r>(
    run: &'r Run<'_>,
    headlines: &[Headline],
    first: &Headline,
) -> Option<LeadStatement<'r>> {
    let Fact {
        label,
        figure,
        unit,
        range,
        detail,
        brief: _,
    } = first.facts.first()?;
    // The first condition; the summary of the device has the others.
    let detail = match detail.split("; ").next().unwrap_or_default() {
        "" => String::new(),
        // The reason of a bound is a clause of its own.
        clause if clause.contains(':') => format!(" ({clause})"),
        words => format!(", {words}"),
    };
    let with_figures = headlines.iter().filter(|found| found.without.is_none());
    // `first` is one of them.
    let others = match with_figures.count() - 1 {
        0 => String::new(),
        others => format!(" ({} below)", counted(others, "more device")),
    };
    let own = run.results.cells.iter();
    let own = own.filter(|cell| run.label(&cell.dut) == first.device && main(cell).is_some());
    let figure = format!("{figure} {unit}");
    Some(LeadStatement {
        what: format!(
            "{}, {}: {}{detail}{others}",
            first.device,
            uncapitalized(label),
            figure.trim_end()
        ),
        cells: own.take(1).collect(),
        range: range.clone(),
        ..LeadStatement::default()
    })
}

/// The main figure of a cell, including transactions.
fn main(cell: &CellResult) -> Option<&Estimate> {
    cell.figure().or_else(|| cell.transactions_per_s())
}

/// `direct (the same path without an encryptor)`.
fn explained(run: &Run<'_>, baseline: &str) -> String {
    match run.device(baseline).map(|dut| &dut.adapter) {
        Some(Adapter::Direct) => format!("{baseline} (the same path without an encryptor)"),
        Some(_) => format!("{baseline} (the baseline, which does not encrypt)"),
        None => baseline.to_owned(),
    }
}

/// The bottleneck of these cells, if known.
fn limit(run: &Run<'_>, cells: &[&CellResult]) -> String {
    // A verdict about the bottleneck is better than any inference from warnings.
    let mut verdicts = cells.iter().filter_map(|cell| cell.verdict());
    if let Some(first) = verdicts.next() {
        let is_same = verdicts.all(|other| other.limit == first.limit);
        return if is_same {
            limit_words(first.limit).to_owned()
        } else {
            "not the same in every setting; the tables mark it".to_owned()
        };
    }
    let warns = |kind: WarningKind| {
        let mut all = run.results.warnings.iter();
        all.any(|warning| warning.kind == kind && concerns(warning, cells))
    };
    let is_full = |cell: &&CellResult| {
        let line = cell.ceiling.as_ref();
        let line = line.filter(|ceiling| ceiling.basis == CeilingBasis::LineRate);
        let reached = line.and_then(|ceiling| ceiling.reached);
        reached.is_some_and(|share| share >= OF_LINK)
    };
    // `all` is true without any cell.
    if !cells.is_empty() && cells.iter().all(is_full) {
        "the link".to_owned()
    } else if warns(WarningKind::TesterLimited) || warns(WarningKind::GeneratorLimited) {
        // The tester precedes the cores, as its limit makes the figures lower bounds.
        "the tester, at least in some settings, so that the device may do more".to_owned()
    } else if warns(WarningKind::SharedCores) {
        "this machine's cores, which stations and device share".to_owned()
    } else {
        "not determined".to_owned()
    }
}

const fn limit_words(limit: Limit) -> &'static str {
    match limit {
        Limit::DutLimited => "the device",
        Limit::TesterLimited => "the tester, so that the device may do more",
        Limit::LinkLimited => "the link",
        Limit::MachineLimited => "this machine's cores, which stations and device share",
        Limit::Inconclusive => "not decided by these repeats",
    }
}

/// Repeats, their spread, and whether a difference is shown.
fn certainty(run: &Run<'_>, found: &LeadStatement<'_>) -> String {
    let figures = found.cells.iter().filter_map(|cell| main(cell));
    let compared = found.comparisons.first();
    let mut parts = Vec::new();
    let planned = run.plan().repeats;
    // The cell with the fewest repeats limits the certainty.
    let made = figures.clone().map(|figure| figure.n).min();
    match made.unwrap_or(planned) {
        0 | 1 if planned > 1 => {
            parts.push(format!("one repeat of {planned}, which decides nothing"));
        }
        0 | 1 => parts.push("one repeat decides nothing".to_owned()),
        repeats if compared.is_none() && !found.range.is_empty() => {
            let range = found.range.as_str();
            // The number of repeats already precedes the range.
            let range = range.strip_prefix("repeats ").unwrap_or(range);
            parts.push(format!("{repeats} repeats, {range}"));
        }
        repeats if compared.is_none() => parts.push(counted(repeats, "repeat")),
        repeats => {
            let spread = figures.filter_map(|figure| figure.largest_distance_percent);
            let spread = percent(spread.fold(0.0, f64::max));
            parts.push(format!(
                "{repeats} repeats, at most {spread} from their mean"
            ));
            parts.extend(difference(run, &found.comparisons));
        }
    }
    let cells = run.results.cells.iter();
    let lacking = cells.filter(|cell| is_without_figure(cell)).count();
    if lacking > 0 {
        parts.push(format!(
            "no figure in {lacking} of {}",
            counted(run.results.cells.len(), "cell")
        ));
    }
    let apart = found.comparisons.iter().filter_map(|one| one.apart_ns);
    parts.extend(format::apart(apart.max()));
    parts.join(", ")
}

fn is_without_figure(cell: &CellResult) -> bool {
    let is_without = matches!(
        cell.status,
        Status::Invalid | Status::Failed | Status::NotRun
    );
    is_without && !cell.is_skipped()
}
