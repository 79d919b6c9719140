//! Tools that run on nodes and must succeed.

use serde::de::DeserializeOwned;
use std::time::Duration;
use testbed::protocol::{Ended, Program};
use testbed::{Node, Result};

/// Time limit of one tool.
const TOOL_LIMIT: Duration = Duration::from_secs(10);

/// Runs a batch of `ip` commands; does nothing for an empty batch.
pub(crate) fn ip(node: &dyn Node, batch: String) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    run_tool(node, Program::new(["ip", "-batch", "-"]).with_input(batch))
}

/// Runs a batch of `tc` commands.
pub(crate) fn tc(node: &dyn Node, batch: String) -> Result<()> {
    let program = Program::new(["tc", "-batch", "-"]).with_input(batch);
    let help = "this kernel lacks the shaper: sudo modprobe sch_tbf; or leave the links' rate out";
    run_tool(node, program).map_err(|error| error.help_for("qdisc kind is unknown", help))
}

/// Returns the kernel version of a node, which is this machine's.
pub(crate) fn kernel_version(node: &dyn Node) -> Result<String> {
    let ended = node.run(Program::new(["uname", "-r"]), TOOL_LIMIT)?;
    Ok(ended.stdout.trim().to_owned())
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
        format!(" with\n{}\n", input.trim_end())
    };
    let (how, said) = (ended.how(), ended.last_words());
    Err(node.error(format!("`{what}`{input} failed ({how}){said}")))
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
