//! This machine: its properties, its limits for measurements, and tuning advice.
//!
//! Reading ([`environment`], [`Probes`]), evaluation ([`judge`]) and rendering ([`render`]) are
//! separate; the latter two are pure.

mod cards;
mod discipline;
mod findings;
mod kernel;
mod load;
mod machine;
mod priority;
mod probes;
pub mod tuning;
mod verdicts;
mod versions;

pub use cards::Card;
pub use discipline::Discipline;
pub(crate) use discipline::corrected_ppb;
pub use findings::{Facts, Finding, Status, render};
pub use kernel::KernelFeature;
pub(crate) use machine::SYSCTLS;
pub use priority::lower_priority;
pub use probes::{Attempt, Probes, TunSuperPackets};
pub use verdicts::judge;
pub use versions::Installed;

use crate::monitor::rapl;
use crate::sync::join;
use crate::{Privilege, perf, procfs};
use journal::record::Environment;
use std::path::Path;
use std::thread;
use testbed::Result;
use testbed::protocol::{CpuTime, Load};

/// Far more than any tool prints about a machine or itself for this module.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// The machine and its tools, as a journal records them, with the privilege that the lab acquired.
/// The caller adds the engines.
#[must_use]
pub fn environment(privilege: Option<Privilege>) -> Environment {
    let (machine, tools) = thread::scope(|scope| {
        // Starting the tools takes longest.
        let tools = scope.spawn(versions::installed);
        (machine::read(&Discipline::read()), join(tools))
    });
    let versions = tools
        .into_iter()
        .map(|(name, tool)| (name, tool.version.unwrap_or_else(|| "?".to_owned())));
    Environment {
        privilege: privilege
            .map_or("none needed", Privilege::describe)
            .to_owned(),
        hardware_counters: match perf::probe() {
            Ok(()) => "cycles and instructions".to_owned(),
            Err(refusal) => format!("not available: {}", perf::explain(&refusal).0),
        },
        energy_counters: rapl::in_words(Path::new(rapl::FOLDER)),
        tools: versions.collect(),
        ..machine
    }
}

/// CPU time since boot of the machine, and of this process and its living descendants; `None` if
/// the kernel does not report it.
#[must_use]
pub fn cpu_times() -> Option<(CpuTime, CpuTime)> {
    Some((
        procfs::machine_cpu_time()?,
        procfs::cpu_time(std::process::id())?,
    ))
}

/// Who uses the CPUs of this machine, over a quarter of a second.
#[must_use]
pub fn load() -> Load {
    load::look()
}

/// Returns findings about the measurements that this machine can and cannot make, with advice.
/// `privilege` is the result of [`privilege::acquire`](crate::privilege::acquire): with the
/// privilege, kernel features are tried in a temporary namespace. `interfaces` are the lab's.
#[must_use]
pub fn doctor(privilege: Result<Privilege>, interfaces: &[String]) -> Vec<Finding> {
    // Before this program uses any itself.
    let load = load();
    let probes = privilege.is_ok().then(Probes::try_out).transpose();
    let discipline = Discipline::read();
    judge(&Facts {
        privilege,
        load,
        machine: machine::read(&discipline),
        clock_source: machine::clock_source(),
        discipline,
        threads_share_cores: machine::threads_share_cores(),
        cards: interfaces.iter().map(|name| Card::read(name)).collect(),
        tools: versions::installed(),
        counters: perf::probe(),
        probes: probes.map_err(|error| error.to_string()),
        tuning: tuning::Tuning::of_this_machine(tuning::RECORD, &[]).look(),
    })
}
