//! Devices under test: one entry of `duts` to one DUT or, where settings are lists, several.
//!
//! To add an adapter: a variant of [`Adapter`], its name in [`KINDS`], and a reader of its settings
//! here; its row in `docs/campaign.md`; and what brings it up, in `lab`.

mod device;
mod encryptor;
mod external;
mod tunnels;

use crate::axis::axis;
use crate::plan::{Adapter, Dut, WireGuard, WireGuardProgram};
use yaml::{Map, Node, Place, Reported};

/// The DUT that calibration measures, and the name of its cells.
pub(crate) const STRAIGHT: &str = "straight";

/// Tables and charts with more cannot be read.
const DUTS_MAX: usize = 100;
/// Longest name, so that tables stay readable.
const NAME_CHARS_MAX: usize = 40;

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
        Kind::Router => router(map),
        Kind::Cipherbench => encryptor::read(map),
        Kind::WireGuard(program) => {
            let adapter = Adapter::WireGuard(WireGuard { program });
            plain(map, program.name(), adapter)
        }
        Kind::StrongSwan => tunnels::strongswan(map),
        Kind::OpenVpn => tunnels::openvpn(map),
        Kind::Xfrm => tunnels::xfrm(map),
        Kind::L2tpv3 => tunnels::l2tpv3(map),
        Kind::External => external::read(map),
    })
}

/// A DUT without settings.
fn plain(map: &Map<'_>, default: &str, adapter: Adapter) -> Result<Vec<Listed>, Reported> {
    let name = name(map, default)?;
    Ok(vec![listed(map, &name, name.clone(), adapter)])
}

fn listed(map: &Map<'_>, entry: &str, name: String, adapter: Adapter) -> Listed {
    Listed {
        dut: Dut { name, adapter },
        entry: entry.to_owned(),
        place: map.node().place(),
    }
}

/// With both settings, the one that translates has it in its name.
fn router(map: &Map<'_>) -> Result<Vec<Listed>, Reported> {
    let name = name(map, "router");
    let nat = axis(map, "nat", false, Node::bool);
    let (name, nats) = (name?, nat.all()?);
    let routers = nats.iter().map(|nat| {
        let suffix = if nats.len() > 1 && nat.value {
            " nat"
        } else {
            ""
        };
        let adapter = Adapter::Router { nat: nat.value };
        listed(map, &name, format!("{name}{suffix}"), adapter)
    });
    Ok(routers.collect())
}

/// A DUT's name: short, and without the characters that cell ids are put together with.
fn name(map: &Map<'_>, default: &str) -> Result<String, Reported> {
    map.with_default("name", default.to_owned(), |node| {
        let text = node.text()?;
        let fits = |c: char| c.is_alphanumeric() || " -_.+".contains(c);
        let trimmed = text.trim() == text && !text.contains("  ");
        if trimmed && text.chars().all(fits) && text.chars().count() <= NAME_CHARS_MAX {
            return Ok(text.to_owned());
        }
        let help = format!("use up to {NAME_CHARS_MAX} letters, digits, single blanks and - _ . +");
        Err(node.mistake("this name cannot be used", help))
    })
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
