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
mod scales;
mod sizes;
mod sums;
mod twins;

use crate::claim::Operand;
use crate::document::{Axis, Cell, Document, Remark, Table};
use crate::finding::Finding;
use units::Layer;
use yaml::Place;

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
        findings.extend(rates::beyond_layers(table));
        findings.extend(scales::unequal(table));
        findings.extend(rates::exceeding(table));
        findings.extend(sums::means(table));
        findings.extend(copies::pasted_rows(table));
        findings.extend(order::out_of_order(table));
        findings.extend(mixes::differing(table));
        findings.extend(sizes::constant_frame_rates(table));
        findings.extend(sizes::constant_bit_rates(table));
        findings.extend(sizes::rising_frame_rates(table));
        findings.extend(sizes::falling_rates(table));
        findings.extend(form::units(table).or_else(|| scales::mixed(table)));
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

/// Remarks on tables whose figures no rule compares, and on a file of text without a table: no
/// finding then says nothing about the figures.
pub(crate) fn unchecked(file: &str, document: &Document) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    for table in &document.tables {
        let missing = missing_keys(table);
        let keys = missing.join(", ");
        let what = match (is_unchecked(document, table), missing.is_empty()) {
            (false, true) => continue,
            (true, true) => format!(
                "no rule compares the figures of {}: its columns are no sizes, mixes, layers or statistics, and \
                 nothing states the limit of a link, a `baseline` or a claim for them; with frame sizes as rows state \
                 `columns = \"devices\"`",
                table.id
            ),
            (true, false) => format!(
                "no rule compares the figures of {} with each other, and the link is compared by its rate at L1 \
                 alone, the limit at any layer; for the limit of their layer and size state {keys}, and with frame \
                 sizes as rows `columns = \"devices\"`",
                table.id
            ),
            (false, false) => format!(
                "rates of {} are compared with the link's rate at L1 alone, the limit at any layer; for the limit of \
                 their layer and size state {keys}",
                table.id
            ),
        };
        remarks.push(Remark {
            place: table.place.clone(),
            what,
        });
    }
    remarks.extend(document.tables.iter().filter_map(rates::layer_unstated));
    let is_empty = document.tables.is_empty()
        && document.figures.is_empty()
        && document.claims.is_empty()
        && document.sums.is_empty()
        && document.mixes.is_empty()
        && document.remarks.is_empty();
    if is_empty {
        remarks.push(Remark {
            place: Place::whole_file(file),
            what: "no table of figures is in the file, so nothing is checked".to_owned(),
        });
    }
    remarks
}

/// Returns the keys that the limit of a link lacks for the bit rates of a table.
fn missing_keys(table: &Table) -> Vec<&'static str> {
    let is_bare = |cell: &Cell<'_>| cell.bit_rate().is_some() && cell.ceiling_bps().is_none();
    let bare: Vec<Cell<'_>> = table.cells().filter(is_bare).collect();
    // A mix that the file does not describe has its remark.
    let has_size = |cell: &&Cell<'_>| cell.size().is_some();
    let is_sized = !matches!(table.axis, Axis::Names | Axis::Bytes);
    if table.link_bps.is_none() || (is_sized && !bare.iter().any(|cell| has_size(&cell))) {
        return Vec::new();
    }
    let has_layer = |cell: &Cell<'_>| cell.own_layer().or(table.layer).is_some();
    let mut keys = Vec::new();
    if !bare.iter().all(has_layer) {
        keys.push("`layer`");
    }
    if !is_sized && !bare.is_empty() && table.mtu.is_none() {
        keys.push("`mtu`");
    }
    let is_payload = table.layer == Some(Layer::Payload) && !table.has_size_rows();
    if is_payload && !bare.is_empty() && table.transport.is_none() {
        keys.push("`transport`");
    }
    keys
}

/// Whether no rule compares a table's figures with each other, a link or another table.
fn is_unchecked(document: &Document, table: &Table) -> bool {
    let refers = [&table.baseline, &table.repeats, &table.accelerates];
    let is_named = || {
        let others = document.tables.iter();
        others
            .flat_map(|other| [&other.baseline, &other.repeats, &other.accelerates])
            .flatten()
            .any(|reference| reference.id == table.id)
    };
    let is_claimed = || {
        let tests = document.claims.iter().flat_map(|claim| &claim.tests);
        let operands = tests.flat_map(|test| test.left.iter().chain(&test.right));
        operands.into_iter().any(
            |(_, operand)| matches!(operand, Operand::Cell { table: id, .. } if *id == table.id),
        )
    };
    let statistics = |names: Vec<&str>| {
        let found = names.into_iter().filter(|it| order::named(it).is_some());
        found.count() > 1
    };
    let columns = table.columns.iter().map(|column| column.name.as_str());
    let rows = table.rows.iter().map(|row| row.name.as_str());
    table.axis == Axis::Names
        && !table.is_result
        && refers.iter().all(|reference| reference.is_none())
        && !is_named()
        && !is_claimed()
        && !devices::has_bare_link(table)
        && !statistics(columns.collect())
        && !statistics(rows.collect())
        && table.cells().all(|cell| cell.ceiling_bps().is_none())
}
