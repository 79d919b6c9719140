//! `cipherbench check FILE…`: all mistakes of campaign and lab files.

use crate::cli::Check;
use crate::exit::{Exit, Failure};
use crate::output;
use campaign::{HostFacts, Input, LabFile};
use std::path::Path;
use units::human;
use yaml::Mistakes;

/// Prints a line for each file without a mistake, and all mistakes of the others.
pub(crate) fn check(arguments: &Check) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    for file in &arguments.files {
        match summary(file) {
            Ok(summary) => output::stdout(&format!("ok  {}  {summary}\n", file.display()))?,
            Err(mistakes) => {
                output::stderr(&format!("{mistakes}\n"));
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}

/// What a file without mistakes is.
///
/// A campaign is checked with the built-in lab and on a host of any size: whether this host can run it in the
/// lab that is meant, `plan` tells.
fn summary(file: &Path) -> Result<String, Mistakes> {
    match campaign::load_input(file)? {
        Input::Lab(lab) => Ok(format!("lab {}", lab.plan().name)),
        Input::Campaign(campaign) => {
            let plan = campaign.plan(&LabFile::built_in(), &HostFacts { cores: u16::MAX })?;
            Ok(format!(
                "campaign {}: {} cells, {} trials, {}",
                plan.name,
                plan.cells.len(),
                plan.trials().count(),
                human::duration_ns(plan.estimate_ns() as f64)
            ))
        }
    }
}
