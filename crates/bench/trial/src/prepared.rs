//! Preparations of the stations before a trial, once for all trials of the kind: they are not
//! measured.

use crate::command::Commands;
use crate::error::TrialError;
use crate::tools::tool_error;
use std::time::Duration;
use testbed::Bench;

/// Time of a preparation: encoding and decoding the longest clip on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs the preparations one after the other.
///
/// # Errors
/// When one fails, or reports something else than the one before.
pub(crate) fn prepare(bench: &dyn Bench, commands: &Commands) -> Result<(), TrialError> {
    let mut before: Option<String> = None;
    for preparation in &commands.preparations {
        let node = preparation.node;
        let ended = bench.node(node).run(preparation.program.clone(), LIMIT)?;
        if ended.code != Some(0) {
            return Err(tool_error(
                node,
                "it cannot prepare the trial".into(),
                &ended,
            ));
        }
        if before
            .as_ref()
            // Two versions of an encoder make different clips, and frames would seem damaged.
            .is_some_and(|before| *before != ended.stdout)
        {
            let problem = "it prepared something else than the other station: install the same versions on both hosts";
            return Err(tool_error(node, problem.into(), &ended));
        }
        before = Some(ended.stdout);
    }
    Ok(())
}
