//! The figure that a bisection is about.

use crate::{BisectingError, Subject, Version, sets};
use bisect::Change;
use journal::Journal;
use journal::record::{Environment, FORMAT_VERSION, Header, Outcome, Record, TrialRecord};
use plan::{Adapter, Bound, Cell, Dut, Expectations, Plan, Software, WireGuardProgram};
use serde::{Deserialize, Serialize};
use stats::{Gate, GateLoad, Quantity, Reading, Results};

/// Cells that a message lists.
const LISTED_MAX: usize = 6;

/// The figure that a bisection is about, and the size of its change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The gate, as given.
    pub gate: String,
    /// Id of its only cell.
    pub cell: String,
    /// The device that runs the versions.
    pub dut: String,
    /// The direction of the change.
    pub change: Change,
    /// Its size, in parts per million.
    pub size_ppm: u32,
}

impl Question {
    /// The question of a gate about a campaign.
    ///
    /// # Errors
    /// When the gate is none, or not about one cell of one device with a program.
    pub fn of(gate: &str, plan: &Plan, dut: Option<&str>) -> Result<Self, BisectingError> {
        let gate: Gate = gate.parse()?;
        // Before the device: a gate about no versions has no devices either.
        gate.change()?;
        refuse_labs(plan)?;
        let dut = device(&gate, plan, dut)?;
        let cells = plan.cells.iter().filter(|cell| cell.dut.name == dut);
        Self::about(gate, cells.cloned().collect(), dut)
    }

    /// The question of a gate about sets of a campaign's settings, and those sets as versions.
    ///
    /// # Errors
    /// When the gate is none, or not about one cell of the device; when a set is none, or lacks
    /// that cell.
    pub fn of_settings(
        gate: &str,
        plan: &Plan,
        dut: Option<&str>,
        names: &[String],
    ) -> Result<(Self, Vec<Version>), BisectingError> {
        let gate: Gate = gate.parse()?;
        gate.change()?;
        let (dut, versions) = sets::sets(plan, dut, names)?;
        let duts = versions.iter().filter_map(|version| match version {
            Version::Settings { dut, .. } => Some(dut),
            _ => None,
        });
        let duts: Vec<&String> = duts.collect();
        // The gate names the device as the campaign does, without a set.
        let cells = plan.cells.iter().filter(|cell| cell.dut.name == *duts[0]);
        let cells = cells.cloned().map(|mut cell| {
            cell.dut.name.clone_from(&dut);
            cell
        });
        let question = Self::about(gate, cells.collect(), dut)?;
        let group = question.group(plan);
        for dut in duts {
            let mut cells = plan.cells.iter();
            if !cells.any(|cell| cell.group == group && cell.dut.name == *dut) {
                return Err(BisectingError::mistake(
                    format!("`{dut}` has no cell {group}, which the gate is about"),
                    "name it in `duts` of that trial, or leave this set out",
                ));
            }
        }
        Ok((question, versions))
    }

    /// The question of a gate about the cells of a device.
    fn about(gate: Gate, cells: Vec<Cell>, dut: String) -> Result<Self, BisectingError> {
        let (bound, ratio) = gate.change()?;
        gate.check_between(&cells)?;
        let limited = gate.limited(&cells);
        // A pair compares one figure: a ratio of several cells would mix changes of opposite signs.
        let [cell] = limited[..] else {
            let ids: Vec<&str> = limited.iter().map(|cell| &*cell.id).collect();
            return Err(BisectingError::mistake(
                format!(
                    "the gate `{}` is about {} cells of {dut}: {}",
                    gate.text,
                    ids.len(),
                    listed(&ids)
                ),
                "one figure is bisected: add conditions, such as `mtu=1500`, until one cell is left",
            ));
        };
        let loads = Gate::loads_of(cell);
        if gate.at.is_none() && !loads.is_empty() {
            return Err(BisectingError::mistake(
                format!("the cell {} has a figure at each of its loads", cell.id),
                format!("add one: `at {}`", loads[0]),
            ));
        }
        Ok(Self {
            change: match bound {
                Bound::AtLeast => Change::Drop,
                Bound::AtMost => Change::Rise,
            },
            // Rounded, as 2 % is no binary fraction. The cast saturates, and `Config` refuses what
            // is too large.
            size_ppm: ((1.0 - ratio).abs() * 1e6).round() as u32,
            cell: cell.id.clone(),
            dut,
            gate: gate.text,
        })
    }

    /// The group of its cell.
    fn group<'p>(&self, plan: &'p Plan) -> &'p str {
        let cell = plan.cells.iter().find(|cell| cell.id == self.cell);
        cell.map_or("", |cell| &cell.group)
    }

    /// The plan of one trial of its cell by a version.
    pub(crate) fn trial(&self, plan: &Plan, subject: &Subject) -> Plan {
        let mut trial = bare(plan);
        trial.repeats = 1;
        match subject {
            Subject::Program(program) => {
                trial.cells.retain(|cell| cell.id == self.cell);
                for cell in &mut trial.cells {
                    // A path that a journal can have: the programs of versions are UTF-8.
                    cell.dut = with_program(&cell.dut, None, &program.to_string_lossy());
                }
            }
            Subject::Dut(dut) => {
                let group = self.group(plan);
                let is_of_set =
                    |cell: &Cell| cell.group == group && cell.dut.name == *dut && !cell.calibration;
                trial.cells.retain(is_of_set);
            }
        }
        trial
    }

    /// The figure in the records of one trial by [`Question::trial`]; `None` without a figure.
    pub(crate) fn figure(&self, trial: &Plan, record: &TrialRecord) -> Option<(Quantity, f64)> {
        let Outcome::Measured(_) = record.outcome else {
            return None;
        };
        // By the statistics of a run, so that a figure here is the one that its report has.
        let mut journal = Journal::new(Header {
            format: FORMAT_VERSION,
            started_unix_ns: record.started_unix_ns,
            command: Vec::new(),
            program: String::new(),
            environment: Environment::default(),
            plan: trial.clone(),
        });
        journal.trials.push(record.clone());
        let results = Results::of(&journal);
        let readings = results.cell(&trial.cells.first()?.id)?.readings();
        let gate: Gate = self.gate.parse().ok()?;
        let is_asked = |reading: &&Reading| {
            let load = match gate.at {
                Some(GateLoad::Percent(percent)) => reading.load_percent == Some(percent),
                // A cell has one constant load, which its figure does not repeat.
                Some(GateLoad::FramesPerS(_)) => reading.load_percent.is_none(),
                None => true,
            };
            reading.quantity.word() == gate.quantity && load
        };
        let reading = readings.iter().find(is_asked)?;
        Some((reading.quantity, reading.value.mean))
    }
}

/// The plan without its claims, limits, references and captures.
pub(crate) fn bare(plan: &Plan) -> Plan {
    let mut bare = plan.clone();
    // These are about a whole run of the campaign, and a bisection makes one trial at a time.
    bare.claims.clear();
    bare.expect = Expectations::default();
    bare.published.clear();
    bare.reports.clear();
    bare.capture = None;
    bare
}

/// The device with a program in place of its usual one, on both gateways.
pub(crate) fn with_program(dut: &Dut, version: Option<&str>, program: &str) -> Dut {
    Dut {
        software: Software {
            version: version.map(str::to_owned),
            program: Some(program.to_owned()),
            // The bisection builds, not the campaign.
            build: None,
            found: None,
            environment: dut.software.environment.clone(),
            settings: dut.software.settings.clone(),
        },
        ..dut.clone()
    }
}

/// Whether a device runs a program that can be replaced.
const fn has_program(adapter: &Adapter) -> bool {
    match adapter {
        Adapter::Cipherbench(_) | Adapter::StrongSwan(_) | Adapter::OpenVpn(_) => true,
        Adapter::WireGuard(tunnel) => !matches!(tunnel.program, WireGuardProgram::Kernel),
        _ => false,
    }
}

/// Programs are files of this machine.
fn refuse_labs(plan: &Plan) -> Result<(), BisectingError> {
    if plan.lab.hosts.is_none() {
        return Ok(());
    }
    Err(BisectingError::mistake(
        format!(
            "the lab `{}` has hosts, and programs are files of this machine",
            plan.lab.name
        ),
        "bisect in a lab on this machine, such as the built-in `namespaces`",
    ))
}

/// The device that versions are built of.
fn device(gate: &Gate, plan: &Plan, wanted: Option<&str>) -> Result<String, BisectingError> {
    let mut all: Vec<&Dut> = Vec::new();
    for cell in plan.cells.iter().filter(|cell| !cell.calibration) {
        if !all.iter().any(|dut| dut.name == cell.dut.name) {
            all.push(&cell.dut);
        }
    }
    let with: Vec<&str> = all
        .iter()
        .filter(|dut| has_program(&dut.adapter))
        .map(|dut| &*dut.name)
        .collect();
    let help = if with.is_empty() {
        "add a device with a program, such as `cipherbench` or `wireguard-go`".to_owned()
    } else {
        format!("devices with a program are {}", listed(&with))
    };
    if let Some(wanted) = wanted {
        return if with.contains(&wanted) {
            Ok(wanted.to_owned())
        } else {
            let problem = if all.iter().any(|dut| dut.name == wanted) {
                format!("the device `{wanted}` runs no program that could be replaced")
            } else {
                format!("the campaign has no device `{wanted}`")
            };
            Err(BisectingError::mistake(problem, help))
        };
    }
    let meant: Vec<&str> = with
        .iter()
        .copied()
        .filter(|name| {
            let mut cells = plan.cells.iter().filter(|cell| cell.dut.name == *name);
            cells.any(|cell| gate.applies(cell))
        })
        .collect();
    match meant[..] {
        [one] => Ok(one.to_owned()),
        // The later check explains a gate that is about none of its cells.
        [] if with.len() == 1 => Ok(with[0].to_owned()),
        [] => Err(BisectingError::mistake(
            format!("the gate `{}` is about no device with a program", gate.text),
            help,
        )),
        _ => Err(BisectingError::mistake(
            format!("several devices have a program: {}", listed(&meant)),
            "name the one that the versions are of: `--dut NAME`",
        )),
    }
}

fn listed(names: &[&str]) -> String {
    match names.len().checked_sub(LISTED_MAX) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..LISTED_MAX].join(", ")),
    }
}

/// The trial among the records of a measurement.
pub(crate) fn trial_of(records: Vec<Record>) -> Option<Box<TrialRecord>> {
    records.into_iter().find_map(|record| match record {
        Record::Trial(trial) => Some(trial),
        _ => None,
    })
}
