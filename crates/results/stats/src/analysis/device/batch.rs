//! Statistics of a batch: all devices of one fatigue trial.

use crate::cell::CellResult;
use crate::figures::device::{FatigueDevice, Life, Survival};
use crate::figures::series::Series;
use schemars::JsonSchema;
use serde::Serialize;

const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
const HOUR_NS: u64 = 60 * MINUTE_NS;
/// Bounds of the classes of times without failure. From 3 hours on, they are the classes of the
/// source report of the crypto cards (3–6, 15–18, 40–90, over 400 hours) and the gaps between them.
/// Below, the report has no classes, and each one here is a few times longer than the previous.
pub const REPORT_CLASSES_NS: [u64; 12] = [
    SECOND_NS,
    10 * SECOND_NS,
    MINUTE_NS,
    10 * MINUTE_NS,
    HOUR_NS,
    3 * HOUR_NS,
    6 * HOUR_NS,
    15 * HOUR_NS,
    18 * HOUR_NS,
    40 * HOUR_NS,
    90 * HOUR_NS,
    400 * HOUR_NS,
];

/// All devices of one fatigue trial, across DUTs with the same trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FatigueBatch {
    /// The group of the cells.
    pub group: String,
    /// Ids of the cells.
    pub cells: Vec<String>,
    /// Times to the first failure of all of them.
    pub survival: Survival,
    /// Devices by time without failure: the non-empty classes, and those between.
    pub classes: Vec<FatigueClass>,
}

/// Devices with a time without failure in one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct FatigueClass {
    /// Least time, included.
    pub from_ns: u64,
    /// Most time, excluded; `null` for the last class.
    pub to_ns: Option<u64>,
    /// Devices in it.
    pub devices: u32,
    /// Of those, ended by a failure.
    pub failed: u32,
    /// Of all devices.
    pub ratio: f64,
}

/// The devices of each group of fatigue trials together, in the plan's order.
pub(crate) fn batches(cells: &[CellResult]) -> Vec<FatigueBatch> {
    let groups = Series::all(cells.iter().filter_map(|cell| {
        let devices = &cell.device()?.fatigue()?.devices;
        Some((cell.group.as_str(), (cell, devices)))
    }));
    let batch = |group: Series<&str, (&CellResult, &Vec<FatigueDevice>)>| {
        let devices = group.members.iter().flat_map(|(_, devices)| *devices);
        let lives: Vec<Life> = devices.map(FatigueDevice::life).collect();
        Some(FatigueBatch {
            group: group.key.to_owned(),
            cells: group
                .members
                .iter()
                .map(|(cell, _)| cell.id.clone())
                .collect(),
            classes: classes(&lives),
            survival: Survival::of(lives)?,
        })
    };
    groups.into_iter().filter_map(batch).collect()
}

/// Classes of times, without the empty ones at both ends.
fn classes(lives: &[Life]) -> Vec<FatigueClass> {
    // Each bound ends one class and begins the next; the first begins at 0, and the last has no
    // end.
    let starts = [0].into_iter().chain(REPORT_CLASSES_NS);
    let ends = REPORT_CLASSES_NS.into_iter().map(Some).chain([None]);
    let mut classes: Vec<FatigueClass> = starts
        .zip(ends)
        .map(|(from_ns, to_ns)| {
            let is_in =
                |life: &&Life| life.ns >= from_ns && to_ns.is_none_or(|to_ns| life.ns < to_ns);
            let own = || lives.iter().filter(is_in);
            let count = |found: usize| u32::try_from(found).unwrap_or(u32::MAX);
            FatigueClass {
                from_ns,
                to_ns,
                devices: count(own().count()),
                failed: count(own().filter(|life| life.failed).count()),
                ratio: own().count() as f64 / lives.len().max(1) as f64,
            }
        })
        .collect();
    // Empty classes between others stay: they show the gaps of the batch.
    while classes.last().is_some_and(|class| class.devices == 0) {
        classes.pop();
    }
    let empty = classes.iter().take_while(|class| class.devices == 0);
    classes.split_off(empty.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(ns: u64) -> Life {
        Life { ns, failed: false }
    }

    /// The source report's batch: 200 cards, 57 % of them 3 to 6 hours, 27 % 15 to 18, 15 % 40 to
    /// 90, 1 % over 400.
    #[test]
    fn the_source_reports_batch_falls_in_its_own_classes() {
        let hours = |hours: u64, cards: usize| vec![life(hours * HOUR_NS); cards];
        let cards = [hours(4, 114), hours(16, 54), hours(60, 30), hours(420, 2)].concat();
        let found = classes(&cards);
        let classes: Vec<(u64, u32)> = found
            .iter()
            .filter(|class| class.devices > 0)
            .map(|class| (class.from_ns / HOUR_NS, class.devices))
            .collect();
        assert_eq!(classes, [(3, 114), (15, 54), (40, 30), (400, 2)]);
        assert!((found[0].ratio - 0.57).abs() < 1e-9);
        assert_eq!(found.last().unwrap().to_ns, None);
    }

    #[test]
    fn each_life_is_in_one_class_and_bounds_belong_above() {
        let times = [0, 1, SECOND_NS, 3 * HOUR_NS, 400 * HOUR_NS, u64::MAX];
        let lives = times.map(life);
        let found = classes(&lives);
        assert_eq!(found.iter().map(|class| class.devices).sum::<u32>(), 6);
        assert_eq!((found[0].devices, found[1].devices), (2, 1));
        let last = found.last().unwrap();
        assert_eq!((last.from_ns, last.devices), (400 * HOUR_NS, 2));
        assert_eq!(classes(&[]), []);
        assert_eq!(classes(&[life(5 * SECOND_NS)]).len(), 1);
    }
}
