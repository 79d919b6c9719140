//! `wg`, run on gateways. Neither its arguments nor its errors contain a key.

use std::time::Duration;
use testbed::protocol::Program;
use testbed::{LabError, Node, Result};

/// How long `wg` may take, and a program to print its version.
pub(super) const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// Runs `wg`, which must succeed; returns its output.
pub(super) fn wg(dut: &str, node: &dyn Node, words: &[&str]) -> Result<String> {
    wg_with(dut, node, words, String::new())
}

/// As [`wg`], with `stdin` on its standard input.
pub(super) fn wg_with(dut: &str, node: &dyn Node, words: &[&str], stdin: String) -> Result<String> {
    let program = Program::new(["wg"].iter().chain(words).copied()).with_input(stdin);
    let refused = |on: &str, reason: &str| format!("cannot be configured on {on}: {reason}");
    let ended = node.run(program, TOOL_LIMIT);
    let ended = ended.map_err(|error| error.into_dut(dut, refused))?;
    if ended.code == Some(0) {
        return Ok(ended.stdout);
    }
    let (on, words, how) = (node.name(), words.join(" "), ended.how());
    let said = ended.stderr.trim().replace('\n', "; ");
    let reason = format!("failed on {on}: `wg {words}` ({how}): {said}");
    Err(LabError::dut(dut, reason))
}
