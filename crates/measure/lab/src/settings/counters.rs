//! TCP's counters of a network namespace.

use std::collections::BTreeMap;
use std::{fs, io};

/// Those that explain retransmissions, of `/proc/net/snmp` and `/proc/net/netstat`.
const COUNTERS: [&str; 10] = [
    "OutSegs",
    "RetransSegs",
    "InErrs",
    "InCsumErrors",
    "TCPDSACKRecv",
    "TCPDSACKOldSent",
    "TCPLossProbes",
    "TCPTimeouts",
    "TCPSACKReorder",
    "TCPSpuriousRTOs",
];

/// Reads them. A counter that the kernel lacks is left out.
pub(super) fn tcp() -> io::Result<BTreeMap<String, u64>> {
    let mut found = parse(&fs::read_to_string("/proc/self/net/snmp")?, "Tcp: ");
    let more = fs::read_to_string("/proc/self/net/netstat").unwrap_or_default();
    found.extend(parse(&more, "TcpExt: "));
    Ok(found)
}

/// A line of names and one of values, which begin with `prefix`.
fn parse(text: &str, prefix: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let names = lines.next().unwrap_or_default().split_ascii_whitespace();
    let values = lines.next().unwrap_or_default().split_ascii_whitespace();
    names
        .zip(values)
        .filter(|(name, _)| COUNTERS.contains(name))
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
        .collect()
}

/// What grew, and by how much.
pub(super) fn growth(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let grown = after.iter().map(|(name, after)| {
        let before = before.get(name).copied().unwrap_or(0);
        (name.clone(), after.saturating_sub(before))
    });
    grown.filter(|(_, grown)| *grown > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_name_and_their_growth_leaves_out_zeros() {
        let text = "Ip: A\nIp: 1\nTcp: MaxConn RetransSegs OutSegs\nTcp: -1 5 90\nUdp: RetransSegs\nUdp: 7\n";
        let before = parse(text, "Tcp: ");
        assert_eq!(
            before,
            [("RetransSegs".to_owned(), 5), ("OutSegs".to_owned(), 90)].into()
        );
        let after = [("RetransSegs".to_owned(), 5), ("OutSegs".to_owned(), 100)].into();
        assert_eq!(growth(&before, &after), [("OutSegs".to_owned(), 10)].into());
        assert!(parse("", "Tcp: ").is_empty());
    }

    #[test]
    fn this_kernel_counts_segments() {
        assert!(tcp().unwrap().contains_key("RetransSegs"));
    }
}
