//! Demands of a plan on this machine besides measuring: the commands of boxes, hosts, devices and
//! builds.

use super::{Adapter, Device, DeviceKind, Dut, External, Host, HostName, Plan};
use std::fmt;

/// A command that a plan has a shell or a program run, code that it loads, or a secret that it
/// uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Place in the campaign or lab, for people: ``DUT `b1`, box 1, up``.
    pub place: String,
    /// The command, the path or the address; from the file, so it may hold any character.
    pub what: String,
}

impl Demand {
    /// The command, the path or the address, with control and invisible characters escaped.
    #[must_use]
    pub fn shown(&self) -> String {
        printable(&self.what)
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", printable(&self.place), printable(&self.what))
    }
}

/// The text with quotes unchanged, and control and invisible characters escaped.
fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        // Commands are full of quotes, which do no harm on a terminal.
        '"' | '\'' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

impl Plan {
    /// All demands of this plan, each once, in the order of the plan. A plan without any runs only
    /// programs that Cipherbench itself names.
    #[must_use]
    pub fn demands(&self) -> Vec<Demand> {
        // The hosts first: they are reached before any DUT is brought up.
        let hosts = self.lab.hosts.iter().flat_map(|hosts| hosts.each());
        let mut demands: Vec<Demand> = hosts.flat_map(|(name, host)| of_host(name, host)).collect();
        demands.extend(self.of_duts(External::demands));
        demands
    }

    /// The demands of the campaign alone, each as a line of a permissions file: key and command,
    /// with the way to the box in front of a command that runs there. Commands that reach the lab's
    /// hosts belong to the lab, not to the campaign.
    #[must_use]
    pub fn permissions(&self) -> Vec<Demand> {
        let keyed = self.of_duts(External::permissions).into_iter();
        keyed
            .map(|Demand { place, what }| {
                // The key is the last part: names of DUTs and of boxes come before it.
                let (place, key) = place.rsplit_once(", ").unwrap_or((&place, ""));
                Demand {
                    place: place.to_owned(),
                    what: format!("{key}: {what}"),
                }
            })
            .collect()
    }

    fn of_duts(&self, of_boxes: impl Fn(&External) -> Vec<(String, String)>) -> Vec<Demand> {
        let mut demands = Vec::new();
        let mut duts: Vec<&Dut> = Vec::new();
        for cell in &self.cells {
            let Dut {
                adapter, software, ..
            } = &cell.dut;
            // A DUT has a cell for each group. One demand for all of them is enough to agree to.
            let is_same = |dut: &&Dut| dut.adapter == *adapter && dut.software == *software;
            if duts.iter().any(is_same) {
                continue;
            }
            duts.push(&cell.dut);
            let mut of_dut = match adapter {
                Adapter::External(external) => of_boxes(external),
                Adapter::Device(devices) => devices.members.iter().flat_map(of_device).collect(),
                _ => Vec::new(),
            };
            of_dut.extend(software.demands());
            demands.extend(of_dut.into_iter().map(|(key, what)| Demand {
                place: format!("DUT `{}`, {key}", cell.dut.name),
                what,
            }));
        }
        demands
    }
}

fn of_host(name: HostName, host: &Host) -> impl Iterator<Item = Demand> {
    // No command is needed to reach this machine.
    let reach = (!host.is_this_machine()).then(|| ("reach", host.describe()));
    let program = host.program.clone().map(|path| ("program", path));
    let demand = move |(key, what)| Demand {
        place: format!("host `{}`, {key}", name.name()),
        what,
    };
    reach.into_iter().chain(program).map(demand)
}

/// The code that a device loads, and the file of its secret.
fn of_device(device: &Device) -> Vec<(String, String)> {
    let demands = match &device.kind {
        DeviceKind::OpenSsl {
            provider,
            engine,
            module,
        } => {
            let module = module.as_ref().map(|path| path.display().to_string());
            let all = [
                ("provider", provider.clone()),
                ("engine", engine.clone()),
                ("module", module),
            ];
            let given = all.into_iter().filter_map(|(key, what)| Some((key, what?)));
            given.collect()
        }
        DeviceKind::Pkcs11 {
            module, pin_file, ..
        } => vec![
            ("module", module.display().to_string()),
            ("pin_file", pin_file.display().to_string()),
        ],
        // These run code of this program or, for SoftHSM, of an installed package, and name no
        // file.
        DeviceKind::Engine { .. } | DeviceKind::SoftHsm | DeviceKind::Model(_) => Vec::new(),
    };
    let keyed = demands.into_iter();
    keyed.map(|(key, what)| (key.to_owned(), what)).collect()
}
