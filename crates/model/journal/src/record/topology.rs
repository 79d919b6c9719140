//! Logical CPUs, the cores that they are threads of, and their memory.

use super::Header;
use plan::{Cell, LackingCores};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A logical CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LogicalCpuInfo")]
pub struct LogicalCpu {
    /// Its number, as the kernel counts.
    pub cpu: u16,
    /// The lowest number among the threads of its core (SMT siblings): CPUs with the same one share
    /// the core's execution units and first caches.
    pub core: u16,
    /// NUMA node of its memory.
    pub node: u16,
}

impl LogicalCpu {
    /// Whether both are the same CPU or threads of one core: work on one slows the other down.
    #[must_use]
    pub const fn shares_core_with(&self, other: &Self) -> bool {
        self.core == other.core
    }
}

/// Number of cores of these CPUs, counting the threads of one core once.
#[must_use]
pub fn physical_cores(cpus: &[LogicalCpu]) -> u32 {
    let cores: BTreeSet<u16> = cpus.iter().map(|cpu| cpu.core).collect();
    // Not reached: there are 65,536 numbers of cores at most.
    u32::try_from(cores.len()).unwrap_or(u32::MAX)
}

impl Header {
    /// Returns the cores that a cell needs and the machine of the run lacks: its trials fail, as
    /// the campaign expects.
    #[must_use]
    pub fn lacks_cores(&self, cell: &Cell) -> Option<LackingCores> {
        let present = self.environment.cpus;
        LackingCores::of(cell, &self.plan.lab, present).filter(|_| present > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_core_share_it_and_count_once() {
        let cpu = |cpu, core| LogicalCpu { cpu, core, node: 0 };
        let cpus = [cpu(0, 0), cpu(1, 1), cpu(2, 0), cpu(3, 1)];
        assert!(cpus[0].shares_core_with(&cpus[2]));
        assert!(!cpus[0].shares_core_with(&cpus[1]));
        assert_eq!(physical_cores(&cpus), 2);
        assert_eq!(physical_cores(&[]), 0);
    }
}
