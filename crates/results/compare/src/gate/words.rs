//! The outcome of a gate for a cell, as a sentence with advice.

use super::Outcome;
use crate::words::bound_in_words;
use crate::{CellChange, WithoutRatio};
use stats::{GateFilter, Needed, REPEATS_MAX};

/// For a gate with filters that exclude every cell.
pub(super) const NO_CELL: &str = "both runs have its quantity in no cell that it applies to: see whether both are of a campaign with such \
     cells, compare the gate's filters with the names of the cells, and look at the cells without a figure";

/// Values of a filter that a sentence lists.
const LISTED_MAX: usize = 8;

/// For a gate with a filter that excludes every cell of the base, which has the known ones, and
/// with a gate that applies.
pub(super) fn no_such_cell(filter: &GateFilter, known: &[String], attempt: Option<&str>) -> String {
    let others = match known {
        [] => "and no cell has that key".to_owned(),
        known if known.len() > LISTED_MAX => {
            let (first, rest) = known.split_at(LISTED_MAX);
            format!("it has {} and {} more", first.join(", "), rest.len())
        }
        known => format!("it has {}", known.join(", ")),
    };
    let attempt = match attempt {
        Some(gate) => format!("try `{gate}`"),
        None => "compare the gate's filters with the names of the cells".to_owned(),
    };
    let cell = match filter {
        GateFilter::Kind(name) => format!("{name} cell"),
        filter => format!("cell with {filter}"),
    };
    format!("the base has no {cell}; {others}: {attempt}")
}

/// For a gate that only admits the device after the `=` of a match within one run; `attempt` admits
/// the other one.
pub(super) fn of_other_device(attempt: Option<&str>) -> String {
    let attempt = attempt.map_or_else(String::new, |gate| format!(": try `{gate}`"));
    format!("filters are about the device before the `=` of `--match`{attempt}")
}

/// For a change and the ratio at the gate's bound; `within` one run, both sides are measured by it.
pub(super) fn of_change(change: &CellChange, outcome: Outcome, bound: f64, within: bool) -> String {
    let found = change.in_words_at(Some(100.0 * (bound - 1.0)));
    // With two devices, the reader must know the direction of the comparison.
    let (found, subject) = match &change.other_cell {
        Some(other) => {
            let found = format!("`{other}` differs by {found}");
            let subject = format!("{found}, which");
            (found, subject)
        }
        None => (found.clone(), found),
    };
    let bound_text = format!("the bound of {} %", bound_in_words(bound));
    match outcome {
        Outcome::Passed => format!("{subject} is within {bound_text}"),
        Outcome::Violated => {
            let cause = if within {
                "look for the cause in the settings that differ"
            } else {
                "look for the cause in what differs between the runs"
            };
            format!(
                "{subject} is beyond {bound_text}; {cause}, or change the gate if this change is intended"
            )
        }
        Outcome::Undecided => undecided(change, bound, (&found, &subject), &bound_text, within),
    }
}

/// Scatter of repeats that an otherwise idle machine seldom has, in per cent.
const BUSY_PERCENT: f64 = 10.0;

fn undecided(
    change: &CellChange,
    bound: f64,
    (found, subject): (&str, &str),
    bound_text: &str,
    within: bool,
) -> String {
    let repeats = change.base_repeats.min(change.other_repeats);
    let scatter = change.scatter_percent();
    let (again, each) = if within {
        ("measure again", "")
    } else {
        ("measure both runs again", " each")
    };
    match change.needed(bound) {
        // Scatter of this size is first a question of the machine: an idle one may decide with the
        // same number of repeats.
        Needed::Repeats(repeats) if scatter > BUSY_PERCENT => format!(
            "{subject} crosses {bound_text}, because repeats scatter by {scatter:.0} %; {again} while nothing else uses \
             the machine, or with about {repeats} repeats{each} (`run CAMPAIGN --repeats {repeats}`)"
        ),
        Needed::TooNear if scatter > BUSY_PERCENT => format!(
            "{subject} crosses {bound_text}, because repeats scatter by {scatter:.0} %; {again} while nothing else uses \
             the machine: as they are, more than {REPEATS_MAX} repeats would be needed"
        ),
        Needed::Repeats(repeats) => format!(
            "{subject} crosses {bound_text}; {again} with about {repeats} repeats{each} \
             (`run CAMPAIGN --repeats {repeats}`), which would decide"
        ),
        Needed::Scatter if repeats < 2 => format!(
            "{found}: one repeat does not show how the figure scatters; {again} with \
             `run CAMPAIGN --repeats 5` or more"
        ),
        Needed::Scatter => format!(
            "{found}: repeats that are all equal do not show how the figure scatters; {again} with \
             longer trials, or with `run CAMPAIGN --repeats {}` or more",
            (2 * repeats).max(5)
        ),
        Needed::NarrowerSearches => format!(
            "{subject} crosses {bound_text}, as the searches' own bounds do, so that no number of repeats would decide; \
             narrow the searches (`width`), or compare trials at full load (`cipherbench run gate`)"
        ),
        Needed::UpperBound => format!(
            "{found}: a search found no upper bound, so that the figure is a least one; raise its \
             `max_load` or `timeout`, or compare trials at full load (`cipherbench run gate`)"
        ),
        Needed::TooNear => format!(
            "{subject} is so near {bound_text} that more than {REPEATS_MAX} repeats would be needed; choose another bound"
        ),
    }
}

/// For a compared cell whose quantity has no ratio.
pub(super) fn of_lacking(found: &WithoutRatio) -> String {
    format!(
        "{}, though the cell's other quantities are compared; {}",
        found.reason, found.help
    )
}

/// For a compared cell that has the quantity in neither run, and these instead.
pub(super) fn of_other_quantities(known: &[String]) -> String {
    format!(
        "this cell has no such quantity; it has {}",
        known.join(", ")
    )
}

/// For a gate on a quantity that no cell has that it applies to.
pub(super) const NO_QUANTITY: &str = "no cell that it applies to has its quantity";
