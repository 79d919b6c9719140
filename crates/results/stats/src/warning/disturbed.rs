//! Warnings about loads with a disturbance.

use super::{Warning, WarningKind, about, counted};
use crate::cell::CellResult;
use crate::figures::frames::{DisturbanceResult, EventPlace, HostileShare, hostile_delivered_in};
use crate::figures::repeats::Total;
use journal::Journal;
use journal::record::Outcome;
use std::collections::BTreeMap;

/// Minimum share of the configured hostile packets: below it, the attack was weaker than reported.
const HOSTILE_SHORTFALL_RATIO: f64 = 0.95;

fn of(cell: &CellResult) -> Option<&DisturbanceResult> {
    cell.frames()?.disturbance()
}

fn with(cells: &[CellResult], found: impl Fn(&DisturbanceResult) -> bool) -> Vec<&CellResult> {
    let is = |cell: &&CellResult| of(cell).is_some_and(&found);
    cells.iter().filter(is).collect()
}

/// Covers every trial, including invalid and repeated ones: a finding does not need a valid figure.
fn delivered(journal: &Journal) -> BTreeMap<&str, u64> {
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for trial in &journal.trials {
        let (Outcome::Measured(measured) | Outcome::Invalid { measured, .. }) = &trial.outcome
        else {
            continue;
        };
        let frames = measured.frames().map_or(0, hostile_delivered_in);
        if frames > 0 {
            let sum = found.entry(&trial.cell).or_default();
            *sum = sum.saturating_add(frames);
        }
    }
    found
}

/// Forged or replayed frames came out: the worst failure of a tunnel.
pub(super) fn hostile_delivered(journal: &Journal, cells: &[CellResult]) -> Option<Warning> {
    let delivered = delivered(journal);
    let frames = |cell: &CellResult| delivered.get(cell.id.as_str()).copied().unwrap_or(0);
    about(
        WarningKind::HostileDelivered,
        cells.iter().filter(|cell| frames(cell) > 0),
        |cells, _| {
            let each: Vec<String> = cells
                .iter()
                .map(|cell| {
                    format!(
                        "`{}` ({})",
                        cell.id,
                        counted(frames(cell) as usize, "frame")
                    )
                })
                .collect();
            format!(
                "Hostile packets came through: under attack, frames came out of a device again, damaged, or so \
                 late that they may have come before: {}.",
                each.join(", ")
            )
        },
        "Look for what lets them pass before you look at any speed: each packet must be authenticated, and none \
         be taken twice (RFC 4303 §3.4.3).",
    )
}

/// Traffic in clear after a crash.
pub(super) fn fails_open(cells: &[CellResult]) -> Option<Warning> {
    let leaked = |found: &DisturbanceResult| {
        let failover = found.failover();
        // By frames, and not by the verdict on failing closed, which needs a recorded failure.
        failover.and_then(|found| found.clear_frames).unwrap_or(0)
    };
    about(
        WarningKind::FailsOpen,
        with(cells, |found| leaked(found) > 0),
        |cells, _| {
            let each: Vec<String> = cells
                .iter()
                .map(|cell| {
                    let frames = of(cell).map_or(0, leaked);
                    format!(
                        "`{}` ({} in clear)",
                        cell.dut,
                        counted(frames as usize, "frame")
                    )
                })
                .collect();
            format!(
                "When the encryptor died, the gateway sent the stations' traffic in clear by another route: {}.",
                each.join(", ")
            )
        },
        "Where gateways have a default route, add a rule that drops what does not leave through the tunnel, and \
         that stays when the encryptor ends.",
    )
}

fn events(cell: &CellResult) -> &[EventPlace] {
    of(cell).map_or(&[], DisturbanceResult::not_recovered)
}

pub(super) fn not_recovered(cells: &[CellResult]) -> Option<Warning> {
    about(
        WarningKind::NotRecovered,
        cells.iter().filter(|cell| !events(cell).is_empty()),
        |cells, count| {
            let each: Vec<String> = cells
                .iter()
                .map(|cell| {
                    let names = events(cell).iter().map(|event| event.name.as_str());
                    let mut names: Vec<&str> = names.collect();
                    let all = names.len();
                    // Only neighbours: the events of one kind follow each other, and the number
                    // above counts all.
                    names.dedup();
                    format!("`{}` (after {all} × {})", cell.dut, names.join(", "))
                })
                .collect();
            format!(
                "In {count} frames were still being lost when the time was up: {}.",
                each.join(", ")
            )
        },
        "Such events have no time and count as longer than any other in a median; watch longer \
         to tell a slow recovery from none.",
    )
}

/// Loss in the control is not caused by the disturbance.
pub(super) fn quiet_loss(cells: &[CellResult]) -> Option<Warning> {
    let lost = |found: &DisturbanceResult| {
        let quiet = found.quiet.as_ref();
        quiet.map_or(0, |quiet| quiet.load.account.lost)
    };
    about(
        WarningKind::QuietLoss,
        with(cells, |found| lost(found) > 0),
        |cells, count| {
            let all = cells.iter().filter_map(|cell| of(cell)).map(lost).total();
            format!(
                "In {count} the load lost frames ({all}) before anything happened to the device."
            )
        },
        "Lower the load until the quiet trial loses none: loss during rekeys or hostile packets there \
         is not theirs alone.",
    )
}

pub(super) fn hostile_shortfall(cells: &[CellResult]) -> Option<Warning> {
    let short = |share: &HostileShare| {
        let both = share
            .packets_per_s
            .as_ref()
            .zip(share.intended_packets_per_s.as_ref());
        // An unknown rate is a shortfall too: nothing shows that the attack took place.
        both.is_none_or(|(sent, intended)| sent.mean < HOSTILE_SHORTFALL_RATIO * intended.mean)
    };
    about(
        WarningKind::HostileShortfall,
        with(cells, |found| {
            let hostile = found.hostile();
            hostile.is_some_and(|hostile| hostile.shares.iter().any(short))
        }),
        |_, count| {
            format!(
                "In {count} fewer than {:.0} % of the hostile packets asked for were sent.",
                100.0 * HOSTILE_SHORTFALL_RATIO
            )
        },
        "Read the packets sent, not the share; give the attacker a separate core, or lower the load.",
    )
}
