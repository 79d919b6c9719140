//! Compares mixes of frame sizes with the sizes of the same table.

use super::sizes::{Frames, frames};
use crate::document::{Axis, Cell, Mix, Table};
use crate::finding::{Finding, Rule};
use crate::interval::Interval;
use units::human::{frame_rate, number};

/// A mix may be faster than its sizes by this share: each rate is the end of a search.
const ABOVE_MIN: f64 = 0.05;
/// It may be slower than its slowest size by this share: frames of several sizes come in bursts.
const BELOW_MIN: f64 = 0.10;
/// The fewest sizes to compare a mix with.
const SIZES_MIN: usize = 2;

/// Rates of mixes that the rates of their sizes exclude: in the same row, or in the same column of
/// a table with sizes as rows. A frame takes the time that the table shows for its size; between
/// two sizes, a time between theirs.
pub(super) fn differing(table: &Table) -> Vec<Finding> {
    match table.axis {
        Axis::Frame => {
            let rows = table.rows.iter();
            rows.flat_map(|row| compared(table.cells_of(row))).collect()
        }
        Axis::Rates => {
            let columns = table.columns.iter();
            // The bit rates of a row follow from its frame rate.
            let of_frames = columns.filter(|column| column.layer.is_none());
            let of = |column| {
                table
                    .cells()
                    .filter(move |cell| std::ptr::eq(cell.column, column))
            };
            of_frames.flat_map(|column| compared(of(column))).collect()
        }
        Axis::Devices => {
            let courses = table.courses().into_iter();
            courses
                .flat_map(|it| compared(it.cells.into_iter()))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn compared<'a>(cells: impl Iterator<Item = Cell<'a>>) -> Vec<Finding> {
    // A rate of zero has no time per frame.
    let (mixes, mut sizes): (Vec<Frames<'_>>, Vec<Frames<'_>>) = cells
        .filter_map(frames)
        .filter(|it| it.cell.frame_bytes().is_some() && it.rate.low > 0.0)
        .partition(|it| it.cell.mix().is_some());
    sizes.sort_by(|a, b| bytes(a).total_cmp(&bytes(b)));
    if sizes.len() < SIZES_MIN {
        return Vec::new();
    }
    mixes
        .iter()
        .filter_map(|mix| finding(mix, &sizes))
        .collect()
}

fn bytes(frames: &Frames<'_>) -> f64 {
    frames.cell.frame_bytes().unwrap_or(0.0)
}

fn finding(found: &Frames<'_>, sizes: &[Frames<'_>]) -> Option<Finding> {
    let mix = found.cell.mix()?;
    let times = times(mix, sizes)?;
    // The mix is at most as fast as if each frame took its shortest possible time, and at least as
    // fast as if all frames were of the slowest size.
    let mean: f64 = times.iter().map(|(share, time)| share * time.low).sum();
    let longest = times.iter().map(|(_, time)| time.high).fold(0.0, f64::max);
    let most = 1.0 / mean;
    let least = 1.0 / longest;
    let shown = format!(
        "{} is {} of {} B on average",
        found.cell.shown(),
        frame_rate(found.rate.middle()),
        number(mix.mean_bytes)
    );
    let (arithmetic, meaning) = if found.rate.low > most * (1.0 + ABOVE_MIN) {
        (
            format!(
                "{shown}; by the rates of {}, frames of the mix take {} µs or more on average: {} at most",
                shown_sizes(sizes),
                number(mean * 1e6),
                frame_rate(most)
            ),
            "the mix is faster than its sizes allow: another mix, another layer, or the rate of both directions",
        )
    } else if found.rate.high < least / (1.0 + BELOW_MIN) {
        (
            format!(
                "{shown}; no size of the mix is slower than {} in the rates of {}",
                frame_rate(least),
                shown_sizes(sizes)
            ),
            "the mix is slower than each of its sizes: another mix or layer, or a slip",
        )
    } else {
        return None;
    };
    Some(Finding {
        rule: Rule::MixDiffers,
        likeness: None,
        place: found.cell.figure.place.clone(),
        subject: found.cell.name(),
        arithmetic,
        meaning: meaning.to_owned(),
    })
}

fn shown_sizes(sizes: &[Frames<'_>]) -> String {
    let names = sizes.iter().map(|it| number(bytes(it)));
    format!("{} B", names.collect::<Vec<_>>().join(", "))
}

/// Returns the time of one frame of each size of the mix in seconds, with the size's share of all
/// frames; `None` if the mix states no sizes.
fn times(mix: &Mix, sizes: &[Frames<'_>]) -> Option<Vec<(f64, Interval)>> {
    let time = |frames: &Frames<'_>| Interval {
        low: 1.0 / frames.rate.high,
        high: 1.0 / frames.rate.low,
    };
    let of = |(share, size): &(f64, f64)| {
        // A frame takes no less time than a shorter one and no more than a longer one. Beyond the
        // sizes of the table nothing bounds it.
        let shorter = sizes.iter().rfind(|it| bytes(it) <= *size);
        let longer = sizes.iter().find(|it| bytes(it) >= *size);
        let time = Interval {
            low: shorter.map_or(0.0, |it| time(it).low),
            high: longer.map_or(f64::INFINITY, |it| time(it).high),
        };
        (*share, time)
    };
    let times: Vec<(f64, Interval)> = mix.shares.iter().map(of).collect();
    (!times.is_empty()).then_some(times)
}
