//! The course of a cell, in words or as JSON.

use crate::course::{LAST, NOTHING_ELSE, Series, archived, change, series};
use crate::error::ViewError;
use crate::text::{labels, visible_json};
use compare::{Difference, Shift};
use fleet::{Fleet, FleetError};
use guard::{escaped, unescaped, visible};
use serde_json::{Value, json};
use stats::Quantity;
use std::fmt::Write;
use units::human::counted;

/// Lists the cells of the archive, one on a line.
///
/// # Errors
/// When the server cannot be asked.
pub async fn cells(fleet: &Fleet) -> Result<String, FleetError> {
    let cells = fleet.cells().await?;
    let lines = cells.iter().map(|cell| format!("{}\n", escaped(cell)));
    Ok(lines.collect())
}

/// Describes the figures of a cell in all runs, in words or as JSON; the cell is named as
/// [`cells`] lists it.
///
/// # Errors
/// When no run has the cell, and when the server cannot be asked.
pub async fn history(fleet: &Fleet, cell: &str, as_json: bool) -> Result<String, ViewError> {
    let cell = &*unescaped(cell);
    let points = fleet.history(cell).await?;
    if points.is_empty() {
        return Err(ViewError::UnknownCell(escaped(cell).into_owned()));
    }
    let all = series(fleet, cell, &points).await?;
    Ok(if as_json {
        in_json(cell, &all)
    } else {
        in_words(cell, &all)
    })
}

fn in_words(cell: &str, all: &[Series<'_>]) -> String {
    let mut text = format!("{}\n", escaped(cell));
    for series in all {
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
        for part in &series.pooled {
            let _ = writeln!(text, "  from run {} on, {}", part.from + 1, part.in_words());
        }
        let mut left_out = 0;
        for (at, (point, figure)) in series.points.iter().enumerate() {
            let shift = series.shifts.iter().find(|(shift, _)| shift.at == at);
            // Printed are the last runs and the two next to each change; the others are only
            // counted.
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

fn in_json(cell: &str, all: &[Series<'_>]) -> String {
    let series: Vec<Value> = all
        .iter()
        .map(|series| {
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
            json!({ "key": series.quantity.key(), "load_percent": series.load_percent, "points": points, "shifts": shifts, "pooled": series.pooled })
        })
        .collect();
    let course = json!({ "cell": cell, "series": series });
    format!("{}\n", visible_json(&course.to_string()))
}
