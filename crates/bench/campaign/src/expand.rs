//! Trials and DUTs to cells: axes multiply, and each cell gets an id with its coordinates.
//!
//! An id names the kind of trial, then the axes that always matter and the axes with several values
//! among the campaign's trials of that kind, then the DUT: `tcp/mtu=1500/cores=1/cipherbench`. So
//! adding a value to an axis that already has two changes no existing id.
//!
//! Each group of frame tests has a cell without a DUT, the calibration, unless the campaign
//! measures `straight` in it itself.

use crate::device;
use crate::dut::{Listed, names, slug};
use crate::frames;
use crate::grid::{CELLS_MAX, Grid};
use crate::ike;
use crate::impairment;
use crate::point::{FrameSettings, Point};
use crate::trial::{Kind, Trial};
use plan::{
    Adapter, Axis, Cell, Coordinate, Disturbed, Dut, Event, ImpairProfile, Measurement, Procedure,
    STRAIGHT, group_of,
};
use std::collections::{HashMap, HashSet};
use yaml::{Node, Place, Reported, Spanned};

/// A cell before its time is estimated, with the places of values that a lab or host may still
/// refuse.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) cell: Cell,
    pub(crate) trial: Place,
    pub(crate) dut: Place,
    places: Vec<(Axis, Place)>,
    /// `None` for a trial by a tool.
    pub(crate) frames: Option<FrameSettings>,
}

impl Draft {
    /// Returns the place of the value on an axis, or of the trial if it has none.
    pub(crate) fn place(&self, axis: Axis) -> &Place {
        let mut places = self.places.iter();
        let found = places.find(|(known, _)| *known == axis);
        found.map_or(&self.trial, |(_, place)| place)
    }
}

/// All cells, in the order of the campaign, the DUT varying fastest. Mistakes go to `node`, the
/// `trials`.
pub(crate) fn cells(
    node: Node<'_>,
    trials: &[Trial],
    duts: &[Listed],
    calibrate: bool,
    profiles: &[ImpairProfile],
) -> Result<Vec<Draft>, Reported> {
    let selected = select_all(node, trials, duts)?;
    let impaired = trials
        .iter()
        .map(|trial| impairment::select(node, &trial.impair, profiles));
    let impaired: Vec<_> = impaired.collect();
    let impaired: Vec<_> = impaired.into_iter().collect::<Result<_, _>>()?;
    let points = points(node, trials, &selected, &impaired)?;
    // Ids name the axes that vary among all trials of a kind, so the points of all trials must be
    // known before the first id.
    let varying = varying_axes(points.iter().map(|(point, _)| point));
    let mut owners: HashMap<String, &Place> = HashMap::new();
    let mut drafts = Vec::new();
    let mut result = Ok(());
    let mut repeated = HashSet::new();
    let mut reported: Vec<(&Place, String)> = Vec::new();
    // Trials that overlap usually do so in many cells, and a DUT that lacks a feature lacks it at
    // each point: each is reported once.
    for (point, selected) in &points {
        let coordinates = point.named(&varying);
        let group = group_of(&point.measurement, coordinates.iter());
        // Ids are unique in a plan: journals and comparisons find a cell by its id alone.
        if let Some(first) = owners.insert(group.clone(), point.trial)
            && repeated.insert(point.trial.path.clone())
        {
            let what = format!(
                "this trial measures `{group}`, which `{}` measures already",
                first.path
            );
            let help = "remove it there or here; to measure more often raise `repeats`";
            result = Err(node.mistake_at(point.trial, what, help));
        }
        for (place, what, help) in point.wrong_for(selected, duts) {
            if !reported.iter().any(|known| *known == (place, what.clone())) {
                reported.push((place, what.clone()));
                result = Err(node.mistake_at(place, what, help));
            }
        }
        // The calibration precedes the DUTs of its group, as its result limits theirs.
        let is_straight = |dut: &&Listed| dut.dut.adapter.is_straight();
        if calibrate && point.measurement.has_ceiling() && !selected.iter().any(is_straight) {
            drafts.push(point.calibration(&group, &coordinates));
        }
        let draft = |dut: &&Listed| point.draft(&group, &coordinates, dut);
        drafts.extend(selected.iter().map(draft));
    }
    result.map(|()| drafts)
}

/// The DUTs of each trial.
fn select_all<'d>(
    node: Node<'_>,
    trials: &[Trial],
    duts: &'d [Listed],
) -> Result<Vec<Vec<&'d Listed>>, Reported> {
    let selected: Vec<_> = trials
        .iter()
        .map(|trial| select(node, trial, duts))
        .collect();
    selected.into_iter().collect()
}

fn select<'d>(
    node: Node<'_>,
    trial: &Trial,
    duts: &'d [Listed],
) -> Result<Vec<&'d Listed>, Reported> {
    let Some(names) = &trial.duts else {
        return Ok(duts.iter().collect());
    };
    let is = |dut: &Listed, name: &str| dut.dut.name == name || dut.entry == name;
    let mut result = Ok(());
    for name in names {
        if !duts.iter().any(|dut| is(dut, &name.value)) {
            let what = format!("no DUT of this campaign is named `{}`", name.value);
            let known: Vec<_> = duts.iter().map(|dut| dut.dut.name.as_str()).collect();
            let help = format!("its DUTs are {}", known.join(", "));
            result = Err(node.mistake_at(&name.place, what, help));
        }
    }
    // In the order of the campaign, not of the trial's list; a DUT that both its name and the
    // name of its entry select is measured once.
    let selected = duts
        .iter()
        .filter(|dut| names.iter().any(|name| is(dut, &name.value)));
    result.map(|()| selected.collect())
}

/// The points of all trials with their DUTs.
fn points<'a, 'd>(
    node: Node<'_>,
    trials: &'a [Trial],
    selected: &'a [Vec<&'d Listed>],
    impaired: &'a [Vec<Spanned<&'a ImpairProfile>>],
) -> Result<Vec<(Point<'a>, &'a Vec<&'d Listed>)>, Reported> {
    let mut points = Vec::new();
    let mut count = 0_usize;
    for ((trial, duts), profiles) in trials.iter().zip(selected).zip(impaired) {
        let mut own = trial.points();
        if !profiles.is_empty() {
            own = own.over(Axis::Impair, profiles, |point, profile| {
                point.impair = Some(profile)
            });
        }
        // At most one cell for each point is added. Cells are counted before any is made: lists
        // of a few kilobytes can multiply to more than memory holds.
        let calibration = usize::from(matches!(trial.kind, Kind::Frames(_)));
        count = count.saturating_add(own.count().saturating_mul(duts.len() + calibration));
        if count > CELLS_MAX {
            let what = format!("with this trial the campaign has {count} cells");
            let help = format!("at most {CELLS_MAX} are possible: shorten a list");
            return Err(node.mistake_at(&trial.place, what, help));
        }
        // The coordinates of the grid are complete only now, after the last axis.
        let own = own.into_points().into_iter();
        points.extend(own.map(|(point, at)| (Point { at, ..point }.settle(duts), duts)));
    }
    Ok(points)
}

/// Axes by kind that have more than one value in the campaign.
fn varying_axes<'p>(points: impl Iterator<Item = &'p Point<'p>>) -> HashSet<(&'static str, Axis)> {
    let mut first = HashMap::new();
    let mut varying = HashSet::new();
    for point in points {
        // By kind of trial: `mtu` may vary in `tcp` and have one value in `udp`.
        for (coordinate, _) in &point.at {
            let key = (point.measurement.name(), coordinate.axis);
            if *first.entry(key).or_insert(&coordinate.value) != &coordinate.value {
                varying.insert(key);
            }
        }
    }
    varying
}

impl Point<'_> {
    /// Returns the point with the values that are chosen for all DUTs of its trial.
    fn settle(mut self, duts: &[&Listed]) -> Self {
        if let (Measurement::Frames(test), Some(given)) = (&mut self.measurement, &self.frames) {
            let chosen = || frames::contents_for(&test.traffic, given, duts);
            // Chosen for all DUTs of the trial together: cells of one group are compared, and
            // must have the same traffic.
            test.traffic.frames.contents = given.contents.unwrap_or_else(chosen);
            self.suite = frames::sealed_by_all(&test.traffic, duts);
        }
        self
    }

    /// The coordinates that ids have.
    fn named(&self, varying: &HashSet<(&'static str, Axis)>) -> Vec<Coordinate> {
        let kind = self.measurement.name();
        let is_named =
            |axis: Axis| axis.is_always_named(&self.measurement) || varying.contains(&(kind, axis));
        let at = self.at.iter().map(|(coordinate, _)| coordinate);
        at.filter(|at| is_named(at.axis)).cloned().collect()
    }

    /// Features of this point that a DUT does not support: the place, the mistake and the help.
    fn wrong_for(&self, duts: &[&Listed], all: &[Listed]) -> Vec<(&Place, String, String)> {
        match (&self.measurement, &self.frames) {
            (Measurement::Frames(test), Some(given)) => {
                frames::for_duts(test, self, given, duts, all)
            }
            (Measurement::Device(test), _) => {
                let wrong = device::wrong_for(test, duts);
                let wrong = wrong.map(|(what, help)| (self.trial, what, help.to_owned()));
                wrong.into_iter().collect()
            }
            (Measurement::Ike(_), _) => {
                let wrong = ike::without_peers(duts, all);
                let wrong = wrong.map(|(what, help)| (self.trial, what, help));
                wrong.into_iter().collect()
            }
            // Tools are the only other kind.
            _ => self.no_path(duts, all).into_iter().collect(),
        }
    }

    /// Tools need a path from station A's kernel to B's.
    fn no_path(&self, duts: &[&Listed], all: &[Listed]) -> Option<(&Place, String, String)> {
        let wrong: Vec<_> = duts
            .iter()
            .copied()
            .filter(|dut| !dut.dut.adapter.profile().joins_stations())
            .collect();
        if wrong.is_empty() {
            return None;
        }
        let what = format!(
            "`{}` cannot be measured of {}",
            self.measurement.name(),
            names(&wrong)
        );
        let others = all
            .iter()
            .filter(|dut| dut.dut.adapter.profile().joins_stations());
        let others: Vec<_> = others.map(|dut| dut.dut.name.as_str()).collect();
        // Without another DUT the trial itself must be another one.
        let mut help = "frame tests alone are made without one of the gateways".to_owned();
        if !others.is_empty() {
            help.push_str(&format!("; write `duts: [{}]`", others.join(", ")));
        }
        Some((self.trial, what, help))
    }

    fn draft(&self, group: &str, coordinates: &[Coordinate], dut: &Listed) -> Draft {
        let places = self.at.iter();
        Draft {
            cell: self.cell(group, coordinates, &dut.dut),
            trial: self.trial.clone(),
            dut: dut.place.clone(),
            places: places
                .map(|(coordinate, place)| (coordinate.axis, (*place).clone()))
                .collect(),
            frames: self.frames.clone(),
        }
    }

    /// The same without a DUT.
    fn calibration(&self, group: &str, coordinates: &[Coordinate]) -> Draft {
        let straight = Listed {
            dut: Dut::new(STRAIGHT, Adapter::STRAIGHT),
            entry: STRAIGHT.to_owned(),
            place: self.trial.clone(),
        };
        let mut draft = self.draft(group, coordinates, &straight);
        draft.cell.calibration = true;
        draft
    }

    /// The measurement, with the traffic spread over all tunnels of the DUT unless configured
    /// otherwise.
    fn measurement_of(&self, dut: &Dut) -> Measurement {
        let mut measurement = self.measurement.clone();
        if let (Measurement::Frames(test), Some(given)) = (&mut measurement, &self.frames) {
            let traffic = &mut test.traffic;
            let profile = || dut.adapter.profile().tunnels;
            traffic.frames.tunnels = given.tunnels.unwrap_or_else(profile);
            let cores = self.stations.map_or(1, |stations| stations.cores);
            // After the tunnels: each of them gets the same number of flows.
            let enough = || frames::flows_for(traffic.frames.tunnels, cores);
            traffic.frames.flows = given.flows.unwrap_or_else(enough);
        }
        measurement
    }

    /// The DUT as this point needs it: a fault must be prepared, and stations without a device
    /// calibrate the suite of the others.
    fn dut_for(&self, dut: &Dut) -> Dut {
        let mut dut = dut.clone();
        if let Measurement::Frames(test) = &self.measurement
            && let Procedure::Disturbed(Disturbed {
                event: Event::Desync { cause, .. },
                ..
            }) = &test.procedure
            && let Adapter::Cipherbench(encryptor) = &mut dut.adapter
        {
            // The encryptor has a fault only with `insecure: true`, so cells that inject none
            // must not have it.
            encryptor.fault = Some(*cause);
        }
        if let (Adapter::Straight { suite }, Some(sealed)) = (&mut dut.adapter, self.suite) {
            *suite = sealed;
        }
        dut
    }

    fn cell(&self, group: &str, coordinates: &[Coordinate], dut: &Dut) -> Cell {
        Cell {
            id: format!("{group}/{}", slug(&dut.name)),
            group: group.to_owned(),
            coordinates: coordinates.to_vec(),
            dut: self.dut_for(dut),
            stations: self.stations,
            measurement: self.measurement_of(dut),
            // A profile in the group's id does not apply to frames that do not cross the element:
            // calibration and boxes outside of the lab.
            impair: self
                .impair
                .filter(|_| dut.adapter.crosses_elements())
                .cloned(),
            tune: self.tune,
            estimate_ns: 0,
            calibration: false,
        }
    }
}

impl Trial {
    /// Its points; the first axis of an id varies slowest.
    fn points(&self) -> Grid<'_, Point<'_>> {
        match &self.kind {
            Kind::Tool(trial) => trial.points(&self.place),
            Kind::Frames(trial) => trial.points(&self.place),
            Kind::Device(trial) => trial.points(&self.place),
        }
    }
}
