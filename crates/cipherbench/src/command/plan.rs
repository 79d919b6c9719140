//! `cipherbench plan FILE`: every cell with its commands and estimated time.

use crate::cli::Plan as Arguments;
use crate::exit::{Exit, Failure};
use crate::{output, planning, programs};
use lab::programs::Missing;
use plan::{Cell, Measurement, Plan};
use serde::Serialize;
use std::collections::BTreeMap;
use testbed::protocol::Program;
use trial::CommandError;

/// The output of `plan --json`.
#[derive(Serialize)]
struct Planned<'a> {
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
}

#[derive(Serialize)]
struct CellCommands<'a> {
    cell: &'a str,
    commands: Vec<Vec<String>>,
}

pub(crate) fn plan(arguments: &Arguments) -> Result<Exit, Failure> {
    let plan = planning::plan(
        arguments.campaign.as_deref(),
        arguments.lab.as_deref(),
        arguments.quick,
        None,
    )?;
    let cores = planning::host_facts().cores;
    let commands = plan
        .cells
        .iter()
        .map(|cell| commands(&plan, cell, cores))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let missing = programs::missing_for(&plan);
    if arguments.json {
        output::stdout(&as_json(&plan, commands, missing))?;
    } else {
        output::stdout(&as_text(&plan, &commands))?;
        programs::warn("", &missing, plan.cells.len());
    }
    Ok(Exit::Done)
}

/// Returns the commands on the stations in a trial of this cell: B's servers, then A's clients. A
/// tuned cell is shown with the initial parameters of the search. Frame tests have none: their
/// arguments are known only when the path is up, and the journal records them.
fn commands(plan: &Plan, cell: &Cell, cores: u16) -> Result<Vec<Vec<String>>, CommandError> {
    if matches!(
        cell.measurement,
        Measurement::Frames(_) | Measurement::Device(_)
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

fn as_text(plan: &Plan, commands: &[Vec<Vec<String>>]) -> String {
    let by_id: BTreeMap<_, _> = plan
        .cells
        .iter()
        .map(|cell| cell.id.as_str())
        .zip(commands)
        .collect();
    plan::to_text(plan, |cell| by_id[cell.id.as_str()].clone())
}

fn as_json(plan: &Plan, commands: Vec<Vec<Vec<String>>>, missing: Vec<Missing>) -> String {
    let commands = plan
        .cells
        .iter()
        .zip(commands)
        .map(|(cell, commands)| CellCommands {
            cell: &cell.id,
            commands,
        })
        .collect();
    let estimate_ns = plan.estimate_ns();
    let noisy_estimate_ns = plan::estimate::noisy_ns(plan);
    // Plain data with string keys always has a JSON form.
    let planned = serde_json::to_string_pretty(&Planned {
        estimate_ns,
        noisy_estimate_ns,
        plan,
        commands,
        missing,
    });
    planned.expect("a plan can be written as JSON") + "\n"
}
