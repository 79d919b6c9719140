//! The readings of links and DUT while traffic crossed them, and the checks common to trials by
//! tools and frame tests.

use super::asked::loaded;
use super::check;
use super::cipher::{CipherTraffic, encryption_not_proven};
use super::failure::{first_of, then_repeat_or};
use impair::{Impaired, Profile};
use journal::record::{Check, Cpu, Explanation, InterfaceCounters, PathSettings};
use plan::{Cell, Overlay};
use std::collections::{BTreeMap, BTreeSet};
use testbed::Links;

/// Features that must be off when offloads are off (`ethtool -k` names them so).
pub(super) const FEATURES: [&str; 4] = [
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "tx-udp-segmentation",
    "generic-receive-offload",
];
/// The ones of these that must be on when offloads are on. GRO is left out: a virtual interface
/// makes super-packets without it, and turning it on there turns on NAPI, which is another test.
const FEATURES_ON: [&str; 3] = [FEATURES[0], FEATURES[1], FEATURES[2]];

/// The readings of links and DUT in a trial.
#[derive(Debug, Clone)]
pub struct ObservedPath<'a> {
    /// The cell measured.
    pub cell: &'a Cell,
    /// The links as the cell asks for them.
    pub links: Links,
    /// Every interface of the path, as `node/interface`.
    pub link_ends: &'a [String],
    /// Counter differences over the trial, by `node/interface`.
    pub counters: &'a BTreeMap<String, InterfaceCounters>,
    /// Counts of network cards' drivers over the trial, by `node/interface`.
    pub drivers: &'a BTreeMap<String, BTreeMap<String, u64>>,
    /// Offloads in force, by `node/interface`.
    pub offloads: &'a BTreeMap<String, BTreeMap<String, String>>,
    /// The DUT's counters as differences over the trial, by `gateway/counter`.
    pub dut_counters: &'a BTreeMap<String, u64>,
    /// The DUT's counters that were reset in the trial, in words.
    pub resets: Vec<String>,
    /// The DUT's facts about itself, by `gateway/key`.
    pub dut_facts: &'a BTreeMap<String, String>,
    /// The frames seen between the gateways; `None` if nothing looked there.
    pub cipher: Option<CipherTraffic<'a>>,
    /// From reading the counters before to reading them after.
    pub elapsed_ns: u64,
    /// Packets sampled as the receiving station received them, by class of service; `None` if
    /// nothing looked there.
    pub received_dscp: Option<&'a BTreeMap<String, u64>>,
    /// CPU time by role.
    pub cpu: &'a Cpu,
    /// Changes of the path's settings; `None` if they were not watched.
    pub settings: Option<&'a PathSettings>,
    /// The impaired path's counts; `None` without one.
    pub impaired: Option<&'a Impaired>,
}

impl ObservedPath<'_> {
    /// The overlay that the tools' packets travel in.
    pub(crate) fn overlay(&self) -> Overlay {
        let stations = self.cell.stations;
        stations.map_or(Overlay::None, |stations| stations.overlay)
    }

    /// IP packets that one station's kernel sent and another one's received for the path, each
    /// counted once; `None` without a count.
    pub(crate) fn ip_packets(&self, from: &str, to: &str) -> [Option<u64>; 2] {
        let Some(settings) = self.settings else {
            return [None; 2];
        };
        let received = settings.ip_packets_received(to);
        // A kernel counts a received packet outside and inside the overlay, but a sent one only
        // inside.
        let received = match self.overlay() {
            Overlay::None => received,
            Overlay::Vxlan | Overlay::Geneve => received.map(|packets| packets.div_ceil(2)),
        };
        [settings.ip_packets_sent(from), received]
    }
}

/// Words in the names of drivers' counters for lost, damaged or delayed frames.
const HARMFUL: [&str; 8] = [
    "drop", "discard", "miss", "err", "pause", "fifo", "no_buf", "nobuf",
];

fn is_harmful(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HARMFUL.iter().any(|word| name.contains(word))
}

impl ObservedPath<'_> {
    /// The path's interfaces, and these, have the offloads that the cell asks for.
    pub(crate) fn offloads_as_asked(&self, others: &[&String]) -> Option<Check> {
        let asked = self.links.offloads;
        let ends: BTreeSet<&String> = self
            .link_ends
            .iter()
            .chain(others.iter().copied())
            .collect();
        let of = |on: bool| {
            if on {
                (&FEATURES_ON[..], "on")
            } else {
                (&FEATURES[..], "off")
            }
        };
        // For the detail: the state that most interfaces are to have.
        let (features, wanted) = of(asked);
        let mut wrong = Vec::new();
        let mut of_version = BTreeSet::new();
        for &interface in &ends {
            // The model decides about single frames, so the impaired link has no super-packets in
            // any cell.
            let (features, wanted) = of(asked && !self.is_impaired(interface));
            for feature in features {
                let found = self.offloads.get(interface);
                let state = found.and_then(|found| found.get(*feature));
                let other = self.of_version(interface, feature);
                let other = other.filter(|state| *state != wanted);
                if let Some(state) = other {
                    let node = interface.split('/').next().unwrap_or_default();
                    of_version.insert(format!("{feature} {state} at {node}"));
                }
                let wanted = other.unwrap_or(wanted);
                // A feature that cannot be read counts as wrong: it may be in any state.
                if state.is_none_or(|state| state != wanted) {
                    let state = state.map_or("not readable", String::as_str);
                    wrong.push(format!("{feature} of {interface} is {state}"));
                }
            }
        }
        let detail = if wrong.is_empty() {
            let cut = ends.iter().any(|end| asked && self.is_impaired(end));
            let mut words = format!(
                "{} are {wanted} at all {} ends of the links",
                features.join(", "),
                ends.len(),
            );
            if cut {
                words += ", and off between the gateways, where frames are impaired one by one";
            }
            if !of_version.is_empty() {
                let all: Vec<String> = of_version.into_iter().collect();
                words += &format!(
                    "; except, as the settings of this version ask, {}",
                    all.join(", ")
                );
            }
            words
        } else {
            format!("offloads are to be {wanted}, but {}", wrong.join(", "))
        };
        let failure = (!wrong.is_empty()).then(|| {
            Explanation::new(
                format!("{}, and is to be {wanted}", first_of(&wrong)),
                "something changed the interface's features during the run, or its driver cannot switch them",
                then_repeat_or(
                    "look at them with `ethtool -k`, and stop what changes them",
                    "measure with the other `offloads`, in a new run",
                ),
            )
        });
        check("offloads-as-asked", failure, detail)
    }

    /// The state of a feature that the settings of the DUT's version ask for, in place of the
    /// cell's.
    fn of_version(&self, interface: &str, feature: &str) -> Option<&'static str> {
        let settings = self.cell.dut.software.settings.as_ref()?;
        let (node, _) = interface.split_once('/')?;
        let its = match node {
            "a" | "b" => &settings.stations,
            gateway if loaded(self.cell).contains(&gateway) => &settings.gateways,
            _ => return None,
        };
        its.features.get(feature).map(|on| plan::on_off(*on))
    }

    /// Whether an interface belongs to the impaired link: an end of it between the gateways, or the
    /// bridge of two.
    fn is_impaired(&self, interface: &str) -> bool {
        let is_end = |end: &str| ["w0", "w1", "p0", "p1", "br0"].contains(&end);
        self.cell.impair.is_some()
            && interface
                .split_once('/')
                .is_some_and(|(_, end)| is_end(end))
    }

    /// Reports drivers' counters of losses, errors and pauses of network cards: a fact, since their
    /// names have no common meaning. Frames that a card had no room for are among the drops of its
    /// interface, too.
    pub(crate) fn driver_counters(&self) -> Option<Check> {
        if self.drivers.is_empty() {
            return None;
        }
        let mut told = Vec::new();
        for (interface, counters) in self.drivers {
            let harmful = counters.iter().filter(|(name, _)| is_harmful(name));
            told.extend(harmful.map(|(name, count)| format!("{interface} {name} {count}")));
        }
        let cards: Vec<&str> = self.drivers.keys().map(String::as_str).collect();
        let detail = if told.is_empty() {
            format!(
                "the drivers of {} counted no loss, error or pause",
                cards.join(", ")
            )
        } else {
            format!(
                "drivers counted losses, errors or pauses: {}",
                told.join(", ")
            )
        };
        check("driver-counters", None, detail)
    }

    /// The applicable checks of the link between the gateways.
    pub(crate) fn between_the_gateways(&self) -> Vec<Option<Check>> {
        let adapter = &self.cell.dut.adapter;
        let elapsed_ns = self.elapsed_ns;
        match &self.cipher {
            None => vec![encryption_not_proven(adapter)],
            Some(cipher) if adapter.encrypts() => vec![
                cipher.in_form(adapter, elapsed_ns),
                if self.cell.impair.as_ref().is_some_and(Profile::corrupts) {
                    CipherTraffic::samples_damaged(adapter)
                } else {
                    cipher.samples_opened(adapter)
                },
                cipher.looks_random(adapter),
                cipher.no_clear_text(adapter),
                cipher.no_foreign_frames(adapter),
            ],
            // A tunnel in clear has a form that must be seen, and a payload that must be readable.
            Some(cipher) if adapter.form().is_some() => vec![
                cipher.in_form(adapter, elapsed_ns),
                cipher.clear_text_visible(adapter),
                cipher.no_foreign_frames(adapter),
            ],
            Some(cipher) => vec![
                cipher.clear_text_visible(adapter),
                cipher.foreign_frames_visible(),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_harmful;

    #[test]
    fn counters_of_losses_and_pauses_are_told_from_those_of_traffic() {
        for name in [
            "rx_missed_errors",
            "tx_pause_frames",
            "rx_queue_0_xdp_drops",
            "port.rx_discards",
            "rx_no_buffer_count",
            "RxCrcErr",
        ] {
            assert!(is_harmful(name), "{name}");
        }
        for name in [
            "rx_packets",
            "tx_queue_3_bytes",
            "peer_ifindex",
            "rx_csum_good",
        ] {
            assert!(!is_harmful(name), "{name}");
        }
    }
}
