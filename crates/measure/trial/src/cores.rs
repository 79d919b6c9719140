//! The CPUs of a machine, and those that the stations' tools use when both stations are on it.

use crate::command::CommandError;
use journal::record::LogicalCpu;

/// The CPUs that stations may use, in the order in which they are assigned: as A takes them from
/// the front and B from the back, they share as little as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Positions among the CPUs that a station may use, as [`lab::protocol::Program::cores`] counts
    /// them: one thread of each core.
    first: Vec<u16>,
    /// Further threads of the same cores.
    siblings: Vec<u16>,
    /// How many of `first` are on the NUMA node that has most cores. They are at the front.
    near: usize,
}

impl From<u16> for Machine {
    /// A machine of so many cores, of which nothing else is known.
    fn from(cores: u16) -> Self {
        Self {
            first: (0..cores).collect(),
            siblings: Vec::new(),
            near: cores.into(),
        }
    }
}

impl Machine {
    /// A machine with these CPUs.
    #[must_use]
    pub fn of(cpus: &[LogicalCpu]) -> Self {
        let mut nodes: Vec<(u16, Vec<u16>)> = Vec::new();
        let mut siblings = Vec::new();
        for (position, cpu) in (0..).zip(cpus) {
            let before = &cpus[..usize::from(position)];
            if before.iter().any(|other| other.shares_core_with(cpu)) {
                siblings.push(position);
                continue;
            }
            match nodes.iter_mut().find(|(node, _)| *node == cpu.node) {
                Some((_, cores)) => cores.push(position),
                None => nodes.push((cpu.node, vec![position])),
            }
        }
        // Of nodes with as many cores, the first one stays first.
        nodes.sort_by_key(|(_, cores)| std::cmp::Reverse(cores.len()));
        Self {
            near: nodes.first().map_or(0, |(_, cores)| cores.len()),
            first: nodes.into_iter().flat_map(|(_, cores)| cores).collect(),
            siblings,
        }
    }

    /// The CPUs to choose from for so many in all: cores of one node where they suffice, else of
    /// all, else with their siblings.
    fn choice(&self, wanted: usize) -> Vec<u16> {
        match wanted {
            _ if wanted <= self.near => self.first[..self.near].to_vec(),
            _ if wanted <= self.first.len() => self.first.clone(),
            _ => [&self.first[..], &self.siblings].concat(),
        }
    }
}

/// Cores of the stations' tools when both stations are on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// Station A's, from the low end.
    pub a: Vec<u16>,
    /// Station B's, from the high end.
    pub b: Vec<u16>,
}

impl Cores {
    /// Assigns `per_station` of a machine's CPUs to each station, A from the low end and B from the
    /// high end, so that they share as few as possible: threads of one core and memory of another
    /// NUMA node are used only where nothing else is left.
    ///
    /// # Errors
    /// When the machine has fewer than `per_station`, or that is 0.
    pub fn assign(per_station: u16, machine: impl Into<Machine>) -> Result<Self, CommandError> {
        let machine = machine.into();
        if per_station == 0 {
            return Err(CommandError::Zero {
                what: "the number of cores per station",
            });
        }
        let each = usize::from(per_station);
        let present = machine.first.len() + machine.siblings.len();
        if each > present {
            return Err(CommandError::TooFewCores {
                wanted: per_station,
                present: u16::try_from(present).unwrap_or(u16::MAX),
            });
        }
        let choice = machine.choice(2 * each);
        Ok(Self {
            a: choice.iter().take(each).copied().collect(),
            b: choice.iter().rev().take(each).copied().collect(),
        })
    }

    /// Cores that both stations use.
    #[must_use]
    pub fn shared(&self) -> Vec<u16> {
        self.a
            .iter()
            .copied()
            .filter(|core| self.b.contains(core))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
