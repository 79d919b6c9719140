//! Groups the cells of frame tests.
//!
//! A [`FrameSet`] holds cells that differ only in DUT and mix; a [`FramePoint`] holds the cells of
//! one mix. A load given as a bit rate is a different number of frames for each mix, so a set is
//! identified by the plan's series, not by the load. A set has at most one cell for each mix and
//! device, so no table omits a cell.

use super::{Run, disturbed};
use plan::{
    Axis, Cell, Coordinate, Direction, Disturbed, FrameTest, LatencyPath, Measurement, Procedure,
    ProcedureKind, Role,
};
use serde_json::{Value as Json, json};
use stats::{CellResult, LoadLatency, Series, TrafficInfo};
use units::human::{counted, duration_ns};
use wire::mix::FrameMix;

/// Frame-test cells that differ only in DUT and mix.
pub(crate) struct FrameSet<'a> {
    /// The kind of procedure.
    pub(crate) kind: ProcedureKind,
    /// Common settings of all cells, in words: `direction encrypt, IPv4, 64 flows, 5 repeats`.
    pub(crate) common: String,
    /// The test, with the mix and loads of the first cell.
    pub(crate) test: &'a FrameTest,
    /// Whether another set of the run has another direction.
    pub(crate) names_direction: bool,
    /// One point per mix, in the plan's order.
    pub(crate) points: Vec<FramePoint<'a>>,
    /// The devices in the plan's order, the tester's calibration last.
    pub(crate) devices: Vec<Device<'a>>,
    /// The loads set by the campaign, in frames/s; empty if it leaves them open.
    loads: Vec<u64>,
    key: Key,
}

/// A cell in a set.
type Member<'a> = (&'a Cell, &'a FrameTest, &'a TrafficInfo, &'a CellResult);

/// Cells of one mix.
pub(crate) struct FramePoint<'a> {
    pub(crate) traffic: &'a TrafficInfo,
    pub(crate) cells: Vec<&'a CellResult>,
}

/// A row of tables, a colour of charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Device<'a> {
    pub(crate) dut: &'a str,
    /// Whether it is the rig without a device, measured to calibrate the tester.
    pub(crate) calibration: bool,
}

impl FrameSet<'_> {
    /// Returns the paths with latencies, the configured one first. If the clocks of two hosts agree
    /// too little for one-way latencies, round trips are measured instead and shown separately.
    pub(crate) fn paths(&self) -> Vec<LatencyPath> {
        let configured = self.path();
        // Clocks are compared only after a trial, so the cells of one set may be timed over
        // different paths.
        let cells = self.rows().filter_map(|(_, cell)| cell.frames());
        let timed: Vec<LatencyPath> = cells
            .flat_map(|found| &found.latency)
            .map(LoadLatency::path)
            .collect();
        let others = LatencyPath::ALL.into_iter();
        let others = others.filter(|path| *path != configured && timed.contains(path));
        std::iter::once(configured).chain(others).collect()
    }

    /// Returns the configured path.
    pub(crate) fn path(&self) -> LatencyPath {
        let latency = self.test.procedure.latency();
        latency.map_or_else(LatencyPath::default, |latency| latency.path)
    }
}

impl Run<'_> {
    /// Returns the sets of frame tests in the plan's order.
    pub(crate) fn frame_sets(&self) -> Vec<FrameSet<'_>> {
        let plan = self.plan();
        let cells = plan.cells.iter().zip(&self.results.cells);
        let shown = cells.filter(|(_, result)| !result.is_skipped());
        let members = shown.filter_map(|(cell, result)| {
            let Measurement::Frames(test) = &cell.measurement else {
                return None;
            };
            let traffic = result.traffic()?;
            Some((Key::of(cell, test), (cell, test, traffic, result)))
        });
        // A table would show only the first of two tests that differ in nothing but the load.
        let series = Series::unless(members, |(.., traffic, known), (.., other, result)| {
            is_same_mix(traffic, other) && Device::of(known) == Device::of(result)
        });
        let sets = series.into_iter();
        let sets = sets.filter_map(|series| FrameSet::of(series, plan.repeats));
        let mut sets: Vec<FrameSet<'_>> = sets.collect();
        // All words are needed before the first change of `common`, by which sets are compared.
        let own: Vec<String> = (0..sets.len()).map(|at| own_words(&sets, at)).collect();
        let direction = |set: &FrameSet<'_>| set.test.traffic.direction;
        let several = sets
            .windows(2)
            .any(|pair| direction(&pair[0]) != direction(&pair[1]));
        for (set, own) in sets.iter_mut().zip(own) {
            set.common.push_str(&own);
            set.names_direction = several;
        }
        sets
    }

    /// Returns the sets of one kind.
    pub(crate) fn frame_sets_of(&self, kind: ProcedureKind) -> Vec<FrameSet<'_>> {
        let mut sets = self.frame_sets();
        sets.retain(|set| set.kind == kind);
        sets
    }

    /// Returns the frames per second of a point's mix that a link carries at the ingress, for the
    /// device with the longest frames; `None` if links have no rate.
    pub(crate) fn line_rate(&self, point: &FramePoint<'_>) -> Option<u64> {
        let plan = self.plan();
        let of = |cell: &&CellResult| plan.lab.line_rate(self.planned(cell)?);
        point.cells.iter().filter_map(of).min()
    }
}

/// All settings that the cells of a set have in common.
#[derive(PartialEq)]
struct Key {
    /// The coordinates except the frame size.
    series: Vec<Coordinate>,
    test: FrameTest,
    /// Cores and offloads; the MTU follows from the size.
    stations: Option<(u16, bool)>,
}

impl Key {
    fn of(cell: &Cell, test: &FrameTest) -> Self {
        let mut test = test.clone();
        // Settings that may differ within a set are levelled, so that all others compare by value.
        test.traffic.frames.mix = FrameMix::fixed(0);
        // Tunnels and flows follow from the DUT; otherwise the series contains them.
        (test.traffic.frames.tunnels, test.traffic.frames.flows) = (0, 0);
        // A load given as a bit rate is another number of frames for each mix.
        test.procedure = test.procedure.plan().without_loads();
        let not_the_size = |at: &&Coordinate| at.axis != Axis::Frame;
        Self {
            series: cell
                .coordinates
                .iter()
                .filter(not_the_size)
                .cloned()
                .collect(),
            test,
            stations: cell
                .stations
                .map(|stations| (stations.cores, stations.offloads)),
        }
    }
}

/// A campaign may give one mix by its name and also spell it out.
fn is_same_mix(one: &TrafficInfo, other: &TrafficInfo) -> bool {
    (&one.genome, &one.mix) == (&other.genome, &other.mix)
}

/// The coordinates that distinguish a set from others with the same words, `, min_load=2kpps`; if
/// none do, the distinguishing settings of the procedure, `, timeout 5 s`.
fn own_words(sets: &[FrameSet<'_>], at: usize) -> String {
    let words = |at: usize| {
        let set = &sets[at];
        (set.kind, set.event(), &set.common, set.load())
    };
    let same = || (0..sets.len()).filter(|other| *other != at && words(*other) == words(at));
    let mut own = Vec::new();
    // Coordinates that one of these sets lacks distinguish this set from it.
    for other in same() {
        let theirs = &sets[other].key.series;
        let ours = sets[at].key.series.iter();
        own.extend(ours.filter(|coordinate| !theirs.contains(coordinate)));
    }
    own.sort_unstable();
    own.dedup();
    let mut own: Vec<String> = own.into_iter().map(ToString::to_string).collect();
    // Searches may differ in a setting that is no coordinate.
    if own.is_empty() {
        // As JSON, each setting of each procedure has a key without a list of them here.
        let procedure = |at: usize| json!(sets[at].test.procedure);
        for other in same() {
            differing("", &procedure(at), &procedure(other), &mut own);
        }
        // Several sets may differ from this one in the same setting.
        own = crate::order::unique(own.into_iter());
    }
    own.iter().map(|words| format!(", {words}")).collect()
}

/// Collects the values of `own` that differ from `other` at the same path, each with its key.
fn differing(key: &str, own: &Json, other: &Json, found: &mut Vec<String>) {
    match (own, other) {
        (Json::Object(own), Json::Object(other)) => {
            for (key, value) in own {
                differing(key, value, other.get(key).unwrap_or(&Json::Null), found);
            }
        }
        _ if own == other => {}
        (own, _) => found.push(in_words(key, own)),
    }
}

/// A setting in words: `timeout 5 s`, `no max_load`.
fn in_words(key: &str, value: &Json) -> String {
    match (key.strip_suffix("_ns"), value) {
        (Some(time), Json::Number(ns)) => {
            format!("{time} {}", duration_ns(ns.as_f64().unwrap_or_default()))
        }
        (None, Json::Number(rate)) if key.ends_with("_load") => {
            let rate = units::human::frame_rate(rate.as_f64().unwrap_or_default());
            format!("{key} {rate}")
        }
        (_, Json::Null) => format!("no {key}"),
        (_, Json::String(text)) => format!("{key} {text}"),
        (_, value) => format!("{key} {value}"),
    }
}

impl<'a> FrameSet<'a> {
    fn of(series: Series<Key, Member<'a>>, repeats: u32) -> Option<Self> {
        let (cell, test, ..) = *series.members.first()?;
        let mut set = Self {
            kind: test.procedure.kind(),
            common: common(cell, test, repeats),
            test,
            names_direction: false,
            points: Vec::new(),
            devices: Vec::new(),
            loads: Vec::new(),
            key: series.key,
        };
        for (_, test, traffic, result) in series.members {
            set.add(traffic, result);
            set.loads.extend(test.procedure.plan().load());
        }
        set.devices.sort_by_key(|device| device.calibration);
        Some(set)
    }

    /// Returns the event at the device during the load, if any.
    pub(crate) fn event(&self) -> Option<String> {
        self.test.procedure.event().map(disturbed::title)
    }

    /// Returns the test, if there are events at the device.
    pub(crate) fn disturbance(&self) -> Option<&'a Disturbed> {
        if let Procedure::Disturbed(test) = &self.test.procedure {
            Some(test)
        } else {
            None
        }
    }

    /// The campaign's load, if set: `at 100 kpps`, `loads up to 81.27 kpps to 1.488 Mpps, by size`.
    pub(crate) fn load(&self) -> Option<String> {
        let (least, most) = (*self.loads.iter().min()?, *self.loads.iter().max()?);
        let rate = |load: u64| units::human::frame_rate(load as f64);
        let word = if self.test.procedure.plan().is_at_one_load() {
            "at"
        } else {
            "loads up to"
        };
        Some(if least == most {
            format!("{word} {}", rate(most))
        } else {
            format!("{word} {} to {}, by size", rate(least), rate(most))
        })
    }

    fn add(&mut self, traffic: &'a TrafficInfo, cell: &'a CellResult) {
        match self
            .points
            .iter_mut()
            .find(|point| is_same_mix(point.traffic, traffic))
        {
            Some(point) => point.cells.push(cell),
            None => self.points.push(FramePoint {
                traffic,
                cells: vec![cell],
            }),
        }
        let device = Device::of(cell);
        if !self.devices.contains(&device) {
            self.devices.push(device);
        }
    }

    /// Returns all cells, by mix and then device.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&FramePoint<'a>, &'a CellResult)> {
        self.points.iter().flat_map(move |point| {
            let of = |device: &Device<'a>| point.cell(*device);
            self.devices
                .iter()
                .filter_map(of)
                .map(move |cell| (point, cell))
        })
    }

    /// Returns the first cell of a device under test with a figure.
    pub(crate) fn own_cell(&self, dut: &str) -> Option<&'a CellResult> {
        let own =
            |cell: &&CellResult| cell.dut == dut && !cell.measures_rig() && cell.frames().is_some();
        self.rows().map(|(_, cell)| cell).find(own)
    }

    /// Returns the goals of the search, if any.
    pub(crate) fn goals(&self) -> &'a [plan::Goal] {
        self.test
            .procedure
            .search()
            .map_or(&[], |search| &search.goals)
    }
}

/// Returns the words that distinguish each of these sets from the others: `direction encrypt`.
pub(crate) fn settings(sets: &[FrameSet<'_>]) -> Vec<String> {
    let words = |set: &FrameSet<'_>| -> Vec<String> {
        let what = set.event().unwrap_or_else(|| set.kind.title().to_owned());
        let common = set.common.split(", ").map(str::to_owned);
        let words = [what].into_iter().chain(set.load());
        let words = words.chain(common);
        crate::order::unique(words)
    };
    let all: Vec<Vec<String>> = sets.iter().map(words).collect();
    let setting = |(set, words): (&FrameSet<'_>, &Vec<String>)| {
        let is_own = |word: &&String| !all.iter().all(|others| others.contains(word));
        let own: Vec<&str> = words.iter().filter(is_own).map(String::as_str).collect();
        if own.is_empty() {
            set.common.clone()
        } else {
            own.join(", ")
        }
    };
    sets.iter().zip(&all).map(setting).collect()
}

impl<'a> FramePoint<'a> {
    /// Returns the device's cell.
    pub(crate) fn cell(&self, device: Device<'_>) -> Option<&'a CellResult> {
        self.cells
            .iter()
            .copied()
            .find(|cell| Device::of(cell) == device)
    }

    /// `64 B`, `imix`.
    pub(crate) fn short_name(&self) -> String {
        match self.traffic.frame_bytes {
            Some(_) => self.name(),
            // `mix` is no name, so the genome (RFC 6985) distinguishes the mixes.
            None if self.traffic.mix == "mix" => self.traffic.genome.clone(),
            None => self.traffic.mix.clone(),
        }
    }

    /// `64 B`, `imix (mean 362 B)`.
    pub(crate) fn name(&self) -> String {
        size_name(self.traffic)
    }
}

/// `64 B`, `imix (mean 362 B)`.
fn size_name(traffic: &TrafficInfo) -> String {
    match traffic.frame_bytes {
        Some(bytes) => format!("{bytes} B"),
        None => format!("{} (mean {:.0} B)", traffic.mix, traffic.mean_frame_bytes),
    }
}

/// The loaded part of a device in words, which also fit one that encrypts nothing. Frames go one
/// way unless a test is duplex.
pub(crate) fn direction_in_words(direction: Direction) -> &'static str {
    match direction {
        Direction::Encrypt => "encrypting",
        Direction::Decrypt => "decrypting",
        Direction::Both => "both gateways",
    }
}

/// `64 B frames through both gateways`; with a load each way `…, each way`.
pub(crate) fn frames_in_words(traffic: &TrafficInfo) -> String {
    let named = |direction: &Direction| direction.name() == traffic.direction;
    let direction = Direction::ALL.into_iter().find(named);
    let direction = match direction {
        Some(Direction::Both) => " through both gateways".to_owned(),
        Some(direction) => format!(", {}", direction_in_words(direction)),
        None => format!(", {}", traffic.direction),
    };
    // Rates are those of one way.
    let ways = if traffic.duplex { ", each way" } else { "" };
    format!("{} frames{direction}{ways}", size_name(traffic))
}

impl<'a> Device<'a> {
    pub(crate) fn of(cell: &'a CellResult) -> Self {
        Self {
            dut: &cell.dut,
            calibration: cell.measures_rig(),
        }
    }

    /// Returns the name in tables, with its role if it is not a device under test.
    pub(crate) fn label(self, run: &Run<'_>) -> String {
        if self.calibration {
            return format!("{} (tester alone)", self.dut);
        }
        match run.device(self.dut).map(|dut| dut.adapter.profile().role) {
            Some(Role::Baseline) => format!("{} (baseline)", self.dut),
            _ => run.label(self.dut),
        }
    }
}

/// The common settings of a set's cells.
fn common(cell: &Cell, test: &FrameTest, repeats: u32) -> String {
    // Tunnels of the bundled encryptor are among its settings.
    let is_its_own = |axis| axis == Axis::Tunnels && cell.dut.adapter.encryptor().is_some();
    let phrase = |axis: Axis| {
        let value = cell.value(axis).filter(|value| !axis.is_usual(value));
        axis.phrase(value.into_iter())
    };
    let axes = Axis::all().filter(|axis| !is_its_own(*axis));
    let mut parts: Vec<_> = axes.filter_map(phrase).collect();
    parts.extend(test.procedure.plan().settings());
    parts.push(counted(repeats, "repeat"));
    parts.join(", ")
}
