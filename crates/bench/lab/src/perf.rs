//! Hardware counters of the processor: cycles and instructions of programs and of the machine.
//!
//! Counters are opened at the start of the measured time and closed at its end, so they slow no
//! context switch outside of it. The kernel is included, because a packet spends most of its time
//! there. Idle time is not excluded explicitly, as some processors refuse that: a halted core
//! counts nothing.

use crate::{cpus, procfs};
use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter};
use std::io;
use testbed::protocol::{Counted, Counts};

/// Attempts to attach to a program while its set of threads changes.
const ATTEMPTS: u32 = 10;

const EVENTS: [Hardware; 2] = [Hardware::CPU_CYCLES, Hardware::INSTRUCTIONS];

/// Running counters.
pub(crate) struct Counting {
    /// A pair for each thread that existed when the counters were attached, by program.
    programs: Vec<Vec<Pair>>,
    /// A pair for each CPU.
    machine: Option<Vec<Pair>>,
}

/// Counters of the two events.
type Pair = [Counter; 2];

/// Tries to count all activity of one CPU.
///
/// # Errors
/// The kernel's reason for refusing.
pub(crate) fn probe() -> io::Result<()> {
    // Any CPU serves: whether counting is permitted does not depend on it.
    let cpu = cpus::online().first().copied().unwrap_or(0);
    let mut pair = pair(EVENTS, |builder| {
        builder.any_pid().one_cpu(cpu);
    })?;
    read(&mut pair).map(drop)
}

/// Explains a refusal and suggests a remedy.
pub(crate) fn explain(refusal: &io::Error) -> (String, &'static str) {
    let (what, help) = match refusal.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => (
            "this system does not see those of its processor",
            "a guest has them where its hypervisor gives it a virtual PMU (QEMU: -cpu host,pmu=on)",
        ),
        Some(libc::EACCES | libc::EPERM) => (
            "not permitted",
            "run as root, in a container with CAP_PERFMON; or: \
             sudo sysctl -w kernel.perf_event_paranoid=0",
        ),
        Some(libc::ENOSYS) => (
            "this kernel has no perf events",
            "a kernel with CONFIG_PERF_EVENTS",
        ),
        _ => return (refusal.to_string(), ""),
    };
    (what.to_owned(), help)
}

impl Counting {
    /// Counts these programs with all their threads and children, and with `machine` all CPUs.
    pub(crate) fn start(pids: &[u32], machine: bool) -> io::Result<Self> {
        Self::start_events(EVENTS, pids, machine)
    }

    /// Like `start`, for any two events.
    fn start_events<E: Event + Copy>(
        events: [E; 2],
        pids: &[u32],
        machine: bool,
    ) -> io::Result<Self> {
        let on_cpu = |cpu| {
            pair(events, |builder| {
                builder.any_pid().one_cpu(cpu);
            })
        };
        let all = || cpus::online().into_iter().map(on_cpu).collect();
        Ok(Self {
            // Opened first: a system without counters refuses this immediately.
            machine: machine.then(all).transpose()?,
            programs: pids
                .iter()
                .map(|pid| attach(events, *pid))
                .collect::<io::Result<_>>()?,
        })
    }

    /// Reads the counters and closes them.
    ///
    /// # Errors
    /// If a counter cannot be read, or was never scheduled on the processor.
    pub(crate) fn end(self) -> io::Result<Counted> {
        let programs = self.programs.into_iter().map(sum);
        Ok(Counted {
            processes: programs.collect::<io::Result<_>>()?,
            machine: self.machine.map(sum).transpose()?,
        })
    }
}

/// Attaches counters to each thread of a program and of its descendants. Threads started later are
/// counted with the thread that starts them.
fn attach<E: Event + Copy>(events: [E; 2], pid: u32) -> io::Result<Vec<Pair>> {
    for _ in 0..ATTEMPTS {
        let threads = procfs::threads(pid);
        let pairs = threads.iter().map(|thread| {
            pair(events, |builder| {
                // Inherited by threads and children that it starts, which are then counted without
                // being attached to.
                builder.observe_pid(thread.cast_signed()).inherit(true);
            })
        });
        match pairs.collect::<io::Result<Vec<_>>>() {
            // A new thread may have started before its parent was counted, or after: attaching to
            // it too could count it twice.
            Ok(pairs) if !pairs.is_empty() && procfs::threads(pid) == threads => return Ok(pairs),
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Err(io::Error::other(
        "the program is gone, or its threads change all the time",
    ))
}

/// Opens a running counter for each event.
fn pair<E: Event + Copy>(events: [E; 2], select: impl Fn(&mut Builder<'_>)) -> io::Result<Pair> {
    let [first, second] = events.map(|event| {
        let mut builder = Builder::new(event);
        select(builder.include_kernel().enabled(true));
        builder.build()
    });
    Ok([first?, second?])
}

fn sum(pairs: Vec<Pair>) -> io::Result<Counts> {
    let mut sum = Counts::default();
    for mut pair in pairs {
        let [cycles, instructions] = read(&mut pair)?;
        sum.cycles = sum.cycles.saturating_add(cycles);
        sum.instructions = sum.instructions.saturating_add(instructions);
    }
    Ok(sum)
}

fn read([first, second]: &mut Pair) -> io::Result<[u64; 2]> {
    let read = |counter: &mut Counter| {
        let seen = counter.read_count_and_time()?;
        scaled(seen.count, seen.time_enabled, seen.time_running)
            .ok_or_else(|| io::Error::other("other users of the counters left none"))
    };
    Ok([read(first)?, read(second)?])
}

/// Extrapolates a count to the whole time: with more events than hardware counters, the kernel
/// gives each event a share of the time. Returns `None` if that share was zero.
fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> Option<u64> {
    if running_ns >= enabled_ns {
        return Some(count);
    }
    // In 128 bits: cycles times nanoseconds exceed 64 bits within seconds.
    let whole = u128::from(count) * u128::from(enabled_ns);
    let whole = whole.checked_div(running_ns.into())?;
    Some(u64::try_from(whole).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event::events::Software;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    /// The kernel's software clocks, which every machine has.
    const CLOCKS: [Software; 2] = [Software::TASK_CLOCK, Software::CPU_CLOCK];
    /// How long the busy program lives if nobody kills it.
    const BUSY_LIMIT: Duration = Duration::from_secs(60);

    /// Kills its process at the end of a test, even if the test fails.
    struct Busy(Child);

    impl Drop for Busy {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Counters of the clocks; `None`, with a message, if this user may count nothing.
    fn clocks(pids: &[u32], machine: bool) -> Option<Counting> {
        match Counting::start_events(CLOCKS, pids, machine) {
            Ok(counting) => Some(counting),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("SKIPPED: this user may not count: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Both bounds with 3 % for the resolution of `/proc`.
    fn assert_between(least: u64, found: u64, most: u64) {
        let bounds = least * 97 / 100..=most * 103 / 100;
        assert!(bounds.contains(&found), "{found} is not in {bounds:?}");
    }

    /// The time that the host has taken from all CPUs of this virtual machine.
    fn stolen_ns() -> u64 {
        procfs::machine_cpu_time().unwrap().steal_ns
    }

    #[test]
    #[ignore = "the program whose threads the next test counts"]
    fn busy_threads() {
        let end = Instant::now() + BUSY_LIMIT;
        let busy = move || while Instant::now() < end {};
        thread::spawn(busy);
        println!("\nbusy");
        let mut line = String::new();
        io::stdin().read_line(&mut line).unwrap();
        let _ = thread::spawn(busy).join();
    }

    #[test]
    fn a_programs_clock_is_its_cpu_time_with_threads_started_before_and_after() {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program
            .args(["--exact", "perf::tests::busy_threads"])
            .args(["--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut program = Busy(program.spawn().unwrap());
        let output = BufReader::new(program.0.stdout.take().unwrap());
        assert!(output.lines().any(|line| line.unwrap() == "busy"));
        let pid = program.0.id();
        let cpu_ns = || {
            let time = procfs::cpu_time(pid).unwrap();
            time.user_ns + time.system_ns
        };
        // The program continues to run between two readings: the inner ones are within the counted
        // time.
        let stolen_before_ns = stolen_ns();
        let outer_ns = cpu_ns();
        let Some(counting) = clocks(&[pid], false) else {
            return;
        };
        let inner_ns = cpu_ns();
        let mut input = program.0.stdin.take().unwrap();
        input.write_all(b"more\n").unwrap();
        while cpu_ns() < inner_ns + 2_000_000_000 {
            thread::sleep(Duration::from_millis(10));
        }
        let least_ns = cpu_ns() - inner_ns;
        let counted = counting.end().unwrap();
        // `/proc` leaves out what the host takes while the program runs, and the clock counts it.
        let most_ns = cpu_ns() - outer_ns + (stolen_ns() - stolen_before_ns);
        assert_eq!(counted.machine, None);
        let [program] = counted.processes[..] else {
            panic!("{counted:?}")
        };
        assert_between(least_ns, program.cycles, most_ns);
        assert_between(least_ns, program.instructions, most_ns);
    }

    #[test]
    fn the_machines_clock_is_that_of_all_its_cpus() {
        let cpus = cpus::online().len() as u64;
        let since = |start: Instant| start.elapsed().as_nanos() as u64 * cpus;
        let outer = Instant::now();
        let Some(counting) = clocks(&[], true) else {
            return;
        };
        let inner = Instant::now();
        thread::sleep(Duration::from_millis(500));
        let least_ns = since(inner);
        let counted = counting.end().unwrap();
        assert!(counted.processes.is_empty());
        let machine = counted.machine.unwrap();
        assert_between(least_ns, machine.instructions, since(outer));
    }

    #[test]
    fn a_program_that_is_gone_is_no_program_that_did_nothing() {
        // Process ids are below this number.
        let error = Counting::start_events(CLOCKS, &[u32::MAX >> 1], false).err();
        assert!(error.is_some());
    }

    #[test]
    fn a_count_of_part_of_the_time_is_scaled_to_all_of_it() {
        assert_eq!(scaled(1_000, 50, 50), Some(1_000));
        assert_eq!(scaled(1_000, 50, 20), Some(2_500));
        // A thread that never ran, and a counter that never had its turn.
        assert_eq!(scaled(0, 0, 0), Some(0));
        assert_eq!(scaled(0, 50, 0), None);
        let large = 1 << 62;
        assert_eq!(scaled(large, 3, 2), Some(large / 2 * 3));
        assert_eq!(scaled(large, 9, 1), Some(u64::MAX));
    }

    #[test]
    fn without_counters_the_kernel_gives_the_reason_and_nothing_is_counted() {
        let counting = Counting::start(&[], true);
        match probe() {
            Ok(()) => assert!(counting.unwrap().end().unwrap().machine.unwrap().cycles > 0),
            Err(reason) => {
                let (what, help) = explain(&reason);
                assert!(!what.is_empty() && !help.is_empty(), "{reason}: {what}");
                assert!(counting.is_err());
            }
        }
    }
}
