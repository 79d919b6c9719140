//! Locates packet loss by the counters along the path, one after the other.
//!
//! ```text
//! generator|a0 > a1|clear_rx (gw1) cipher_tx|w0 > w1|cipher_rx (gw2) clear_tx|b1 > b0|analyser
//!          ^ link A^           gw1          ^ cipher^           gw2          ^ link B^ B
//! ```
//!
//! In a trial by tools, the stations' kernels take the places of generator and analyser: they count
//! the IP packets that they sent and received, super-packets by their segments.
//!
//! A counter is used if it counts the same packets as its neighbours. An interface does not if
//! super-packets or fragments cross it, and an encryptor's two sides do not if packets share ESP
//! packets. For a device without our counters, its interfaces show its loss.

use super::failure::{count, then_repeat};
use super::{Interfaces, ObservedPath, check};
use journal::record::{
    Check, Explanation, FrameTrial, InterfaceCounters, LostAt, PathCount, PathPlace,
};

/// [`LostAt::APART_PACKETS`] for gateways that also talk to one another: keepalives and key
/// agreement.
const APART_PACKETS_TALKING: u64 = 64;

/// Counters along the path in one direction, generator and analyser included.
const GATES: usize = 12;
/// The part of the path behind each counter but the last, for packets from A to B.
const PLACES: [PathPlace; GATES - 1] = [
    PathPlace::LinkA,
    PathPlace::LinkA,
    PathPlace::Gw1,
    PathPlace::Gw1,
    PathPlace::CipherLink,
    PathPlace::CipherLink,
    PathPlace::Gw2,
    PathPlace::Gw2,
    PathPlace::LinkB,
    PathPlace::LinkB,
    PathPlace::StationB,
];
/// The places of the path's six interfaces among the counters.
const INTERFACES: [usize; 6] = [1, 2, 5, 6, 9, 10];
/// The ends of the sending station's link: test frames are never super-packets there.
const FIRST_LINK: [usize; 2] = [1, 2];
/// The ends of the cipher link, where packets may be fragments.
const CIPHER_LINK: [usize; 2] = [5, 6];
/// The places of the first gateway's two counters, and of the second's.
const GATEWAYS: [[usize; 2]; 2] = [[3, 4], [7, 8]];

/// The traffic ends of the path.
#[derive(Debug)]
pub(crate) enum Ends<'a> {
    /// Tools on these interfaces of the stations.
    Tools(&'a Interfaces),
    /// Generator and analyser.
    Frames(FrameEnds<'a>),
}

/// The stations of a frame test and their counts.
#[derive(Debug)]
pub(crate) struct FrameEnds<'a> {
    /// The sending interface, as `node/interface`.
    pub(crate) source: String,
    /// The receiving one.
    pub(crate) sink: String,
    /// The trial during which the counters were read; `None` without one.
    pub(crate) trial: Option<&'a FrameTrial>,
    /// Whether both directions are loaded: then the trial's counts are sums.
    pub(crate) duplex: bool,
}

/// The counters along the path in one direction, in order; `None` for an unusable counter.
struct Line {
    gates: Vec<Option<PathCount>>,
    /// Packets that the interface at this place counted as dropped.
    dropped: Vec<u64>,
    /// The part of the path behind each counter.
    places: Vec<PathPlace>,
    /// Whether a counter and the next one count different packets.
    differ: Vec<bool>,
}

impl ObservedPath<'_> {
    /// Returns where packets were lost, as far as counters show.
    pub(crate) fn lost_at(&self, ends: &Ends<'_>) -> Vec<LostAt> {
        let [source, sink] = testbed::direct_interfaces();
        // Frames past the gateways use a separate link of two interfaces.
        if let Ends::Frames(ends) = ends
            && (ends.source == source || ends.source == sink)
        {
            return self.past_the_gateways(ends).lost(LostAt::APART_PACKETS);
        }
        let apart = self.apart();
        // Both directions, loaded or not: an idle one has too few packets for a clear difference.
        let mut lost = self.line(true, ends).lost(apart);
        lost.extend(self.line(false, ends).lost(apart));
        lost
    }

    /// Packets that neighbouring counters may differ by.
    fn apart(&self) -> u64 {
        let adapter = &self.cell.dut.adapter;
        let talks = match adapter.encryptor() {
            Some(encryptor) => encryptor.keys.is_agreed(),
            None => adapter.form().is_some(),
        };
        if talks {
            APART_PACKETS_TALKING
        } else {
            LostAt::APART_PACKETS
        }
    }

    /// The counters from A to B, or from B to A.
    fn line(&self, forward: bool, ends: &Ends<'_>) -> Line {
        let mut line = Line::new(PLACES.to_vec());
        let mut names = testbed::path_interfaces();
        let mut gateways = ["gw1", "gw2"];
        if !forward {
            names.reverse();
            gateways.reverse();
            line.places = PLACES.map(mirrored).to_vec();
        }
        for (number, (place, name)) in INTERFACES.into_iter().zip(&names).enumerate() {
            let is_countable = match (self.links.offloads, ends) {
                (false, _) => true,
                (true, Ends::Frames(_)) => FIRST_LINK.contains(&place),
                (true, Ends::Tools(_)) => false,
            };
            let is_whole = !CIPHER_LINK.contains(&place) || self.fits_cipher_link();
            // Along the path, each link has first its sending interface and then its receiving one.
            line.interface(place, self.counters.get(name), (name, number % 2 == 0));
            if !is_countable || !is_whole {
                // The interface's drops still count: only its packets cannot be compared.
                line.gates[place] = None;
            }
        }
        let encryptor = self.cell.dut.adapter.encryptor();
        if let Some(encryptor) = encryptor {
            for (gateway, [into, out]) in gateways.into_iter().zip(GATEWAYS) {
                let [rx, tx] = if gateway == gateways[0] {
                    ["clear_rx_packets", "cipher_tx_packets"]
                } else {
                    ["cipher_rx_packets", "clear_tx_packets"]
                };
                line.count(into, self.dut_counters, &format!("{gateway}/{rx}"));
                line.count(out, self.dut_counters, &format!("{gateway}/{tx}"));
                // Packets that share ESP packets are fewer on the cipher side, so these two counts
                // are not compared.
                line.differ[into] = encryptor.aggregate;
            }
        }
        match ends {
            Ends::Frames(ends) => {
                line.end_at_stations(ends, &names);
                // The generator sends from A's side. In duplex its counts are sums, which
                // `stations` leaves out.
                if forward {
                    line.stations(ends, &names);
                }
            }
            Ends::Tools(tools) => line.kernels(self, tools, &names),
        }
        line
    }

    /// The counters of the link past the gateways.
    fn past_the_gateways(&self, ends: &FrameEnds<'_>) -> Line {
        let mut line = Line::new(vec![
            PathPlace::DirectLink,
            PathPlace::DirectLink,
            PathPlace::StationB,
        ]);
        let names = testbed::direct_interfaces();
        for (number, name) in names.iter().enumerate() {
            line.interface(number + 1, self.counters.get(name), (name, number == 0));
        }
        line.stations(ends, &names);
        line
    }

    /// Whether no packet is fragmented between the gateways.
    fn fits_cipher_link(&self) -> bool {
        let profile = self.cell.dut.adapter.profile();
        profile.cipher_packet_bytes(self.links.mtu.into()) <= self.links.cipher_mtu.into()
    }

    /// Whether a link must carry all that is sent to it: none is shaped, and nothing else is in it.
    fn must_carry_all(&self, place: PathPlace) -> bool {
        let has_elements = || {
            let own = ["a/", "b/", "gw1/", "gw2/"];
            let is_own = |name: &String| own.iter().any(|own| name.starts_with(own));
            !self.link_ends.iter().all(is_own)
        };
        place.is_link()
            && self.links.rate_bps.is_none()
            && (place != PathPlace::CipherLink || !has_elements())
    }
}

impl Line {
    fn new(places: Vec<PathPlace>) -> Self {
        let gates = places.len() + 1;
        Self {
            gates: vec![None; gates],
            dropped: vec![0; gates],
            places,
            differ: vec![false; gates],
        }
    }

    fn interface(
        &mut self,
        place: usize,
        counters: Option<&InterfaceCounters>,
        (name, sends): (&str, bool),
    ) {
        let Some(found) = counters else { return };
        let (verb, packets, dropped) = if sends {
            ("sent", found.tx_packets, found.tx_dropped)
        } else {
            ("received", found.rx_packets, found.rx_dropped)
        };
        self.dropped[place] = dropped;
        self.gates[place] = Some(PathCount {
            at: format!("{name} {verb}"),
            packets,
        });
    }

    fn count(
        &mut self,
        place: usize,
        counters: &std::collections::BTreeMap<String, u64>,
        name: &str,
    ) {
        self.gates[place] = counters.get(name).map(|&packets| PathCount {
            at: name.to_owned(),
            packets,
        });
    }

    /// Leaves out the interfaces beyond a station that takes a gateway's place: no frame gets
    /// there.
    fn end_at_stations(&mut self, ends: &FrameEnds<'_>, names: &[String]) {
        let place = |end: &String| names.iter().position(|name| name == end);
        let (Some(one), Some(other)) = (place(&ends.source), place(&ends.sink)) else {
            return;
        };
        let path = one.min(other)..=one.max(other);
        for (number, gate) in INTERFACES.into_iter().enumerate() {
            if !path.contains(&number) {
                self.gates[gate] = None;
            }
        }
    }

    /// Adds generator and analyser if they are at the ends of the path and count this direction
    /// only.
    fn stations(&mut self, ends: &FrameEnds<'_>, names: &[String]) {
        let Some(trial) = ends.trial.filter(|_| !ends.duplex) else {
            return;
        };
        let last = self.gates.len() - 1;
        if names.first() == Some(&ends.source) {
            self.gates[0] = Some(PathCount {
                at: "the generator".to_owned(),
                packets: trial.sent,
            });
        }
        if names.last() == Some(&ends.sink) {
            // All that the analyser took from the interface, counted as good or not.
            let analysed = trial.received + trial.duplicated + trial.too_late + trial.corrupted;
            self.gates[last] = Some(PathCount {
                at: "the analyser".to_owned(),
                packets: analysed + trial.after_end,
            });
        }
    }

    /// Adds the packets sent and received by the stations' kernels, if the tools used the path's
    /// interfaces.
    fn kernels(&mut self, path: &ObservedPath<'_>, tools: &Interfaces, names: &[String]) {
        let ends = (names.first(), names.last());
        let (from, to) = match ends {
            (Some(from), Some(to)) if *from == tools.a && *to == tools.b => ("a", "b"),
            (Some(from), Some(to)) if *from == tools.b && *to == tools.a => ("b", "a"),
            _ => return,
        };
        let count = |at: &str, packets: Option<u64>| {
            let at = format!("the kernel of {at}");
            packets.map(|packets| PathCount { at, packets })
        };
        let last = self.gates.len() - 1;
        let [sent, received] = path.ip_packets(from, to);
        self.gates[0] = count(from, sent);
        self.gates[last] = count(to, received);
    }

    /// Returns each pair of neighbouring counters with a clear drop from the first to the second. A
    /// pair of just the two path ends is left out: it does not show where packets were lost.
    fn lost(&self, apart: u64) -> Vec<LostAt> {
        let known: Vec<(usize, &PathCount)> = self
            .gates
            .iter()
            .enumerate()
            .filter_map(|(place, gate)| Some((place, gate.as_ref()?)))
            .collect();
        let pairs = known.windows(2).filter_map(|pair| {
            let [(from, before), (to, behind)] = *pair else {
                return None;
            };
            if from == 0 && to == self.gates.len() - 1 {
                return None;
            }
            // Counters that are missing in between make the place less exact: all parts of the path
            // between the two known ones are named.
            let mut places = self.places[from..to].to_vec();
            places.dedup();
            let lost = LostAt {
                places,
                before: before.clone(),
                behind: behind.clone(),
                dropped: self.dropped[from + 1..=to].iter().sum(),
            };
            let same = !self.differ[from..to].contains(&true);
            (same && LostAt::is_clear(lost.packets(), before.packets, apart)).then_some(lost)
        });
        pairs.collect()
    }
}

const fn mirrored(place: PathPlace) -> PathPlace {
    match place {
        PathPlace::LinkA => PathPlace::LinkB,
        PathPlace::Gw1 => PathPlace::Gw2,
        PathPlace::Gw2 => PathPlace::Gw1,
        PathPlace::LinkB => PathPlace::LinkA,
        PathPlace::StationB => PathPlace::StationA,
        other => other,
    }
}

/// Checks that links without a shaped rate lost nothing. They drop packets only for lack of room in
/// an interface's queue, and the interface counts these drops; no device lost the packets that
/// vanished beyond that. The detail reports loss elsewhere.
pub(crate) fn links_lossless(path: &ObservedPath<'_>, lost_at: &[LostAt]) -> Option<Check> {
    let vanished = |lost: &&LostAt| match lost.places[..] {
        [place] => {
            let beyond = lost.packets().saturating_sub(lost.dropped);
            path.must_carry_all(place)
                && LostAt::is_clear(beyond, lost.before.packets, path.apart())
        }
        _ => false,
    };
    let words = |lost: &[&LostAt]| {
        let words: Vec<String> = lost.iter().map(|lost| lost.words()).collect();
        words.join("; ")
    };
    let (vanished, elsewhere): (Vec<&LostAt>, Vec<&LostAt>) = lost_at.iter().partition(vanished);
    let mut detail = if vanished.is_empty() {
        "no packet vanished on a link, as far as counters tell".to_owned()
    } else {
        format!(
            "packets vanished outside every device, {}",
            words(&vanished)
        )
    };
    if !elsewhere.is_empty() {
        detail += &format!("; packets were lost {}", words(&elsewhere));
    }
    let failure = vanished.first().map(|lost| {
        let packets = count(lost.packets(), lost.before.packets, "packet");
        Explanation::new(
            format!(
                "{packets} vanished {}, outside every device",
                lost.places
                    .first()
                    .map_or("on a link", |place| place.words())
            ),
            "a queueing discipline, a filter or another program drops or takes them there",
            then_repeat(
                "look with `tc -s qdisc` and `nft list ruleset` on both sides, and remove it",
            ),
        )
    });
    check("links-lossless", failure, detail)
}

#[cfg(test)]
mod tests;
