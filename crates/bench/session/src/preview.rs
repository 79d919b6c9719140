//! A plan before it is carried out: its cells with their commands and estimated times.

use crate::kernel::{self, Lack};
use crate::planning::host_facts;
use crate::programs::{missing_for, warning};
use lab::programs::Missing;
use plan::{Cell, Measurement, Plan, estimate};
use serde::Serialize;
use std::collections::BTreeMap;
use testbed::protocol::Program;
use trial::CommandError;

/// A plan with its commands and the programs that this host lacks.
#[derive(Debug, Serialize)]
pub struct Preview<'a> {
    /// Estimated total time, including searches for tool parameters.
    estimate_ns: u64,
    /// The same if a noisy device or machine makes searches for throughput take longer.
    noisy_estimate_ns: u64,
    /// The plan as in the journal.
    plan: &'a Plan,
    /// The commands on the stations, per cell in the order of the plan.
    commands: Vec<CellCommands<'a>>,
    /// Programs that cells need and that this host lacks.
    missing: Vec<Missing>,
    /// Features that cells need and that this host's kernel lacks.
    #[serde(skip)]
    lacks: Vec<Lack>,
}

#[derive(Debug, Serialize)]
struct CellCommands<'a> {
    cell: &'a str,
    commands: Vec<Vec<String>>,
}

impl<'a> Preview<'a> {
    /// Returns the preview of a plan.
    ///
    /// # Errors
    /// When a cell has no command on this host.
    pub fn of(plan: &'a Plan) -> Result<Self, CommandError> {
        let cores = host_facts().cores;
        let commands = plan.cells.iter().map(|cell| {
            Ok(CellCommands {
                cell: &cell.id,
                commands: commands(plan, cell, cores)?,
            })
        });
        Ok(Self {
            estimate_ns: plan.estimate_ns(),
            noisy_estimate_ns: estimate::noisy_ns(plan),
            plan,
            commands: commands.collect::<Result<_, CommandError>>()?,
            missing: missing_for(plan),
            lacks: kernel::lacking(plan),
        })
    }

    /// As JSON.
    #[must_use]
    pub fn json(&self) -> String {
        // Plain data with string keys always has a JSON form.
        serde_json::to_string_pretty(self).expect("a plan can be written as JSON") + "\n"
    }

    /// As a text, one block for each cell.
    #[must_use]
    pub fn text(&self) -> String {
        let commands = self.commands.iter();
        let by_id: BTreeMap<_, _> = commands.map(|cell| (cell.cell, &cell.commands)).collect();
        // `Preview::of` makes an entry for every cell of this plan.
        let cores = host_facts().cores.into();
        plan::to_text_here(self.plan, cores, |cell| by_id[&*cell.id].clone())
    }

    /// A warning about missing programs and kernel features, if any.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let cells = self.plan.cells.len();
        let programs = warning("", &self.missing, cells);
        let kernel = kernel::warning("", &self.lacks, cells);
        (programs.is_some() || kernel.is_some())
            .then(|| programs.unwrap_or_default() + &kernel.unwrap_or_default())
    }
}

/// Returns the commands on the stations in a trial of this cell: B's servers, then A's clients. A
/// tuned cell is shown with the initial parameters of the search. Frame tests and peers of IKEv2
/// have none: their arguments are known only when the path is up, and the journal records them.
fn commands(plan: &Plan, cell: &Cell, cores: u16) -> Result<Vec<Vec<String>>, CommandError> {
    if matches!(
        cell.measurement,
        Measurement::Ike(_) | Measurement::Frames(_) | Measurement::Device(_)
    ) {
        return Ok(Vec::new());
    }
    let target = plan.lab.addresses.target();
    // The cores of a lab's hosts are not known here.
    let wanted = cell.stations.map_or(0, |stations| stations.cores);
    let cores = match plan.lab.hosts {
        Some(_) => cores.max(wanted),
        None => cores,
    };
    let commands = match trial::commands(cell, &trial::parameters(cell), target, cores) {
        // The campaign has `missing_cores: skip`, or the plan would have been refused.
        Err(CommandError::TooFewCores { .. }) => return Ok(Vec::new()),
        made => made?,
    };
    let words = |program: &Program| trial::words(program);
    Ok(commands.programs().map(words).collect())
}
