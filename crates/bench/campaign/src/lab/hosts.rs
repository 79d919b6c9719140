//! The hosts of a lab with stations on other machines.

use super::cables::interface;
use super::declared::{CPU_MAX, HOST};
use crate::words::command_prefix;
use plan::{Host, Hosts, is_program_path};
use std::time::Duration;
use yaml::{Map, Node, Reported};

/// `{ a: { reach: ssh root@left, interface: eth1 }, b: … }`.
pub(super) fn read(map: &Map<'_>) -> Result<Hosts, Reported> {
    let host = |key| map.read(key, |node| node.keys(HOST, read_host));
    let (a, b) = (host("a"), host("b"));
    let reconnect = map.get::<Duration>("reconnect");
    let (a, b) = (a?, b?);
    // A cable has two ends.
    if a.interface.is_some() != b.interface.is_some() {
        let with = if a.interface.is_some() { "a" } else { "b" };
        let what = format!("host `{with}` alone has an interface at the cable between the hosts");
        let help =
            "write `interface` of both, or of neither where only external boxes are measured";
        return Err(map.node().mistake(what, help));
    }
    // The same command leads to the same host, which would have both ends.
    if a.reach == b.reach {
        let what = format!("both hosts are {}", a.describe());
        let help =
            "write `reach` of the other host; for one machine alone, write `kind: namespaces`";
        return Err(map.node().mistake(what, help));
    }
    let reconnect_ns = u64::try_from(reconnect?.as_nanos()).unwrap_or(u64::MAX);
    Ok(Hosts { a, b, reconnect_ns })
}

fn read_host(map: &Map<'_>) -> Result<Host, Reported> {
    let reach = map.with_default("reach", Vec::new(), read_reach);
    let interface = map.with_default("interface", None, |node| interface(node).map(Some));
    let cpus = map.with_default("cpus", Vec::new(), read_cpus);
    let program = map.with_default("program", None, read_program);
    Ok(Host {
        reach: reach?,
        interface: interface?.map(|name| name.value),
        cpus: cpus?,
        program: program?,
    })
}

/// The words in front of a command.
fn read_reach(node: Node<'_>) -> Result<Vec<String>, Reported> {
    command_prefix(
        node,
        "reach",
        ("ssh root@192.0.2.1", "this machine", "a lab"),
    )
}

/// CPUs of a host, each once.
fn read_cpus(node: Node<'_>) -> Result<Vec<u16>, Reported> {
    let mut taken = Vec::new();
    node.one_or_many(|item| {
        let cpu = item.integer(0..=CPU_MAX)?;
        if taken.contains(&cpu) {
            return Err(item.mistake(format!("CPU {cpu} is in the list twice"), "name each once"));
        }
        taken.push(cpu);
        Ok(cpu)
    })
}

fn read_program(node: Node<'_>) -> Result<Option<String>, Reported> {
    let path = node.text()?;
    if !is_program_path(path) {
        let help = "write its whole path on the host, without spaces: `/usr/local/bin/cipherbench`";
        return Err(node.mistake("this cannot be the path of a program", help));
    }
    Ok(Some(path.to_owned()))
}
