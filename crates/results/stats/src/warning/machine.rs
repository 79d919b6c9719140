//! Warnings about the machine.

use super::{Warning, WarningKind, counted, warning};
use crate::analysis::cores::cores_wanted;
use journal::Journal;
use plan::Cell;

pub(super) fn shared_cores(journal: &Journal) -> Option<Warning> {
    let cpus = journal.header.environment.cpus;
    let crowded: Vec<&Cell> = journal
        .header
        .plan
        .cells
        .iter()
        .filter(|cell| cores_wanted(cell) > cpus)
        .collect();
    let most = crowded
        .iter()
        .map(|cell| cores_wanted(cell))
        .max()
        // 0 means that the number is unknown: then every cell would be crowded.
        .filter(|_| cpus > 0)?;
    let text = format!(
        "Stations and gateways share this machine's {}: {} would need up to {most} for each to \
         have its own, so they take time from one another.",
        counted(cpus as usize, "core"),
        counted(crowded.len(), "cell")
    );
    let advice = "Read ratios and bits per CPU-second, not absolute rates, or use a machine with \
                  more cores.";
    warning(
        WarningKind::SharedCores,
        crowded.into_iter().map(|cell| cell.id.clone()).collect(),
        text,
        advice,
    )
}

pub(super) fn virtual_machine(journal: &Journal) -> Option<Warning> {
    let hypervisor = &journal.header.environment.hypervisor;
    (!hypervisor.is_empty()).then_some(())?;
    warning(
        WarningKind::VirtualMachine,
        vec![],
        format!(
            "This machine is virtual ({hypervisor}): neighbours may take its cores at any time."
        ),
        "Repeat the run at another hour, and on bare metal before you publish absolute figures.",
    )
}

pub(super) fn governor(journal: &Journal) -> Option<Warning> {
    let governor = &journal.header.environment.governor;
    (!governor.is_empty() && governor != "performance").then_some(())?;
    warning(
        WarningKind::Governor,
        vec![],
        format!(
            "The frequency governor is `{governor}`: the cores' clock may change during a trial."
        ),
        "Set it to `performance`: cipherbench doctor --apply.",
    )
}
