//! Scaling coordinates and claims of a trial's cell, repeated in each of its rows.

use crate::kit::column::{Context, Declared, text};
use plan::Encryptor;
use stats::ClaimResult;
use std::collections::BTreeMap;

/// Claims, by the id of the measuring cell.
pub(crate) fn by_cell(claims: &[ClaimResult]) -> BTreeMap<&str, Vec<&ClaimResult>> {
    let mut found: BTreeMap<&str, Vec<&ClaimResult>> = BTreeMap::new();
    for claim in claims {
        found.entry(&claim.cell).or_default().push(claim);
    }
    found
}

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "dut_workers",
        "worker threads of the device, if the campaign sets them",
        |row| text(encryptor(row)?.workers),
    ),
    (
        "dut_tunnels",
        "tunnels of the device, if the campaign sets them",
        |row| text(encryptor(row)?.tunnels),
    ),
    (
        "claims",
        "claims about the cell, with their sources; several are separated by semicolons",
        |row| {
            all(row, |claim| {
                format!("{}: {} by {}", claim.measure, claim.claim, claim.source)
            })
        },
    ),
    (
        "claim_verdicts",
        "whether each claim is met, in the same order",
        |row| all(row, |claim| claim.verdict.name().to_owned()),
    ),
];

fn encryptor<'a>(row: &Context<'a>) -> Option<&'a Encryptor> {
    row.planned?.dut.adapter.encryptor()
}

fn all(row: &Context<'_>, of: impl Fn(&ClaimResult) -> String) -> Option<String> {
    let found: Vec<String> = row.claims.iter().map(|claim| of(claim)).collect();
    (!found.is_empty()).then(|| found.join("; "))
}
