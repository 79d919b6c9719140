//! A warning about cells that have enough CPUs on the machine, but not enough cores.

use super::{Warning, WarningKind, counted, warning};
use crate::analysis::cores::cores_wanted;
use journal::Journal;
use plan::Cell;

/// Cells with a CPU for each of stations and DUT, but not a core each: two of them share a core
/// (SMT) and slow each other down. Too few CPUs are another warning.
pub(super) fn sibling_cores(journal: &Journal) -> Option<Warning> {
    let environment = &journal.header.environment;
    let (cores, cpus) = (environment.cores(), environment.cpus);
    // More than the machine has CPUs is the warning about shared cores, which says it all.
    let wanted = |cell: &&Cell| (cores + 1..=cpus).contains(&cores_wanted(cell));
    let cells = journal.header.plan.cells.iter();
    let crowded: Vec<&Cell> = cells.filter(wanted).collect();
    let most = crowded.iter().map(|cell| cores_wanted(cell)).max()?;
    let text = format!(
        "This machine's {cpus} CPUs are threads of {}: in {} stations and gateways would need up to {most}, \
         so some of them share a core as SMT siblings.",
        counted(cores as usize, "core"),
        counted(crowded.len(), "cell")
    );
    let advice = "Read ratios and bits per CPU-second, not absolute rates; turn SMT off, or use a \
                  machine with more cores.";
    warning(
        WarningKind::SiblingCores,
        crowded.into_iter().map(|cell| cell.id.clone()).collect(),
        text,
        advice,
    )
}
