//! Claims about a device compared with its measured figures.
//!
//! A claim is *met* or *not met* only if the whole interval of the figure is on one side of it:
//! Student's t at a level that counts all claims of the run ([`super::significance`]). If some
//! searches of a cell lack the lower bound, the bounds of the others decide (`bounds`). It is
//! *not decided*
//!
//! 1. if the cell has no figure, or one repeat only, or two bands of repeats;
//! 2. if the interval contains the claim (for a search, the interval extends to its upper bound);
//! 3. if the figure falls short, and tester, link or machine is the limit, or the limit is unknown:
//!    the device may do more;
//! 4. if a time is too long, and the path without the device takes that long itself, or stations
//!    and device compete for CPU time: the device may do better.
//!
//! Claims change neither the status of a cell nor the exit status of a run.

mod bounds;

use crate::analysis::compare::Comparison;
use crate::analysis::cores::machines_of;
use crate::analysis::scaling;
use crate::analysis::significance::{Level, against};
use crate::cell::{CellResult, Reason, Status};
use crate::figures::estimate::Estimate;
use crate::figures::frames::{LayerRates, Limit};
use bounds::BoundsWithoutFigure;
use journal::Journal;
use plan::{Bound, Claim, ClaimUnit, LatencyPath, Measurement, Percentile, Procedure};
use schemars::JsonSchema;
use serde::Serialize;
use units::human::{bit_rate, duration_ns, frame_rate};

/// A claim and one cell that measures it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClaimResult {
    /// The DUT's name.
    pub dut: String,
    /// Id of the cell.
    pub cell: String,
    /// The measured quantity: `tcp`, `latency, p99 at 50 % of the throughput`.
    pub measure: String,
    /// The claim in words: `at least 10 Gbit/s payload`.
    pub claim: String,
    /// The claimed figure.
    pub claimed: f64,
    /// Whether the figure is a minimum or a maximum: `at-least`, `at-most`.
    pub bound: String,
    /// Its unit: `payload_bps`, `l1_bps`, `l2_bps`, `ip_bps`, `frames_per_s` or `ns`.
    pub unit: String,
    /// Its publication.
    pub source: String,
    /// Conditions of the claim; `null` if the source states none.
    pub conditions: Option<String>,
    /// The conditions here.
    pub conditions_here: String,
    /// Measured figure, in the same unit; `null` without one. If only some searches of the cell
    /// found a lower bound: of these, with their number.
    pub measured: Option<Estimate>,
    /// Measured by claimed.
    pub ratio: Option<f64>,
    /// Whether it is met.
    pub verdict: ClaimVerdict,
    /// Why: a sentence with the numbers.
    pub reason: String,
}

/// Whether a claim is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimVerdict {
    /// The whole interval meets it.
    Met,
    /// No part of the interval meets it, and no other cause than the device is known.
    NotMet,
    /// Undecided.
    NotDecided,
}

impl ClaimVerdict {
    /// For people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::NotDecided => "not decided",
        }
    }
}

/// A figure of a cell that a claim can be about.
#[derive(Default)]
struct Figure {
    /// The load in per cent of the throughput, of latency.
    percent: Option<u8>,
    value: Option<Estimate>,
    /// Upper bound of a search.
    upper: Option<Estimate>,
    /// The bounds of a search that lacks the lower one in some repeats, in place of a value.
    bounds: Option<BoundsWithoutFigure>,
    /// Highest offered load.
    offered: Option<f64>,
    /// The same without a device in the path, a bound for every device.
    floor: Option<f64>,
}

/// Everything that the verdicts of a run's claims depend on.
struct Judge<'a> {
    journal: &'a Journal,
    cells: &'a [CellResult],
    comparisons: &'a [Comparison],
    /// All claims are one question.
    level: Level,
}

/// Compares each claim with each cell that measures it, in the campaign's order.
pub(crate) fn claims(
    journal: &Journal,
    cells: &[CellResult],
    comparisons: &[Comparison],
) -> Vec<ClaimResult> {
    let mut judge = Judge {
        journal,
        cells,
        comparisons,
        level: Level::default(),
    };
    let claims = &journal.header.plan.claims;
    let all = claims.iter().flat_map(|claim| judge.asked(claim));
    let all: Vec<ClaimedFigure<'_>> = all.collect();
    // The level depends on the p-values of all claims, so the figures are collected before any is
    // decided.
    judge.level = Level::of(all.iter().filter_map(ClaimedFigure::p));
    all.into_iter().map(|asked| judge.result(asked)).collect()
}

/// A claim, and a figure that it is about.
struct ClaimedFigure<'a> {
    claim: &'a Claim,
    /// Place of the figure's cell.
    place: usize,
    figure: Figure,
}

impl ClaimedFigure<'_> {
    /// p-value of the finding that the figure is on one side of the claim; `None` with too few
    /// repeats.
    fn p(&self) -> Option<f64> {
        let claimed = self.claim.value as f64;
        if let Some(bounds) = &self.figure.bounds {
            return bounds.p(claimed);
        }
        let found = self.figure.value.as_ref()?;
        let upper = self.figure.upper.as_ref().unwrap_or(found);
        // A figure may be found on either side of the claim, so the smaller p-value is the one
        // of the finding. Above it must be the lower bound of a search, and below it the upper
        // one.
        let above = against(found, claimed)?.p_above(0.0);
        Some(above.min(against(upper, claimed)?.p_below(0.0)))
    }
}

impl Judge<'_> {
    fn asked<'c>(&self, claim: &'c Claim) -> Vec<ClaimedFigure<'c>> {
        let places = claim
            .cells
            .iter()
            .filter_map(|id| self.cells.iter().position(|cell| cell.id == *id));
        let of_cell = |place: usize| {
            let figures = self.figures(claim, place);
            figures.into_iter().map(move |figure| ClaimedFigure {
                claim,
                place,
                figure,
            })
        };
        places.flat_map(of_cell).collect()
    }

    fn result(&self, asked: ClaimedFigure<'_>) -> ClaimResult {
        let ClaimedFigure {
            claim,
            place,
            figure,
        } = asked;
        let (cell, planned) = (&self.cells[place], &self.journal.header.plan.cells[place]);
        let claimed = claim.value as f64;
        let (verdict, reason) = self.decide(claim, place, &figure);
        let machines = machines_of(&self.journal.header).map(|machine| {
            let model = match machine.environment.cpu_model.as_str() {
                "" => "an unknown CPU",
                model => model,
            };
            let cores = format!("{} cores of {model}", machine.environment.cpus);
            match machine.host {
                Some(_) => format!("{}: {cores}", machine.name()),
                None => cores,
            }
        });
        // A reader compares these conditions with those of the claim, so they are one text here.
        let parts = [planned.dut.settings(), plan::in_words(planned)];
        let parts: Vec<String> = parts.into_iter().chain(machines).collect();
        let here = parts.join("; ");
        // A claim without a load is about every load. Each result then names the load of its
        // figure.
        let asked = Claim {
            load_percent: figure.percent,
            ..claim.clone()
        };
        let measured = match &figure.bounds {
            Some(bounds) => bounds.lower.clone(),
            None => figure.value,
        };
        ClaimResult {
            dut: planned.dut.name.clone(),
            cell: cell.id.clone(),
            measure: asked.measure_in_words(),
            claim: claim.in_words(),
            claimed,
            bound: match claim.bound {
                Bound::AtLeast => "at-least".into(),
                Bound::AtMost => "at-most".into(),
            },
            unit: key(claim.unit).into(),
            source: claim.source.clone(),
            conditions: (!claim.conditions.is_empty()).then(|| claim.conditions.clone()),
            conditions_here: here,
            ratio: measured.as_ref().map(|found| found.mean / claimed),
            measured,
            verdict,
            reason,
        }
    }

    /// Returns the figures of a cell that a claim is about; at least one, which may be empty.
    fn figures(&self, claim: &Claim, place: usize) -> Vec<Figure> {
        let cell = &self.cells[place];
        let measurement = &self.journal.header.plan.cells[place].measurement;
        let procedure = measurement.frames().map(|test| &test.procedure);
        // The path without a device is measured in the same group, under the same conditions.
        let group = || self.cells.iter().filter(|other| other.group == cell.group);
        let found: Vec<Figure> = match (measurement, procedure) {
            (Measurement::Tcp { .. } | Measurement::Udp { .. }, _) => cell
                .bulk()
                .into_iter()
                .map(|bulk| Figure {
                    value: Some(bulk.payload_throughput_bps.clone()),
                    offered: matches!(measurement, Measurement::Udp { .. })
                        .then_some(bulk.offered_payload_bps.mean),
                    ..Figure::default()
                })
                .collect(),
            (Measurement::Ping { .. }, _) => vec![Figure {
                value: round_trip(cell, claim.percentile),
                floor: group()
                    .find(|other| other.baseline && other.id != cell.id)
                    .and_then(|direct| Some(round_trip(direct, claim.percentile)?.mean)),
                ..Figure::default()
            }],
            (_, Some(Procedure::Latency(plan))) => {
                let own = |other: &CellResult| timed(other, claim, plan.path);
                let rig = group().find(|other| other.measures_rig());
                let floors = rig.map_or_else(Vec::new, own);
                // The smallest time over the loads: no load of the path without a device is faster
                // than that.
                let floor = floors.iter().map(|(_, found)| found.mean).reduce(f64::min);
                own(cell)
                    .into_iter()
                    .map(|(percent, value)| Figure {
                        percent,
                        value: Some(value),
                        floor,
                        ..Figure::default()
                    })
                    .collect()
            }
            (_, Some(Procedure::Recovery(_))) => {
                let recovery = cell.frames().and_then(|found| found.recovery());
                let value = recovery.and_then(|found| found.recovery_ns.clone());
                vec![Figure {
                    value,
                    ..Figure::default()
                }]
            }
            _ => vec![frames(cell, claim)],
        };
        // A claim without any figure still has a row in the table, as not decided.
        if found.is_empty() {
            vec![Figure {
                percent: claim.load_percent,
                ..Figure::default()
            }]
        } else {
            found
        }
    }

    fn decide(&self, claim: &Claim, place: usize, figure: &Figure) -> (ClaimVerdict, String) {
        let cell = &self.cells[place];
        let text = |value: f64| printed(claim.unit, value);
        let undecided = |reason: String| (ClaimVerdict::NotDecided, reason);
        if let Some(bounds) = &figure.bounds {
            let question = bounds::Question {
                claim,
                level: self.level,
                contention: scaling::contention(self.journal, place, cell),
                rig: self.rig(place),
            };
            return bounds.decide(&question);
        }
        let Some(found) = &figure.value else {
            return undecided(no_figure(cell));
        };
        let claimed = claim.value as f64;
        let top = figure.upper.as_ref().map_or(found.max, |upper| upper.max);
        let bands = found.bands;
        if let Some(bands) = bands.filter(|bands| !bands.are_far_from((claimed, claimed), top)) {
            return undecided(format!(
                "The repeats fall in two bands, about {} and {}, and the claim is not far from both.",
                text(bands.low.max),
                text(bands.high.min)
            ));
        }
        let Some((low, high)) = self.level.interval(found) else {
            return undecided("One repeat has no spread.".into());
        };
        let is_time = claim.unit == ClaimUnit::Ns;
        let upper = figure.upper.as_ref();
        let upper = upper
            .and_then(|upper| self.level.interval(upper))
            // The upper bound has an interval of its repeats. It never ends below the interval of
            // the figure.
            .map_or(high, |(_, upper)| upper.max(high));
        // From here on the interval decides, unless something other than the device explains its
        // side of the claim.
        // Several claims share the level, which is then above 95 %.
        let certainty = (1e5 * (1.0 - self.level.alpha())).round() / 1e3;
        let range = format!(
            "{}, with {certainty} % certainty from {} to {}",
            text(found.mean),
            text(low),
            text(upper)
        );
        let (keeps, breaks) = match claim.bound {
            Bound::AtLeast => (low >= claimed, upper < claimed),
            Bound::AtMost => (upper <= claimed, low > claimed),
        };
        // More throughput would change the verdict, so nothing else may limit it.
        let held_down = match claim.bound {
            Bound::AtLeast => breaks,
            Bound::AtMost => keeps,
        };
        if let Some(why) = self
            .limit(claim, place, figure)
            .filter(|_| held_down && !is_time)
        {
            return undecided(why);
        }
        if let Some(floor) = figure
            .floor
            .filter(|floor| breaks && is_time && *floor > claimed)
        {
            return undecided(format!(
                "The path without the device takes {} itself.",
                text(floor)
            ));
        }
        // Only a time that is too long needs this excuse: competition for cores makes no time
        // shorter.
        let contention = scaling::contention(self.journal, place, cell);
        if let Some(why) = contention.filter(|_| is_time && breaks) {
            return undecided(format!("Measured {range}, but {}.", why.reason()));
        }
        match (keeps, breaks) {
            (true, _) => (ClaimVerdict::Met, format!("Measured {range}.")),
            (_, true) => (ClaimVerdict::NotMet, format!("Measured {range}.")),
            _ => undecided(format!("Measured {range}: the claim lies within.")),
        }
    }

    /// The frame rate of the path without a device, under the same conditions.
    fn rig(&self, place: usize) -> Option<&Estimate> {
        let own = &self.cells[place];
        let mut group = self.cells.iter().filter(|other| other.group == own.group);
        group.find(|other| other.measures_rig())?.frame_rate()
    }

    /// Returns what may limit a throughput other than the device.
    fn limit(&self, claim: &Claim, place: usize, figure: &Figure) -> Option<String> {
        // Checked first: with too little offered no device could meet the claim.
        if let Some(offered) = figure
            .offered
            .filter(|offered| *offered < claim.value as f64)
        {
            return Some(format!(
                "No more than {} was offered.",
                printed(claim.unit, offered)
            ));
        }
        if let Some(verdict) = self.cells[place].verdict()
            && verdict.limit == Limit::Inconclusive
        {
            return Some(format!("It is inconclusive: {}", verdict.reason));
        }
        let limit = scaling::limit(self.journal, place, self.cells, self.comparisons)?;
        Some(limit.reason)
    }
}

/// Returns a unit's key in results.
const fn key(unit: ClaimUnit) -> &'static str {
    match unit {
        ClaimUnit::PayloadBps => "payload_bps",
        ClaimUnit::L1Bps => "l1_bps",
        ClaimUnit::L2Bps => "l2_bps",
        ClaimUnit::IpBps => "ip_bps",
        ClaimUnit::FramesPerS => "frames_per_s",
        ClaimUnit::Ns => "ns",
    }
}

fn printed(unit: ClaimUnit, value: f64) -> String {
    match unit {
        ClaimUnit::Ns => duration_ns(value),
        ClaimUnit::FramesPerS => frame_rate(value),
        _ => bit_rate(value),
    }
}

fn no_figure(cell: &CellResult) -> String {
    let why = |status: &str| {
        // The advice is printed below it, and in the table of reasons.
        let first = cell.reasons.first().map(Reason::in_short);
        let line = first.unwrap_or_else(|| "no reason was recorded".to_owned());
        format!("The cell {status}: {line}.")
    };
    match cell.status {
        Status::Invalid => why("is invalid"),
        Status::Failed => why("failed"),
        Status::NotRun => "The cell was not run.".into(),
        Status::Measured | Status::Partly => "The cell has no such figure.".into(),
    }
}

fn round_trip(cell: &CellResult, percentile: Option<Percentile>) -> Option<Estimate> {
    let found = cell.latency()?;
    match percentile {
        Some(Percentile::P99) => found.p99_ns.clone(),
        Some(Percentile::P50) | None => Some(found.p50_ns.clone()),
    }
}

/// Times over a path at the loads that a claim is about.
fn timed(cell: &CellResult, claim: &Claim, path: LatencyPath) -> Vec<(Option<u8>, Estimate)> {
    let Some(frames) = cell.frames() else {
        return Vec::new();
    };
    let loads = frames
        .latency
        .iter()
        .filter(|found| found.path() == path)
        .filter(|found| claim.load_percent.is_none() || found.percent == claim.load_percent);
    loads
        .filter_map(|found| {
            let value = match claim.percentile {
                Some(Percentile::P99) => found.p99_each_ns.clone()?,
                Some(Percentile::P50) | None => found.p50_each_ns.clone(),
            };
            Some((found.percent, value))
        })
        .collect()
}

/// Throughput, or the forwarding rate at a load.
fn frames(cell: &CellResult, claim: &Claim) -> Figure {
    let Some(frames) = cell.frames() else {
        return Figure::default();
    };
    let of = |rates: &LayerRates| match claim.unit {
        ClaimUnit::L1Bps => rates.l1_bps.clone(),
        ClaimUnit::L2Bps => rates.l2_bps.clone(),
        ClaimUnit::IpBps | ClaimUnit::PayloadBps => rates.ip_bps.clone(),
        ClaimUnit::FramesPerS | ClaimUnit::Ns => rates.frames_per_s.clone(),
    };
    // Without a search the figure is the highest forwarding rate, and the load that was offered
    // limits it.
    let Some(found) = &frames.throughput else {
        let load = frames.fastest();
        return Figure {
            value: load.map(|load| of(&load.forwarded)),
            offered: load.map(|load| of(&load.offered).mean),
            ..Figure::default()
        };
    };
    let named = |name: &String| found.goals.iter().find(|goal| goal.goal == *name);
    let goal = match &claim.goal {
        Some(name) => named(name),
        None => found.goals.first(),
    };
    let Some(goal) = goal else {
        return Figure::default();
    };
    Figure {
        value: goal.lower.as_ref().map(of),
        upper: goal.upper.as_ref().map(of),
        bounds: BoundsWithoutFigure::of(goal, of),
        ..Figure::default()
    }
}
