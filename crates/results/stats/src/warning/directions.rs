//! The warning about two loaded directions that differ.

use super::{Warning, WarningKind, about};
use crate::analysis::significance::{Level, p_differ};
use crate::cell::CellResult;
use crate::figures::frames::DirectionLoss;

/// Minimum distance of two counts of lost frames that is no chance, in standard deviations of
/// counting: repeats that lost a frame or two each may agree by chance.
const COUNTING_DEVIATIONS: u128 = 3;

/// Of two loaded directions, one surely lost more than the other.
pub(super) fn directions_apart(cells: &[CellResult]) -> Option<Warning> {
    let p_values = cells.iter().filter_map(|cell| p_apart(both(cell)?));
    let level = Level::of(p_values);
    let is_apart = |cell: &&CellResult| {
        both(cell)
            // Both tests must agree. Repeats that lost one frame and two each differ surely by
            // Student's t, and yet by chance as counts.
            .filter(|both| differ_in_counts(both))
            .and_then(p_apart)
            .is_some_and(|p| level.allows(p))
    };
    let distance = |cell: &CellResult| {
        both(cell).map_or(0.0, |[there, back]| {
            (there.lost_ppm.mean - back.lost_ppm.mean).abs()
        })
    };
    about(
        WarningKind::DirectionsApart,
        cells.iter().filter(is_apart),
        |cells, count| {
            let of = |cell: &&&CellResult| distance(cell);
            let worst = cells.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
            let worst = worst.and_then(|cell| Some((cell, both(cell)?)));
            let worst = worst.map_or_else(String::new, |(cell, both)| {
                let lost = both.each_ref().map(|one| {
                    let (sent, lost) = (one.account.sent(), one.account.lost);
                    let name = one.direction.name();
                    format!("{lost} of {sent} frames from {name}")
                });
                format!("; most in `{}`: {}", cell.id, lost.join(", "))
            });
            format!("In {count} one direction lost more frames than the other{worst}.")
        },
        "A search holds the worse direction to its goal. Look at parts that only one direction uses: \
         the gateways' outbound and inbound SAs, their cores, queues and counters.",
    )
}

/// Both directions of a cell that loads both.
fn both(cell: &CellResult) -> Option<&[DirectionLoss; 2]> {
    cell.frames()?.directions.as_slice().try_into().ok()
}

/// The p-value of the finding that their loss differs; `None` for a single repeat.
fn p_apart([there, back]: &[DirectionLoss; 2]) -> Option<f64> {
    p_differ(&there.lost_ppm, &back.lost_ppm)
}

/// Whether the numbers of lost frames differ by more than chance, of frames lost independently.
fn differ_in_counts([there, back]: &[DirectionLoss; 2]) -> bool {
    let (there, back) = (there.account.lost, back.account.lost);
    let distance = u128::from(there.abs_diff(back));
    let variance = u128::from(there) + u128::from(back);
    // Independent losses follow Poisson, so the variance of a difference is the sum of both counts.
    variance > 0 && distance * distance >= COUNTING_DEVIATIONS.pow(2) * variance
}
