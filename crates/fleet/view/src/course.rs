//! The course of a cell over the runs of the archive: its figures, their changes, and other changes
//! at the same runs.

mod pooled;

pub(crate) use pooled::Pooled;

use compare::{Difference, Shift, of_surroundings, shifts};
use fleet::{Figure, Fleet, FleetError, Point};
use journal::time::utc;
use serde_json::{Value, json};
use stats::Quantity;
use std::collections::BTreeMap;

/// The last runs, which are always listed.
pub(crate) const LAST: usize = 20;

/// A run and the figure there.
type Valued<'a> = (&'a Point, &'a Figure);

/// A quantity of the cell over all runs that have it.
pub(crate) struct Series<'a> {
    pub(crate) quantity: Quantity,
    pub(crate) load_percent: Option<u8>,
    pub(crate) points: Vec<Valued<'a>>,
    pub(crate) shifts: Vec<(Shift, Vec<Difference>)>,
    /// Percentiles of all frames of the runs between changes, for a latency under a load.
    pub(crate) pooled: Vec<Pooled>,
}

impl Series<'_> {
    /// The quantity, and the load if it is one of several.
    pub(crate) fn title(&self) -> String {
        let load = self
            .load_percent
            .map_or_else(String::new, |percent| format!(" at {percent} % load"));
        format!("{}{load}", self.quantity.word())
    }

    /// Percentiles of all frames of the runs between changes. They are with the medians of
    /// latencies under a load, so that they are there once for each load.
    async fn pooled(&self, fleet: &Fleet, cell: &str) -> Result<Vec<Pooled>, FleetError> {
        let (Quantity::LatencyP50, Some(load)) = (self.quantity, self.load_percent) else {
            return Ok(Vec::new());
        };
        let jobs: Vec<&str> = self.points.iter().map(|(point, _)| &*point.job).collect();
        let changes = self.shifts.iter().map(|(shift, _)| shift.at);
        pooled::parts(fleet, (cell, load), &jobs, changes).await
    }
}

/// Each quantity over the runs, with its changes and other changes at the same runs.
pub(crate) async fn series<'a>(
    fleet: &Fleet,
    cell: &str,
    points: &'a [Point],
) -> Result<Vec<Series<'a>>, FleetError> {
    let mut all = by_quantity(points);
    for series in &mut all {
        series.pooled = series.pooled(fleet, cell).await?;
        for (shift, differences) in &mut series.shifts {
            // A change has two runs on each side at least.
            let point = |at: usize| series.points.get(at).map(|(point, _)| *point);
            let nearest = (point(shift.at - 1), point(shift.at));
            let next = (shift.at.checked_sub(2).and_then(point), point(shift.at + 1));
            if let (Some(before), Some(after)) = nearest {
                *differences = between(fleet, before, after).await?;
            }
            if let (Some(before), Some(after)) = next {
                retain_lasting(differences, &between(fleet, before, after).await?);
            }
        }
    }
    Ok(all)
}

fn by_quantity(points: &[Point]) -> Vec<Series<'_>> {
    let mut by_key: BTreeMap<(&str, Option<u8>), Vec<Valued<'_>>> = BTreeMap::new();
    for point in points {
        for figure in &point.figures {
            by_key
                .entry((&figure.key, figure.load_percent))
                .or_default()
                .push((point, figure));
        }
    }
    let known = by_key
        .into_iter()
        .filter_map(|((key, load_percent), points)| {
            // One of a later version is left out.
            let quantity = Quantity::ALL.into_iter().find(|known| known.key() == key)?;
            let values: Vec<f64> = points.iter().map(|(_, figure)| figure.value).collect();
            let shifts = shifts(&values).into_iter();
            Some(Series {
                quantity,
                load_percent,
                points,
                shifts: shifts.map(|shift| (shift, Vec::new())).collect(),
                pooled: Vec::new(),
            })
        });
    known.collect()
}

/// Other differences between two runs: lab, labels, machine, program.
async fn between(
    fleet: &Fleet,
    before: &Point,
    after: &Point,
) -> Result<Vec<Difference>, FleetError> {
    // A run moved to another lab is measured on other machines, which explains a change best.
    let described = |point: &Point| json!({ "lab": point.lab, "labels": point.labels });
    let mut all = of_surroundings(&described(before), &described(after));
    let surroundings = (
        fleet.surroundings(&before.job).await?,
        fleet.surroundings(&after.job).await?,
    );
    // A run of an earlier version has none, and compared with nothing, everything would differ.
    if let (Value::Object(_), Value::Object(_)) = &surroundings {
        all.extend(of_surroundings(&surroundings.0, &surroundings.1));
    }
    Ok(all)
}

/// Keeps the differences that the next two runs, one on each side of the change, show too: labs
/// that take turns differ at every run, and explain no change.
fn retain_lasting(differences: &mut Vec<Difference>, next: &[Difference]) {
    let of = |one: &Difference| (one.what.clone(), one.base.clone(), one.other.clone());
    differences.retain(|one| next.iter().any(|other| of(other) == of(one)));
}

/// Text for a change of a figure without any other recorded change.
pub(crate) const NOTHING_ELSE: &str =
    "nothing that is recorded of lab, machine and program changed here";

/// The size of a figure's change, with the values before and after.
pub(crate) fn change(quantity: Quantity, shift: &Shift) -> String {
    format!(
        "{} times ({} to {}): {} before, {} from here on",
        ratio(shift.ratio),
        ratio(shift.low),
        ratio(shift.high),
        quantity.print(shift.before),
        quantity.print(shift.after)
    )
}

pub(crate) fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

pub(crate) fn archived(point: &Point) -> String {
    utc(point.archived_at.saturating_mul(1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_that_take_turns_explain_no_change_and_new_firmware_does() {
        let run =
            |lab: &str, firmware: &str| json!({ "lab": lab, "labels": { "firmware": firmware } });
        // One, two | one, two, and the change between them.
        let (first, second) = (run("one", "1"), run("two", "1"));
        let (third, fourth) = (run("one", "2"), run("two", "2"));
        let mut found = of_surroundings(&second, &third);
        assert_eq!(found.len(), 2);
        retain_lasting(&mut found, &of_surroundings(&first, &fourth));
        let what: Vec<&str> = found.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(what, ["labels.firmware"]);
    }
}
