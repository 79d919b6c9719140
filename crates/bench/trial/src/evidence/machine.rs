//! The check that the machine worked for the trial alone.

use super::check;
use super::failure::then_repeat;
use journal::record::{Check, Cpu, Explanation};
use units::human::duration_ns;

/// The name of the check.
pub(crate) const WAS_OURS: &str = "machine-was-ours";

/// Reports other load on the machine. It is a fact if the path could have had other cores. If cores
/// were idle for less time than others took, the path had to wait.
///
/// User time only: the kernel's work for the path cannot be distinguished from other work. It
/// includes a few milliseconds of our program and the stations.
///
/// With two machines, the one with more time taken by others counts.
pub(crate) fn machine_was_ours(cpu: &Cpu) -> Option<Check> {
    let (host, cpu) = cpu.most_taken();
    let percent = cpu.taken_percent()?;
    let ms = |ns: u64| ns / 1_000_000;
    let whose = host.map_or_else(String::new, |host| format!("on host {}, ", host.name()));
    let mut detail = format!(
        "{whose}other programs took {} ms of CPU time and the hypervisor {} ms in {} ms: {percent} % of one core",
        ms(cpu.foreign_ns),
        ms(cpu.steal_ns),
        ms(cpu.wall_ns)
    );
    let is_much = percent > Cpu::TAKEN_PERCENT;
    if let Some(idle_ns) = cpu.idle_ns.filter(|_| is_much) {
        detail += &format!("; all cores together were idle for {} ms", ms(idle_ns));
    }
    let failure = cpu.was_taken_from_path().then(|| {
        let difference = format!(
            "{whose}others took {} of CPU time in {} ({percent} % of one core) while no core was idle for as long",
            duration_ns(cpu.taken_ns() as f64),
            duration_ns(cpu.wall_ns as f64)
        );
        let (cause, advice) = if cpu.steal_ns > cpu.foreign_ns { (
                "the hypervisor gave this machine's cores to others, so the path had to wait",
                "wait until the host has less to do, or use one with more free cores",
            ) } else { (
                "other programs ran on this machine, so the path had to wait for cores",
                "end them, or use a machine with more cores",
            ) };
        Explanation::new(difference, cause, then_repeat(advice))
    });
    if failure.is_none() && is_much {
        detail += "; the figure suffers";
    }
    check(WAS_OURS, failure, detail)
}
