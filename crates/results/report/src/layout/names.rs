//! Names of DUTs as printed in every document for readers.
//!
//! All results are renamed once, so that no printed name can lack the mark.

use plan::{Dut, Plan};
use stats::Results;
use std::collections::BTreeSet;

/// Replaces the names of DUTs in the results by the printed names.
pub(super) fn mark(plan: &Plan, results: &mut Results) {
    let duts = plan.cells.iter().map(|cell| &cell.dut);
    // Comparisons and rankings contain only names, so their marks follow from the plan's devices.
    let insecure = duts.filter(|dut| dut.adapter.insecure().is_some());
    let insecure: BTreeSet<&str> = insecure.map(|dut| dut.name.as_str()).collect();
    let mark = |name: &mut String| *name = marked(name, insecure.contains(name.as_str()));
    for one in &mut results.cells {
        one.dut = marked(&one.dut, one.insecure.is_some());
    }
    for one in &mut results.comparisons {
        mark(&mut one.dut);
        mark(&mut one.baseline);
    }
    for one in &mut results.rankings {
        mark(&mut one.yardstick);
        one.without_figure.iter_mut().for_each(mark);
        let places = one.places.iter_mut().chain(&mut one.references);
        places.for_each(|place| mark(&mut place.dut));
    }
    for one in &mut results.contrasts {
        mark(&mut one.dut);
        mark(&mut one.twin);
    }
    // A further kind of result with a device's name must be added here, or it lacks the mark.
    let means = results.mean_frame_rates.iter_mut();
    let scalings = results.scalings.iter_mut().map(|one| &mut one.dut);
    let claims = results.claims.iter_mut().map(|one| &mut one.dut);
    let tools = results.tool_checks.iter_mut().map(|one| &mut one.dut);
    let published = results.published.iter_mut().map(|one| &mut one.dut);
    means
        .map(|one| &mut one.dut)
        .chain(scalings)
        .chain(claims)
        .chain(tools)
        .chain(published)
        .for_each(mark);
}

/// The printed name of a DUT.
pub(crate) fn shown(dut: &Dut) -> String {
    marked(&dut.name, dut.adapter.insecure().is_some())
}

/// The name of a DUT, suite or algorithm, with a mark if it is insecure.
pub(crate) fn marked(name: &str, is_insecure: bool) -> String {
    if is_insecure {
        noted(name, "insecure")
    } else {
        name.to_owned()
    }
}

/// A name with a note in brackets, merged into brackets at the end of the name.
pub(super) fn noted(name: &str, note: &str) -> String {
    match name.strip_suffix(')') {
        Some(name) => format!("{name}; {note})"),
        None => format!("{name} ({note})"),
    }
}
