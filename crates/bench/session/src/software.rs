//! The programs that a campaign names: built and identified before anything is measured.

mod build;
mod process;
mod sources;
mod store;

pub use process::{Ended, await_end, kill_group, last_lines};

use crate::error::SessionError;
use crate::reporter::Reporter;
use crate::sysctls;
use lab::programs::{identify, identify_as, verify as verify_program};
use plan::{Adapter, Build, Dut, LabKind, PinnedProgram, Plan, Software};
use std::collections::BTreeMap;
use testbed::Interrupt;

/// Builds the programs of a plan, once for each version, and records the path, SHA-256 and version
/// of each in the plan. Cells that are `left_out` need none. On a lab's hosts programs are found
/// when a device starts.
///
/// # Errors
/// When this kernel lacks a parameter that a version sets; when a build fails, does not end or
/// leaves no program; when a program cannot be read; and when the run is interrupted.
pub fn prepare(
    plan: &mut Plan,
    left_out: &BTreeMap<String, String>,
    interrupt: &Interrupt,
    reporter: &Reporter,
) -> Result<(), SessionError> {
    if plan.lab.kind != LabKind::Namespaces {
        return Ok(());
    }
    sysctls::require(plan)?;
    let mut known: Vec<(Adapter, Software, PinnedProgram)> = Vec::new();
    for cell in &mut plan.cells {
        if left_out.contains_key(&cell.id) {
            continue;
        }
        let dut = &mut cell.dut;
        find_tools(dut)?;
        let Some(program) = dut.software.program.clone() else {
            continue;
        };
        // A DUT has a cell for each group, and its settings may multiply: one build for all.
        let is_same = |(adapter, software, _): &&(Adapter, Software, PinnedProgram)| {
            adapter.kind() == dut.adapter.kind() && *software == dut.software
        };
        if let Some((.., found)) = known.iter().find(is_same) {
            dut.software.found = Some(found.clone());
            continue;
        }
        let path = match &dut.software.build {
            Some(build) => built(dut, build, &program, interrupt, reporter)?,
            None => program,
        };
        let found = identify(&dut.adapter, &path)
            .map_err(|reason| SessionError::Program(format!("DUT `{}`: {reason}", dut.name)))?;
        known.push((dut.adapter.clone(), dut.software.clone(), found.clone()));
        dut.software.found = Some(found);
    }
    warn_of_equal(&known, reporter);
    name_ends(&known, reporter);
    Ok(())
}

/// Finds the programs of the stations that a version of a DUT names.
fn find_tools(dut: &mut Dut) -> Result<(), SessionError> {
    let programs = dut.software.settings.iter_mut();
    for (name, its) in programs.flat_map(|settings| &mut settings.programs) {
        let found = identify_as(Some(name), &its.program);
        let found = found
            .map_err(|reason| SessionError::Program(format!("DUT `{}`: {reason}", dut.name)))?;
        its.found = Some(found);
    }
    Ok(())
}

/// Versions need not interoperate: no cell has two of them.
fn name_ends(known: &[(Adapter, Software, PinnedProgram)], reporter: &Reporter) {
    let mut named: Vec<&Adapter> = Vec::new();
    for (adapter, ..) in known {
        let of_it = known.iter().filter(|(other, ..)| other == adapter);
        let versions: Vec<_> = of_it
            .filter_map(|(_, it, _)| it.version.as_deref())
            .collect();
        if versions.len() > 1 && !named.contains(&adapter) {
            named.push(adapter);
            reporter.notice(&format!(
                "versions {} of {}: each is measured with itself at both ends\n",
                versions.join(", "),
                adapter.kind()
            ));
        }
    }
}

/// The path of a built program in the store.
fn built(
    dut: &Dut,
    build: &Build,
    program: &str,
    interrupt: &Interrupt,
    reporter: &Reporter,
) -> Result<String, SessionError> {
    let version = dut.software.version.as_deref();
    let task = build::Task::of(build, version, program)?;
    let store = store::Store::open().map_err(SessionError::Program)?;
    let key = task.key()?;
    if let Some(path) = key.as_deref().and_then(|key| store.made(key)) {
        reporter.notice(&format!("{}: as built before\n", task.name(&dut.name)));
        return Ok(path);
    }
    reporter.notice(&format!("{}: building\n", task.name(&dut.name)));
    task.run(&dut.name, &store, interrupt)?;
    let path = store.keep(&task.program, key.as_deref());
    path.map_err(SessionError::Program)
}

/// Two versions that are one program measure nothing but chance, as a null run is meant to.
fn warn_of_equal(known: &[(Adapter, Software, PinnedProgram)], reporter: &Reporter) {
    for (place, (adapter, software, found)) in known.iter().enumerate() {
        let earlier = known[..place].iter().find(|(other, before, same)| {
            other == adapter && before.version != software.version && same.sha256 == found.sha256
        });
        if let (Some((_, before, _)), Some(version)) = (earlier, &software.version) {
            let first = before.version.as_deref().unwrap_or_default();
            reporter.warn(&format!(
                "note: versions `{first}` and `{version}` of {} are the same program, SHA-256 {}\n",
                adapter.kind(),
                found.short()
            ));
        }
    }
}

/// Checks that the programs of a run are still the ones that it began with.
///
/// # Errors
/// When one has changed or is gone.
pub fn verify(plan: &Plan) -> Result<(), SessionError> {
    let mut checked: Vec<&PinnedProgram> = Vec::new();
    for cell in &plan.cells {
        for found in cell.dut.software.found_programs() {
            if !checked.contains(&found) {
                verify_program(found).map_err(SessionError::Program)?;
                checked.push(found);
            }
        }
    }
    Ok(())
}
