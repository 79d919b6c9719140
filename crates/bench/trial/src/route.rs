//! The path as IP sees it: its hops by traceroute, and its MTU by search.
//!
//! The MTU is found as in RFC 8899 section 5.3: probes with DF set; the longest answered one
//! counts, regardless of routers' reports. The kernel forgets earlier reports before each probe, so
//! that it sends probes whole.

use crate::error::TrialError;
use crate::tools::tool_error;
use journal::record::{Hop, Route};
use std::net::Ipv4Addr;
use std::time::Duration;
use testbed::protocol::{Ended, Program};
use testbed::{Bench, Node, NodeId};

/// Probes of each hop.
const PROBES: u32 = 3;
/// More hops than any lab has.
const HOPS_MAX: u32 = 16;
/// Time for traceroute: every probe unanswered, one second each.
const TRACE_LIMIT: Duration = Duration::from_secs(60);
/// Time for one probe.
const PROBE_LIMIT: Duration = Duration::from_secs(5);
/// Smallest packet that is tried: IPv4 links carry it (RFC 791 section 3.2).
const MTU_MIN: u16 = 68;
/// IPv4 and ICMP echo headers.
const HEADER_BYTES: u16 = 28;
/// Limit of times in milliseconds; a longer time is a misreading.
const MILLISECONDS_MAX: f64 = 1e6;

/// Returns hops and MTU of the path from station A to B. The commands are added to `words`.
///
/// # Errors
/// When a tool cannot run, or prints unreadable output.
pub(crate) fn find(
    bench: &dyn Bench,
    link_mtu: u16,
    words: &mut Vec<Vec<String>>,
) -> Result<Route, TrialError> {
    let mut prober = Prober {
        node: bench.node(NodeId::A),
        target: bench.target(),
        words,
    };
    let hops = prober.hops()?;
    // The full length first: on most paths it passes, and no search is needed. Its output also has
    // the MTU that a router or the kernel reports.
    let (full, output) = prober.probe(link_mtu)?;
    let reported = reported_mtu(&output);
    let path_mtu_bytes = if full {
        Some(link_mtu)
    } else {
        prober.search(link_mtu, reported)?
    };
    Ok(Route {
        hops,
        link_mtu_bytes: link_mtu,
        path_mtu_bytes,
        reported_mtu_bytes: reported,
    })
}

struct Prober<'a> {
    node: &'a dyn Node,
    target: Ipv4Addr,
    words: &'a mut Vec<Vec<String>>,
}

impl Prober<'_> {
    fn run(&mut self, command: &str, limit: Duration) -> Result<Ended, TrialError> {
        let program = Program::new(command.split_whitespace());
        self.words.push(program.argv.clone());
        Ok(self.node.run(program, limit)?)
    }

    fn hops(&mut self) -> Result<Vec<Hop>, TrialError> {
        // `-I`: echo requests, as ping sends them; `-N 1`: one after the other.
        let command = format!(
            "traceroute -n -I -N 1 -q {PROBES} -w 1 -m {HOPS_MAX} {}",
            self.target
        );
        let ended = self.run(&command, TRACE_LIMIT)?;
        hops(&ended.stdout, ended.wall_ns).map_err(|problem| tool_error(NodeId::A, problem, &ended))
    }

    /// Returns whether a packet of that length was answered, and what ping printed.
    fn probe(&mut self, packet: u16) -> Result<(bool, String), TrialError> {
        self.run("ip route flush cache", PROBE_LIMIT)?;
        let payload = packet.saturating_sub(HEADER_BYTES);
        let command = format!(
            "ping -n -M do -i 0.01 -c 2 -s {payload} -W 1 {}",
            self.target
        );
        let ended = self.run(&command, PROBE_LIMIT)?;
        // ping prints no time for short payloads, which our parser of its output refuses.
        let answered = ended.stdout.contains(" bytes from ");
        let printed = ended.stdout + &ended.stderr;
        Ok((answered, printed))
    }

    /// Returns the longest packet below `unanswered` that is answered. The reported MTU is tried
    /// first: if it is right, two probes suffice.
    fn search(
        &mut self,
        mut unanswered: u16,
        reported: Option<u16>,
    ) -> Result<Option<u16>, TrialError> {
        let mut answered = MTU_MIN;
        // The search needs a lower bound that holds: a path that answers nothing has no MTU.
        if !self.probe(answered)?.0 {
            return Ok(None);
        }
        let mut hints = reported
            .into_iter()
            .flat_map(|mtu| [mtu, mtu.saturating_add(1)]);
        // `answered` is always below `unanswered`: a hint counts only strictly between them.
        while unanswered - answered > 1 {
            let middle = answered + (unanswered - answered) / 2;
            let hint = hints
                .next()
                .filter(|hint| (answered + 1..unanswered).contains(hint));
            let packet = hint.unwrap_or(middle);
            if self.probe(packet)?.0 {
                answered = packet
            } else {
                unanswered = packet
            }
        }
        Ok(Some(answered))
    }
}

/// Returns the MTU in `Frag needed and DF set (mtu = 1438)` or `message too long, mtu=1438`.
fn reported_mtu(output: &str) -> Option<u16> {
    let mut found = output.match_indices("mtu").filter_map(|(at, word)| {
        let rest = output[at + word.len()..].trim_start_matches([' ', '=', ':']);
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse::<u16>().ok()
    });
    found.find(|mtu| *mtu > 0)
}

/// Parses the output of `traceroute -n`: ` 2  10.0.0.1  0.035 ms  0.010 ms *`. Several addresses of
/// one hop, its labels of MPLS and its marks (`!H`) are all kept. No time is below the resolution
/// of 1 us or longer than traceroute ran.
fn hops(output: &str, ran_ns: u64) -> Result<Vec<Hop>, String> {
    let unread = |what: &str, line: &str| {
        Err(format!(
            "traceroute's output cannot be read: {what}, at `{line}`"
        ))
    };
    let mut hops: Vec<Hop> = Vec::new();
    // The heading.
    let lines = output.lines().skip(1);
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [first, words @ ..] = &words[..] else {
            continue;
        };
        if let ("MPLS", Some(hop)) = (*first, hops.last_mut()) {
            // A separate line below its hop.
            hop.others.push(line.trim().to_owned());
            continue;
        }
        let expected = hops.len() + 1;
        // A hop that is missing would shift all hops behind it.
        if first.parse() != Ok(expected) {
            return unread(&format!("hop {expected} expected"), line);
        }
        let mut hop = Hop::default();
        for (at, word) in words.iter().enumerate() {
            if words.get(at + 1) == Some(&"ms") {
                let ms = word.parse::<f64>().ok();
                let Some(ms) = ms.filter(|ms| (0.0..MILLISECONDS_MAX).contains(ms)) else {
                    return unread("no time", line);
                };
                let ns = (ms * 1e6).round() as u64;
                if ns == 0 {
                    return unread(
                        "a time below its resolution of 1 us (was the clock set?)",
                        line,
                    );
                }
                if ns > ran_ns {
                    return unread("a time longer than it ran", line);
                }
                hop.round_trips_ns.push(ns);
            } else if word.parse::<Ipv4Addr>().is_ok() && hop.address.is_none() {
                hop.address = Some((*word).to_owned());
            } else if !["ms", "*"].contains(word) && hop.address.as_deref() != Some(*word) {
                hop.others.push((*word).to_owned());
            }
        }
        hop.others.dedup();
        hops.push(hop);
    }
    if hops.is_empty() {
        return Err("traceroute printed no hop".to_owned());
    }
    Ok(hops)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn all_that_answered_for_a_hop_is_kept() {
        let output = "traceroute to 10.2.0.2 (10.2.0.2), 16 hops max, 60 byte packets\n \
                      1  10.1.0.1  0.035 ms 10.1.0.9  0.010 ms 10.1.0.1  0.008 ms\n     \
                      MPLS Label=24015 CoS=0 TTL=1 S=1\n 2  10.2.0.2  0.2 ms !H * 1.5 ms\n";
        let found = hops(output, SECOND).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].address.as_deref(), Some("10.1.0.1"));
        assert_eq!(
            found[0].others,
            ["10.1.0.9", "MPLS Label=24015 CoS=0 TTL=1 S=1"]
        );
        assert_eq!(found[0].round_trips_ns, [35_000, 10_000, 8_000]);
        assert_eq!(found[1].others, ["!H"]);
    }

    #[test]
    fn times_that_cannot_be_are_refused() {
        let output = |time: &str| format!("traceroute\n 1  10.1.0.1  {time} ms\n");
        assert!(hops(&output("1000.0"), SECOND).is_ok());
        assert!(
            hops(&output("1000.1"), SECOND)
                .unwrap_err()
                .contains("longer than it ran")
        );
        assert!(
            hops(&output("0.000"), SECOND)
                .unwrap_err()
                .contains("below its resolution")
        );
    }

    #[test]
    fn hops_are_read_with_and_without_answers() {
        let output = "traceroute to 10.2.0.2 (10.2.0.2), 16 hops max, 60 byte packets\n \
                      1  10.1.0.1  0.035 ms  0.010 ms  0.008 ms\n 2  * * *\n 3  10.2.0.2  0.2 ms * 1.5 ms\n";
        let found = hops(output, SECOND).unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].address.as_deref(), Some("10.1.0.1"));
        assert_eq!(found[0].round_trips_ns, [35_000, 10_000, 8_000]);
        assert_eq!(found[1], Hop::default());
        assert_eq!(found[2].round_trips_ns, [200_000, 1_500_000]);
        assert!(hops("", SECOND).unwrap_err().contains("no hop"));
        let odd = output.replace(" 2  *", " 7  *");
        assert!(hops(&odd, SECOND).unwrap_err().contains("hop 2 expected"));
        let odd = output.replace("0.2 ms", "-1 ms");
        assert!(hops(&odd, SECOND).unwrap_err().contains("no time"));
    }

    #[test]
    fn a_reported_mtu_is_read_in_both_forms() {
        let remote = "From 10.1.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1438)\n";
        assert_eq!(reported_mtu(remote), Some(1438));
        let local = "ping: local error: message too long, mtu=1400\n";
        assert_eq!(reported_mtu(local), Some(1400));
        assert_eq!(reported_mtu("Frag needed and DF set (mtu = 0)\n"), None);
        assert_eq!(reported_mtu("64 bytes from 10.2.0.2: icmp_seq=1\n"), None);
    }
}
