//! Tools that run on nodes.

use serde::de::DeserializeOwned;
use std::time::Duration;
use testbed::protocol::{Ended, Program};
use testbed::{Node, Result};

/// Time limit of one tool: far more than any needs, so that only one that hangs is ended.
const TOOL_LIMIT: Duration = Duration::from_secs(10);

/// Runs a batch of `ip` commands; does nothing for an empty batch.
pub(crate) fn ip(node: &dyn Node, batch: String) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    run_tool(node, Program::new(["ip", "-batch", "-"]).with_input(batch))
}

/// Runs all commands of a batch of `ip`, also those after one that fails.
///
/// # Errors
/// The failures of all.
pub(crate) fn ip_each(node: &dyn Node, batch: String) -> Result<()> {
    let program = Program::new(["ip", "-force", "-batch", "-"]);
    run_tool(node, program.with_input(batch))
}

/// Runs a batch of `tc` commands.
pub(crate) fn tc(node: &dyn Node, batch: String) -> Result<()> {
    let program = Program::new(["tc", "-batch", "-"]).with_input(batch);
    let help = "this kernel lacks the shaper: sudo modprobe sch_tbf; or leave the links' rate out";
    run_tool(node, program).map_err(|error| error.help_for("qdisc kind is unknown", help))
}

/// Runs a tool that may fail.
pub(crate) fn ask<S: Into<String>>(
    node: &dyn Node,
    argv: impl IntoIterator<Item = S>,
) -> Result<Ended> {
    node.run(Program::new(argv), TOOL_LIMIT)
}

/// Returns the kernel version of a node, which is this machine's.
pub(crate) fn kernel_version(node: &dyn Node) -> Result<String> {
    Ok(ask(node, ["uname", "-r"])?.stdout.trim().to_owned())
}

/// Runs a program that must succeed.
pub(crate) fn run_tool(node: &dyn Node, program: Program) -> Result<()> {
    let what = program.argv.join(" ");
    let input = program.stdin.clone();
    let ended = node.run(program, TOOL_LIMIT)?;
    if ended.code == Some(0) {
        return Ok(());
    }
    let input = if input.is_empty() {
        input
    } else {
        // Last, so that the first line has the cause.
        format!("\nits input was:\n{}", input.trim_end())
    };
    let (how, said) = (ended.how(), ended.last_words());
    Err(node.error(format!("`{what}` failed ({how}){said}{input}")))
}

/// Parses the JSON output of a tool.
pub(crate) fn parse_json<T: DeserializeOwned>(
    node: &dyn Node,
    what: &str,
    printed: &Ended,
) -> Result<T> {
    serde_json::from_str(&printed.stdout).map_err(|error| {
        let (how, said) = (printed.how(), printed.last_words());
        node.error(format!("cannot read {what}: {error} ({how}){said}"))
    })
}
