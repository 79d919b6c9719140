//! The assignment of a machine's CPUs to stations.

use super::*;
use journal::record::LogicalCpu;

/// CPUs by their cores and nodes.
fn cpus(of: &[(u16, u16)]) -> Vec<LogicalCpu> {
    let cpus = (0..).zip(of);
    cpus.map(|(cpu, &(core, node))| LogicalCpu { cpu, core, node })
        .collect()
}

fn assigned(per_station: u16, of: &[(u16, u16)]) -> (Vec<u16>, Vec<u16>) {
    let cores = Cores::assign(per_station, Machine::of(&cpus(of))).unwrap();
    (cores.a, cores.b)
}

#[test]
fn a_machine_without_siblings_and_nodes_is_assigned_as_one_of_so_many_cores() {
    for cores in 1..=8_u16 {
        let of: Vec<(u16, u16)> = (0..cores).map(|core| (core, 0)).collect();
        for each in 1..=cores {
            assert_eq!(
                Cores::assign(each, Machine::of(&cpus(&of))),
                Cores::assign(each, cores)
            );
        }
    }
}

#[test]
fn siblings_are_used_only_when_no_core_is_left() {
    // As most servers count: second threads behind all first ones; and as some do: in pairs.
    let behind = [(0, 0), (1, 0), (0, 0), (1, 0)];
    let pairs = [(0, 0), (0, 0), (2, 0), (2, 0)];
    assert_eq!(assigned(1, &behind), (vec![0], vec![1]));
    assert_eq!(assigned(1, &pairs), (vec![0], vec![2]));
    // Four threads of two cores: each station has a thread of both, and no CPU is shared.
    assert_eq!(assigned(2, &behind), (vec![0, 1], vec![3, 2]));
    assert_eq!(assigned(2, &pairs), (vec![0, 2], vec![3, 1]));
}

#[test]
fn both_stations_are_on_one_numa_node_where_it_has_cores_enough() {
    let even_and_odd = [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 1)];
    assert_eq!(assigned(1, &even_and_odd), (vec![0], vec![4]));
    assert_eq!(assigned(2, &even_and_odd), (vec![0, 2], vec![5, 3]));
    // The node with most cores, wherever it is.
    let second = [(0, 0), (1, 1), (2, 1)];
    assert_eq!(assigned(1, &second), (vec![1], vec![2]));
    // A core of another node rather than a sibling.
    let both = [(0, 0), (0, 0), (2, 1), (2, 1)];
    assert_eq!(assigned(1, &both), (vec![0], vec![2]));
}

#[test]
fn more_than_there_are_cannot_be_assigned() {
    assert!(Cores::assign(5, Machine::of(&cpus(&[(0, 0); 4]))).is_err());
    assert_eq!(
        assigned(4, &[(0, 0); 4]),
        (vec![0, 1, 2, 3], vec![3, 2, 1, 0])
    );
}

/// Each host has its own CPUs, of which a lab may leave out some.
#[test]
fn stations_on_two_hosts_take_the_first_cores_of_their_own() {
    let of_a = cpus(&[(0, 0), (0, 0), (2, 0)]);
    let mut of_b = cpus(&[(4, 1), (5, 1)]);
    (of_b[0].cpu, of_b[1].cpu) = (4, 5);
    let machines = Machines::Two([Machine::of(&of_a), Machine::of(&of_b)]);
    let cores = Cores::assign(2, machines.clone()).unwrap();
    assert_eq!((&cores.a[..], &cores.b[..]), (&[0, 2][..], &[0, 1][..]));
    assert_eq!(
        cores.in_words(&cores.a, &cores.b),
        ["0, 2 of host a", "4, 5 of host b"]
    );
    assert!(cores.shared().is_empty());
    let error = Cores::assign(3, machines).unwrap_err().to_string();
    assert!(error.contains("host b has 2"), "{error}");
}
