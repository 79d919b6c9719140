//! What the machine itself does to figures.

use super::{Warning, WarningKind, counted, warning};
use campaign::plan::{Cell, Direction, Measurement};
use journal::Journal;

/// Cores that the tools and the DUT of a cell would use if each had its own.
pub(crate) fn cores_wanted(cell: &Cell) -> u32 {
    // Crypto devices have no stations; more work in parallel than there are cores is what they are
    // asked for.
    let Some(stations) = cell.stations else {
        return 0;
    };
    // A station stands in the other gateway's place where one alone is loaded.
    let gateways = match &cell.measurement {
        Measurement::Frames(test) if test.traffic.direction != Direction::Both => 1,
        _ => 2,
    };
    2 * u32::from(stations.cores) + gateways * cell.dut.adapter.profile().gateway_cores
}

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
