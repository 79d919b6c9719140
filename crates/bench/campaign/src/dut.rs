//! Devices under test: the lists `duts` and `devices` of a campaign.

mod cipherbench;
mod device;
mod entry;
mod external;
mod forwarder;
mod l2tpv3;
mod openvpn;
mod strongswan;
mod xfrm;

use entry::{DUTS_MAX, Entry};
use plan::{Adapter, Dut, STRAIGHT, WireGuard, WireGuardProgram};
use yaml::{Map, Node, Place, Reported};

/// Reads the settings of one kind; each may be a list.
type Reader = fn(&Map<'_>) -> Result<Entry<Adapter>, Reported>;

/// The kinds that campaigns can name under `duts`.
const KINDS: &[(&str, Reader)] = &[
    ("direct", |map| Entry::plain(map, "direct", Adapter::Direct)),
    (STRAIGHT, |map| {
        Entry::plain(map, STRAIGHT, Adapter::STRAIGHT)
    }),
    ("router", |map| {
        Ok(forwarder::read_router(map)?.map(|nat| Adapter::Router { nat }))
    }),
    ("bridge", |map| Entry::plain(map, "bridge", Adapter::Bridge)),
    ("cipherbench", |map| {
        Ok(cipherbench::read(map)?.map(Adapter::Cipherbench))
    }),
    (WireGuardProgram::Kernel.name(), |map| {
        wireguard(map, WireGuardProgram::Kernel)
    }),
    (WireGuardProgram::Go.name(), |map| {
        wireguard(map, WireGuardProgram::Go)
    }),
    (WireGuardProgram::Boringtun.name(), |map| {
        wireguard(map, WireGuardProgram::Boringtun)
    }),
    (WireGuardProgram::Gotatun.name(), |map| {
        wireguard(map, WireGuardProgram::Gotatun)
    }),
    ("strongswan", |map| {
        Ok(strongswan::read(map)?.map(Adapter::StrongSwan))
    }),
    ("openvpn", |map| {
        Ok(openvpn::read(map)?.map(Adapter::OpenVpn))
    }),
    ("xfrm", |map| Ok(xfrm::read(map)?.map(Adapter::Xfrm))),
    ("l2tpv3", |map| Ok(l2tpv3::read(map)?.map(Adapter::L2tpv3))),
    ("external", |map| {
        Ok(external::read(map)?.map(Adapter::External))
    }),
];

/// Each program that implements WireGuard is a separate kind.
fn wireguard(map: &Map<'_>, program: WireGuardProgram) -> Result<Entry<Adapter>, Reported> {
    Entry::plain(
        map,
        program.name(),
        Adapter::WireGuard(WireGuard { program }),
    )
}

/// Reads one entry of `duts`.
fn read_dut(node: Node<'_>) -> Result<(Entry<Adapter>, Place), Reported> {
    let (reader, body) = node.variant("DUT", KINDS)?;
    body.map(|map| Ok((reader(map)?, map.node().place())))
}

/// Reads one entry of `devices`.
fn read_device(node: Node<'_>) -> Result<(Entry<Adapter>, Place), Reported> {
    let (entry, place) = device::read(node)?;
    Ok((entry.map(Adapter::Device), place))
}

/// A DUT of the campaign.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) dut: Dut,
    /// Its name without the settings that vary, which all DUTs of one entry have in common.
    pub(crate) entry: String,
    pub(crate) place: Place,
}

/// Reads the list of DUTs, all names distinct.
pub(crate) fn read_all(node: Node<'_>) -> Result<Vec<Listed>, Reported> {
    let empty = ("no DUT is given", "the baseline is `- direct`");
    read_list(node, read_dut, empty)
}

/// Reads the list of crypto devices, all names distinct.
pub(crate) fn read_devices(node: Node<'_>) -> Result<Vec<Listed>, Reported> {
    let empty = ("no device is given", "the baseline is `- engine`: our own");
    read_list(node, read_device, empty)
}

/// Reads one entry of a list, and finds its place.
type EntryReader = fn(Node<'_>) -> Result<(Entry<Adapter>, Place), Reported>;

fn read_list(
    node: Node<'_>,
    read: EntryReader,
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
            // Reported for the first entry beyond the limit only, although the list is read to
            // its end.
            if duts.len() == DUTS_MAX {
                let what = format!("the campaign has more than {DUTS_MAX} DUTs");
                let help = "shorten the lists of their settings";
                return Err(*too_many.get_or_insert_with(|| item.mistake(what, help)));
            }
            let slug = slug(&dut.dut.name);
            // Cells of calibration have this name in their ids.
            if slug == STRAIGHT && !dut.dut.adapter.is_straight() {
                let what = format!("the name `{STRAIGHT}` is kept for calibration");
                return Err(item.mistake_at(&dut.place, what, "give this DUT another `name`"));
            }
            if let Some(first) = duts
                .iter()
                // Compared as ids have them: `a b` and `a-b` would give two cells the same id.
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
    if duts.is_empty() {
        Err(node.mistake(empty, help))
    } else {
        Ok(duts)
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
