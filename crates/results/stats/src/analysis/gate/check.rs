//! Whether a gate can be about the cells of a plan, before anything is measured.

use super::{Gate, GateError, GateLimit, GateLoad, GateReference, GateUnit};
use plan::{Bound, Cell, Measurement, Procedure};
use std::ops::Range;

/// The kinds of trials that measure each quantity.
const MEASURED_BY: [(&str, &[&str]); 10] = [
    (
        "throughput",
        &[
            "tcp",
            "udp",
            "http",
            "flows",
            "throughput",
            "mrr",
            "load",
            "loss-curve",
        ],
    ),
    ("transactions", &["http", "flows"]),
    ("set-ups", &["ike"]),
    ("operations", &["speed"]),
    (
        "efficiency",
        &["tcp", "udp", "throughput", "mrr", "loss-curve"],
    ),
    ("p50", &["ping", "latency", "ike"]),
    ("p99", &["ping", "latency", "ike"]),
    ("burst", &["back-to-back"]),
    ("recovery", &["recovery"]),
    (Gate::LOSS, &["udp", "load", "mrr", "loss-curve"]),
];
/// Filters' values that a message lists.
const LISTED_MAX: usize = 8;

impl Gate {
    /// The cells that it limits: all that its filters admit and that have its quantity, in its
    /// unit, at its load, and with its reference.
    #[must_use]
    pub fn limited<'c>(&self, cells: &'c [Cell]) -> Vec<&'c Cell> {
        let limited = cells.iter().filter(|cell| {
            self.applies(cell)
                && self.is_measured(cell)
                && self.has_unit(cell)
                && self.has_load(cell)
                && self.has_reference(cell, cells)
        });
        limited.collect()
    }

    /// Checks that it limits cells of a plan, without a second run to compare with.
    ///
    /// # Errors
    /// The part that excludes all cells, with what the plan has instead.
    pub fn check(&self, cells: &[Cell]) -> Result<(), GateError> {
        let error = |at: &Range<usize>, problem: String, help: String| {
            Err(GateError::new(&self.text, at.clone(), problem, help))
        };
        if let GateLimit::Ratio {
            reference: None, ..
        } = self.limit
        {
            let end = self.text.len();
            let problem = "a share of no figure".to_owned();
            let help = "add `of baseline`, `of dut=NAME` or `of run=FOLDER`: the figure that it is compared with";
            return error(&(end..end), problem, help.to_owned());
        }
        self.check_between(cells)
    }

    /// Checks that it limits cells of a plan, which a second run or another version of a device has
    /// too.
    ///
    /// # Errors
    /// As for [`Gate::check`].
    pub fn check_between(&self, cells: &[Cell]) -> Result<(), GateError> {
        let error = |at: &Range<usize>, problem: String, help: String| {
            Err(GateError::new(&self.text, at.clone(), problem, help))
        };
        let mut left: Vec<&Cell> = cells.iter().filter(|cell| !cell.calibration).collect();
        for (filter, at) in self.filters.iter().zip(&self.places.filters) {
            let others: Vec<&Cell> = left.clone();
            left.retain(|cell| filter.admits(cell));
            if left.is_empty() {
                let known = distinct(others.iter().filter_map(|cell| filter.of(cell)));
                let wanted = filter.to_string();
                let names = known.iter().map(String::as_str);
                let question = yaml::names::question(yaml::names::nearest(&wanted, names));
                let help = match known.as_slice() {
                    [] => format!("no cell here has that key: remove `{wanted}`"),
                    known => format!("{question}there is {}", listed(known)),
                };
                return error(at, format!("no cell here is `{wanted}`"), help);
            }
        }
        let kinds =
            |cells: &[&Cell]| distinct(cells.iter().map(|cell| cell.measurement.name().to_owned()));
        let measured: Vec<&Cell> = left
            .iter()
            .copied()
            .filter(|it| self.is_measured(it))
            .collect();
        if measured.is_empty() {
            let problem = format!(
                "`{}` is measured by no {} trial",
                self.quantity,
                kinds(&left).join(" or ")
            );
            let help = format!("it is a quantity of {}", self.measured_by().join(", "));
            return error(&self.places.quantity, problem, help);
        }
        let fitting: Vec<&Cell> = measured
            .iter()
            .copied()
            .filter(|it| self.has_unit(it))
            .collect();
        if fitting.is_empty() {
            let (what, help) = match self.unit() {
                Some(GateUnit::Bits) => (
                    "is a rate of payload, and frames have it at a layer",
                    "write the layer, for example `10 Gbit/s L1`, or `1 Mpps`",
                ),
                _ => (
                    "is a rate of frames, and payload is measured",
                    "write it without a layer, for example `5 Gbit/s`",
                ),
            };
            let limit = &self.text[self.places.limit.clone()];
            return error(
                &self.places.limit,
                format!("`{limit}` {what}"),
                help.to_owned(),
            );
        }
        let loaded: Vec<&Cell> = fitting
            .iter()
            .copied()
            .filter(|it| self.has_load(it))
            .collect();
        if loaded.is_empty() {
            let load = &self.text[self.places.load.clone()];
            let problem = format!("no cell here has `{}` at {load}", self.quantity);
            let known = distinct(fitting.iter().flat_map(|cell| loads(cell)));
            let help = match known.as_slice() {
                [] => "remove `at`: these trials have no loads to choose from".to_owned(),
                known => format!("its loads are {}", listed(known)),
            };
            return error(&self.places.load, problem, help);
        }
        if !loaded.iter().any(|cell| self.has_reference(cell, cells)) {
            let (problem, help) = match self.named_reference() {
                Some(GateReference::Dut(name)) => {
                    let duts = distinct(cells.iter().map(|cell| cell.dut.name.clone()));
                    let known = duts.iter().map(String::as_str);
                    let question = yaml::names::question(yaml::names::nearest(name, known));
                    (
                        format!("no cell here can be compared with the DUT `{name}`"),
                        format!("{question}DUTs here are {}", listed(&duts)),
                    )
                }
                _ => (
                    "no cell here has a baseline".to_owned(),
                    "add the DUT `direct`, or name another one: `of dut=NAME`".to_owned(),
                ),
            };
            return error(&self.places.reference, problem, help);
        }
        Ok(())
    }

    /// The error that a stored run cannot be compared with.
    #[must_use]
    pub fn bad_run(&self, problem: String, help: String) -> GateError {
        GateError::new(&self.text, self.places.reference.clone(), problem, help)
    }

    /// The change between two runs or versions that breaks it: the side that keeps it, and the
    /// ratio at the limit.
    ///
    /// # Errors
    /// It limits a figure itself, or in relation to another one of its run.
    pub fn change(&self) -> Result<(Bound, f64), GateError> {
        match &self.limit {
            GateLimit::Ratio {
                bound,
                ratio,
                reference: None,
            } => Ok((*bound, *ratio)),
            GateLimit::Ratio { .. } => Err(GateError::new(
                &self.text,
                self.places.reference.clone(),
                "a reference in a gate about versions".to_owned(),
                "leave it out: each version is compared with another version".to_owned(),
            )),
            GateLimit::Figure { .. } | GateLimit::NoLoss => Err(GateError::new(
                &self.text,
                self.places.limit.clone(),
                "a limit of the figure itself in a gate about versions".to_owned(),
                "write the change, such as `drops > 2 %` or `rises > 5 %`".to_owned(),
            )),
        }
    }

    /// The loads of a cell, as a gate names them: empty if it is measured at no load, or at one.
    #[must_use]
    pub fn loads_of(cell: &Cell) -> Vec<String> {
        match cell.measurement.frames().map(|test| &test.procedure) {
            Some(Procedure::Latency(test)) if test.percents.len() > 1 => loads(cell),
            _ => Vec::new(),
        }
    }

    fn measured_by(&self) -> &'static [&'static str] {
        let known = MEASURED_BY.iter().find(|(word, _)| *word == self.quantity);
        known.map_or(&[], |(_, kinds)| kinds)
    }

    fn is_measured(&self, cell: &Cell) -> bool {
        // The times at the highest rate are compared with nothing.
        let is_at_highest_rate =
            matches!(&cell.measurement, Measurement::Ike(test) if test.setups_per_s.is_none());
        let is_time = matches!(self.quantity.as_str(), "p50" | "p99");
        !(is_at_highest_rate && is_time) && self.measured_by().contains(&cell.measurement.name())
    }

    const fn unit(&self) -> Option<GateUnit> {
        match self.limit {
            GateLimit::Figure { unit, .. } => Some(unit),
            GateLimit::Ratio { .. } | GateLimit::NoLoss => None,
        }
    }

    /// Whether the figure of a cell is in the gate's unit.
    fn has_unit(&self, cell: &Cell) -> bool {
        let is_frames = cell.measurement.frames().is_some();
        match self.unit() {
            Some(GateUnit::Bits) => !is_frames || self.quantity == "efficiency",
            Some(GateUnit::BitsAt(_) | GateUnit::FramesPerS) => is_frames,
            _ => true,
        }
    }

    /// Whether the cell has the gate's load.
    fn has_load(&self, cell: &Cell) -> bool {
        let procedure = cell.measurement.frames().map(|test| &test.procedure);
        match (self.at, procedure) {
            (None, _) => true,
            (Some(GateLoad::FramesPerS(rate)), Some(Procedure::Load(load))) => {
                load.frames_per_s == Some(rate)
            }
            (Some(GateLoad::FramesPerS(rate)), Some(Procedure::LossCurve(curve))) => {
                let percent = curve.max_load.filter(|most| *most > 0).map(|most| {
                    let percent = u128::from(rate) * 100;
                    (
                        percent.is_multiple_of(most.into()),
                        percent / u128::from(most),
                    )
                });
                percent.is_some_and(|(is_whole, percent)| {
                    is_whole
                        && u8::try_from(percent).is_ok_and(|it| is_step(curve.step_percent, it))
                })
            }
            (Some(GateLoad::Percent(percent)), Some(Procedure::LossCurve(curve))) => {
                is_step(curve.step_percent, percent)
            }
            (Some(GateLoad::Percent(percent)), Some(Procedure::Latency(test))) => {
                test.percents.contains(&percent)
            }
            _ => false,
        }
    }

    const fn named_reference(&self) -> Option<&GateReference> {
        match &self.limit {
            GateLimit::Ratio { reference, .. } => reference.as_ref(),
            _ => None,
        }
    }

    /// Whether the cell has the other figure, and is not it.
    fn has_reference(&self, cell: &Cell, cells: &[Cell]) -> bool {
        match self.named_reference() {
            None | Some(GateReference::Run(_)) => true,
            Some(_) => {
                let other = self.reference(cell, cells);
                other.is_some_and(|other| other.id != cell.id)
            }
        }
    }
}

/// Whether a loss curve has this share of its highest load.
fn is_step(step_percent: u8, percent: u8) -> bool {
    percent <= 100 && (100 - percent).is_multiple_of(step_percent.max(1))
}

/// The loads of a cell, as gates write them.
fn loads(cell: &Cell) -> Vec<String> {
    let Measurement::Frames(test) = &cell.measurement else {
        return Vec::new();
    };
    match &test.procedure {
        Procedure::Load(load) => {
            let rate = load.frames_per_s.map(units::FrameRate::new);
            rate.iter().map(ToString::to_string).collect()
        }
        Procedure::LossCurve(curve) => {
            let step = usize::from(curve.step_percent.max(1));
            let percents = (1..=100_u8).rev().step_by(step);
            percents.map(|percent| format!("{percent} %")).collect()
        }
        Procedure::Latency(test) => {
            let percents = test.percents.iter();
            percents.map(|percent| format!("{percent} %")).collect()
        }
        _ => Vec::new(),
    }
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

fn listed(known: &[String]) -> String {
    match known.len() {
        0..=LISTED_MAX => known.join(", "),
        more => format!(
            "{} and {} more",
            known[..LISTED_MAX].join(", "),
            more - LISTED_MAX
        ),
    }
}
