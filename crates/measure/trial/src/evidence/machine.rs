//! The check that the machine worked for the trial alone.

use super::check;
use journal::record::{Check, Cpu};

/// What else kept the machine busy. It is a fact where the path could have had other cores: where
/// cores were idle for less time than others took, the path had to wait for them.
///
/// User time only: the kernel's work for the path cannot be distinguished from other work. Our own
/// program's and the stations' few milliseconds are in it.
pub(super) fn machine_was_ours(cpu: &Cpu) -> Option<Check> {
    let percent = cpu.taken_percent()?;
    let ms = |ns: u64| ns / 1_000_000;
    let mut detail = format!(
        "other programs took {} ms of CPU time and the hypervisor {} ms in {} ms: {percent} % of one core",
        ms(cpu.foreign_ns),
        ms(cpu.steal_ns),
        ms(cpu.wall_ns)
    );
    let is_much = percent > Cpu::TAKEN_PERCENT;
    if let Some(idle_ns) = cpu.idle_ns.filter(|_| is_much) {
        detail += &format!("; all cores together were idle for {} ms", ms(idle_ns));
    }
    let passed = !cpu.was_taken_from_path();
    if !passed {
        detail += ", so the path waited for what they took: end the other programs, or use a machine \
                   with more cores";
    } else if is_much {
        detail += "; the figure suffers";
    }
    check("machine-was-ours", passed, detail)
}
