//! `cipherbench fleet history`: the course of a cell over the runs of the archive.

use super::pooled::{Pooled, parts};
use super::status::visible_json;
use super::{failure, labels};
use crate::exit::{Exit, Failure};
use crate::output;
use compare::{Difference, Shift, of_surroundings, shifts};
use fleet::{Access, Figure, Fleet, FleetError, Point};
use guard::{escaped, unescaped, visible};
use journal::time::utc;
use serde_json::{Value, json};
use stats::Quantity;
use std::collections::BTreeMap;
use std::fmt::Write;
use units::human::counted;

/// The last runs, which are always listed.
pub(super) const LAST: usize = 20;

/// A run and the figure there.
type Valued<'a> = (&'a Point, &'a Figure);

/// A quantity of the cell over all runs that have it.
pub(super) struct Series<'a> {
    pub(super) quantity: Quantity,
    pub(super) load_percent: Option<u8>,
    pub(super) points: Vec<Valued<'a>>,
    pub(super) shifts: Vec<(Shift, Vec<Difference>)>,
}

impl Series<'_> {
    /// The quantity, and the load if it is one of several.
    pub(super) fn title(&self) -> String {
        let load = self
            .load_percent
            .map_or_else(String::new, |percent| format!(" at {percent} % load"));
        format!("{}{load}", self.quantity.word())
    }

    /// Percentiles of all frames of the runs between changes. They are with the medians of
    /// latencies under a load, so that they are there once for each load.
    pub(super) async fn pooled(
        &self,
        fleet: &Fleet,
        cell: &str,
    ) -> Result<Vec<Pooled>, FleetError> {
        let (Quantity::LatencyP50, Some(load)) = (self.quantity, self.load_percent) else {
            return Ok(Vec::new());
        };
        let jobs: Vec<&str> = self.points.iter().map(|(point, _)| &*point.job).collect();
        let changes = self.shifts.iter().map(|(shift, _)| shift.at);
        parts(fleet, (cell, load), &jobs, changes).await
    }
}

pub(super) fn history(access: &Access, cell: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let Some(cell) = cell.map(unescaped) else {
        return list_cells(access);
    };
    let cell = &*cell;
    let text = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        let points = fleet.history(cell).await?;
        let all = series(&fleet, &points).await?;
        let mut pooled = Vec::new();
        for series in &all {
            pooled.push(series.pooled(&fleet, cell).await?);
        }
        let all: Vec<_> = all.iter().zip(&pooled).collect();
        Ok((!points.is_empty()).then(|| {
            if as_json {
                in_json(cell, &all)
            } else {
                in_words(cell, &all)
            }
        }))
    });
    let Some(text) = text.map_err(failure)? else {
        let text = format!(
            "no run of the fleet has a cell {}\nhelp: `cipherbench fleet history` lists the cells",
            escaped(cell)
        );
        return Err(Failure::new(Exit::Usage, text));
    };
    output::stdout(&text)?;
    Ok(Exit::Done)
}

fn list_cells(access: &Access) -> Result<Exit, Failure> {
    let cells = fleet::run(async { Fleet::connect(access).await?.cells().await });
    let lines: String = cells
        .map_err(failure)?
        .iter()
        .map(|cell| format!("{}\n", escaped(cell)))
        .collect();
    output::stdout(&lines)?;
    Ok(Exit::Done)
}

/// Each quantity over the runs, with its changes and other changes at the same runs.
pub(super) async fn series<'a>(
    fleet: &Fleet,
    points: &'a [Point],
) -> Result<Vec<Series<'a>>, FleetError> {
    let mut all = by_quantity(points);
    for series in &mut all {
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
    let described = |point: &Point| json!({ "lab": point.lab, "labels": point.labels });
    let mut all = of_surroundings(&described(before), &described(after));
    let surroundings = (
        fleet.surroundings(&before.job).await?,
        fleet.surroundings(&after.job).await?,
    );
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

type WithPooled<'a> = (&'a Series<'a>, &'a Vec<Pooled>);

fn in_words(cell: &str, all: &[WithPooled<'_>]) -> String {
    let mut text = format!("{}\n", escaped(cell));
    for (series, pooled) in all {
        let count = series.points.len();
        let _ = writeln!(
            text,
            "\n{}, {}, {}",
            series.title(),
            counted(count as u64, "run"),
            match series.shifts.len() {
                0 => "no change found".to_owned(),
                shifts => counted(shifts as u64, "change"),
            }
        );
        for part in pooled.iter() {
            let _ = writeln!(text, "  from run {} on, {}", part.from + 1, part.in_words());
        }
        let mut left_out = 0;
        for (at, (point, figure)) in series.points.iter().enumerate() {
            let shift = series.shifts.iter().find(|(shift, _)| shift.at == at);
            let is_before = series.shifts.iter().any(|(shift, _)| shift.at == at + 1);
            if shift.is_none() && !is_before && at + LAST < count {
                left_out += 1;
                continue;
            }
            if left_out > 0 {
                let _ = writeln!(text, "  … {}", counted(left_out, "run"));
                left_out = 0;
            }
            if let Some((shift, differences)) = shift {
                text.push_str(&shift_in_words(series.quantity, shift, differences));
            }
            let _ = writeln!(
                text,
                "  {} {} in {}{}: {}",
                archived(point),
                visible(&point.job),
                visible(&point.lab),
                labels(&point.labels),
                series.quantity.print(figure.value)
            );
        }
    }
    text
}

fn shift_in_words(quantity: Quantity, shift: &Shift, differences: &[Difference]) -> String {
    let mut text = format!("  --- {}\n", change(quantity, shift));
    for difference in differences {
        let _ = writeln!(
            text,
            "      {}: {} -> {}",
            visible(&difference.what),
            visible(&difference.base),
            visible(&difference.other)
        );
    }
    if differences.is_empty() {
        let _ = writeln!(text, "      {NOTHING_ELSE}");
    }
    text
}

/// Text for a change of a figure without any other recorded change.
pub(super) const NOTHING_ELSE: &str =
    "nothing that is recorded of lab, machine and program changed here";

/// The size of a figure's change, with the values before and after.
pub(super) fn change(quantity: Quantity, shift: &Shift) -> String {
    format!(
        "{} times ({} to {}): {} before, {} from here on",
        ratio(shift.ratio),
        ratio(shift.low),
        ratio(shift.high),
        quantity.print(shift.before),
        quantity.print(shift.after)
    )
}

pub(super) fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

pub(super) fn archived(point: &Point) -> String {
    utc(point.archived_at.saturating_mul(1_000_000_000))
}

fn in_json(cell: &str, all: &[WithPooled<'_>]) -> String {
    let series: Vec<Value> = all
        .iter()
        .map(|(series, pooled)| {
            let points: Vec<Value> = series
                .points
                .iter()
                .map(|(point, figure)| json!({ "job": point.job, "archived_utc": archived(point), "lab": point.lab, "labels": point.labels, "value": figure.value, "repeats": figure.repeats, "spread": figure.spread }))
                .collect();
            let shifts: Vec<Value> = series
                .shifts
                .iter()
                .map(|(shift, differences)| json!({ "shift": shift, "differences": differences }))
                .collect();
            json!({ "key": series.quantity.key(), "load_percent": series.load_percent, "points": points, "shifts": shifts, "pooled": pooled })
        })
        .collect();
    let course = json!({ "cell": cell, "series": series });
    format!("{}\n", visible_json(&course.to_string()))
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
