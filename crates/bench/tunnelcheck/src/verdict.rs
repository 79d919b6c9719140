//! Conclusions from findings: goodput, its limit, faults, remedies. Pure.

use crate::findings::{CpuUse, Findings, HostFacts, OffloadFindings, PerDirection, Seal, Stream};
use probe::PathMtu;
use serde::Serialize;
use stats::{Estimate, Sample};

/// A CPU counts as full from here on, in per cent.
const FULL_PERCENT: u8 = 90;
/// A window or buffer limits if it was full for this part of the time, in per cent.
const LIMITED_PERCENT: u64 = 50;
/// Segments sent again that count as loss, per million.
const LOSS_PPM: u64 = 1000;
/// A queue counts from this added delay on: less is noise of the hosts.
const QUEUE_LEAST_NS: u64 = 2_000_000;
/// From here on interactive traffic suffers.
const BLOAT_LEAST_NS: u64 = 20_000_000;

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the asker.
    FromHere,
    /// To the asker.
    ToHere,
}

impl Direction {
    const BOTH: [Self; 2] = [Self::FromHere, Self::ToHere];
}

impl<T> PerDirection<T> {
    /// The value of a direction.
    pub const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::FromHere => &self.from_here,
            Direction::ToHere => &self.to_here,
        }
    }
}

/// What limits a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "limit")]
pub enum Limit {
    /// No byte of it arrived for whole seconds.
    Stall {
        /// The black hole that explains it.
        black_hole: Option<PathMtu>,
    },
    /// A full core.
    Core {
        /// Whether it is of the sender.
        of_sender: bool,
        /// Which.
        cpu: CpuUse,
    },
    /// The receiver's window.
    ReceiveWindow {
        /// Part of the time that it was full, in per cent.
        percent: u8,
    },
    /// The sender's buffer.
    SendBuffer {
        /// Part of the time that it was full, in per cent.
        percent: u8,
    },
    /// Lost packets, without a queue.
    Loss {
        /// Segments sent again, per million.
        ppm: u64,
    },
    /// The path's rate: a queue grows in it.
    Path {
        /// Delay of the queue in nanoseconds, median.
        added_ns: u64,
        /// Segments sent again, per million.
        ppm: u64,
    },
    /// None of these.
    Unknown,
}

/// Goodput of TCP in bit/s, from the seconds after the first one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goodput {
    /// Mean.
    pub bps: f64,
    /// The 95 % interval of the mean, as if the seconds were independent.
    pub interval_95: Option<(f64, f64)>,
    /// Slowest and fastest second.
    pub range: (f64, f64),
}

impl Goodput {
    fn of(stream: &Stream) -> Option<Self> {
        // The first second is the slow start.
        let seconds = stream.receiver.second_bytes.iter().skip(1);
        let values = seconds.zip(1..).map(|(bytes, repeat)| Sample {
            repeat,
            value: *bytes as f64 * 8.0,
        });
        let estimate = Estimate::of(values.collect())?;
        Some(Self {
            bps: estimate.mean,
            interval_95: estimate.interval_95.ends(),
            range: (estimate.min, estimate.max),
        })
    }
}

/// The conclusions of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Verdict {
    /// Goodput; `None` if there was no stream.
    pub goodput: PerDirection<Option<Goodput>>,
    /// What limits each stream; `None` if there was none.
    pub limits: PerDirection<Option<Limit>>,
    /// Whether packets leave a host unencrypted, vanish by their length, a stream stalls, or an
    /// offload hurts.
    pub is_faulty: bool,
    /// Whether a part of the answer is unknown.
    pub is_incomplete: bool,
    /// What helps, with its command; the most important first.
    pub help: Vec<String>,
}

impl Verdict {
    /// Concludes from findings.
    #[must_use]
    pub fn of(findings: &Findings) -> Self {
        let goodput = both(|direction| {
            findings
                .streams
                .of(direction)
                .as_ref()
                .ok()
                .and_then(Goodput::of)
        });
        let limits = both(|direction| limit(findings, direction));
        let any =
            |is: &dyn Fn(Direction) -> bool| Direction::BOTH.iter().any(|direction| is(*direction));
        let is_hole =
            |direction| matches!(findings.mtu.of(direction), Ok(mtu) if mtu.is_black_hole());
        let is_faulty = any(&|direction| {
            matches!(findings.seal.of(direction), Seal::No { .. })
                || is_hole(direction)
                || matches!(limits.of(direction), Some(Limit::Stall { .. }))
        }) || matches!(&findings.offloads, Some(Ok(found)) if found.in_force().next().is_some());
        let is_incomplete = findings.idle.is_err()
            || matches!(&findings.offloads, Some(Err(_)))
            || matches!(&findings.offloads, Some(Ok(found)) if !found.not_restored.is_empty())
            || any(&|direction| {
                matches!(findings.seal.of(direction), Seal::Unknown { .. })
                    || findings.mtu.of(direction).is_err()
                    || findings.streams.of(direction).is_err()
            });
        let mut verdict = Self {
            goodput,
            limits,
            is_faulty,
            is_incomplete,
            help: Vec::new(),
        };
        verdict.help = help(findings, &verdict);
        verdict
    }
}

fn both<T>(of: impl Fn(Direction) -> T) -> PerDirection<T> {
    PerDirection {
        from_here: of(Direction::FromHere),
        to_here: of(Direction::ToHere),
    }
}

/// The delay that a stream's queue adds to round trips, if both were timed.
pub(crate) fn added_ns(findings: &Findings, direction: Direction) -> Option<u64> {
    let stream = findings.streams.of(direction).as_ref().ok()?;
    let idle = findings.idle.as_ref().ok()?;
    Some(stream.round_trips?.p50_ns.saturating_sub(idle.p50_ns))
}

fn limit(findings: &Findings, direction: Direction) -> Option<Limit> {
    let stream = findings.streams.of(direction).as_ref().ok()?;
    let (sender, receiver) = (&stream.sender, &stream.receiver);
    let seconds = receiver.second_bytes.get(1..).unwrap_or_default();
    if !seconds.is_empty() && seconds.iter().all(|bytes| *bytes == 0) {
        let mtu = findings.mtu.of(direction).as_ref().ok();
        let black_hole = mtu.copied().filter(|mtu| mtu.is_black_hole());
        return Some(Limit::Stall { black_hole });
    }
    let cores = [(true, sender.cpu), (false, receiver.cpu)];
    let full = cores
        .into_iter()
        .filter_map(|(of_sender, cpu)| Some((of_sender, cpu?)))
        .filter(|(_, cpu)| cpu.busy_percent >= FULL_PERCENT);
    if let Some((of_sender, cpu)) = full.max_by_key(|(_, cpu)| cpu.busy_percent) {
        return Some(Limit::Core { of_sender, cpu });
    }
    let percent = |part: u64| (part * 100 / sender.busy_us.max(1)).min(100);
    let window = percent(sender.receiver_limited_us);
    if window >= LIMITED_PERCENT {
        return Some(Limit::ReceiveWindow {
            percent: window as u8,
        });
    }
    let buffer = percent(sender.buffer_limited_us);
    if buffer >= LIMITED_PERCENT {
        return Some(Limit::SendBuffer {
            percent: buffer as u8,
        });
    }
    let ppm = u64::from(sender.retransmitted) * 1_000_000 / u64::from(sender.segments.max(1));
    let added = added_ns(findings, direction);
    let idle_ns = findings.idle.as_ref().map_or(0, |idle| idle.p50_ns);
    Some(match added {
        Some(added_ns) if added_ns >= QUEUE_LEAST_NS.max(idle_ns / 2) => {
            Limit::Path { added_ns, ppm }
        }
        _ if ppm >= LOSS_PPM => Limit::Loss { ppm },
        _ => Limit::Unknown,
    })
}

/// What helps, in the order of importance.
fn help(findings: &Findings, verdict: &Verdict) -> Vec<String> {
    let mut help = Vec::new();
    let mut add = |text: String| {
        if !help.contains(&text) {
            help.push(text);
        }
    };
    let tried = findings.offloads.as_ref();
    let tried = tried.and_then(|found| found.as_ref().ok());
    if let Some(found) = tried.filter(|found| !found.not_restored.is_empty()) {
        let what = found.not_restored.join(", ");
        add(format!("restore what the check could not: {what}"));
    }
    for direction in Direction::BOTH {
        if matches!(findings.seal.of(direction), Seal::No { .. }) {
            add("stop using this path for secrets until its packets are encrypted".to_owned());
        }
    }
    for hurting in tried.into_iter().flat_map(OffloadFindings::in_force) {
        if let Some(remedy) = hurting.remedies.first() {
            add(remedy.commands.join("; "));
        }
    }
    let holes = Direction::BOTH
        .iter()
        .filter_map(|direction| findings.mtu.of(*direction).as_ref().ok());
    let smallest = holes
        .filter(|mtu| mtu.is_black_hole())
        .map(|mtu| mtu.passed_bytes)
        .min();
    if let Some(bytes) = smallest {
        let [here, there] = [&findings.here, &findings.there].map(named);
        add(if here == there {
            format!("both hosts: ip link set dev {here} mtu {bytes}; or let ICMP through")
        } else {
            format!(
                "here: ip link set dev {here} mtu {bytes}; there: ip link set dev {there} mtu \
                 {bytes}; or let ICMP through"
            )
        });
    }
    for direction in Direction::BOTH {
        let (sender, at_sender, at_receiver) = match direction {
            Direction::FromHere => (&findings.here, "here", "there"),
            Direction::ToHere => (&findings.there, "there", "here"),
        };
        match verdict.limits.of(direction) {
            Some(Limit::Core { .. }) if tried.is_none() => {
                add("a full core: `--offloads` finds an offload that costs it".to_owned());
            }
            Some(Limit::ReceiveWindow { .. }) => add(format!(
                "{at_receiver}: sysctl -w net.ipv4.tcp_rmem='4096 131072 67108864'"
            )),
            Some(Limit::SendBuffer { .. }) => add(format!(
                "{at_sender}: sysctl -w net.ipv4.tcp_wmem='4096 131072 67108864'"
            )),
            Some(Limit::Path { added_ns, .. }) if *added_ns >= BLOAT_LEAST_NS => {
                let bps = verdict
                    .goodput
                    .of(direction)
                    .map_or(0.0, |goodput| goodput.bps);
                // Below the path's rate, so that the queue is this one, which is short.
                let mbit = (bps * 0.95 / 1e6).floor().max(1.0);
                add(format!(
                    "{at_sender}: tc qdisc replace dev {} root cake bandwidth {mbit}mbit",
                    named(sender)
                ));
            }
            _ => {}
        }
    }
    help
}

fn named(host: &HostFacts) -> &str {
    if host.interface.is_empty() {
        "INTERFACE"
    } else {
        &host.interface
    }
}

#[cfg(test)]
pub(crate) mod tests;
