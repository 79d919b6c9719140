//! IP, ICMP, UDP and TCP counters of a network namespace.

use crate::procfs;
use std::collections::BTreeMap;
use std::{fs, io};
use testbed::Counted;

/// Tables of `/proc/net/snmp` and the counters used from them: packets that the namespace's
/// programs sent (a super-packet of TCP counts as its segments), and counters that explain
/// retransmissions.
const SNMP: [(&str, &[&str]); 4] = [
    ("Ip: ", &["FragOKs", "FragCreates"]),
    ("Icmp: ", &["OutMsgs"]),
    ("Udp: ", &["OutDatagrams"]),
    (
        "Tcp: ",
        &["OutSegs", "RetransSegs", "InErrs", "InCsumErrors"],
    ),
];
/// The same for `/proc/net/netstat`: packets that reached the namespace's IP (a super-packet counts
/// as its segments, unlike in `InReceives`), and counters that explain retransmissions.
const NETSTAT: [(&str, &[&str]); 2] = [
    (
        "IpExt: ",
        &["InNoECTPkts", "InECT0Pkts", "InECT1Pkts", "InCEPkts"],
    ),
    (
        "TcpExt: ",
        &[
            "TCPDSACKRecv",
            "TCPDSACKOldSent",
            "TCPLossProbes",
            "TCPTimeouts",
            "TCPSACKReorder",
            "TCPSpuriousRTOs",
        ],
    ),
];

/// Packets between programs of the namespace, which the counters above count as both sent and
/// received.
const LOOPBACK: &str = "LoopbackPackets";

/// Reads the counters, without those that the kernel lacks.
pub(super) fn stack() -> io::Result<BTreeMap<String, u64>> {
    let snmp = fs::read_to_string("/proc/self/net/snmp")?;
    let netstat = fs::read_to_string("/proc/self/net/netstat").unwrap_or_default();
    let mut found = BTreeMap::new();
    for (text, tables) in [(&snmp, &SNMP[..]), (&netstat, &NETSTAT[..])] {
        for (prefix, names) in tables {
            found.extend(wanted(text, prefix, names));
        }
    }
    // The kernel counts a packet over loopback as sent and as received, like one that crossed a
    // link.
    let interfaces = fs::read_to_string("/proc/self/net/dev")?;
    found.extend(loopback(&interfaces).map(|packets| (LOOPBACK.to_owned(), packets)));
    Ok(found)
}

/// Returns the packets received by the loopback interface, from `/proc/net/dev`.
fn loopback(interfaces: &str) -> Option<u64> {
    let mut lines = interfaces.lines().map(str::trim_start);
    let counts = lines.find_map(|line| line.strip_prefix("lo:"))?;
    counts.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the counters of a table with these names.
fn wanted(text: &str, prefix: &str, names: &[&str]) -> BTreeMap<String, u64> {
    let wanted = procfs::table(text, prefix).filter(|(name, _)| names.contains(name));
    wanted
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

/// Returns the counters that grew, and by how much.
pub(super) fn growth(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let grown = after.iter().map(|(name, after)| {
        let before = before.get(name).copied().unwrap_or(0);
        (name.clone(), Counted::between(before, *after).count())
    });
    grown.filter(|(_, grown)| *grown > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_over_loopback_are_read() {
        let text = "Inter-|   Receive\n face |bytes    packets errs\n  eth0: 9 8 7\n    lo:    1450      26    0\n";
        assert_eq!(loopback(text), Some(26));
        assert_eq!(loopback("Inter-|   Receive\n  eth0: 9 8 7\n"), None);
    }

    #[test]
    fn counters_are_read_by_name_and_their_growth_leaves_out_zeros() {
        let text = "Ip: A\nIp: 1\nTcp: MaxConn RetransSegs OutSegs\nTcp: -1 5 90\nUdp: RetransSegs\nUdp: 7\n";
        let before = wanted(text, "Tcp: ", &["OutSegs", "RetransSegs"]);
        assert_eq!(
            before,
            [("RetransSegs".to_owned(), 5), ("OutSegs".to_owned(), 90)].into()
        );
        let after = [("RetransSegs".to_owned(), 5), ("OutSegs".to_owned(), 100)].into();
        assert_eq!(growth(&before, &after), [("OutSegs".to_owned(), 10)].into());
        assert!(wanted("", "Tcp: ", &["OutSegs"]).is_empty());
    }

    #[test]
    fn this_kernel_has_all_of_them() {
        let found = stack().unwrap();
        for (_, names) in SNMP.iter().chain(&NETSTAT) {
            for name in *names {
                assert!(found.contains_key(*name), "{name}: {found:?}");
            }
        }
    }
}
