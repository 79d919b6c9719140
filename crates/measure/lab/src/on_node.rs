//! Tools run on nodes, which must succeed.

use crate::protocol::Program;
use crate::{LabError, Node, Result};
use std::time::Duration;

/// How long one may take.
const TOOL_LIMIT: Duration = Duration::from_secs(10);

/// Runs a batch of `ip` commands; nothing when there is none.
pub(crate) fn ip(node: &dyn Node, batch: String) -> Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    run_tool(
        node,
        Program {
            stdin: batch,
            ..Program::new(["ip", "-batch", "-"])
        },
    )
}

/// Runs a batch of `tc` commands.
pub(crate) fn tc(node: &dyn Node, batch: String) -> Result<()> {
    let program = Program {
        stdin: batch,
        ..Program::new(["tc", "-batch", "-"])
    };
    run_tool(node, program).map_err(|error| match error {
        LabError::Node { node, reason } if reason.contains("qdisc kind is unknown") => {
            LabError::Node {
                node,
                reason: format!(
                    "{reason}\nhelp: this kernel lacks the shaper: sudo modprobe sch_tbf; or \
                     leave the links' rate out"
                ),
            }
        }
        error => error,
    })
}

/// The version of a node's kernel, which is that of this machine.
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
    let reason = format!(
        "`{what}`{input} failed ({}){}",
        ended.how(),
        ended.last_words()
    );
    Err(LabError::Node {
        node: node.id().name(),
        reason,
    })
}
