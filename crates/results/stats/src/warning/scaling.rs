//! Silent caps.

use super::{Warning, WarningKind, warning};
use crate::analysis::scaling::{OtherWorkers, Scaling};

/// Devices that stop scaling while cores are idle.
pub(super) fn silent_caps(scalings: &[Scaling]) -> Option<Warning> {
    let capped: Vec<_> = scalings
        .iter()
        .filter_map(|found| Some((found, found.cap.as_ref()?)))
        .collect();
    let (first, cap) = capped.first()?;
    let others = match capped.len() {
        1 => String::new(),
        count => format!(" So it is in {} series more.", count - 1),
    };
    let cells = capped.iter().flat_map(|(found, cap)| {
        // Figures below the stop are not capped.
        let past = found.points.iter().filter(|point| point.n >= cap.from_n);
        past.map(|point| point.cell.clone())
    });
    warning(
        WarningKind::SilentCap,
        cells.collect(),
        format!(
            "`{}` is capped: in `{}` throughput is flat from {} {} on, and at {} of them {:.1} cores of \
             the machine are idle.{others}",
            first.dut,
            first.series,
            cap.from_n,
            first.axis.name(),
            cap.at_n,
            cap.idle_cores
        ),
        "Look for a default that limits its threads, queues or connections, set it, and measure again; \
         until then the figure is that of the default.",
    )
}

/// Devices that report another number of threads than configured.
pub(super) fn other_workers(found: &[OtherWorkers]) -> Option<Warning> {
    let first = found.first()?;
    let (fact, reported) = &first.fact;
    let others = match found.len() {
        1 => String::new(),
        2 => " The same in 1 more cell.".to_owned(),
        count => format!(" The same in {} more cells.", count - 1),
    };
    warning(
        WarningKind::OtherWorkers,
        found.iter().map(|found| found.cell.clone()).collect(),
        format!(
            "`{}` was configured with {} workers and reports {reported} (`{fact}`).{others}",
            first.dut, first.asked
        ),
        "Look for what limits them: a default, the machine's cores, or the affinity of the process.",
    )
}
