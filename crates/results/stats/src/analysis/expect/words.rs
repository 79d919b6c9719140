//! Why a limit is met, violated or undecided, in sentences.

use super::ExpectedCell;
use crate::analysis::change::{Needed, REPEATS_MAX};
use crate::analysis::gate::GateUnit;
use crate::analysis::quantity::Reading;
use crate::cell::{CellResult, Reason, Status};
use crate::figures::bands::TwoBands;
use crate::figures::estimate::Estimate;
use journal::record::Environment;
use units::human::counted;

/// A quantity with its load: `p99 at 50 %`.
pub(super) fn quantity(reading: &Reading) -> String {
    let word = reading.quantity.word();
    match reading.load_percent {
        None => word.to_owned(),
        Some(0) => format!("{word} at the lowest load"),
        Some(percent) => format!("{word} at {percent} %"),
    }
}

/// CPU and kernel of a machine: whether two are the same, for people too.
#[must_use]
pub fn machine(environment: &Environment) -> String {
    let parts = [&environment.cpu_model, &environment.kernel];
    let known = parts.into_iter().filter(|part| !part.is_empty());
    let known: Vec<&str> = known.map(String::as_str).collect();
    match known.as_slice() {
        [] => "unknown".to_owned(),
        known => known.join(", "),
    }
}

/// In per cent, of an interval that misses with the chance `alpha`.
pub(super) fn certainty(alpha: f64) -> String {
    // Several limits and looks share 5 %, so that it may be well above 95.
    let percent = (1e5 * (1.0 - alpha)).round() / 1e3;
    percent.to_string()
}

/// The figure with its interval; `mean` says which mean of the repeats it is.
pub(super) fn measured(
    (figure, low, high): (f64, f64, f64),
    alpha: f64,
    (unit, cell, mean): (Option<GateUnit>, &ExpectedCell, &str),
) -> String {
    let print = |value: f64| match unit {
        Some(unit) => unit.print(value),
        None => format!("{} %", units::human::number(100.0 * value)),
    };
    let certainty = certainty(alpha);
    let range = if high.is_finite() {
        format!("from {} to {}", print(low), print(high))
    } else {
        format!("{} or more", print(low))
    };
    let of = match &cell.reference {
        Some(reference) => format!(" of {reference}"),
        None => String::new(),
    };
    format!(
        "Measured {}{of}{mean}, with {certainty} % certainty {range}.",
        print(figure)
    )
}

/// Of an interval that contains the limit.
pub(super) fn advice(
    needed: Needed,
    repeats: u32,
    further: Option<u32>,
    looks_again: bool,
) -> String {
    let what = match needed {
        Needed::Repeats(_) => more(repeats, further, looks_again),
        Needed::Scatter => "repeats that are all equal do not show how the figure scatters".to_owned(),
        Needed::NarrowerSearches => {
            "the searches' bounds contain it, so that no number of repeats would decide: narrow the searches (`width`)"
                .to_owned()
        }
        Needed::UpperBound => {
            "a search found no upper bound: raise its `max_load` or `timeout`".to_owned()
        }
        Needed::TooNear => more(repeats, None, looks_again),
    };
    format!(" The limit lies within; {what}.")
}

/// Of a violated limit.
pub(super) const VIOLATED: &str = " Look for the cause in what changed since a run that kept it (`cipherbench compare`), \
     or move the limit if the figure is intended.";

/// Further repeats that would decide.
pub(super) fn more(repeats: u32, further: Option<u32>, looks_again: bool) -> String {
    match further {
        Some(further) => {
            let noun = counted(further, "more repeat");
            let how = if looks_again {
                String::new()
            } else {
                let all = repeats + further;
                format!(
                    " (`run CAMPAIGN --repeats {all}`; of a limit in the campaign's `expect`, also `--until-decided TIME`)"
                )
            };
            format!("{noun} would probably decide{how}")
        }
        None => {
            format!("the figure is so near it that more than {REPEATS_MAX} repeats would be needed")
        }
    }
}

/// Of repeats without a known scatter.
pub(super) fn no_scatter(repeats: u32, looks_again: bool) -> String {
    let what = if repeats < 2 {
        "One repeat does not show how the figure scatters"
    } else {
        "Repeats that are all equal do not show how the figure scatters"
    };
    if looks_again {
        format!("{what}.")
    } else {
        let more = (2 * repeats).max(5);
        format!("{what}: measure more (`run CAMPAIGN --repeats {more}`).")
    }
}

/// Of bands near the limit.
pub(super) fn bands(bands: &TwoBands, unit: Option<GateUnit>) -> String {
    format!(
        "{}, so that no mean describes them, and the limit is not far from both: find what switches (clock, cores, \
         cache), or move the limit farther away.",
        in_two(bands, unit)
    )
}

/// Of bands far from the limit.
pub(super) fn far_bands(bands: &TwoBands, unit: Option<GateUnit>) -> String {
    format!(
        "{}; the limit is farther from both than they are from each other.",
        in_two(bands, unit)
    )
}

fn in_two(bands: &TwoBands, unit: Option<GateUnit>) -> String {
    let print =
        |value: f64| unit.map_or_else(|| units::human::number(value), |unit| unit.print(value));
    format!(
        "The repeats fall in two bands, about {} and {}",
        print(bands.low.max),
        print(bands.high.min)
    )
}

/// A cell without the figure.
pub(super) fn no_figure(cell: &CellResult) -> String {
    let why = |what: &str| match cell.reasons.first().map(Reason::in_short) {
        Some(reason) => format!("{what}: {reason}."),
        None => format!("{what}."),
    };
    match cell.status {
        Status::Invalid => why("Every repeat is invalid") + &repair(cell),
        Status::Failed => why("Every repeat failed") + &repair(cell),
        Status::NotRun => "The cell was not run: `cipherbench resume RUN` goes on.".to_owned(),
        Status::Measured | Status::Partly => "The cell has no such figure.".to_owned(),
    }
}

/// What to do about a cell without a valid trial.
fn repair(cell: &CellResult) -> String {
    match cell.reasons.first() {
        Some(reason) if reason.recurs() => " Its remedy is a new run.".to_owned(),
        _ => " `cipherbench resume RUN --invalid` repeats invalid and failed trials.".to_owned(),
    }
}

/// Some of the first repeats have no figure.
pub(super) fn lacking(cell: &CellResult, of: &Estimate, repeats: u32) -> String {
    let known = of.values.iter().filter(|one| one.repeat <= repeats).count();
    let missing = (repeats as usize).saturating_sub(known) as u64;
    let mut reasons = cell.reasons.iter().filter(|reason| {
        let is_known = of.at(reason.repeat).is_some();
        reason.repeat <= repeats && !is_known
    });
    let lead = format!(
        "{} of {repeats} without a figure",
        counted(missing, "repeat")
    );
    match reasons.next() {
        Some(reason) if reason.recurs() => {
            format!("{lead}: {}; its remedy is a new run.", reason.in_short())
        }
        Some(reason) => format!(
            "{lead}: {}; `cipherbench resume RUN --invalid` repeats invalid and failed trials.",
            reason.in_short()
        ),
        None => format!("{lead}: `cipherbench resume RUN` goes on."),
    }
}
