//! This machine: what it is, what it can and cannot measure, and what to tune.
//!
//! Reading ([`Machine`], [`Probes`]) is apart from judging ([`judge`]), which is apart from showing
//! ([`render`]): the two latter are pure.

mod findings;
mod machine;
mod probes;
pub mod tuning;
mod verdicts;
mod versions;

pub use findings::{Facts, Finding, Status, render};
pub use machine::Machine;
pub use probes::{Attempt, Probes, TunSuperPackets};
pub use verdicts::judge;

use crate::{Privilege, Result};
use journal::record::Environment;
use std::thread;

/// The machine and its tools, as a journal keeps them, `privilege` being what the lab took. The
/// engines are added by whoever has them.
#[must_use]
pub fn environment(privilege: Option<Privilege>) -> Environment {
    let (machine, tools) = thread::scope(|scope| {
        // Starting the tools takes longest.
        let tools = scope.spawn(versions::tools);
        (Machine::read(), crate::dut::join(tools))
    });
    Environment {
        cpu_model: machine.cpu_model,
        cpus: machine.cpus,
        cpu_features: machine.cpu_features,
        governor: machine.governor,
        memory_bytes: machine.memory_bytes,
        kernel: machine.kernel,
        os: machine.os,
        hypervisor: machine.hypervisor,
        privilege: privilege
            .map_or("none needed", Privilege::describe)
            .to_owned(),
        sysctls: machine.sysctls,
        tools,
        ..Environment::default()
    }
}

/// What this machine can and cannot measure, and what to do about it. Give it what
/// [`privilege::acquire`](crate::privilege::acquire) said: with the privilege, kernel features are
/// tried in a namespace of their own.
#[must_use]
pub fn doctor(privilege: Result<Privilege>) -> Vec<Finding> {
    let probes = privilege.is_ok().then(Probes::try_out).transpose();
    judge(&Facts {
        privilege,
        machine: Machine::read(),
        tools: versions::tools(),
        probes: probes.map_err(|error| error.to_string()),
        tuning: tuning::Tuning::of_this_machine(tuning::RECORD).look(),
    })
}
