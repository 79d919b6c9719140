//! The rules, from a document to findings: one file for each kind of comparison.
//!
//! To add a rule: its line in [`Rule`](crate::Rule), a function in one of the files here and its
//! call below, a section with an example in `docs/lint.md`, and true tables in
//! `tests/true_tables.rs` with one that a changed value breaks.
//!
//! A finding is made only if no values that round to the printed figures avoid it.

mod claims;
mod copies;
mod devices;
mod form;
mod mixes;
pub(crate) mod order;
mod rates;
mod sizes;
mod sums;
mod twins;

use crate::document::Document;
use crate::finding::Finding;

/// All findings of a document, in file order.
#[must_use]
pub fn check(document: &Document) -> Vec<Finding> {
    let pasted = copies::pasted_tables(document);
    let is_pasted = |id: &str| pasted.iter().any(|(table, _)| *table == id);
    let mut findings: Vec<Finding> = Vec::new();
    // A copied table is one finding. Its figures, checked as its title says, would only add
    // consequences of the copy.
    for table in document.tables.iter().filter(|it| !is_pasted(&it.id)) {
        findings.extend(rates::layers(table));
        findings.extend(rates::exceeding(table));
        findings.extend(sums::means(table));
        findings.extend(copies::pasted_rows(table));
        findings.extend(order::out_of_order(table));
        findings.extend(mixes::differing(table));
        findings.extend(sizes::constant_frame_rates(table));
        findings.extend(sizes::constant_bit_rates(table));
        findings.extend(sizes::rising_frame_rates(table));
        findings.extend(sizes::falling_rates(table));
        findings.extend(form::units(table));
        findings.extend(form::precision(table));
        findings.extend(copies::repeats(document, table));
        findings.extend(devices::faster(document, table));
        findings.extend(devices::equal_to_cpu(document, table));
    }
    findings.extend(devices::deviations(document, &is_pasted));
    findings.extend(twins::missing_rows(document));
    findings.extend(form::orphans(document));
    findings.extend(sums::sums(document));
    findings.extend(claims::contradicted(document));
    findings.extend(pasted.into_iter().map(|(_, finding)| finding));
    // Several rules may find fault with one figure: the rule as second key makes the order
    // reproducible. Places in a run have no lines, so its findings are in the order of the rules.
    findings.sort_by_key(|finding| {
        let spot = finding.place.spot.as_ref();
        (spot.map_or((0, 0), |it| (it.line, it.column)), finding.rule)
    });
    findings
}
