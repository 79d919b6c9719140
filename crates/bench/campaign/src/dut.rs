//! Devices under test: the lists `duts` and `devices` of a campaign.

mod cipherbench;
mod device;
mod entry;
mod external;
mod forwarder;
mod l2tpv3;
mod openvpn;
mod settings;
mod software;
mod strongswan;
mod xfrm;

use entry::{DUTS_MAX, Duts, Entry, NAME, name};
use plan::{Adapter, Dut, STRAIGHT, Software, WireGuard, WireGuardProgram};
use settings::{BOX_SETTINGS, SETTINGS};
use software::SOFTWARE;
use yaml::{Key, Map, Node, Place, Reported, Value};

/// Reads the settings of one kind but the name; each may be a list.
type Reader = fn(&Map<'_>) -> Result<Duts, Reported>;

/// A kind that campaigns can name under `duts`.
#[derive(Debug, Clone, Copy)]
struct Kind {
    name: &'static str,
    keys: &'static [Key],
    read: Reader,
}

impl Kind {
    /// Whether it starts a program that a campaign can name.
    fn has_software(&self) -> bool {
        self.has(&SOFTWARE)
    }

    fn has(&self, group: &Key) -> bool {
        self.keys.iter().any(|key| key.name() == group.name())
    }
}

const fn kind(name: &'static str, keys: &'static [Key], read: Reader) -> Kind {
    Kind { name, keys, read }
}

const STRAIGHT_KEYS: &[Key] =
    &[NAME.meaning("What tables call it. No other DUT may be called `straight`")];

const KINDS: [Kind; 14] = [
    kind("direct", &[NAME, SETTINGS], |_| alone(Adapter::Direct)),
    kind(STRAIGHT, STRAIGHT_KEYS, |_| alone(Adapter::STRAIGHT)),
    kind("router", forwarder::ROUTER, forwarder::read_router),
    kind("bridge", &[NAME, SETTINGS], |_| alone(Adapter::Bridge)),
    kind("cipherbench", cipherbench::KEYS, cipherbench::read),
    kind("wireguard", &[NAME, SETTINGS], |_| {
        by(WireGuardProgram::Kernel)
    }),
    wireguard(WireGuardProgram::Go, |_| by(WireGuardProgram::Go)),
    wireguard(WireGuardProgram::Boringtun, |_| {
        by(WireGuardProgram::Boringtun)
    }),
    wireguard(WireGuardProgram::Gotatun, |_| by(WireGuardProgram::Gotatun)),
    kind("strongswan", strongswan::KEYS, strongswan::read),
    kind("openvpn", openvpn::KEYS, openvpn::read),
    kind("xfrm", xfrm::KEYS, xfrm::read),
    kind("l2tpv3", l2tpv3::KEYS, l2tpv3::read),
    kind("external", external::KEYS, external::read),
];

/// The entries of `duts`.
pub(crate) const DUTS: Value = Value::List(&Value::Kinds(|| {
    KINDS.map(|kind| (kind.name, kind.keys)).to_vec()
}));
/// The entries of `devices`.
pub(crate) const DEVICES: Value = Value::List(&device::KINDS_VALUE);

/// A DUT without settings.
fn alone(adapter: Adapter) -> Result<Duts, Reported> {
    Ok(vec![(String::new(), adapter)])
}

/// Each program that implements WireGuard is a separate kind.
const fn wireguard(program: WireGuardProgram, read: Reader) -> Kind {
    kind(program.name(), &[NAME, SOFTWARE, SETTINGS], read)
}

fn by(program: WireGuardProgram) -> Result<Duts, Reported> {
    alone(Adapter::WireGuard(WireGuard { program }))
}

/// Reads one entry of `duts`.
fn read_dut(node: Node<'_>) -> Result<(Entry, Place), Reported> {
    let (kind, body) = node.variant("DUT", &KINDS.map(|kind| (kind.name, kind)))?;
    body.keys(kind.keys, |map| {
        let (name, duts) = (name(map, kind.name), (kind.read)(map));
        let versions = if kind.has_software() {
            software::read(map)
        } else {
            Ok(vec![(String::new(), Software::default())])
        };
        let of_box = kind.has(&BOX_SETTINGS);
        let versions = match versions {
            Ok(versions) if of_box || kind.has(&SETTINGS) => settings::read(map, versions, of_box),
            Err(reported) => {
                // A key that is not asked for is reported as unknown.
                let _ = map.optional("settings");
                Err(reported)
            }
            versions => versions,
        };
        let (name, duts, versions) = (name?, duts?, versions?);
        let mut all = Vec::new();
        // Versions vary fastest: one is measured right after the other in the file's order.
        for (suffix, adapter) in duts {
            all.extend(versions.iter().map(|(version, software)| Dut {
                name: format!("{name}{suffix}{version}"),
                adapter: adapter.clone(),
                software: software.clone(),
            }));
            // One more than the maximum is enough to report.
            all.truncate(DUTS_MAX + 1);
        }
        Ok((Entry { name, duts: all }, map.node().place()))
    })
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
    read_list(node, device::read, empty)
}

/// Reads one entry of a list, and finds its place.
type EntryReader = fn(Node<'_>) -> Result<(Entry, Place), Reported>;

fn read_list(
    node: Node<'_>,
    read: EntryReader,
    (empty, help): (&str, &str),
) -> Result<Vec<Listed>, Reported> {
    let mut duts: Vec<Listed> = Vec::new();
    let mut too_many = None;
    let outcome = node.list(|item| {
        let (entry, place) = read(item)?;
        for dut in entry.duts {
            let dut = Listed {
                dut,
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
