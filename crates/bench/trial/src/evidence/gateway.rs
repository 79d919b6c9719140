//! Checks of a DUT's counters, gateway by gateway.

use super::failure::{count, first_of, then_repeat, then_repeat_or};
use super::{ObservedPath, REPLACED_SAS};
use journal::record::{Check, DutWork, Explanation};
use plan::Measurement;
use std::collections::{BTreeMap, BTreeSet};
use testbed::{Counted, FramePath};

/// A DUT's counters are read until they stop changing; packets that arrive at that moment may be
/// counted on one side only.
pub(crate) const IN_FLIGHT_PACKETS: u64 = 64;

/// Returns the DUT's counts from `before` to `after`, by `gateway/counter`. Counters of replaced
/// engines start with the trial, so they count in full: the load behind the figure may be long over
/// when evidence is read.
#[must_use]
pub fn counted_since(
    after: &BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let since = |(name, &count): (&String, &u64)| {
        let earlier = match name.split_once('/') {
            Some((_, counter)) if counter.starts_with(REPLACED_SAS) => 0,
            // A counter that is new in the later reading began at 0.
            _ => before.get(name).copied().unwrap_or(0),
        };
        (name.clone(), Counted::between(earlier, count).count())
    };
    after.iter().map(since).collect()
}

/// The counters that were reset from `before` to `after`, in words. One of 32 bits that passed its
/// end was not.
pub(crate) fn resets(after: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> Vec<String> {
    let both = after.iter().filter_map(|(name, &count)| {
        // A counter that is new began in the trial, from 0.
        let earlier = *before.get(name)?;
        let reset = matches!(Counted::between(earlier, count), Counted::Reset(_));
        reset.then(|| format!("the counter {name} fell from {earlier} to {count}"))
    });
    both.collect()
}

/// Checks that the counters of boxes outside the lab only rose: a reset hides the count before it.
/// In a trial that disturbs the boxes they may be reset.
pub(crate) fn counters_rose(path: &ObservedPath<'_>) -> Option<Check> {
    path.cell.dut.adapter.external()?;
    let is_disturbed = match &path.cell.measurement {
        Measurement::Frames(test) => test.procedure.event().is_some(),
        _ => false,
    };
    if is_disturbed || path.dut_counters.is_empty() {
        return None;
    }
    let count = path.dut_counters.len();
    let failure = (!path.resets.is_empty()).then(|| {
        Explanation::new(
            first_of(&path.resets),
            "the box was restarted during the trial, or someone cleared its counters",
            then_repeat_or(
                "look in the box's log whether it was restarted, and stop what clears its counters",
                "leave the counter out of the lab's file",
            ),
        )
    });
    let detail = if path.resets.is_empty() {
        format!("none of {count} counters fell, but for the end of 32 bits")
    } else {
        format!("of {count} counters: {}", path.resets.join(", "))
    };
    Some(Check::new("dut-counters-rose", failure, detail))
}

/// Checks that every packet into each gateway is a packet out or a drop; `None` without counters.
#[must_use]
pub fn gateways_balance(counters: &BTreeMap<String, u64>) -> Option<Check> {
    let names = counters.keys().filter_map(|key| key.split_once('/'));
    let names: BTreeSet<&str> = names.map(|(gateway, _)| gateway).collect();
    let gateways = names
        .into_iter()
        .filter_map(|name| Gateway::of(counters, name));
    let mut differences = Vec::new();
    let mut said = Vec::new();
    for gateway in gateways {
        differences.extend(gateway.imbalance());
        said.push(format!("{}: {}", gateway.name, gateway.balance()));
    }
    (!said.is_empty())
        .then(|| Check::new("dut-counters", counted_wrong(&differences), said.join("; ")))
}

/// The failure of a check of the DUT's counters, if there are differences.
pub(crate) fn counted_wrong(differences: &[String]) -> Option<Explanation> {
    (!differences.is_empty()).then(|| {
        Explanation::new(
            first_of(differences),
            "the encryptor lost packets without naming a reason, passed traffic without encryption, or was \
             restarted during the trial",
            then_repeat_or(
                "look in its log whether it was restarted, and stop what restarts it",
                "report it as a fault of the encryptor",
            ),
        )
    })
}

/// The failure of a gateway that shows no counters.
pub(crate) fn not_counted(gateway: &str) -> Explanation {
    Explanation::new(
        format!("{gateway} shows no counters"),
        "its encryptor had ended, or did not answer when the counters were read",
        then_repeat("look in its log why it ended, and remove the cause"),
    )
}

/// The work of the gateways in a path of frames, by the difference of their counters; `None` if
/// there is none, or one shows no counters.
pub(crate) fn dut_work(
    path: &FramePath,
    counted: &BTreeMap<String, u64>,
    duplex: bool,
) -> Option<DutWork> {
    let (mut into, mut out) = (None::<u64>, None::<u64>);
    let (mut gateways, mut unaccounted_packets) = (0, 0);
    let mut ends = Vec::new();
    let FramePath { source, sink } = path;
    for (end, is_source) in [(source, true), (sink, false)] {
        // A station that seals and opens by itself has no gateway.
        let Some(name) = end.gateway_beside() else {
            continue;
        };
        let gateway = Gateway::of(counted, name)?;
        gateways += 1;
        if is_source || duplex {
            *into.get_or_insert(0) += gateway.count("clear_rx_bytes");
        }
        if !is_source || duplex {
            *out.get_or_insert(0) += gateway.count("clear_tx_bytes");
        }
        // The worse gateway, not the sum: each alone is compared with a limit.
        unaccounted_packets = gateway.unaccounted().max(unaccounted_packets);
        ends.push(["cipher_tx_packets", "cipher_rx_packets"].map(|name| gateway.count(name)));
    }
    let lost_between_packets = match ends[..] {
        [[there, back], [returned, arrived]] => {
            let back = if duplex {
                returned.saturating_sub(back)
            } else {
                0
            };
            Some(there.saturating_sub(arrived) + back)
        }
        _ => None,
    };
    // Each direction crosses a single gateway, on its one side or the other.
    if let (1, Some(one), Some(other)) = (gateways, into, out) {
        (into, out) = (Some(one + other), None);
    }
    (gateways > 0).then_some(DutWork {
        taken_in_bytes: into,
        put_out_bytes: out,
        lost_between_packets,
        unaccounted_packets,
    })
}

/// One gateway's counters by name; `dropped_packets` has one for each reason, behind a dot.
pub(crate) struct Gateway<'a> {
    pub(crate) name: &'a str,
    counters: Vec<(&'a str, u64)>,
}

impl<'a> Gateway<'a> {
    pub(crate) fn of(counters: &'a BTreeMap<String, u64>, name: &'a str) -> Option<Self> {
        let own = counters.iter().filter_map(|(key, &value)| {
            let counter = key.strip_prefix(name)?.strip_prefix('/')?;
            Some((counter, value))
        });
        let counters: Vec<_> = own.collect();
        (!counters.is_empty()).then_some(Self { name, counters })
    }

    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counters
            .iter()
            .find(|(counter, _)| *counter == name)
            .map_or(0, |&(_, value)| value)
    }

    /// Describes the imbalance if some packets in are neither packets out nor drops.
    pub(crate) fn imbalance(&self) -> Option<String> {
        let unaccounted = self.unaccounted();
        (unaccounted > IN_FLIGHT_PACKETS).then(|| {
            format!(
                "{} of those that {} counted in are neither out nor dropped by it, or the reverse",
                count(unaccounted, self.packets("rx"), "packet"),
                self.name
            )
        })
    }

    /// The numbers of packets in, out and dropped. If packets share ESP packets (RFC 9347), also
    /// the packets that joined others or came out with others, and the ESP packets that continue
    /// others or hold no whole packet.
    pub(crate) fn balance(&self) -> String {
        let (into, out) = (self.packets("rx"), self.packets("tx"));
        let [joined, continued, split, absorbed] = self.shared();
        let reasons = self.reasons();
        let dropped = self.dropped();
        let mut numbers = format!("{into} packets in, {out} out, {dropped} dropped{reasons}");
        if joined + continued + split + absorbed > 0 {
            numbers += &format!(", {joined} joined others, {continued} continued others");
            numbers += &format!(", {split} came with others");
            numbers += &format!(", {absorbed} ESP packets held no whole one");
        }
        numbers
    }

    /// The difference between packets in and packets out, dropped or sharing an ESP packet.
    pub(crate) fn unaccounted(&self) -> u64 {
        let [joined, continued, split, absorbed] = self.shared();
        // Joined packets and absorbed ESP packets come in without one going out. Continued ESP
        // packets and split packets go out without one coming in.
        let gone = self.packets("tx") + self.dropped() + joined + absorbed;
        (self.packets("rx") + continued + split).abs_diff(gone)
    }

    fn shared(&self) -> [u64; 4] {
        ["joined", "continued", "split", "absorbed"]
            .map(|what| self.count(&format!("{what}_packets")))
    }

    fn dropped(&self) -> u64 {
        self.drops().map(|(_, count)| count).sum()
    }

    fn packets(&self, way: &str) -> u64 {
        self.count(&format!("clear_{way}_packets")) + self.count(&format!("cipher_{way}_packets"))
    }

    /// Drop reasons with their counts.
    fn drops(&self) -> impl Iterator<Item = (&'a str, u64)> {
        self.counters.iter().filter_map(|&(counter, value)| {
            Some((counter.strip_prefix("dropped_packets.")?, value))
        })
    }

    fn reasons(&self) -> String {
        let reasons = self.drops().filter(|(_, count)| *count > 0);
        let reasons: Vec<String> = reasons
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        if reasons.is_empty() {
            String::new()
        } else {
            format!(" ({})", reasons.join(", "))
        }
    }
}
