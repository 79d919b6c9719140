//! The logical CPUs of this machine, their cores and NUMA nodes, from `/sys`.

use journal::record::LogicalCpu;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use testbed::{LabError, Result};

/// Most NUMA nodes that are looked for.
const NODES_MAX: u16 = 1024;

/// Returns these CPUs. A CPU with an unknown core counts as a separate core; one with an unknown
/// node counts to node 0.
pub(crate) fn logical(cpus: &[usize]) -> Vec<LogicalCpu> {
    read(Path::new("/sys/devices/system"), cpus)
}

/// Returns the CPUs that a station assigns to its tools: the wanted ones, or if empty, all that
/// this process may use.
///
/// # Errors
/// When one of them does not exist, or this process may not use it.
pub(crate) fn assignable(wanted: &[u16]) -> Result<Vec<usize>> {
    let cannot_read = |errno: nix::Error| {
        let what = format!("cannot read the CPUs that this process may use: {errno}");
        LabError::cannot_build(what, "see whether /proc is mounted")
    };
    // A container or `taskset` may leave this process fewer CPUs than are online.
    let affinity = sched_getaffinity(Pid::from_raw(0)).map_err(cannot_read)?;
    let is_set = |cpu: &usize| affinity.is_set(*cpu) == Ok(true);
    let all = (0..CpuSet::count()).filter(is_set);
    if wanted.is_empty() {
        return Ok(all.collect());
    }
    let wanted: Vec<usize> = wanted.iter().copied().map(usize::from).collect();
    match wanted.iter().find(|cpu| !is_set(cpu)) {
        None => Ok(wanted),
        Some(lacking) => {
            let all: Vec<_> = all.map(|cpu| cpu.to_string()).collect();
            let what = format!("the lab's `cpus` has CPU {lacking}, which a run cannot use there");
            let help = format!("write some of {}", all.join(", "));
            Err(LabError::cannot_build(what, help))
        }
    }
}

/// Numbers of all online CPUs.
pub(crate) fn online() -> Vec<usize> {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    numbers(&list).into_iter().map(usize::from).collect()
}

fn read(system: &Path, cpus: &[usize]) -> Vec<LogicalCpu> {
    let list = |path: &str| numbers(&fs::read_to_string(system.join(path)).unwrap_or_default());
    let nodes: Vec<(u16, Vec<u16>)> = list("node/online")
        .into_iter()
        // Bounds the number of files that are read below.
        .take_while(|node| *node < NODES_MAX)
        .map(|node| (node, list(&format!("node/node{node}/cpulist"))))
        .collect();
    let cpus = cpus.iter().filter_map(|cpu| u16::try_from(*cpu).ok());
    cpus.map(|cpu| {
        let siblings = list(&format!("cpu/cpu{cpu}/topology/thread_siblings_list"));
        let node = nodes.iter().find(|(_, cpus)| cpus.contains(&cpu));
        // The kernel's core ids repeat in each package, so the lowest thread names the core.
        LogicalCpu {
            cpu,
            core: siblings.into_iter().min().unwrap_or(cpu),
            node: node.map_or(0, |(node, _)| *node),
        }
    })
    .collect()
}

/// A list of ranges: `0-3,8`.
fn numbers(list: &str) -> Vec<u16> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u16>().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_and_nodes_are_read_and_what_is_missing_stands_alone() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (cpu, siblings) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            write(
                &format!("cpu/cpu{cpu}/topology/thread_siblings_list"),
                siblings,
            );
        }
        write("node/online", "0-1\n");
        write("node/node0/cpulist", "0,2\n");
        write("node/node1/cpulist", "1,3\n");
        let found = read(folder.path(), &[1, 2, 3, 7]);
        let fields: Vec<_> = found
            .iter()
            .map(|cpu| (cpu.cpu, cpu.core, cpu.node))
            .collect();
        assert_eq!(fields, [(1, 1, 1), (2, 0, 0), (3, 1, 1), (7, 7, 0)]);
        assert_eq!(numbers("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(numbers("0-3,8").len(), 5);
        assert_eq!(numbers("0"), [0]);
        assert_eq!(numbers(""), [0_u16; 0]);
    }

    #[test]
    fn this_machine_has_a_core_for_each_cpu() {
        let online = logical(&online());
        assert!(!online.is_empty());
        assert!(online.iter().all(|cpu| cpu.core <= cpu.cpu));
    }
}
