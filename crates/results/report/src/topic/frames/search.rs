//! The goals of a search, their bounds and trials.

use super::{caption, fill, head, interval, joined, mean_rate, rate, share, without_figure};
use crate::kit::format::{si, time_ns};
use crate::kit::section::Blocks;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use journal::record::GoalOutcome;
use stats::{CellResult, GoalResult, LayerRates, ThroughputResult};
use units::human::duration_ns;

/// Appends folded details below the tables of a search.
pub(super) fn details(run: &Run<'_>, out: &mut Blocks, sets: &[FrameSet<'_>]) {
    let mut found = joined("Search goals", sets, goals);
    if !found.is_empty() {
        // Other procedures have no goals, so no bounds either.
        let searched: Vec<_> = sets.iter().filter(|set| !set.goals().is_empty()).collect();
        found.extend(searched.iter().map(|set| bounds(run, set)));
        out.details("Search goals, both bounds and trials", found);
    }
}

/// Both bounds of every goal, with the trials and the duration of the search.
fn bounds(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; frames/s of one direction; lower: mean ± largest distance from it (per cent of the \
         mean), median, 95 % interval (Student's t on logarithms); conditional: forwarding rate at the lower \
         bound; [m of n]: a bound that only some repeats found, \
         so that the other one, of all, may contradict it; trials: at the lower and the upper bound, over all repeats; search: mean time of one, for all goals; \
         failed by: frames of the upper bound's trials that were lost on the way, that only a growing queue carried \
         (delay grew as long as the load lasted), or that the tester did not offer or lost; result: irregular \
         if a bound is missing or too far from the other (RFC 9971)",
        set.common
    );
    let table = head(set, Table::new(caption(set, "Relevant bounds"), note))
        .labels(["Goal"])
        .figures(["Lower bound", "Median", "95 % interval", "Upper bound"])
        .figures(["Conditional", "Trials", "Search"])
        .texts(["Failed by", "Result"]);
    fill(table, run, set, |cell| {
        let Some(throughput) = throughput(cell) else {
            // Without a search, a row for the first goal contains the reason.
            let goal = Cell::label(set.goals().first().map_or("", |goal| &goal.name));
            let reason = without_figure(cell, 9);
            return vec![[goal].into_iter().chain(reason).collect()];
        };
        let goals = throughput.goals.iter().enumerate().map(|(index, goal)| {
            let mut cells = vec![Cell::label(&goal.goal)];
            cells.extend(bound_cells(goal));
            // All goals are searched together.
            let search = Cell::plain(time_ns(throughput.search_ns.mean));
            cells.extend([search.once(index), failed_by(goal), result(goal)]);
            cells
        });
        goals.collect::<Vec<Vec<_>>>()
    })
}

pub(super) fn throughput(cell: &CellResult) -> Option<&ThroughputResult> {
    cell.frames()?.throughput.as_ref()
}

fn bound_cells(goal: &GoalResult) -> [Cell; 6] {
    let lower = goal.lower.as_ref().map(|rates| &rates.frames_per_s);
    let upper = goal.upper.as_ref().map(|rates| &rates.frames_per_s);
    let conditional = goal.conditional_throughput.as_ref();
    let median = |found: &stats::Estimate| si(found.median, "pps");
    // A bound that only some repeats found is no figure, so it has neither spread nor interval.
    let of_some = |rates: &LayerRates| {
        let rate = &rates.frames_per_s;
        let count = format!(" [{} of {}]", rate.n, goal.repeats());
        Cell::plain(mean_rate(rate) + &count)
    };
    let no_upper = || match &goal.upper_of_some {
        Some(rates) => of_some(rates),
        None if goal.has_outcome(GoalOutcome::MaxLoadMeets) => Cell::term("not reached"),
        None => Cell::word("none"),
    };
    let no_lower = || match &goal.lower_of_some {
        Some(rates) => of_some(rates),
        None => Cell::word("none"),
    };
    [
        lower.map_or_else(no_lower, |found| Cell::plain(rate(found))),
        Cell::or_missing(lower.map(median)),
        lower.map_or_else(Cell::missing, interval),
        upper.map_or_else(no_upper, |found| Cell::plain(mean_rate(found))),
        Cell::or_missing(conditional.map(|rates| mean_rate(&rates.frames_per_s))),
        Cell::plain(format!("{} + {}", goal.lower_trials, goal.upper_trials)),
    ]
}

/// The failures of the frames in the upper bound's trials, as shares of the intended frames.
fn failed_by(goal: &GoalResult) -> Cell {
    let Some(account) = goal.upper_account else {
        return Cell::missing();
    };
    // A search counts all of these as lost: a load that was not offered, or only queued, was not
    // carried.
    let causes = [
        ("loss", account.lost_on_the_way()),
        ("queue", account.queued),
        ("tester", account.lost_by_tester()),
    ];
    let causes = causes.iter().filter(|(_, frames)| *frames > 0);
    let ppm = |frames: u64| 1e6 * frames as f64 / account.intended.max(1) as f64;
    let causes = causes.map(|(name, frames)| format!("{name} {}", share(*frames, ppm(*frames))));
    let causes: Vec<String> = causes.collect();
    Cell::or_missing((!causes.is_empty()).then(|| causes.join(", ")))
}

/// Whether the result is regular.
fn result(goal: &GoalResult) -> Cell {
    if goal.is_regular() {
        return Cell::term("regular");
    }
    let all = goal.repeats();
    let words = goal.outcomes.iter().map(|found| {
        let word = match found.outcome {
            GoalOutcome::Regular => "regular",
            GoalOutcome::MaxLoadMeets => "the highest load meets it",
            GoalOutcome::MinLoadFails => "the lowest load fails it",
            GoalOutcome::Unfinished => "time was up",
        };
        if found.repeats == all {
            word.to_owned()
        } else {
            format!("{word} ({} of {all})", found.repeats)
        }
    });
    Cell::word(format!(
        "irregular: {}",
        words.collect::<Vec<_>>().join(", ")
    ))
}

/// The goals of the searches.
fn goals(set: &FrameSet<'_>) -> Option<Table> {
    let search = set.test.procedure.search()?;
    let highest = set.rows().find_map(|(_, cell)| throughput(cell));
    let bounded = highest.map_or_else(String::new, |found| {
        let words: Vec<&str> = found.max_load_by.iter().map(|by| bounded_by(by)).collect();
        format!("; highest load: {}", words.join(" or "))
    });
    let note = format!(
        "profile {}; load unit: frames/s of one direction; lowest load {}{bounded}; drain {} after \
         each trial; at most {} for a search (RFC 9971)",
        search.profile.name(),
        units::human::frame_rate(search.min_load as f64),
        duration_ns(search.drain_ns as f64),
        duration_ns(search.timeout_ns as f64)
    );
    let mut table = Table::new(caption(set, "Search goals"), note)
        .labels(["Goal"])
        .figures(["Loss ratio", "Exceed ratio", "Initial trial"])
        .figures(["Final trial", "Duration sum", "Width"]);
    let percent = |ppm: u32| format!("{} %", f64::from(ppm) / 1e4);
    for goal in &search.goals {
        table.push(vec![
            Cell::label(&goal.name),
            Cell::plain(percent(goal.criteria.loss_ratio_ppm)),
            Cell::plain(percent(goal.criteria.exceed_ratio_ppm)),
            Cell::plain(duration_ns(goal.criteria.initial_trial_ns as f64)),
            Cell::plain(duration_ns(goal.criteria.final_trial_ns as f64)),
            Cell::plain(duration_ns(goal.criteria.duration_sum_ns as f64)),
            Cell::plain(percent(goal.criteria.width_ppm)),
        ]);
    }
    Some(table)
}

fn bounded_by(by: &str) -> &str {
    match by {
        "line-rate" => "the line rate",
        "given" => "as the campaign says",
        "generator" => "the generator's rate",
        other => other,
    }
}
