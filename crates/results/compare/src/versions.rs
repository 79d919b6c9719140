//! Versions of programs as the two sides of a comparison: names of versions stand for all devices
//! that differ in the version only.

use crate::{Match, Run};
use plan::{Dut, Setting, Value};

/// The matches, in which names of versions are replaced by the devices that have them. A single run
/// without matches compares each version with the first one.
pub(crate) fn expanded(runs: &[Run<'_>], matches: &[Match]) -> Vec<Match> {
    let Some((base, others)) = runs.split_first() else {
        return matches.to_vec();
    };
    let base = versions(base);
    if others.is_empty() && matches.is_empty() {
        return against_first(&base);
    }
    // A match holds for every further run, and all of them have the devices of the first of these.
    let other = others.first().map_or_else(|| base.clone(), versions);
    let mut all: Vec<Match> = Vec::new();
    for given in matches {
        let of_versions = pairs(&base, &other, given);
        if of_versions.is_empty() {
            // Devices, or a mistake that is reported later.
            all.push(given.clone());
        }
        all.extend(of_versions);
    }
    all
}

/// A device with a version.
#[derive(Clone)]
struct Version {
    device: String,
    version: String,
    others: Dut,
}

/// The devices of a run that have a version, each once, in the order of its cells.
fn versions(run: &Run<'_>) -> Vec<Version> {
    let mut found: Vec<Version> = Vec::new();
    for cell in &run.journal.header.plan.cells {
        let name = &cell.dut.name;
        if found.iter().any(|known| known.device == *name) {
            continue;
        }
        if let Some((Value::Word(version), others)) = cell.dut.apart(Setting::Version) {
            found.push(Version {
                device: name.clone(),
                version,
                others,
            });
        }
    }
    found
}

/// Devices whose versions are those of a match. A device of that name has precedence.
fn pairs(base: &[Version], other: &[Version], given: &Match) -> Vec<Match> {
    let is_device = |all: &[Version], name: &str| all.iter().any(|one| one.device == name);
    if is_device(base, &given.old) || is_device(other, &given.new) {
        return Vec::new();
    }
    let old = base.iter().filter(|one| one.version == given.old);
    let paired = old.flat_map(|old| {
        let new = other.iter().filter(|one| one.version == given.new);
        let alike = new.filter(|new| new.others == old.others);
        alike.map(|new| Match {
            old: old.device.clone(),
            new: new.device.clone(),
        })
    });
    paired.collect()
}

fn against_first(all: &[Version]) -> Vec<Match> {
    let later = all.iter().enumerate().filter_map(|(place, new)| {
        let old = all[..place].iter().find(|old| old.others == new.others)?;
        Some(Match {
            old: old.device.clone(),
            new: new.device.clone(),
        })
    });
    later.collect()
}
