//! Devices under test: one entry of `duts` to one DUT or, where settings are lists, several.
//!
//! To add an adapter: a variant of [`Adapter`], its name in [`KINDS`], and a reader of its settings
//! here; its row in `docs/campaign.md`; and what brings it up, in `lab`.

mod device;
mod encryptor;
mod external;

use crate::adapter::entry::{DUTS_MAX, Entry};
use crate::adapter::{forwarder, l2tpv3, openvpn, strongswan, xfrm};
use crate::plan::{Adapter, Dut, WireGuard, WireGuardProgram};
use yaml::{Map, Node, Place, Reported};

/// The DUT that calibration measures, and the name of its cells.
pub(crate) const STRAIGHT: &str = "straight";

#[derive(Debug, Clone, Copy)]
enum Kind {
    Direct,
    Straight,
    Router,
    Bridge,
    Cipherbench,
    WireGuard(WireGuardProgram),
    StrongSwan,
    OpenVpn,
    Xfrm,
    L2tpv3,
    External,
}

const KINDS: [(&str, Kind); 14] = [
    ("direct", Kind::Direct),
    (STRAIGHT, Kind::Straight),
    ("router", Kind::Router),
    ("bridge", Kind::Bridge),
    ("cipherbench", Kind::Cipherbench),
    wireguard(WireGuardProgram::Kernel),
    wireguard(WireGuardProgram::Go),
    wireguard(WireGuardProgram::Boringtun),
    wireguard(WireGuardProgram::Gotatun),
    ("strongswan", Kind::StrongSwan),
    ("openvpn", Kind::OpenVpn),
    ("xfrm", Kind::Xfrm),
    ("l2tpv3", Kind::L2tpv3),
    ("external", Kind::External),
];

/// A program that speaks WireGuard is a kind of its own.
const fn wireguard(program: WireGuardProgram) -> (&'static str, Kind) {
    (program.name(), Kind::WireGuard(program))
}

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
    read_list(
        node,
        read,
        ("no DUT is given", "the baseline is `- direct`"),
    )
}

/// Reads the list of crypto devices, all names distinct.
pub(crate) fn read_devices(node: Node<'_>) -> Result<Vec<Listed>, Reported> {
    let empty = ("no device is given", "the baseline is `- engine`: our own");
    read_list(node, device::read, empty)
}

fn read_list(
    node: Node<'_>,
    read: fn(Node<'_>) -> Result<Vec<Listed>, Reported>,
    (empty, help): (&str, &str),
) -> Result<Vec<Listed>, Reported> {
    let mut duts: Vec<Listed> = Vec::new();
    let mut too_many = None;
    let outcome = node.list(|item| {
        for dut in read(item)? {
            if duts.len() == DUTS_MAX {
                let what = format!("the campaign has more than {DUTS_MAX} DUTs");
                let help = "shorten the lists of their settings";
                return Err(*too_many.get_or_insert_with(|| item.mistake(what, help)));
            }
            let slug = slug(&dut.dut.name);
            if slug == STRAIGHT && dut.dut.adapter != Adapter::Straight {
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

fn read(node: Node<'_>) -> Result<Vec<Listed>, Reported> {
    let (kind, body) = node.variant("DUT", &KINDS)?;
    body.map(|map| match kind {
        Kind::Direct => plain(map, "direct", Adapter::Direct),
        Kind::Straight => plain(map, STRAIGHT, Adapter::Straight),
        Kind::Bridge => plain(map, "bridge", Adapter::Bridge),
        Kind::Router => {
            let entry = forwarder::read_router(map)?;
            Ok(list(map, entry, |nat| Adapter::Router { nat }))
        }
        Kind::Cipherbench => Ok(list(map, encryptor::read(map)?, Adapter::Cipherbench)),
        Kind::WireGuard(program) => {
            let adapter = Adapter::WireGuard(WireGuard { program });
            plain(map, program.name(), adapter)
        }
        Kind::StrongSwan => Ok(list(map, strongswan::read(map)?, Adapter::StrongSwan)),
        Kind::OpenVpn => Ok(list(map, openvpn::read(map)?, Adapter::OpenVpn)),
        Kind::Xfrm => Ok(list(map, xfrm::read(map)?, Adapter::Xfrm)),
        Kind::L2tpv3 => Ok(list(map, l2tpv3::read(map)?, Adapter::L2tpv3)),
        Kind::External => Ok(list(map, external::read(map)?, Adapter::External)),
    })
}

/// A DUT without settings.
fn plain(map: &Map<'_>, default: &str, adapter: Adapter) -> Result<Vec<Listed>, Reported> {
    let entry = Entry::plain(map, default, adapter)?;
    Ok(list(map, entry, |adapter| adapter))
}

fn list<T>(map: &Map<'_>, entry: Entry<T>, adapter: impl Fn(T) -> Adapter) -> Vec<Listed> {
    let duts = entry.duts.into_iter().map(|(name, settings)| Listed {
        dut: Dut {
            name,
            adapter: adapter(settings),
        },
        entry: entry.name.clone(),
        place: map.node().place(),
    });
    duts.collect()
}

/// A DUT's name as it stands in cell ids.
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
