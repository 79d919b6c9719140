//! Devices under test: the lists `duts` and `devices` of a campaign.

use crate::adapter::entry::{DUTS_MAX, Entry};
use crate::adapter::{self, STRAIGHT};
use crate::plan::{Adapter, Dut};
use yaml::{Node, Place, Reported};

/// A DUT of the campaign.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) dut: Dut,
    /// Its name without the settings that vary: what all DUTs of one entry have in common.
    pub(crate) entry: String,
    pub(crate) place: Place,
}

/// Reads the list of DUTs, all names distinct.
pub(crate) fn read_all(node: Node<'_>) -> Result<Vec<Listed>, Reported> {
    let empty = ("no DUT is given", "the baseline is `- direct`");
    read_list(node, adapter::read, empty)
}

/// Reads the list of crypto devices, all names distinct.
pub(crate) fn read_devices(node: Node<'_>) -> Result<Vec<Listed>, Reported> {
    let empty = ("no device is given", "the baseline is `- engine`: our own");
    read_list(node, adapter::read_devices, empty)
}

/// Reads one entry of a list, and finds its place.
type Reader = fn(Node<'_>) -> Result<(Entry<Adapter>, Place), Reported>;

fn read_list(
    node: Node<'_>,
    read: Reader,
    (empty, help): (&str, &str),
) -> Result<Vec<Listed>, Reported> {
    let mut duts: Vec<Listed> = Vec::new();
    let mut too_many = None;
    let outcome = node.list(|item| {
        let (entry, place) = read(item)?;
        for (name, adapter) in entry.duts {
            let dut = Listed {
                dut: Dut { name, adapter },
                entry: entry.name.clone(),
                place: place.clone(),
            };
            if duts.len() == DUTS_MAX {
                let what = format!("the campaign has more than {DUTS_MAX} DUTs");
                let help = "shorten the lists of their settings";
                return Err(*too_many.get_or_insert_with(|| item.mistake(what, help)));
            }
            let slug = slug(&dut.dut.name);
            if slug == STRAIGHT && !dut.dut.adapter.is_straight() {
                let what = format!("the name `{STRAIGHT}` is kept for calibration");
                return Err(item.mistake_at(&dut.place, what, "give this DUT another `name`"));
            }
            if let Some(first) = duts
                .iter()
                .find(|first| self::slug(&first.dut.name) == slug)
            {
                let what = format!("a DUT named `{}` is there already", first.dut.name);
                return Err(item.mistake_at(&dut.place, what, "give this one another `name`"));
            }
            duts.push(dut);
        }
        Ok(())
    });
    outcome?;
    match duts.is_empty() {
        true => Err(node.mistake(empty, help)),
        false => Ok(duts),
    }
}

/// A DUT's name as written in cell ids.
pub(crate) fn slug(name: &str) -> String {
    name.replace(' ', "-")
}

/// Their names, as messages list them.
pub(crate) fn names(duts: &[&Listed]) -> String {
    let names: Vec<_> = duts
        .iter()
        .map(|dut| format!("`{}`", dut.dut.name))
        .collect();
    names.join(", ")
}
