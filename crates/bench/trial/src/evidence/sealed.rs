//! Checks that sealed packets arrived as they were sent: one of our gateways received the packets
//! that the other one sent, and refused none as damaged, made up or doubled. Damage and packets
//! that a link adds are not the device's loss.

use super::failure::{count, first_of, then_repeat};
use super::gateway::Gateway;
use super::{ObservedPath, check};
use journal::record::{Check, Explanation, LostAt};
use std::collections::BTreeMap;

/// Name of the check.
pub(crate) const NAME: &str = "sealed-as-sent";

/// Reasons for a gateway to refuse packets that the other one did not send, or sent differently:
/// damaged or made up packets, and copies.
const MADE_UP: [&str; 2] = ["integrity_failed", "runt"];
const COPIED: [&str; 1] = ["replayed"];

/// Allowed numbers of packets beyond the packets sent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Allowed {
    /// Damaged or made up packets.
    pub(crate) made_up: u64,
    /// Copies.
    pub(crate) copies: u64,
    /// Sealed before and still under way.
    pub(crate) under_way: u64,
}

/// The packets from one gateway to the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatewayFlow {
    from: &'static str,
    to: &'static str,
    sent: u64,
    /// NAT keepalives, which gateways do not count as sent, left out.
    arrived: u64,
    made_up: u64,
    copied: u64,
}

impl GatewayFlow {
    /// Both ways by the gateways' counters; empty if a gateway has no counters.
    pub(crate) fn both(counters: &BTreeMap<String, u64>) -> Vec<Self> {
        let [Some(gw1), Some(gw2)] = ["gw1", "gw2"].map(|name| Gateway::of(counters, name)) else {
            return Vec::new();
        };
        let way = |from: (&'static str, &Gateway<'_>), to: (&'static str, &Gateway<'_>)| {
            let dropped = |reasons: &[&str]| -> u64 {
                let reasons = reasons.iter();
                let counts = reasons.map(|it| to.1.count(&format!("dropped_packets.{it}")));
                counts.sum()
            };
            let arrived = to.1.count("cipher_rx_packets");
            Self {
                from: from.0,
                to: to.0,
                sent: from.1.count("cipher_tx_packets"),
                arrived: arrived.saturating_sub(dropped(&["keepalive", "ike_message"])),
                made_up: dropped(&MADE_UP),
                copied: dropped(&COPIED),
            }
        };
        vec![
            way(("gw1", &gw1), ("gw2", &gw2)),
            way(("gw2", &gw2), ("gw1", &gw1)),
        ]
    }

    /// The sending gateway and its count of packets sent.
    pub(crate) const fn sent(&self) -> (&'static str, u64) {
        (self.from, self.sent)
    }

    /// Packets that were sent and have not arrived.
    pub(crate) const fn missing(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Describes the differences beyond the allowed packets.
    pub(crate) fn differences(&self, allowed: Allowed) -> Vec<String> {
        let Self { from, to, .. } = self;
        let mut found = Vec::new();
        let most = self.sent + allowed.under_way + allowed.copies + allowed.made_up;
        // Fewer are a loss, which is a figure and no fault. More must come from somewhere.
        if self.arrived > most + LostAt::APART_PACKETS {
            found.push(format!(
                "{to} received {} more than {from} sent",
                count(self.arrived - self.sent, self.sent, "sealed packet")
            ));
        }
        // Also with equal totals: a lost packet may hide a forged one.
        if self.made_up > allowed.made_up {
            found.push(format!(
                "{to} refused {} as damaged or made up",
                count(self.made_up, self.arrived, "sealed packet")
            ));
        }
        if self.copied > allowed.copies {
            found.push(format!(
                "{to} refused {} as copies",
                count(self.copied, self.arrived, "sealed packet")
            ));
        }
        found
    }

    /// Its counts, for the detail.
    pub(crate) fn words(&self) -> String {
        format!(
            "{} sent {} and {} received {}, and refused {} as damaged or made up and {} as copies",
            self.from, self.sent, self.to, self.arrived, self.made_up, self.copied
        )
    }
}

/// Explains sealed packets that did not arrive as they were sent; `place` is the location.
pub(crate) fn differs(place: &str, differences: &[String]) -> Explanation {
    Explanation::new(
        format!("{place}{}", first_of(differences)),
        "something between the gateways damages, doubles or adds packets: what is lost or added there is not the \
         device's",
        then_repeat(
            "look for filters, queueing disciplines and other programs on the cipher link, and remove them",
        ),
    )
}

/// The check of a trial by tools; `None` if the gateways do not have our counters.
pub(super) fn arrived_as_sent(path: &ObservedPath<'_>) -> Option<Check> {
    path.cell.dut.adapter.encryptor()?;
    let ways = GatewayFlow::both(path.dut_counters);
    let impaired = path.impaired.copied().unwrap_or_default();
    let allowed = [impaired.a_to_b, impaired.b_to_a].map(|counts| Allowed {
        made_up: counts.corrupted,
        copies: counts.duplicated,
        under_way: 0,
    });
    let differences = ways.iter().zip(allowed);
    let differences: Vec<String> = differences
        .flat_map(|(way, allowed)| way.differences(allowed))
        .collect();
    let words: Vec<String> = ways.iter().map(GatewayFlow::words).collect();
    (!words.is_empty()).then_some(())?;
    let failure = (!differences.is_empty()).then(|| differs("", &differences));
    check(NAME, failure, words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        let pairs = pairs
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        pairs.collect()
    }

    fn found(pairs: &[(&str, u64)], allowed: Allowed) -> Vec<String> {
        let ways = GatewayFlow::both(&counters(pairs));
        ways.iter()
            .flat_map(|way| way.differences(allowed))
            .collect()
    }

    const SENT: (&str, u64) = ("gw1/cipher_tx_packets", 32_000);

    #[test]
    fn packets_beyond_those_sent_are_found_and_so_are_those_refused() {
        let none = Allowed::default();
        let arrived = |count| ("gw2/cipher_rx_packets", count);
        assert_eq!(found(&[SENT, arrived(32_000)], none), Vec::<String>::new());
        assert_eq!(found(&[SENT, arrived(31_000)], none), Vec::<String>::new());
        let extra = found(&[SENT, arrived(32_089)], none);
        assert_eq!(
            extra,
            ["gw2 received 89 sealed packets (0.3 %) more than gw1 sent"]
        );
        let forged = ("gw2/dropped_packets.integrity_failed", 89);
        // The numbers match, but some packets were lost and others made up.
        let refused = found(&[SENT, arrived(32_000), forged], none);
        assert_eq!(
            refused,
            ["gw2 refused 89 sealed packets (0.3 %) as damaged or made up"]
        );
        let copies = [SENT, arrived(32_010), ("gw2/dropped_packets.replayed", 10)];
        assert_eq!(found(&copies, none).len(), 1);
        let back = [("gw2/cipher_tx_packets", 0), ("gw1/cipher_rx_packets", 500)];
        assert!(found(&back, none)[0].starts_with("gw1 received 500 "));
        // One gateway alone has nothing to be compared with.
        assert_eq!(found(&[arrived(5)], none), Vec::<String>::new());
        let keepalives = [
            ("gw1/cipher_tx_packets", 10),
            ("gw2/cipher_rx_packets", 60),
            ("gw2/dropped_packets.keepalive", 50),
        ];
        assert_eq!(found(&keepalives, none), Vec::<String>::new());
    }

    #[test]
    fn what_an_impaired_path_made_is_allowed() {
        let allowed = Allowed {
            made_up: 30,
            copies: 40,
            under_way: 5,
        };
        let mut pairs = vec![
            SENT,
            ("gw2/cipher_rx_packets", 32_075),
            ("gw2/dropped_packets.integrity_failed", 30),
            ("gw2/dropped_packets.replayed", 40),
        ];
        assert_eq!(found(&pairs, allowed), Vec::<String>::new());
        // One more than `LostAt::APART_PACKETS` allows.
        pairs[1].1 += 17;
        pairs[2].1 += 1;
        pairs[3].1 += 1;
        assert_eq!(found(&pairs, allowed).len(), 3);
    }
}
