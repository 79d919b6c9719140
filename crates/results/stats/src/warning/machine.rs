//! Warnings about the machines that measure.

use super::{Warning, WarningKind, counted, warning};
use crate::analysis::cores::{Machine, machines_of};
use journal::Journal;
use plan::Cell;

/// The warnings of one kind about the machine of the run, or about each host of a lab of two.
pub(super) fn each(
    journal: &Journal,
    of: fn(&Journal, Machine<'_>) -> Option<Warning>,
) -> [Option<Warning>; 2] {
    // A lab is on one machine or on two. Both places exist always, so that the list of warnings
    // stays a plain array.
    let mut found = machines_of(&journal.header).map(|machine| of(journal, machine));
    [(); 2].map(|()| found.next().flatten())
}

/// Cells that want more cores of a machine than `range` begins with, and the most that one wants.
fn crowded<'j>(
    journal: &'j Journal,
    machine: Machine<'_>,
    range: std::ops::RangeInclusive<u32>,
) -> Option<(Vec<&'j Cell>, u32)> {
    let wanted = |cell: &&Cell| machine.cores_wanted(cell);
    let cells = journal.header.plan.cells.iter();
    // Left out, so nothing shared a core.
    let cells = cells.filter(|cell| journal.header.lacks_cores(cell).is_none());
    let crowded: Vec<&Cell> = cells.filter(|cell| range.contains(&wanted(cell))).collect();
    let most = crowded.iter().map(wanted).max()?;
    Some((crowded, most))
}

fn ids(cells: &[&Cell]) -> Vec<String> {
    cells.iter().map(|cell| cell.id.clone()).collect()
}

pub(super) fn shared_cores(journal: &Journal, machine: Machine<'_>) -> Option<Warning> {
    let cpus = machine.environment.cpus;
    // 0 means that the number is unknown: then every cell would be crowded.
    let least = cpus.checked_add(1).filter(|_| cpus > 0)?;
    let (crowded, most) = crowded(journal, machine, least..=u32::MAX)?;
    let text = format!(
        "Stations and gateways share {}'s {}: {} would need up to {most} for each to have its own, \
         so they take time from one another.",
        machine.name(),
        counted(cpus as usize, "core"),
        counted(crowded.len(), "cell")
    );
    let advice = "Read ratios and bits per CPU-second, not absolute rates, or use a machine with \
                  more cores.";
    warning(WarningKind::SharedCores, ids(&crowded), text, advice)
}

/// Cells with a CPU for each of stations and DUT, but not a core each: two of them share a core
/// (SMT) and slow each other down.
pub(super) fn sibling_cores(journal: &Journal, machine: Machine<'_>) -> Option<Warning> {
    let (cores, cpus) = (machine.environment.cores(), machine.environment.cpus);
    // More than the machine has CPUs is the warning about shared cores, which says it all.
    let (crowded, most) = crowded(journal, machine, cores.checked_add(1)?..=cpus)?;
    let text = format!(
        "{}'s {cpus} CPUs are threads of {}: in {} stations and gateways would need up to {most}, so \
         some of them share a core as SMT siblings.",
        at_start(&machine.name()),
        counted(cores as usize, "core"),
        counted(crowded.len(), "cell")
    );
    let advice = "Read ratios and bits per CPU-second, not absolute rates; turn SMT off, or use a \
                  machine with more cores.";
    warning(WarningKind::SiblingCores, ids(&crowded), text, advice)
}

pub(super) fn virtual_machine(_: &Journal, machine: Machine<'_>) -> Option<Warning> {
    let hypervisor = &machine.environment.hypervisor;
    // Empty on bare metal.
    (!hypervisor.is_empty()).then_some(())?;
    warning(
        WarningKind::VirtualMachine,
        vec![],
        format!(
            "{} is virtual ({hypervisor}): neighbours may take its cores at any time.",
            at_start(&machine.name())
        ),
        "Repeat the run at another hour, and on bare metal before you publish absolute figures.",
    )
}

pub(super) fn governor(_: &Journal, machine: Machine<'_>) -> Option<Warning> {
    let governor = &machine.environment.governor;
    // Empty means that it could not be read, as in most virtual machines.
    (!governor.is_empty() && governor != "performance").then_some(())?;
    let of_host = match machine.host {
        Some(_) => format!(" of {}", machine.name()),
        None => String::new(),
    };
    warning(
        WarningKind::Governor,
        vec![],
        format!(
            "The frequency governor{of_host} is `{governor}`: the cores' clock may change during a \
             trial."
        ),
        "Set it to `performance`: cipherbench doctor --apply.",
    )
}

/// The same words at the start of a sentence.
fn at_start(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}
