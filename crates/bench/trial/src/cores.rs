//! The CPUs of a machine, in the order of their use by stations.

use journal::record::LogicalCpu;

/// The CPUs that stations may use, in the order of their assignment: A takes them from the front
/// and B from the back, so that they share as little as possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Positions among the CPUs that a station may use, as
    /// [`testbed::protocol::Program::cores`] counts them: one thread of each core.
    first: Vec<u16>,
    /// Further threads of the same cores.
    siblings: Vec<u16>,
    /// How many of `first` are on the NUMA node that has most cores. They are at the front.
    near: usize,
    /// The kernel's numbers of the CPUs, by position.
    numbers: Vec<u16>,
}

/// The machines of stations A and B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machines {
    /// Both are on one machine.
    One(Machine),
    /// Each is on a separate machine, A's first.
    Two([Machine; 2]),
}

impl From<Machine> for Machines {
    fn from(machine: Machine) -> Self {
        Self::One(machine)
    }
}

impl From<u16> for Machines {
    /// One machine with this number of cores.
    fn from(cores: u16) -> Self {
        Self::One(cores.into())
    }
}

impl From<u16> for Machine {
    /// A machine with this number of cores and nothing else known about it.
    fn from(cores: u16) -> Self {
        Self {
            first: (0..cores).collect(),
            siblings: Vec::new(),
            near: cores.into(),
            numbers: (0..cores).collect(),
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
                // The first listed thread of a core represents it. Others are used only if nothing
                // else is left: they share its units.
                siblings.push(position);
                continue;
            }
            match nodes.iter_mut().find(|(node, _)| *node == cpu.node) {
                Some((_, cores)) => cores.push(position),
                None => nodes.push((cpu.node, vec![position])),
            }
        }
        // Among nodes with equally many cores, the first one stays first.
        nodes.sort_by_key(|(_, cores)| std::cmp::Reverse(cores.len()));
        Self {
            near: nodes.first().map_or(0, |(_, cores)| cores.len()),
            first: nodes.into_iter().flat_map(|(_, cores)| cores).collect(),
            siblings,
            numbers: cpus.iter().map(|cpu| cpu.cpu).collect(),
        }
    }

    /// The kernel's number of the CPU at a position.
    pub(crate) fn number(&self, position: u16) -> u16 {
        let number = self.numbers.get(usize::from(position));
        number.copied().unwrap_or(position)
    }

    /// Number of CPUs.
    pub(crate) fn present(&self) -> usize {
        self.first.len() + self.siblings.len()
    }

    /// The CPUs to choose `wanted` ones from: cores of one node if they suffice, else all cores,
    /// else with their siblings.
    pub(crate) fn choice(&self, wanted: usize) -> Vec<u16> {
        match wanted {
            _ if wanted <= self.near => self.first[..self.near].to_vec(),
            _ if wanted <= self.first.len() => self.first.clone(),
            _ => [&self.first[..], &self.siblings].concat(),
        }
    }
}
