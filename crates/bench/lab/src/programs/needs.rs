//! The programs that cells of a plan need, and which of them are missing.

use super::makers::{Use, asked_by, unfit, unfit_here};
use super::{find, install, refusal};
use plan::{
    Adapter, Cell, DeviceKind, Dut, Element, GatewayPeer, IkeAuth, LabKind, LabPlan, Measurement,
    TransferDirection, WireGuardProgram,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{Node, Result};

/// Time limit for a program's version output.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// A program that a plan needs and that this host lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Its name.
    pub program: String,
    /// What needs it: `the lab`, `DUT openvpn`, `tcp`.
    pub needed_by: Vec<String>,
    /// Ids of the cells that cannot be measured without it.
    pub cells: Vec<String>,
    /// Whether the lab itself cannot be built without it.
    pub lab: bool,
    /// The command that installs it; `None` for a program that only the campaign names.
    pub install: Option<String>,
    /// Why the installed program does not serve; `None` if none is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// The hosts that lack it, in a lab of hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// Returns the programs that cells need in a lab and that this host lacks, in the order of the
/// cells.
#[must_use]
pub fn missing<'a>(lab: &LabPlan, cells: impl IntoIterator<Item = &'a Cell>) -> Vec<Missing> {
    let cells: Vec<&Cell> = cells.into_iter().collect();
    missing_where((lab, Role::Run), &cells, |program, usage| {
        match find(program) {
            None => Some(match refusal(program) {
                Some(refusal) => Lack::Unfit(format!("not used: {refusal}")),
                None => Lack::Absent,
            }),
            Some(path) => unfit_here(program, &path, usage).map(Lack::Unfit),
        }
    })
}

/// Why a program cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Lack {
    /// It is not there.
    Absent,
    /// It is another maker's, too old, or refused to root, with the reason.
    Unfit(String),
}

/// A machine's part in a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The run is on this machine, and so are the stations if the lab has no hosts.
    Run,
    /// It is one of the lab's hosts.
    Host,
}

impl Role {
    /// Whether the machine runs stations and gateways of a lab.
    const fn has_nodes(self, lab: &LabPlan) -> bool {
        match self {
            Self::Run => matches!(lab.kind, LabKind::Namespaces | LabKind::Device),
            Self::Host => true,
        }
    }
}

/// Returns the programs that cells need and that at least one of the lab's hosts, given by name and
/// station, lacks.
///
/// # Errors
/// If a host does not answer.
pub(crate) fn missing_on(
    lab: &LabPlan,
    cells: &[&Cell],
    hosts: &[(&str, &dyn Node)],
) -> Result<Vec<Missing>> {
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    // All programs that a host needs: as if none were installed.
    let all = missing_where((lab, Role::Host), cells, |_, _| Some(Lack::Absent));
    let mut missing = Vec::new();
    for mut program in all {
        let usage = usage_of(&program.program, cells);
        for (host, node) in hosts {
            match lack_on(*node, &program.program, usage)? {
                None => continue,
                Some(Lack::Absent) => {}
                Some(Lack::Unfit(why)) => program.unfit = Some(why),
            }
            program.hosts.push((*host).to_owned());
        }
        if !program.hosts.is_empty() {
            missing.push(program);
        }
    }
    Ok(missing)
}

/// Why a program cannot be used on a machine.
fn lack_on(node: &dyn Node, program: &str, usage: Use) -> Result<Option<Lack>> {
    if node.locate(program)?.is_none() {
        return Ok(Some(Lack::Absent));
    }
    let Some(argument) = asked_by(program) else {
        return Ok(None);
    };
    let ended = node.run(Program::new([program, argument]), VERSION_LIMIT)?;
    let said = ended.stdout + &ended.stderr;
    Ok(unfit(program, &said, usage).map(Lack::Unfit))
}

/// Returns the strongest use that the cells make of a program.
fn usage_of(program: &str, cells: &[&Cell]) -> Use {
    let uses = cells
        .iter()
        .flat_map(|cell| of_measurement(&cell.measurement));
    let uses = uses.filter(|(name, _)| *name == program);
    uses.map(|(_, usage)| usage).max().unwrap_or(Use::Plain)
}

/// Who needs the programs that build the lab.
const THE_LAB: &str = "the lab";

fn missing_where(
    (lab, role): (&LabPlan, Role),
    cells: &[&Cell],
    find_lack: impl Fn(&str, Use) -> Option<Lack>,
) -> Vec<Missing> {
    let mut all: Vec<Missing> = Vec::new();
    // A plan has thousands of cells and a handful of programs: look for each program once. By the
    // use too: an old version may serve for one way and not for both.
    let mut known: BTreeMap<(String, Use), Option<Lack>> = BTreeMap::new();
    let of_lab = of_lab(lab, role);
    for cell in cells {
        let (dut, measurement) = (format!("DUT {}", cell.dut.name), &cell.measurement);
        let mut needs: Vec<(&str, Use, &str)> = Vec::new();
        needs.extend(of_lab.iter().map(|name| (*name, Use::Plain, THE_LAB)));
        let of_dut = of_dut((lab, role), &cell.dut).into_iter();
        needs.extend(of_dut.map(|name| (name, Use::Plain, dut.as_str())));
        let of_tool = of_measurement(measurement).into_iter();
        let of_tool = of_tool.filter(|_| role.has_nodes(lab));
        // The campaign's program replaces the installed one.
        let software = &cell.dut.software;
        let of_tool = of_tool.map(|(name, usage)| match software.station_program(name) {
            Some(program) => (program, Use::Plain),
            None => (name, usage),
        });
        needs.extend(of_tool.map(|(name, usage)| (name, usage, measurement.name())));
        for (program, usage, needed_by) in needs {
            let known = known.entry((program.to_owned(), usage));
            let Some(lack) = known.or_insert_with(|| find_lack(program, usage)) else {
                continue;
            };
            let index = all.iter().position(|known| known.program == program);
            let index = index.unwrap_or_else(|| {
                all.push(Missing {
                    program: program.to_owned(),
                    needed_by: Vec::new(),
                    cells: Vec::new(),
                    lab: false,
                    install: install(program),
                    unfit: match lack {
                        Lack::Absent => None,
                        Lack::Unfit(why) => Some(why.clone()),
                    },
                    hosts: Vec::new(),
                });
                all.len() - 1
            });
            let entry = &mut all[index];
            if !entry.needed_by.iter().any(|known| known == needed_by) {
                entry.needed_by.push(needed_by.to_owned());
            }
            // All needs of a cell come in a row, so the last entry is enough to find a duplicate.
            if entry.cells.last() != Some(&cell.id) {
                entry.cells.push(cell.id.clone());
            }
            entry.lab |= needed_by == THE_LAB;
        }
    }
    all
}

/// The programs that build the lab on a machine.
fn of_lab(lab: &LabPlan, role: Role) -> Vec<&'static str> {
    if lab.kind == LabKind::Device || !role.has_nodes(lab) {
        return Vec::new();
    }
    let mut programs = vec!["ip", "ethtool", "ping"];
    programs.extend(lab.link_bps.map(|_| "tc"));
    let has_bridge = lab.is_impaired() || lab.path.contains(&Element::Bridge);
    programs.extend(has_bridge.then_some("bridge"));
    programs.extend(lab.translates().then_some("nft"));
    programs
}

/// The programs that a device under test needs on a machine, without those that build the lab.
fn of_dut<'a>((lab, role): (&LabPlan, Role), dut: &'a Dut) -> Vec<&'a str> {
    let mut programs = of_adapter((lab, role), &dut.adapter);
    let Some(program) = dut.software.program().filter(|_| role.has_nodes(lab)) else {
        return programs;
    };
    // The campaign's program replaces the installed one.
    let replaced = replaceable(&dut.adapter);
    programs.retain(|name| Some(*name) != replaced);
    // A program that is built is there once the run has built it.
    if dut.software.build.is_none() || dut.software.found.is_some() {
        programs.push(program);
    }
    programs
}

/// The installed program that a campaign's program replaces; `None` if it is this program.
pub(crate) const fn replaceable(adapter: &Adapter) -> Option<&'static str> {
    match adapter {
        Adapter::WireGuard(tunnel) => of_wireguard(tunnel.program),
        Adapter::StrongSwan(_) => Some("charon"),
        Adapter::OpenVpn(_) => Some("openvpn"),
        _ => None,
    }
}

fn of_adapter<'a>((lab, role): (&LabPlan, Role), adapter: &'a Adapter) -> Vec<&'a str> {
    let has_nodes = role.has_nodes(lab);
    match adapter {
        // The run reaches the boxes, which have their programs inside; a tap is next to the
        // stations.
        Adapter::External(external) => {
            let tap = lab.external.as_ref().and_then(|cables| cables.tap.as_ref());
            let bridge = tap.filter(|_| has_nodes).map(|_| "bridge");
            let commanded = external
                .boxes
                .iter()
                .filter(|its| its.reset.is_some() || its.commands().next().is_some());
            let ways = commanded.filter_map(|its| its.via.first());
            let ways = ways.map(String::as_str).filter(|_| role == Role::Run);
            let ike: &[&str] = match external.gateway.as_deref() {
                Some(GatewayPeer::Ike(_)) if has_nodes => &["charon", "swanctl"],
                _ => &[],
            };
            ways.chain(bridge).chain(ike.iter().copied()).collect()
        }
        _ if !has_nodes => Vec::new(),
        Adapter::Router { nat: true } | Adapter::Cipherbench(_) => vec!["nft"],
        Adapter::Bridge | Adapter::L2tpv3(_) => vec!["bridge"],
        Adapter::WireGuard(tunnel) => {
            let mut programs = vec!["wg"];
            programs.extend(of_wireguard(tunnel.program));
            programs
        }
        Adapter::StrongSwan(tunnel) => {
            let mut programs = vec!["charon", "swanctl"];
            programs.extend((tunnel.auth == IkeAuth::Certificates).then_some("openssl"));
            programs
        }
        Adapter::OpenVpn(_) => vec!["openvpn", "openssl"],
        Adapter::Device(devices) => {
            let is_token = devices
                .members
                .iter()
                .any(|device| device.kind == DeviceKind::SoftHsm);
            is_token.then_some("softhsm2-util").into_iter().collect()
        }
        Adapter::Router { nat: false }
        | Adapter::Direct
        | Adapter::Straight { .. }
        | Adapter::Xfrm(_) => Vec::new(),
    }
}

/// Returns the name in [`KNOWN`](super::KNOWN) of a program that implements WireGuard; `None` for
/// the kernel.
pub(crate) const fn of_wireguard(program: WireGuardProgram) -> Option<&'static str> {
    match program {
        WireGuardProgram::Kernel => None,
        WireGuardProgram::Go => Some("wireguard-go"),
        WireGuardProgram::Boringtun => Some("boringtun-cli"),
        WireGuardProgram::Gotatun => Some("gotatun"),
    }
}

/// The programs that measure, unless this program does, and how each is used.
fn of_measurement(measurement: &Measurement) -> Vec<(&'static str, Use)> {
    // The background load of ping goes each way and both ways.
    let both_ways = matches!(measurement, Measurement::Ping { loaded: true, .. })
        || measurement.transfer_direction() == Some(TransferDirection::Duplex);
    let usage = |program| match program {
        "iperf3" | "iperf" if both_ways => Use::BothWays,
        _ => Use::Plain,
    };
    let programs = measurement.programs().into_iter();
    programs.map(|name| (name, usage(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::KNOWN;
    use campaign::{HostFacts, LabFile, from_text, lab_from_text};
    use plan::Plan;

    fn plan(duts: &str, trials: &str, lab: &LabFile) -> Plan {
        let text = format!("campaign: c\n{duts}\ntrials: {trials}\n");
        let campaign = from_text("c.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
        let planned = campaign.plan(lab, &HostFacts { cores: 64 });
        planned.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The programs that a plan needs if nothing is installed.
    fn needed(duts: &str, trials: &str, lab: &LabFile) -> Vec<Missing> {
        let plan = plan(duts, trials, lab);
        let cells: Vec<_> = plan.cells.iter().collect();
        missing_where((&plan.lab, Role::Run), &cells, |_, _| Some(Lack::Absent))
    }

    fn names(missing: &[Missing]) -> Vec<&str> {
        missing.iter().map(|it| it.program.as_str()).collect()
    }

    const PING: &str = "[ping: { mtu: 1400 B }]";

    #[test]
    fn each_device_needs_its_own_programs() {
        let lab = LabFile::built_in();
        for (dut, own) in [
            ("direct", &[][..]),
            ("cipherbench", &["nft"]),
            ("xfrm", &[]),
            ("wireguard", &["wg"]),
            ("wireguard-go", &["wg", "wireguard-go"]),
            ("boringtun", &["wg", "boringtun-cli"]),
            ("gotatun", &["wg", "gotatun"]),
            ("strongswan", &["charon", "swanctl"]),
            (
                "strongswan: { auth: certificates }",
                &["charon", "swanctl", "openssl"],
            ),
            ("openvpn", &["openvpn", "openssl"]),
        ] {
            let needed = needed(&format!("duts: [{dut}]"), PING, &lab);
            assert_eq!(names(&needed)[3..], *own, "{dut}");
            assert!(needed[..3].iter().all(|it| it.lab), "{dut}");
            assert!(needed[3..].iter().all(|it| !it.lab), "{dut}");
        }
        let frames = "[throughput: { frame: 64 B, profile: fast }]";
        for (dut, own) in [
            ("router: { nat: off }", &[][..]),
            ("router: { nat: on }", &["nft"]),
            ("bridge", &["bridge"]),
        ] {
            let needed = needed(&format!("duts: [{dut}]"), frames, &lab);
            assert_eq!(names(&needed)[3..], *own, "{dut}");
        }
    }

    #[test]
    fn a_program_of_the_campaign_is_needed_instead_of_the_installed_one() {
        let lab = LabFile::built_in();
        for (dut, own) in [
            ("cipherbench: { program: /opt/a }", &["nft", "/opt/a"][..]),
            (
                "wireguard-go: { program: { old: ./a, new: /opt/b } }",
                &["wg", "./a", "/opt/b"],
            ),
            (
                "strongswan: { program: /opt/charon }",
                &["swanctl", "/opt/charon"],
            ),
            // It is there once the run has built it.
            ("openvpn: { program: ./o, build: make }", &["openssl"]),
            ("gotatun: { environment: { A: b } }", &["wg", "gotatun"]),
        ] {
            let needed = needed(&format!("duts: [{dut}]"), PING, &lab);
            assert_eq!(names(&needed)[3..], *own, "{dut}");
        }
    }

    #[test]
    fn a_program_is_listed_once_with_all_that_need_it() {
        let lab = LabFile::built_in();
        let plan = plan(
            "duts: [direct, boringtun, wireguard-go]",
            "[tcp: { mtu: 1400 B, tool: [iperf3, iperf2] }]",
            &lab,
        );
        let cells: Vec<_> = plan.cells.iter().collect();
        let missing = missing_where((&plan.lab, Role::Run), &cells, |it, _| {
            ["wg", "iperf"].contains(&it).then_some(Lack::Absent)
        });
        assert_eq!(names(&missing), ["wg", "iperf"]);
        let [wg, iperf] = &missing[..] else { panic!() };
        assert_eq!(wg.needed_by, ["DUT boringtun", "DUT wireguard-go"]);
        assert_eq!(wg.cells.len(), 4);
        assert_eq!(
            (iperf.needed_by.as_slice(), iperf.cells.len()),
            (&["tcp".to_owned()][..], 3)
        );
        assert!(iperf.cells.iter().all(|id| id.contains("iperf2")));
    }

    #[test]
    fn an_old_tool_serves_for_one_way_and_not_for_both() {
        let lab = LabFile::built_in();
        let lacking = |trials: &str| {
            let plan = plan("duts: [direct]", trials, &lab);
            let cells: Vec<_> = plan.cells.iter().collect();
            missing_where((&plan.lab, Role::Run), &cells, |name, usage| {
                let said = match name {
                    "iperf3" => "iperf 3.9 (cJSON 1.7.13)\n",
                    "ping" => "ping (GNU inetutils) 2.4\n",
                    _ => return None,
                };
                unfit(name, said, usage).map(Lack::Unfit)
            })
        };
        let one = lacking("[tcp: { mtu: 1400 B }]");
        assert_eq!(names(&one), ["ping"]);
        assert!(one[0].lab && one[0].unfit.as_deref().unwrap().contains("inetutils"));
        assert_eq!(
            one[0].install.as_deref(),
            Some("sudo apt install iputils-ping")
        );
        let both = lacking("[tcp: { mtu: 1400 B, direction: duplex }]");
        assert_eq!(names(&both), ["ping", "iperf3"]);
        assert!(both[1].unfit.as_deref().unwrap().contains("3.11 or newer"));
    }

    #[test]
    fn labs_need_what_builds_them_and_labs_without_a_kernel_nothing() {
        let memory = LabFile::built_in_named("memory").unwrap();
        let load = "[load: { frame: 64 B }]";
        assert_eq!(needed("duts: [cipherbench]", load, &memory), []);
        let device = LabFile::built_in_named("device").unwrap();
        assert_eq!(needed("devices: [engine, openssl]", "[kat]", &device), []);
        let token = needed("devices: [engine, softhsm]", "[kat]", &device);
        assert_eq!(names(&token), ["softhsm2-util"]);
        assert_eq!(token[0].cells, ["kat/softhsm"]);
        let text = "lab: l\nlink_rate: 1 Gbit/s\npath: [bridge]\n";
        let lab = lab_from_text("l.yaml", text).unwrap();
        let needed = needed("duts: [direct]", PING, &lab);
        assert_eq!(names(&needed), ["ip", "ethtool", "ping", "tc", "bridge"]);
    }

    /// The run reaches the boxes; the hosts have the stations and the tap.
    #[test]
    fn each_machine_of_two_hosts_needs_what_runs_on_it() {
        let text = "lab: l\nkind: hosts\nhosts: { a: { interface: eth1 }, b: { reach: ssh b, interface: eth1 } }\n\
                    external: { station_a: eth2, station_b: eth2, tap: [eth3, eth4], tap_host: b }\n";
        let lab = lab_from_text("l.yaml", text).unwrap();
        let duts =
            "duts:\n  - boringtun\n  - external: { boxes: [{ via: /opt/way box, up: x }] }\n";
        let plan = plan(duts, "[tcp: { mtu: 1400 B }]", &lab);
        let cells: Vec<_> = plan.cells.iter().collect();
        let needed = |role| missing_where((&plan.lab, role), &cells, |_, _| Some(Lack::Absent));
        assert_eq!(names(&needed(Role::Run)), ["/opt/way"]);
        assert_eq!(
            names(&needed(Role::Host)),
            [
                "ip",
                "ethtool",
                "ping",
                "wg",
                "boringtun-cli",
                "iperf3",
                "bridge"
            ]
        );
    }

    #[test]
    fn boxes_elsewhere_need_only_the_way_to_them() {
        let text = "lab: l\nexternal: { station_a: eth1, station_b: eth2 }\n";
        let lab = lab_from_text("l.yaml", text).unwrap();
        let boxes = "duts:\n  - external:\n      form: esp\n      suite: aes-256-gcm\n      \
                     boxes:\n        - { via: ssh admin@box, up: [\"up\"] }\n        - { via: /opt/way box }\n";
        let two = needed(boxes, PING, &lab);
        assert_eq!(names(&two), ["ip", "ethtool", "ping", "ssh"]);
        assert_eq!(two[3].install, None);
        let gateway = "duts:\n  - external:\n      gateway: { psk_file: /run/psk }\n      \
                       boxes: [{ up: [\"up\"] }]\n";
        let frames = "[load: { frame: 64 B, direction: encrypt }]";
        let needed = needed(gateway, frames, &lab);
        assert_eq!(
            names(&needed),
            ["ip", "ethtool", "ping", "charon", "swanctl"]
        );
    }

    #[test]
    fn every_program_that_a_plan_may_need_is_known() {
        for program in WireGuardProgram::ALL.into_iter().filter_map(of_wireguard) {
            assert!(KNOWN.iter().any(|known| known.name == program), "{program}");
        }
    }
}
