//! The current users of this machine's CPUs.

use crate::cpus;
use crate::procfs::machine_cpu_time;
use std::thread;
use std::time::{Duration, Instant};
use testbed::machine::Programs;
use testbed::protocol::{CpuTime, Load};

/// Length of an observation: 25 of the kernel's accounting ticks.
const SPAN: Duration = Duration::from_millis(250);

/// Looks at the use of the CPUs for a moment.
pub(crate) fn look() -> Load {
    let began = Instant::now();
    // The machine before the programs both times, so that the two spans have the same length.
    let before = (machine_cpu_time().unwrap_or_default(), Programs::read());
    thread::sleep(SPAN);
    let after = (machine_cpu_time().unwrap_or_default(), Programs::read());
    let span_ns = began.elapsed().as_nanos().max(1);
    let grown = |of: fn(&CpuTime) -> u64| {
        let used = u128::from(of(&after.0).saturating_sub(of(&before.0)));
        u32::try_from(used * 100 / span_ns).unwrap_or(u32::MAX)
    };
    Load {
        cpus: u32::try_from(cpus::online().len()).unwrap_or(u32::MAX),
        used_percent: grown(|time| time.user_ns + time.system_ns),
        stolen_percent: grown(|time| time.steal_ns),
        programs: after.1.all_since(&before.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_program_that_uses_a_cpu_is_found() {
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let began = Instant::now();
        // On a busy machine it gets less of the CPU.
        let found = loop {
            let load = look();
            let found = load.programs.iter().find(|it| it.pid == busy.id()).cloned();
            if found.is_some() || began.elapsed() > Duration::from_secs(30) {
                break (found, load);
            }
        };
        busy.kill().unwrap();
        busy.wait().unwrap();
        let (Some(program), load) = found else {
            panic!("{:?}", found.1);
        };
        assert_eq!(program.name, "sh");
        assert!(load.used_percent > 0 && load.cpus > 0, "{load:?}");
    }
}
