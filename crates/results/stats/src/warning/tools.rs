//! Tools that measure different figures.

use super::{Warning, WarningKind, warning};
use crate::analysis::tools::{ToolCheck, ToolFigure};

/// Transfers with two tools that disagree.
pub(crate) fn disagree(checks: &[ToolCheck]) -> Option<Warning> {
    let apart: Vec<_> = checks.iter().filter(|check| !check.agree).collect();
    if apart.is_empty() {
        return None;
    }
    let figure = |figure: &ToolFigure| {
        let rate = units::human::bit_rate(figure.payload_throughput_bps.median);
        format!("{} {rate}", figure.tool)
    };
    let said = apart.iter().map(|check| {
        let figures: Vec<_> = check.figures.iter().map(figure).collect();
        let reason = check.reason.as_deref().unwrap_or("no reason was found");
        format!(
            "`{}` of `{}`: {} ({reason})",
            check.question,
            check.dut,
            figures.join(", ")
        )
    });
    let said: Vec<_> = said.collect();
    let cells = apart.iter().flat_map(|check| check.figures.iter());
    warning(
        WarningKind::ToolsDisagree,
        cells.map(|figure| figure.cell.clone()).collect(),
        format!(
            "Tools disagree by more than their spread. {}.",
            said.join("; ")
        ),
        "If a reason is named, remove it or use a tool that it does not concern; if none is, look at the \
         interfaces' counters in the evidence of both, and carry neither figure over to other machines.",
    )
}
