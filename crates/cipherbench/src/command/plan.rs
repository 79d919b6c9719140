//! `cipherbench plan FILE`: every cell, its commands and the time it takes.

use crate::cli::Plan as Arguments;
use crate::exit::{Exit, Failure};
use crate::{output, planning};
use campaign::Plan;
use campaign::plan::{Cell, Measurement};
use lab::protocol::Program;
use serde::Serialize;
use std::collections::BTreeMap;
use trial::CommandError;

/// What `plan --json` prints.
#[derive(Serialize)]
struct Planned<'a> {
    /// Time that the whole takes, searches for tool parameters included.
    estimate_ns: u64,
    /// As the journal would have it.
    plan: &'a Plan,
    /// What runs on the stations, per cell in the order of the plan.
    commands: Vec<CellCommands<'a>>,
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
        None,
    )?;
    let cores = planning::host_facts().cores;
    let commands = plan
        .cells
        .iter()
        .map(|cell| commands(&plan, cell, cores))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let text = if arguments.json {
        as_json(&plan, commands)
    } else {
        as_text(&plan, &commands)
    };
    output::stdout(&text)?;
    Ok(Exit::Done)
}

/// What runs on the stations in a trial of this cell: B's servers first, then A's clients. A cell
/// that is tuned is shown with the parameters that the search starts from. Frame tests have none:
/// their programs' arguments are known when the path is up, and the journal keeps them.
fn commands(plan: &Plan, cell: &Cell, cores: u16) -> Result<Vec<Vec<String>>, CommandError> {
    if matches!(
        cell.measurement,
        Measurement::Frames(_) | Measurement::Device(_)
    ) {
        return Ok(Vec::new());
    }
    let target = plan.lab.addresses.target();
    let commands = trial::commands(cell, &trial::parameters(cell), target, cores)?;
    let words = |program: Program| program.argv;
    Ok(commands
        .servers
        .into_iter()
        .chain(commands.clients)
        .map(words)
        .collect())
}

fn as_text(plan: &Plan, commands: &[Vec<Vec<String>>]) -> String {
    let by_id: BTreeMap<_, _> = plan
        .cells
        .iter()
        .map(|cell| cell.id.as_str())
        .zip(commands)
        .collect();
    campaign::to_text(plan, |cell| by_id[cell.id.as_str()].clone())
}

fn as_json(plan: &Plan, commands: Vec<Vec<Vec<String>>>) -> String {
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
    // Plain data with string keys always has a JSON form.
    let planned = serde_json::to_string_pretty(&Planned {
        estimate_ns,
        plan,
        commands,
    });
    planned.expect("a plan can be written as JSON") + "\n"
}
