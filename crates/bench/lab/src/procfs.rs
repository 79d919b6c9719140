//! Readers of `/proc`: processes and their parents, CPU time, listening sockets, interface
//! counters.

use journal::record::InterfaceCounters;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use testbed::machine::{boot_id, tick_ns};
use testbed::protocol::CpuTime;

/// One process, from `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    pub(crate) state: char,
    /// Clock ticks after boot: with the pid, identifies a process uniquely.
    pub(crate) start_ticks: u64,
    /// User mode, including children that were waited for.
    user_ticks: u64,
    /// Kernel mode, including children that were waited for.
    system_ticks: u64,
}

impl ProcessStat {
    /// Reads the process; `None` if it does not exist.
    pub(crate) fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name is in parentheses and may contain parentheses and spaces.
        let (head, tail) = text.rsplit_once(')')?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        // `fields[0]` is field 3 of proc(5).
        Some(Self {
            pid: head.split_once(' ')?.0.parse().ok()?,
            ppid: fields.get(1)?.parse().ok()?,
            state: fields.first()?.chars().next()?,
            start_ticks: number(19)?,
            user_ticks: number(11)? + number(13)?,
            system_ticks: number(12)? + number(14)?,
        })
    }

    /// Whether both are readings of the same process at different times.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.start_ticks) == (other.pid, other.start_ticks)
    }

    /// Whether this process still runs.
    pub(crate) fn is_alive(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.is_same(self) && !now.is_zombie())
    }

    /// Sends SIGKILL; the process may already be gone.
    pub(crate) fn kill(&self) {
        let _ = kill(Pid::from_raw(self.pid.cast_signed()), Signal::SIGKILL);
    }

    /// Resumes the process if it was stopped; it may already be gone.
    pub(crate) fn resume(&self) {
        let _ = kill(Pid::from_raw(self.pid.cast_signed()), Signal::SIGCONT);
    }

    /// Whether it is dead and only waits for its parent to reap it.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// All visible processes.
fn processes() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(ProcessStat::read)
        .collect()
}

/// Children of `pid`, their children, and so on, including zombies.
pub(crate) fn descendants(pid: u32) -> Vec<ProcessStat> {
    descendants_among(processes(), pid)
}

fn descendants_among(mut rest: Vec<ProcessStat>, pid: u32) -> Vec<ProcessStat> {
    let mut parents = BTreeSet::from([pid]);
    let mut found = Vec::new();
    // One generation per round, as the listing is unordered.
    loop {
        let (children, others): (Vec<_>, Vec<_>) = rest
            .into_iter()
            .partition(|process| parents.contains(&process.ppid));
        if children.is_empty() {
            return found;
        }
        parents = children.iter().map(|process| process.pid).collect();
        found.extend(children);
        rest = others;
    }
}

/// Threads of a process and of its descendants, in rising order.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let family = descendants(pid).into_iter().map(|process| process.pid);
    let listings = family
        .chain([pid])
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok());
    let numbers = listings
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // Sorted, so that two looks at unchanged threads are equal.
    let mut threads: Vec<u32> = numbers.collect();
    threads.sort_unstable();
    threads
}

/// Returns device and inode of a process's network namespace. They are valid while the returned
/// file is open.
pub(crate) fn network_namespace(pid: u32) -> std::io::Result<(fs::File, (u64, u64))> {
    let file = fs::File::open(format!("/proc/{pid}/ns/net"))?;
    let meta = file.metadata()?;
    Ok((file, (meta.dev(), meta.ino())))
}

/// Processes in a network namespace, without zombies.
pub(crate) fn members(namespace: (u64, u64)) -> Vec<ProcessStat> {
    let is_member = |process: &ProcessStat| {
        // By device and inode, which identify a namespace while it exists.
        let meta = fs::metadata(format!("/proc/{}/ns/net", process.pid));
        meta.is_ok_and(|meta| (meta.dev(), meta.ino()) == namespace)
    };
    processes()
        .into_iter()
        .filter(|process| !process.is_zombie() && is_member(process))
        .collect()
}

/// Processes started with an environment variable, and its value; without zombies.
///
/// Includes only processes with a readable environment: none in a sibling user namespace.
pub(crate) fn marked(variable: &str) -> Vec<(ProcessStat, String)> {
    // The environment that it was started with, which setenv(3) does not change.
    let value = |process: &ProcessStat| {
        let environ = fs::read(format!("/proc/{}/environ", process.pid)).ok()?;
        let mut pairs = environ.split(|byte| *byte == 0);
        let value =
            pairs.find_map(|pair| pair.strip_prefix(variable.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    };
    processes()
        .into_iter()
        .filter(|process| !process.is_zombie())
        .filter_map(|process| Some((value(&process)?, process)))
        .map(|(value, process)| (process, value))
        .collect()
}

/// CPU time of a process and the children that it waited for, without living children.
pub(crate) fn own_cpu_time(pid: u32) -> Option<CpuTime> {
    Some(cpu_time_of(&[ProcessStat::read(pid)?]))
}

/// CPU time of a process, its living descendants, and all children they waited for. Resolution: one
/// tick, 10 ms.
pub(crate) fn cpu_time(pid: u32) -> Option<CpuTime> {
    let own = ProcessStat::read(pid)?;
    let mut family = descendants(pid);
    family.push(own);
    Some(cpu_time_of(&family))
}

fn cpu_time_of(processes: &[ProcessStat]) -> CpuTime {
    let sum = |ticks: fn(&ProcessStat) -> u64| processes.iter().map(ticks).sum::<u64>() * tick_ns();
    CpuTime {
        user_ns: sum(|process| process.user_ticks),
        system_ns: sum(|process| process.system_ticks),
        ..CpuTime::default()
    }
}

/// Resident memory of a process and its living descendants. Shared pages count for each of them.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let own = resident_pages(pid)?;
    // A process that has ended meanwhile is skipped.
    let family = descendants(pid);
    let family = family
        .iter()
        .filter_map(|process| resident_pages(process.pid));
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    let page = page.and_then(|bytes| u64::try_from(bytes).ok());
    Some((own + family.sum::<u64>()) * page.unwrap_or(4096))
}

fn resident_pages(pid: u32) -> Option<u64> {
    parse_resident_pages(&fs::read_to_string(format!("/proc/{pid}/statm")).ok()?)
}

/// The second field of proc_pid_statm(5).
fn parse_resident_pages(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Busy time of all cores since boot. Idle time and time stolen by the hypervisor are separate.
pub(crate) fn machine_cpu_time() -> Option<CpuTime> {
    parse_machine_cpu_time(&fs::read_to_string("/proc/stat").ok()?, tick_ns())
}

fn parse_machine_cpu_time(text: &str, tick_ns: u64) -> Option<CpuTime> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let &[
        user,
        nice,
        system,
        idle,
        iowait,
        irq,
        softirq,
        ref rest @ ..,
    ] = ticks.as_slice()
    else {
        return None;
    };
    // `user` and `nice` include the time of guests, so the fields for guests are not added.
    Some(CpuTime {
        user_ns: (user + nice) * tick_ns,
        system_ns: (system + irq + softirq) * tick_ns,
        steal_ns: rest.first().copied().unwrap_or(0) * tick_ns,
        idle_ns: (idle + iowait) * tick_ns,
    })
}

/// Whether a TCP socket listens on `port` in this network namespace, IPv4 or IPv6.
pub(crate) fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    any_listed("tcp", port, LISTEN)
}

/// Whether a UDP socket without a peer is bound to `port` in this network namespace, IPv4 or IPv6.
pub(crate) fn is_bound(port: u16) -> bool {
    const UNCONNECTED: &str = "07";
    any_listed("udp", port, UNCONNECTED)
}

fn any_listed(protocol: &str, port: u16, state: &str) -> bool {
    // An IPv6 socket that also accepts IPv4 is only in the list of IPv6.
    ["", "6"].iter().any(|version| {
        let text = fs::read_to_string(format!("/proc/self/net/{protocol}{version}"));
        text.is_ok_and(|text| listed(&text, port, state))
    })
}

/// Whether the kernel's list of sockets has one with this local port and state.
fn listed(text: &str, port: u16, state: &str) -> bool {
    text.lines().skip(1).any(|line| {
        // In each line: slot, local address, remote address, state.
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = fields.next().and_then(|address| address.rsplit_once(':'));
        let local_port = local.and_then(|(_, port)| u16::from_str_radix(port, 16).ok());
        local_port == Some(port) && fields.nth(1) == Some(state)
    })
}

/// Counters of all interfaces of this network namespace except `lo`, from `/proc/net/dev`: one file
/// for all interfaces is cheap to read around each trial.
pub(crate) fn interface_counters() -> std::io::Result<BTreeMap<String, InterfaceCounters>> {
    Ok(parse_interface_counters(&fs::read_to_string(
        "/proc/self/net/dev",
    )?))
}

fn parse_interface_counters(text: &str) -> BTreeMap<String, InterfaceCounters> {
    let interfaces = text.lines().filter_map(|line| line.split_once(':'));
    interfaces
        .map(|(name, counters)| (name.trim().to_owned(), parse_counter_line(counters)))
        .filter(|(name, _)| name != "lo")
        .collect()
}

fn parse_counter_line(line: &str) -> InterfaceCounters {
    let fields: Vec<u64> = line
        .split_ascii_whitespace()
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // The eight fields of reception come before the fields of transmission.
    let field = |at: usize| fields.get(at).copied().unwrap_or(0);
    InterfaceCounters {
        rx_bytes: field(0),
        rx_packets: field(1),
        rx_errors: field(2),
        rx_dropped: field(3),
        tx_bytes: field(8),
        tx_packets: field(9),
        tx_errors: field(10),
        tx_dropped: field(11),
    }
}

/// The counters of a table of `/proc/net/snmp` or `/proc/net/netstat`, by name. `prefix` begins the
/// table's lines.
pub(crate) fn table<'t>(text: &'t str, prefix: &str) -> impl Iterator<Item = (&'t str, u64)> {
    // Two lines begin so: the names, and the values in the same order.
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let names = lines.next().unwrap_or_default().split_ascii_whitespace();
    let values = lines.next().unwrap_or_default().split_ascii_whitespace();
    // Settings among the counters may be negative.
    let counters = names.zip(values);
    counters.filter_map(|(name, value)| Some((name, value.parse().ok()?)))
}

/// UDP over IPv4 in this network namespace: `RcvbufErrors` and `InErrors` of `/proc/net/snmp`.
pub(crate) fn udp_errors() -> std::io::Result<[u64; 2]> {
    parse_udp_errors(&fs::read_to_string("/proc/self/net/snmp")?)
        .ok_or_else(|| std::io::Error::other("it has no UDP errors"))
}

fn parse_udp_errors(text: &str) -> Option<[u64; 2]> {
    let counters: BTreeMap<&str, u64> = table(text, "Udp: ").collect();
    let counter = |name| counters.get(name).copied();
    Some([counter("RcvbufErrors")?, counter("InErrors")?])
}

/// The file of a kernel parameter by its name in sysctl(8).
pub(crate) fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// The value of a kernel parameter as it is shown and compared: the kernel separates numbers by
/// tabs.
pub(crate) fn sysctl_words(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a number under `/proc/sys/net/core`, by the last part of its name; `None` if it is not
/// visible here.
pub(crate) fn net_core(name: &str) -> Option<u64> {
    let value = fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?;
    value.trim().parse().ok()
}

/// Whether the kernel has IPv6: compiled in, and not disabled at boot.
pub(crate) fn has_ipv6() -> bool {
    fs::exists("/proc/sys/net/ipv6/conf/all").unwrap_or(false)
}

/// Identifies the CLOCK_MONOTONIC that this process reads: the machine's boot, and the time
/// namespace if the kernel has time namespaces (`time_namespaces(7)`).
pub(crate) fn clock_id() -> String {
    // A time namespace shifts CLOCK_MONOTONIC, so that two processes of a machine may read
    // different clocks.
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", boot_id(), namespace.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_stat_line_whose_name_holds_brackets_and_blanks() {
        let line =
            "4242 (a) b (c) S 17 4242 4242 0 -1 4194304 100 0 0 0 11 22 33 44 20 0 1 0 987654 1 2";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!((stat.pid, stat.ppid, stat.state), (4242, 17, 'S'));
        assert_eq!((stat.user_ticks, stat.system_ticks), (11 + 33, 22 + 44));
        assert_eq!(stat.start_ticks, 987_654);
        assert_eq!(ProcessStat::parse("4242 (a S 17"), None);
    }

    #[test]
    fn descendants_are_found_whatever_the_order_of_the_listing() {
        let process = |pid, ppid| ProcessStat {
            pid,
            ppid,
            state: 'S',
            start_ticks: 0,
            user_ticks: 0,
            system_ticks: 0,
        };
        let listing = vec![
            process(30, 20),
            process(20, 10),
            process(40, 30),
            process(50, 1),
        ];
        let mut pids: Vec<u32> = descendants_among(listing, 10)
            .iter()
            .map(|process| process.pid)
            .collect();
        pids.sort_unstable();
        assert_eq!(pids, [20, 30, 40]);
    }

    #[test]
    fn machine_time_counts_idle_and_stolen_time_apart() {
        // Powers of two: the sums show which fields are in them.
        let text = "cpu  1 2 4 8 16 32 64 128 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n";
        let time = parse_machine_cpu_time(text, 10).unwrap();
        assert_eq!(
            time,
            CpuTime {
                user_ns: 30,
                system_ns: (4 + 32 + 64) * 10,
                steal_ns: 128 * 10,
                idle_ns: (8 + 16) * 10,
            }
        );
    }

    #[test]
    fn memory_in_ram_is_that_of_this_very_process() {
        assert_eq!(parse_resident_pages("900 123 45 6 0 78 0\n"), Some(123));
        assert_eq!(parse_resident_pages("900\n"), None);
        let before = resident_bytes(std::process::id()).unwrap();
        let memory = std::hint::black_box(vec![1_u8; 64 << 20]);
        let with = resident_bytes(std::process::id()).unwrap();
        assert!(with >= before + (32 << 20), "{before} {with}");
        drop(memory);
    }

    #[test]
    fn udp_errors_are_read_by_name_and_not_by_place() {
        let text = "Ip: A B\nIp: 1 2\nUdp: InDatagrams InErrors New RcvbufErrors\nUdp: 9 7 8 5\n\
                    UdpLite: InErrors RcvbufErrors\nUdpLite: 1 1\n";
        assert_eq!(parse_udp_errors(text), Some([5, 7]));
        assert_eq!(parse_udp_errors("Udp: InErrors\nUdp: 1\n"), None);
    }

    #[test]
    fn only_a_socket_in_state_listen_counts_as_listening() {
        let text = "  sl  local_address rem_address   st tx_queue\n\
                    0: 00000000:1451 00000000:0000 0A 00000000:00000000\n\
                    1: 0100007F:1452 0100007F:1451 01 00000000:00000000\n";
        assert!(listed(text, 0x1451, "0A"));
        assert!(!listed(text, 0x1452, "0A"));
    }

    #[test]
    fn reads_interface_counters_and_leaves_out_lo() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs\n\
                    \x20   lo:  9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n\
                    \x20   w0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let counters = parse_interface_counters(text);
        assert_eq!(counters.keys().collect::<Vec<_>>(), ["w0"]);
        let w0 = counters["w0"];
        assert_eq!(
            (w0.rx_bytes, w0.rx_packets, w0.rx_errors, w0.rx_dropped),
            (1, 2, 3, 4)
        );
        assert_eq!(
            (w0.tx_bytes, w0.tx_packets, w0.tx_errors, w0.tx_dropped),
            (9, 10, 11, 12)
        );
    }
}
