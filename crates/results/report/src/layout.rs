//! Groups cells into tables and charts.
//!
//! A [`Set`] holds the cells of one protocol that differ only in DUT, MTU, cores and datagram size.
//! Within a set, a [`Point`] is one combination of these settings, with a result for each DUT: the
//! rows of a table, the groups of a chart. Frame tests have separate sets ([`frames`]).

pub(crate) mod device;
pub(crate) mod disturbed;
pub(crate) mod evidence;
pub(crate) mod frames;
pub(crate) mod groups;
mod names;
mod words;

pub(crate) use names::{marked, shown};

use crate::order::sorted;
use journal::Journal;
use journal::record::TrialRecord;
use names::noted;
use plan::{Axis, Cell, Coordinate, Dscp, Dut, Measurement, Overlay, Plan, Role, Stations};
use stats::{CellResult, Comparison, Metric, Results, Series};
use std::collections::BTreeMap;

/// A journal and its results: the input of every document.
pub(crate) struct Run<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) results: Results,
    /// The final record of each trial, by cell and repeat.
    trials: BTreeMap<(&'a str, u32), &'a TrialRecord>,
    /// Indices into `results.cells` by id, as a plan can have thousands of cells.
    cells: BTreeMap<&'a str, usize>,
    /// Indices into `results.comparisons`, by the DUT's cell.
    comparisons: BTreeMap<String, Vec<usize>>,
    /// Chart styles by DUT.
    styles: BTreeMap<String, usize>,
    /// DUTs by their printed name.
    duts: BTreeMap<String, &'a Dut>,
}

/// Cells that differ only in DUT, MTU, cores and datagram size.
pub(crate) struct Set<'a> {
    /// The protocol measured.
    pub(crate) protocol: Protocol,
    /// Common settings of all cells, in words: `4 streams, offloads on, 3 × 2 s`.
    pub(crate) common: String,
    /// Combinations in the plan's order.
    pub(crate) points: Vec<Point<'a>>,
    /// Names of the DUTs in the plan's order, baselines first.
    pub(crate) duts: Vec<&'a str>,
    /// Name of the baseline, if any.
    pub(crate) baseline: Option<&'a str>,
    /// Settings that vary over all sets of the protocol, which tables name.
    pub(crate) varies: Varies,
    key: Key,
}

/// A cell in a set.
type Member<'a> = (Protocol, &'a Cell, Stations, &'a CellResult);

/// Settings that vary within some set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Varies {
    pub(crate) payload: bool,
    pub(crate) mtu: bool,
    pub(crate) cores: bool,
}

impl Varies {
    fn over<'s, 'a: 's>(sets: impl Iterator<Item = &'s Set<'a>>) -> Self {
        let mut points = sets.flat_map(|set| &set.points);
        let Some(first) = points.next() else {
            return Self::default();
        };
        points.fold(Self::default(), |found, point| Self {
            payload: found.payload || point.payload != first.payload,
            mtu: found.mtu || point.mtu != first.mtu,
            cores: found.cores || point.cores != first.cores,
        })
    }
}

/// The protocol of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
    Ping,
}

impl Protocol {
    /// Returns the protocol; `None` for trials outside of sets.
    const fn of(measurement: &Measurement) -> Option<Self> {
        match measurement {
            Measurement::Tcp { .. } => Some(Self::Tcp),
            Measurement::Udp { .. } => Some(Self::Udp),
            Measurement::Ping { .. } => Some(Self::Ping),
            _ => None,
        }
    }

    /// Returns the name for readers.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Ping => "ping",
        }
    }
}

/// One combination of MTU, cores and datagram size.
pub(crate) struct Point<'a> {
    pub(crate) mtu: u16,
    pub(crate) cores: u16,
    /// UDP or ICMP payload in bytes; `None` for TCP, or if unknown before the first trial.
    pub(crate) payload: Option<u32>,
    /// The cells, one per DUT, baselines first.
    pub(crate) cells: Vec<&'a CellResult>,
}

impl<'a> Run<'a> {
    pub(crate) fn of(journal: &'a Journal) -> Self {
        Self::with(journal, Results::of(journal))
    }

    /// Lays out existing results.
    pub(crate) fn with(journal: &'a Journal, mut results: Results) -> Self {
        let plan = &journal.header.plan;
        // Names are marked first, as the maps below have the printed ones as keys.
        names::mark(plan, &mut results);
        let ids = plan.cells.iter().map(|cell| cell.id.as_str());
        let mut comparisons: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (place, found) in results.comparisons.iter().enumerate() {
            comparisons
                .entry(found.cell.clone())
                .or_default()
                .push(place);
        }
        Self {
            journal,
            trials: journal.latest_trials(),
            // Results are in the plan's order, so one index serves both.
            cells: ids.enumerate().map(|(place, id)| (id, place)).collect(),
            comparisons,
            styles: styles(plan),
            duts: duts(plan),
            results,
        }
    }

    /// Returns the result of a cell.
    pub(crate) fn cell(&self, id: &str) -> Option<&CellResult> {
        self.results.cells.get(*self.cells.get(id)?)
    }

    /// Returns the planned cell of a result.
    pub(crate) fn planned(&self, cell: &CellResult) -> Option<&'a Cell> {
        let place = *self.cells.get(cell.id.as_str())?;
        self.plan().cells.get(place)
    }

    /// Returns the DUT with this printed name.
    pub(crate) fn device(&self, dut: &str) -> Option<&'a Dut> {
        self.duts.get(dut).copied()
    }

    /// Returns a device's name; for a control, with its purpose.
    pub(crate) fn label(&self, dut: &str) -> String {
        let found = self.device(dut);
        match found.and_then(|found| stats::Control::of(&found.adapter)) {
            Some(control) => noted(dut, control.name()),
            None => dut.to_owned(),
        }
    }

    /// Returns the comparison of a DUT's cell with its baseline.
    pub(crate) fn comparison(&self, cell: &CellResult, metric: Metric) -> Option<&Comparison> {
        let places = self.comparisons.get(&cell.id)?.iter();
        let found = places.filter_map(|place| self.results.comparisons.get(*place));
        found.into_iter().find(|found| found.metric == metric)
    }

    /// Returns the DUT's chart style: grey for baselines and calibration, others count from 1.
    pub(crate) fn color(&self, dut: &str) -> usize {
        self.styles.get(dut).copied().unwrap_or(0)
    }

    /// How to read the whiskers of a chart; they need several repeats.
    pub(crate) fn whiskers(&self) -> &'static str {
        let has_several = |cell: &CellResult| cell.repeats.planned > 1;
        if self.results.cells.iter().any(has_several) {
            "Whiskers: the smallest and the largest repeat."
        } else {
            "One repeat, so that nothing shows the scatter."
        }
    }

    /// Returns the final records of a cell, by repeat.
    pub(crate) fn trials(&self, cell: &CellResult) -> impl Iterator<Item = &'a TrialRecord> {
        let of = |repeat| self.trials.get(&(cell.id.as_str(), repeat)).copied();
        (1..=cell.repeats.planned).filter_map(of)
    }

    /// Whether this is the last record of its trial.
    pub(crate) fn counts(&self, trial: &TrialRecord) -> bool {
        let latest = self.trials.get(&(trial.cell.as_str(), trial.repeat));
        // By address, as an earlier record may have the same content.
        latest.is_some_and(|latest| std::ptr::eq(*latest, trial))
    }

    pub(crate) fn plan(&self) -> &'a Plan {
        &self.journal.header.plan
    }

    /// Returns the title of the run: the campaign's title, or its name if it has none.
    pub(crate) fn title(&self) -> &'a str {
        let plan = self.plan();
        if plan.title.is_empty() {
            &plan.name
        } else {
            &plan.title
        }
    }

    /// Returns the sets in the plan's order, without frame tests and crypto devices.
    pub(crate) fn sets(&self) -> Vec<Set<'_>> {
        let plan = self.plan();
        let cells = plan.cells.iter().zip(&self.results.cells);
        // Cells beyond the machine's means take one line of the summary, no tables or charts.
        let shown = cells.filter(|(_, result)| !result.is_skipped());
        let series = Series::all(shown.filter_map(|(cell, result)| {
            let member = (
                Protocol::of(&cell.measurement)?,
                cell,
                cell.stations?,
                result,
            );
            Some((Key::of(cell), member))
        }));
        let sets = series.into_iter();
        let sets = sets.filter_map(|series| Set::of(series, plan.repeats));
        let mut sets: Vec<Set<'_>> = sets.collect();
        // The words of a set depend on all others, so none changes before all are known.
        let own: Vec<(Varies, String)> = (0..sets.len())
            .map(|at| {
                let protocol = sets[at].protocol;
                let alike = sets.iter().filter(|set| set.protocol == protocol);
                (Varies::over(alike), own_coordinates(&sets, at))
            })
            .collect();
        for (set, (varies, own)) in sets.iter_mut().zip(own) {
            set.varies = varies;
            set.common.push_str(&own);
        }
        sets
    }

    /// Returns the sets of one protocol.
    pub(crate) fn sets_of(&self, protocol: Protocol) -> Vec<Set<'_>> {
        self.sets()
            .into_iter()
            .filter(|set| set.protocol == protocol)
            .collect()
    }

    /// Returns the logical CPUs of the machine that the run was started on, if known.
    pub(crate) fn cpus(&self) -> Option<u32> {
        Some(self.journal.header.environment.cpus).filter(|cpus| *cpus > 0)
    }

    /// The same, if all cells were measured on it: busy cores of two hosts are none of this
    /// machine's.
    pub(crate) fn measuring_cpus(&self) -> Option<u32> {
        self.cpus().filter(|_| self.plan().lab.hosts.is_none())
    }
}

fn duts(plan: &Plan) -> BTreeMap<String, &Dut> {
    let mut duts = BTreeMap::new();
    for cell in &plan.cells {
        duts.entry(shown(&cell.dut)).or_insert(&cell.dut);
    }
    duts
}

/// Number of chart styles of devices, counted from 1: each has a colour, a mark, and perhaps
/// hatching. They repeat if there are more devices.
pub(crate) const DEVICE_STYLES: usize = 12;
/// The grey styles: one for the first baseline or calibration of a plan, one for the others.
pub(crate) const GREY_STYLES: [usize; 2] = [0, 1 + DEVICE_STYLES];

fn styles(plan: &Plan) -> BTreeMap<String, usize> {
    let mut styles = BTreeMap::new();
    let (mut devices, mut grey) = (0, 0);
    for cell in &plan.cells {
        styles
            .entry(shown(&cell.dut))
            .or_insert_with(|| match cell.dut.adapter.profile().role {
                Role::Baseline | Role::Rig => {
                    grey += 1;
                    GREY_STYLES[(grey - 1).min(GREY_STYLES.len() - 1)]
                }
                _ => {
                    devices += 1;
                    1 + (devices - 1) % DEVICE_STYLES
                }
            });
    }
    styles
}

/// The coordinates that distinguish a set from others with the same words: `, warmup=2s`; if they
/// do not, the set's number among them.
fn own_coordinates(sets: &[Set<'_>], at: usize) -> String {
    let coordinates = |at: usize| &sets[at].key.coordinates;
    let words = |at: usize| (sets[at].protocol, &sets[at].common);
    let alike: Vec<usize> = (0..sets.len())
        .filter(|other| words(*other) == words(at))
        .collect();
    // The set itself is among them.
    if alike.len() == 1 {
        return String::new();
    }
    let is_shared = |own: &&Coordinate| {
        let mut others = alike.iter().filter(|other| **other != at);
        others.all(|other| coordinates(*other).contains(own))
    };
    let own = coordinates(at).iter().filter(|own| !is_shared(own));
    let own: String = own.map(|own| format!(", {own}")).collect();
    let is_alone = alike
        .iter()
        .all(|other| *other == at || coordinates(*other) != coordinates(at));
    if is_alone {
        own
    } else {
        let place = alike.iter().position(|other| *other == at).unwrap_or(0);
        format!("{own}, trial {}", place + 1)
    }
}

/// All settings that the cells of a set have in common.
#[derive(PartialEq)]
struct Key {
    measurement: Measurement,
    offloads: bool,
    overlay: Option<Overlay>,
    dscp: Option<Dscp>,
    tune: bool,
    impair: Option<String>,
    /// Coordinates except the coordinates of points.
    coordinates: Vec<Coordinate>,
}

impl Key {
    fn of(cell: &Cell) -> Self {
        let mut measurement = cell.measurement.clone();
        // Sizes belong to points; the start of a search follows from the cores.
        match &mut measurement {
            Measurement::Tcp {
                streams,
                window_bytes,
                ..
            } if cell.tune => (*streams, *window_bytes) = (0, None),
            Measurement::Udp {
                streams,
                rate_bps,
                datagram_bytes,
                ..
            } => {
                *datagram_bytes = None;
                if cell.tune {
                    (*streams, *rate_bps) = (0, None);
                }
            }
            Measurement::Ping { payload_bytes, .. } => *payload_bytes = 0,
            // Without a search TCP has nothing to leave out; other kinds are in no set.
            _ => {}
        }
        let of_points = [Axis::Mtu, Axis::Cores, Axis::Datagram, Axis::Payload];
        let coordinates = cell.coordinates.iter();
        let coordinates = coordinates.filter(|at| !of_points.contains(&at.axis));
        Self {
            coordinates: coordinates.cloned().collect(),
            measurement,
            offloads: cell.stations.is_some_and(|stations| stations.offloads),
            overlay: cell.stations.map(|stations| stations.overlay),
            dscp: cell.stations.and_then(|stations| stations.dscp),
            tune: cell.tune,
            impair: cell.impair.as_ref().map(|profile| profile.name.clone()),
        }
    }
}

impl<'a> Set<'a> {
    fn of(series: Series<Key, Member<'a>>, repeats: u32) -> Option<Self> {
        let (protocol, first, ..) = series.members.first()?;
        let mut set = Self {
            protocol: *protocol,
            common: words::common(first, repeats),
            points: Vec::new(),
            duts: Vec::new(),
            baseline: None,
            varies: Varies::default(),
            key: series.key,
        };
        for (.., stations, result) in series.members {
            set.add(result, stations);
        }
        set.sort();
        Some(set)
    }

    fn add(&mut self, cell: &'a CellResult, Stations { mtu, cores, .. }: Stations) {
        let payload = cell.parameters.datagram_bytes;
        let here =
            |point: &&mut Point<'_>| point.cells.iter().any(|other| other.group == cell.group);
        // The DUT varies fastest: it is the last point, or a new one.
        match self.points.iter_mut().rev().find(here) {
            Some(point) => {
                // A cell without a trial lacks the size, but another of the point may have it.
                point.payload = point.payload.or(payload);
                point.cells.push(cell);
            }
            None => self.points.push(Point {
                mtu,
                cores,
                payload,
                cells: vec![cell],
            }),
        }
        if !self.duts.contains(&cell.dut.as_str()) {
            self.duts.push(&cell.dut);
        }
        if cell.baseline && self.baseline.is_none() {
            self.baseline = Some(&cell.dut);
        }
    }

    /// Sorts baselines first and otherwise keeps the plan's order.
    fn sort(&mut self) {
        for point in &mut self.points {
            point.cells.sort_by_key(|cell| !cell.baseline);
        }
        let baseline = self.baseline;
        self.duts.sort_by_key(|dut| Some(*dut) != baseline);
    }

    /// Returns the words of [`Set::common`] that some of these sets lack.
    pub(crate) fn own_words<'w>(&'w self, all: &'w [&Set<'_>]) -> impl Iterator<Item = &'w str> {
        let shared = |word: &str| {
            all.iter()
                .all(|set| set.common.split(", ").any(|other| other == word))
        };
        self.common.split(", ").filter(move |word| !shared(word))
    }

    /// Returns the words that distinguish each of these sets from the others.
    pub(crate) fn settings(sets: &[Self]) -> Vec<String> {
        let all: Vec<&Set<'_>> = sets.iter().collect();
        let setting = |set: &Self| {
            let own: Vec<&str> = set.own_words(&all).collect();
            if own.is_empty() {
                set.common.clone()
            } else {
                own.join(", ")
            }
        };
        sets.iter().map(setting).collect()
    }

    /// Returns the DUTs other than the baseline.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &'a str> {
        let baseline = self.baseline;
        self.duts
            .iter()
            .copied()
            .filter(move |dut| Some(*dut) != baseline)
    }

    /// Returns the baseline, if there is a device to compare with.
    pub(crate) fn compared_with(&self) -> Option<&'a str> {
        self.baseline.filter(|_| self.devices().next().is_some())
    }

    /// Returns the MTUs in ascending order.
    pub(crate) fn mtus(&self) -> Vec<u16> {
        sorted(self.points.iter().map(|point| point.mtu))
    }

    /// Returns the core counts in ascending order.
    pub(crate) fn cores(&self) -> Vec<u16> {
        sorted(self.points.iter().map(|point| point.cores))
    }

    /// Returns the payload sizes in ascending order.
    pub(crate) fn payloads(&self) -> Vec<Option<u32>> {
        sorted(self.points.iter().map(|point| point.payload))
    }

    /// Returns the words that distinguish a point within its set: `MTU 1500 B, 2 cores`.
    pub(crate) fn name_of(&self, point: &Point<'_>) -> String {
        let varies = [
            self.payloads().len() > 1,
            self.mtus().len() > 1,
            self.cores().len() > 1,
        ];
        // If nothing varies, the point still needs a name.
        let all = !varies.contains(&true);
        let mut parts = Vec::new();
        if varies[0] || (all && self.protocol != Protocol::Tcp) {
            parts.push(payload_name(point.payload));
        }
        if varies[1] || (all && self.protocol == Protocol::Tcp) {
            parts.push(format!("MTU {} B", point.mtu));
        }
        if varies[2] || (all && self.protocol == Protocol::Tcp) {
            parts.push(units::human::counted(point.cores, "core"));
        }
        parts.join(", ")
    }
}

impl<'a> Point<'a> {
    /// Returns the DUT's cell.
    pub(crate) fn cell(&self, dut: &str) -> Option<&'a CellResult> {
        self.cells.iter().copied().find(|cell| cell.dut == dut)
    }
}

/// `1400 B`, or `largest` if the tool fills the MTU.
pub(crate) fn payload_name(payload: Option<u32>) -> String {
    payload.map_or_else(|| "largest".into(), |bytes| format!("{bytes} B"))
}
