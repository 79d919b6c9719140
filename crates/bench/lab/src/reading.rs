//! Counters of one node around a frame trial, all read in one round trip.

use crate::procfs;
use std::fs;
use std::io;
use testbed::protocol::{CpuTime, NodeReading};

/// Reads this node's counters.
pub(crate) fn read(processes: Vec<CpuTime>) -> io::Result<NodeReading> {
    let unknown = |file: &str| io::Error::other(format!("{file} has an unknown form"));
    let softnet = fs::read_to_string("/proc/net/softnet_stat")?;
    // Read next to the counters, because all of them are compared over the same span.
    let machine = procfs::machine_cpu_time();
    Ok(NodeReading {
        interfaces: procfs::interface_counters()?,
        socket_drops: socket_drops()?,
        backlog_drops: parse_backlog_drops(&softnet)
            .ok_or_else(|| unknown("/proc/net/softnet_stat"))?,
        machine: machine.ok_or_else(|| unknown("/proc/stat"))?,
        pressure_ns: pressure_ns(),
        processes,
    })
}

fn socket_drops() -> io::Result<u64> {
    let [v4, _] = procfs::udp_errors()?;
    // A kernel without IPv6 lacks this file.
    let v6 = fs::read_to_string("/proc/self/net/snmp6").unwrap_or_default();
    Ok(v4 + parse_v6_socket_drops(&v6))
}

fn parse_v6_socket_drops(text: &str) -> u64 {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let value = lines.find_map(|mut words| match words.next() {
        Some("Udp6RcvbufErrors") => words.next()?.parse().ok(),
        _ => None,
    });
    value.unwrap_or(0)
}

/// Sums the second number of each core's line, which is hexadecimal.
fn parse_backlog_drops(text: &str) -> Option<u64> {
    let dropped = text.lines().map(|line| {
        let word = line.split_ascii_whitespace().nth(1)?;
        u64::from_str_radix(word, 16).ok()
    });
    dropped.sum()
}

fn pressure_ns() -> Option<u64> {
    parse_pressure_ns(&fs::read_to_string("/proc/pressure/cpu").ok()?)
}

/// `some avg10=0.00 … total=MICROSECONDS` (`Documentation/accounting/psi.rst` of the kernel).
fn parse_pressure_ns(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let (_, total) = line.rsplit_once("total=")?;
    Some(total.trim().parse::<u64>().ok()?.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backlog_drops_are_those_of_all_cores_in_hexadecimal() {
        let text = "0238508b 000001ad 00000000\n01337c36 0000015c 00000001\n";
        assert_eq!(parse_backlog_drops(text), Some(0x1ad + 0x15c));
        assert_eq!(parse_backlog_drops("0238508b\n"), None);
        assert_eq!(parse_backlog_drops("1 zz\n"), None);
    }

    #[test]
    fn pressure_is_the_total_of_the_line_some() {
        let text = "some avg10=0.00 avg60=0.11 avg300=3.98 total=642766123\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_pressure_ns(text), Some(642_766_123_000));
        assert_eq!(parse_pressure_ns("full total=7\n"), None);
    }

    #[test]
    fn datagrams_dropped_by_sockets_of_ipv6_are_found_by_name() {
        let text = "Ip6InReceives 7\nUdp6InErrors 9\nUdp6RcvbufErrors   4\n";
        assert_eq!(parse_v6_socket_drops(text), 4);
        assert_eq!(parse_v6_socket_drops(""), 0);
    }

    #[test]
    fn this_machine_can_be_read() {
        let reading = read(Vec::new()).unwrap();
        assert!(reading.machine.user_ns > 0, "{reading:?}");
    }
}
