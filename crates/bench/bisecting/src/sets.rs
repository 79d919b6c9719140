//! Versions that are sets of a campaign's `settings`.

use crate::{BisectingError, Version};
use plan::{Cell, Dut, Plan, VersionSettings};
use std::collections::BTreeSet;

/// A device of the campaign with its sets of settings: each is a DUT of the plan.
struct Family<'p> {
    /// The name without those of sets.
    name: String,
    duts: Vec<&'p Dut>,
}

impl Family<'_> {
    fn set(&self, name: &str) -> Option<(&Dut, &VersionSettings)> {
        self.duts.iter().find_map(|dut| {
            let settings = dut.software.settings.as_ref()?;
            (dut.software.version.as_deref() == Some(name)).then_some((*dut, settings))
        })
    }

    fn listed(&self) -> String {
        let names = self.duts.iter();
        let names: Vec<&str> = names
            .filter_map(|dut| dut.software.version.as_deref())
            .collect();
        names.join(", ")
    }
}

/// The named sets as versions, in their order, and the name of the device.
pub(crate) fn sets(
    plan: &Plan,
    dut: Option<&str>,
    names: &[String],
) -> Result<(String, Vec<Version>), BisectingError> {
    if names.len() < 2 {
        return Err(BisectingError::mistake(
            "a bisection of one set of settings",
            "name at least two sets, the good one first and the bad one last: `--settings good,bad`",
        ));
    }
    let mut known = BTreeSet::new();
    // Two candidates with the same settings have no change between them that could be confirmed.
    if let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) {
        return Err(BisectingError::mistake(
            format!("the set `{twice}` is named twice"),
            "name each set once, from the good to the bad one",
        ));
    }
    let family = family(plan, dut, names)?;
    let mut versions = Vec::new();
    for name in names {
        let Some((dut, settings)) = family.set(name) else {
            return Err(BisectingError::mistake(
                format!("`{}` has no settings `{name}`", family.name),
                format!("its sets are {}", family.listed()),
            ));
        };
        versions.push(Version::Settings {
            name: name.clone(),
            dut: dut.name.clone(),
            settings: settings.in_words(),
        });
    }
    let [good, bad] = [&names[0], &names[names.len() - 1]];
    if family.set(good).map(|(_, settings)| settings)
        == family.set(bad).map(|(_, settings)| settings)
    {
        return Err(BisectingError::mistake(
            format!("the sets of both ends are equal: `{good}` and `{bad}`"),
            "nothing can have changed between them: name other ends",
        ));
    }
    Ok((family.name, versions))
}

/// The device that is meant: the wanted one, or the only one with all of the sets.
fn family<'p>(
    plan: &'p Plan,
    wanted: Option<&str>,
    names: &[String],
) -> Result<Family<'p>, BisectingError> {
    let mut families: Vec<Family<'p>> = Vec::new();
    for dut in plan.cells.iter().filter_map(with_settings) {
        let name = base(dut);
        match families.iter_mut().find(|family| family.name == name) {
            // A DUT has a cell for each trial of the campaign.
            Some(family) if family.duts.iter().any(|known| known.name == dut.name) => {}
            Some(family) => family.duts.push(dut),
            None => families.push(Family {
                name: name.to_owned(),
                duts: vec![dut],
            }),
        }
    }
    let listed = families.iter().map(|family| &*family.name);
    let listed = listed.collect::<Vec<_>>().join(", ");
    if families.is_empty() {
        return Err(BisectingError::mistake(
            "no device of the campaign has `settings`",
            "give one sets of them: `settings: { usual: {}, half: { stations: { sysctls: … } } }`; \
             docs/campaign.md lists what can be set",
        ));
    }
    if let Some(wanted) = wanted {
        return families
            .into_iter()
            .find(|family| family.name == wanted)
            .ok_or_else(|| {
                BisectingError::mistake(
                    format!("the campaign has no device `{wanted}` with `settings`"),
                    format!("devices with settings are {listed}"),
                )
            });
    }
    // A single device stays even if it lacks a set: the caller then names that set.
    if families.len() > 1 {
        families.retain(|family| names.iter().all(|name| family.set(name).is_some()));
    }
    match families.len() {
        1 => Ok(families.remove(0)),
        0 => Err(BisectingError::mistake(
            format!("no device has all of the sets {}", names.join(", ")),
            format!("devices with settings are {listed}: name one with `--dut`"),
        )),
        _ => Err(BisectingError::mistake(
            format!("several devices have these sets: {listed}"),
            "name the one to measure: `--dut NAME`",
        )),
    }
}

fn with_settings(cell: &Cell) -> Option<&Dut> {
    let is_set = !cell.calibration && cell.dut.software.settings.is_some();
    is_set.then_some(&cell.dut)
}

/// The name of a DUT without that of its set.
pub(crate) fn base(dut: &Dut) -> &str {
    let set = dut.software.version.as_deref().unwrap_or_default();
    let without = dut.name.strip_suffix(set);
    // With one set only, the campaign's name is the DUT's.
    without
        .and_then(|name| name.strip_suffix(' '))
        .unwrap_or(&dut.name)
}
