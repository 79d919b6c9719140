//! Finds cells that differ in one number only.
//!
//! A group's coordinates are all axes of the campaign, so cells of a series share all but one of
//! them. Workers and tunnels of a device are in its settings instead.

use super::point::ScalingAxis;
use plan::{Adapter, Axis, Cell, Measurement, Plan, Procedure, ScaledSetting, Value};

/// Cells in rising order of their number.
pub(super) struct Series<'a> {
    pub(super) axis: ScalingAxis,
    /// The group without the number.
    pub(super) common: String,
    key: Key<'a>,
    names: Vec<&'a str>,
    /// Numbers, and the cells' indices in the plan.
    pub(super) places: Vec<(u32, usize)>,
}

/// The settings that the devices of a series share.
#[derive(PartialEq)]
enum Key<'a> {
    /// One device.
    Dut(&'a str),
    /// All settings but one.
    Settings(Adapter),
}

/// All series of two numbers or more, in the plan's order.
pub(super) fn all(plan: &Plan) -> Vec<Series<'_>> {
    let mut found: Vec<Series<'_>> = Vec::new();
    for (place, cell) in plan.cells.iter().enumerate() {
        if cell.calibration || !is_at_its_most(cell) {
            continue;
        }
        for (axis, n, common, key) in memberships(cell) {
            let is_of = |series: &&mut Series<'_>| {
                (series.axis, &series.common, &series.key) == (axis, &common, &key)
                    && series.places.iter().all(|(known, _)| *known != n)
            };
            match found.iter_mut().find(is_of) {
                Some(series) => series.add(n, place, &cell.dut.name),
                None => found.push(Series {
                    axis,
                    common,
                    key,
                    names: vec![&cell.dut.name],
                    places: vec![(n, place)],
                }),
            }
        }
    }
    found.retain(|series| series.places.len() > 1);
    for series in &mut found {
        series.places.sort_unstable();
    }
    found
}

/// Whether a cell measures how much is carried, and not the outcome of a configured load.
fn is_at_its_most(cell: &Cell) -> bool {
    match &cell.measurement {
        Measurement::Tcp { .. } => true,
        Measurement::Udp { rate_bps, .. } => rate_bps.is_none(),
        Measurement::Frames(test) => match &test.procedure {
            Procedure::Throughput(_) => true,
            Procedure::Load(load) => load.frames_per_s.is_none(),
            _ => false,
        },
        _ => false,
    }
}

/// The axes of trials that can raise the figure; workers and tunnels of a DUT are in its settings.
const OF_TRIALS: [(ScalingAxis, Axis); 4] = [
    (ScalingAxis::Cores, Axis::Cores),
    (ScalingAxis::Streams, Axis::Streams),
    (ScalingAxis::Flows, Axis::Flows),
    (ScalingAxis::Tunnels, Axis::Tunnels),
];

type Membership<'a> = (ScalingAxis, u32, String, Key<'a>);

/// The series that a cell may belong to.
fn memberships(cell: &Cell) -> Vec<Membership<'_>> {
    let of_trial = |(scaled, axis): (ScalingAxis, Axis)| {
        let Value::Number(n) = cell.value(axis)? else {
            return None;
        };
        let n = u32::try_from(n).ok()?;
        let named = cell.is_named_by(axis);
        named.then(|| {
            (
                scaled,
                n,
                cell.group_without(axis),
                Key::Dut(&cell.dut.name),
            )
        })
    };
    let mut found: Vec<_> = OF_TRIALS.into_iter().filter_map(of_trial).collect();
    // Tools use one tunnel only.
    let spreads = matches!(cell.measurement, Measurement::Frames(_));
    for (setting, n, others) in cell.dut.adapter.scaled_settings() {
        let axis = match setting {
            ScaledSetting::Workers => ScalingAxis::Workers,
            ScaledSetting::Tunnels if spreads => ScalingAxis::Tunnels,
            ScaledSetting::Tunnels => continue,
        };
        found.push((axis, n.into(), cell.group.clone(), Key::Settings(others)));
    }
    found
}

impl<'a> Series<'a> {
    fn add(&mut self, n: u32, place: usize, name: &'a str) {
        self.places.push((n, place));
        self.names.push(name);
    }

    /// The common part of its devices' names; the first name without a common part.
    pub(super) fn dut(&self) -> String {
        let in_all = |word: &&str| {
            self.names
                .iter()
                .all(|name| name.split(' ').any(|w| w == *word))
        };
        let first = self.names.first().copied().unwrap_or_default();
        let words: Vec<&str> = first.split(' ').filter(in_all).collect();
        if words.is_empty() {
            first.to_owned()
        } else {
            words.join(" ")
        }
    }
}
