//! Interfaces of the machine: which are taken, and what they have when they are back.

use super::{Rack, await_that, held, lab_of, refusal, setup_in};
use crate::external::rack::run;
use lab::NamespaceLab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use testbed::NodeId;

/// Runs a shell script; returns whether it succeeded.
fn can(script: &str) -> bool {
    let shell = Command::new("sh").args(["-ec", script]).output().unwrap();
    shell.status.success()
}

/// What the machine knows of the cables: parameters, permanent neighbours, multicast addresses that
/// were added by hand, and the way their addresses are made.
fn settings() -> String {
    let names = ["eth1", "eth2", "eth3", "eth4"];
    let mut text = String::new();
    for (kind, name) in ["ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"]
        .iter()
        .flat_map(|kind| names.map(|name| (kind, name)))
    {
        let folder = Path::new("/proc/sys/net").join(kind).join(name);
        let files = fs::read_dir(&folder).unwrap();
        let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            // Some cannot be read while they are not set.
            let value = fs::read_to_string(&path).unwrap_or_default();
            text += &format!("{} {value}\n", path.display());
        }
    }
    let mut sorted = |script: &str| {
        let output = Command::new("sh").args(["-ec", script]).output().unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<_> = output.lines().map(str::trim).collect();
        lines.sort_unstable();
        text += &format!("{script}\n{}\n", lines.join("\n"));
    };
    sorted("ip neighbour show nud permanent");
    sorted("ip neighbour show proxy");
    sorted("awk '$4 != 0 {print $2, $4, $5}' /proc/net/dev_mcast");
    text
}

/// Sets what the kernel forgets of an interface that moves, of one that is up and of some that are
/// not.
fn set_all() {
    for (interface, parameter, value) in [
        ("eth1", "ipv4/conf/eth1/rp_filter", "2"),
        ("eth1", "ipv4/conf/eth1/arp_ignore", "1"),
        ("eth1", "ipv4/conf/eth1/forwarding", "1"),
        ("eth1", "ipv6/conf/eth1/addr_gen_mode", "1"),
        ("eth1", "ipv4/neigh/eth1/gc_stale_time", "77"),
        ("eth2", "ipv6/conf/eth2/disable_ipv6", "1"),
        ("eth2", "ipv4/conf/eth2/arp_announce", "2"),
        ("eth3", "ipv6/conf/eth3/forwarding", "1"),
        ("eth3", "ipv6/conf/eth3/accept_ra", "0"),
        ("eth4", "ipv6/neigh/eth4/ucast_solicit", "7"),
    ] {
        let path = Path::new("/proc/sys/net").join(parameter);
        fs::write(path, value).unwrap_or_else(|error| panic!("{interface}: {error}"));
    }
    run("ip neighbour add 198.51.100.9 lladdr 02:00:00:00:00:09 dev eth1 nud permanent");
    run("ip neighbour add 2001:db8::9 lladdr 02:00:00:00:00:09 dev eth1 nud permanent");
    run("ip neighbour add proxy 198.51.100.8 dev eth1");
    run("ip maddress add 01:00:5e:01:02:03 dev eth1");
    run("ip maddress add 01:00:5e:01:02:04 dev eth4");
}

pub(super) fn restored() {
    let rack = Rack::build(true);
    set_all();
    let (before, addresses) = (settings(), Rack::addresses());
    // Twice: restored settings are borrowed and restored again.
    for _ in 0..2 {
        let folder = testing::folder().unwrap();
        let lab = NamespaceLab::build(&lab_of(&rack), &setup_in(folder.path())).unwrap();
        assert!(!rack.has_all_back());
        drop(lab);
        assert!(rack.has_all_back());
        assert_eq!(settings(), before);
        assert_eq!(Rack::addresses(), addresses);
    }
}

/// Each kind of interface that this kernel has.
pub(super) fn refused_below() {
    let rack = Rack::build(true);
    run("ip link add low type veth peer name beyond");
    run("ip link set low up");
    let mut tried = 0;
    for (kind, make) in [
        ("macvlan", "ip link add up0 link low type macvlan"),
        ("macvtap", "ip link add up0 link low type macvtap"),
        ("ipvlan", "ip link add up0 link low type ipvlan"),
        ("vlan", "ip link add up0 link low type vlan id 7"),
        ("macsec", "ip link add up0 link low type macsec"),
        (
            "vxlan",
            "ip link add up0 type vxlan id 7 dev low dstport 4789",
        ),
        (
            "bridge",
            "ip link add up0 type bridge; ip link set low master up0",
        ),
        (
            "bond",
            "ip link add up0 type bond; ip link set low down; ip link set low master up0",
        ),
        (
            "team",
            "ip link add up0 type team; ip link set low down; ip link set low master up0",
        ),
        (
            "vrf",
            "ip link add up0 type vrf table 7; ip link set low master up0",
        ),
        ("hsr", "ip link add up0 type hsr slave1 low slave2 beyond"),
    ] {
        if !can(make) {
            eprintln!("this kernel has no {kind}");
            continue;
        }
        tried += 1;
        let place = match kind {
            "bridge" | "bond" | "team" | "vrf" => "`low` is a port of `up0`".to_owned(),
            kind => format!("`low` is under `up0` ({kind})"),
        };
        let said = refusal(&rack, "low");
        assert!(said.contains(&place), "{said}");
        assert!(said.contains(", or free it: `ip link "), "{said}");
        run("ip address add 198.51.100.9/24 dev up0");
        let said = refusal(&rack, "low");
        let carries = format!("{place}, which has the address 198.51.100.9");
        assert!(said.contains(&carries), "{said}");
        // No command is proposed here: it would take the machine's address away.
        assert!(!said.contains("ip link"), "{said}");
        run("ip link set up0 up");
        run("ip route add default dev up0");
        let said = refusal(&rack, "low");
        assert!(
            said.contains(&format!(
                "{place}, over which this machine's default route goes"
            )),
            "{said}"
        );
        assert!(rack.has_all_back());
        run("ip link delete up0");
    }
    assert!(tried > 0, "no kind could be tried");
}

pub(super) fn refused_lost() {
    let rack = Rack::build(true);
    run("ip link set eth2 up");
    for (set, says, unset) in [
        (
            "tc qdisc add dev eth2 clsact",
            "`eth2` has the queueing discipline `clsact`, which would be lost",
            "tc qdisc delete dev eth2 clsact",
        ),
        (
            "tc qdisc add dev eth2 root pfifo limit 7",
            "`eth2` has the queueing discipline `pfifo`, which would be lost",
            "tc qdisc delete dev eth2 root",
        ),
        (
            "ip route add 203.0.113.0/24 dev eth2",
            "the route to 203.0.113.0/24 leads to it, and would be lost",
            "ip route delete 203.0.113.0/24 dev eth2",
        ),
        (
            "ip -6 route add 2001:db8::/64 dev eth2 table 7",
            "the route to 2001:db8::/64 leads to it, and would be lost",
            "ip -6 route delete 2001:db8::/64 dev eth2 table 7",
        ),
    ] {
        run(set);
        let said = refusal(&rack, "eth2");
        assert!(said.contains(says) && said.contains(unset), "{said}");
        // The help is a command that frees it.
        run(unset);
    }
    run("ip link set eth2 down");
    let folder = testing::folder().unwrap();
    drop(NamespaceLab::build(&lab_of(&rack), &setup_in(folder.path())).unwrap());
    assert!(rack.has_all_back());
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

/// A station that was stopped ends in order, and what a killed one had is moved out of its
/// namespace.
pub(super) fn stopped() {
    let rack = Rack::build(true);
    set_all();
    let before = settings();
    let assert_back = || {
        assert!(rack.has_all_back());
        assert_eq!(settings(), before);
    };
    for how in [Signal::SIGSTOP, Signal::SIGKILL] {
        for node in [NodeId::A, NodeId::Tap] {
            let folder = testing::folder().unwrap();
            let lab = NamespaceLab::build(&lab_of(&rack), &setup_in(folder.path())).unwrap();
            signal(lab.station_pid(node), how);
            drop(lab);
            assert_back();
        }
    }
    // The run is killed as well: the next one frees the stopped station.
    let folder = testing::folder().unwrap();
    let mut child = held(&rack, folder.path());
    let state = fs::read_dir(folder.path())
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let state: Value = serde_json::from_slice(&fs::read(state.path()).unwrap()).unwrap();
    let stations = state["stations"].as_array().unwrap();
    let of = |name: &str| {
        let station = stations.iter().find(|its| its["name"] == name).unwrap();
        u32::try_from(station["pid"].as_u64().unwrap()).unwrap()
    };
    // A stopped station does not notice the end of its run, and would keep its interfaces.
    for name in ["a", "tap"] {
        signal(of(name), Signal::SIGSTOP);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(NamespaceLab::build(&lab_of(&rack), &setup_in(folder.path())).unwrap());
    await_that("all is given back", || rack.has_all_back());
    assert_back();
}

/// A run that is killed when it has all of it: the interfaces come back and the boxes go down, and
/// a run that follows at once waits for that.
pub(super) fn killed() {
    let rack = Rack::build(true);
    let before = Rack::addresses();
    let folder = testing::folder().unwrap();
    for follows_at_once in [false, true] {
        let times = rack.times_down();
        let mut child = held(&rack, folder.path());
        assert!(!rack.has_all_back());
        child.kill().unwrap();
        child.wait().unwrap();
        if follows_at_once {
            let lab = NamespaceLab::build(&lab_of(&rack), &setup_in(folder.path())).unwrap();
            drop(lab);
        }
        await_that("all is given back", || rack.has_all_back());
        await_that("the boxes are taken down", || {
            rack.times_down() == times.map(|times| times + 1)
        });
        assert_eq!(Rack::addresses(), before);
    }
}
