//! Overhead, ceiling and ranks of a trial's cell, repeated in each of its rows.

use crate::kit::column::{Context, Declared, Standings, text};
use stats::{Ceiling, CeilingBasis, Overhead, Ranking, Standing};
use std::collections::BTreeMap;

/// Ranks, by the id of the cell.
pub(crate) fn standings(rankings: &[Ranking]) -> BTreeMap<&str, Standings<'_>> {
    let mut found: BTreeMap<&str, Standings<'_>> = BTreeMap::new();
    for ranking in rankings {
        for standing in ranking.places.iter().chain(&ranking.references) {
            let own = found.entry(&standing.cell).or_default();
            if ranking.by.is_efficiency() {
                own.efficiency = Some(standing)
            } else {
                own.main = Some(standing)
            }
        }
    }
    found
}

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "overhead_bytes",
        "bytes that the device's suite adds to a packet of the cell, on average",
        |row| text(overhead(row)?.overhead_bytes),
    ),
    (
        "overhead_percent",
        "the same, in per cent of the packet in clear",
        |row| number(overhead(row)?.overhead_percent, 3),
    ),
    (
        "ceiling_basis",
        "source of the ceiling: line-rate, or baseline if links have no rate",
        |row| {
            text(match ceiling(row)?.basis {
                CeilingBasis::LineRate => "line-rate",
                CeilingBasis::Baseline => "baseline",
            })
        },
    ),
    (
        "ceiling_payload_bps",
        "payload that the path could carry in packets of this size",
        |row| number(ceiling(row)?.payload_bps?, 0),
    ),
    (
        "ceiling_frames_per_s",
        "frames of one direction that the path could carry",
        |row| number(ceiling(row)?.frames_per_s?, 0),
    ),
    (
        "ceiling_reached",
        "the cell's figure divided by its ceiling",
        |row| number(ceiling(row)?.reached?, 4),
    ),
    (
        "rank",
        "the cell's best rank in its group: 1 plus the number of devices that are significantly better",
        |row| text(main(row)?.rank?.first),
    ),
    ("rank_last", "its worst possible rank", |row| {
        text(main(row)?.rank?.last)
    }),
    (
        "ratio_to_best",
        "ratio to the best device of its group: geometric mean of the ratios within the same repeats",
        |row| number(main(row)?.ratio_to_best?, 4),
    ),
    (
        "ratio_to_best_low",
        "lower end of its interval, at the level of the ranking",
        |row| number(main(row)?.ratio_to_best_low?, 4),
    ),
    ("ratio_to_best_high", "upper end", |row| {
        number(main(row)?.ratio_to_best_high?, 4)
    }),
    (
        "efficiency_rank",
        "rank by bits per CPU-second of the whole machine",
        |row| text(row.standings.efficiency?.rank?.first),
    ),
    (
        "efficiency_rank_last",
        "its worst possible rank by that measure",
        |row| text(row.standings.efficiency?.rank?.last),
    ),
];

fn overhead<'a>(row: &Context<'a>) -> Option<&'a Overhead> {
    row.cell.overhead.as_ref()
}

fn ceiling<'a>(row: &Context<'a>) -> Option<&'a Ceiling> {
    row.cell.ceiling.as_ref()
}

fn main<'a>(row: &Context<'a>) -> Option<&'a Standing> {
    row.standings.main
}

fn number(value: f64, decimals: usize) -> Option<String> {
    Some(format!("{value:.decimals$}"))
}
