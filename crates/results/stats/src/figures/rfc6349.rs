//! Figures of a TCP transfer by RFC 6349 section 4: transfer time, efficiency, buffer delay.
//!
//! The transfers are bounded by time, not by size, so the ideal time is the time that the path
//! needs for the received payload. A value that the tool does not report gives no figure.

use crate::figures::estimate::Estimate;
use crate::figures::overhead::CeilingBasis;
use crate::figures::repeats::{estimate, ratio};
use journal::record::{TcpFacts, Transfer};
use schemars::JsonSchema;
use serde::Serialize;

/// Figures of one way of a TCP transfer by RFC 6349 section 4.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Rfc6349 {
    /// The most that the path can carry this way (section 4.1.1); `null` if neither line rate nor
    /// baseline is known, and for the baseline itself.
    pub ideal: Option<Ideal>,
    /// Share of the bytes sent that were not retransmissions, in per cent (section 4.2);
    /// retransmitted segments count as full ones. `null` if the tool does not report them.
    pub efficiency_percent: Option<Estimate>,
    /// Shortest round trip of the idle path, just before the transfer (section 3.2.1); `null` if it
    /// was not measured.
    pub baseline_rtt_ns: Option<Estimate>,
    /// Mean round trip during the transfer by the sender's kernel; `null` if the tool does not
    /// report it.
    pub loaded_rtt_ns: Option<Estimate>,
    /// Increase of the round trip during the transfer, in per cent of the baseline (section 4.3);
    /// `null` if a repeat's round trip was shorter than the baseline: the two are not comparable
    /// then.
    pub buffer_delay_percent: Option<Estimate>,
    /// The same increase in nanoseconds, which says more than per cents of microseconds.
    pub buffer_delay_ns: Option<Estimate>,
    /// Congestion control of the sender's kernel in the first repeat; `null` if unknown.
    pub congestion_control: Option<String>,
    /// Each repeat with its received bytes and its duration in nanoseconds.
    #[serde(skip)]
    received: Vec<(u32, u64, u64)>,
}

/// The ideal transfer compared with the measured one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ideal {
    /// Source of the ideal rate.
    pub basis: CeilingBasis,
    /// Payload that the path can carry at most.
    pub payload_bps: f64,
    /// Time that the payload received needs at that rate.
    pub ideal_transfer_ns: Estimate,
    /// Measured duration.
    pub measured_transfer_ns: Estimate,
    /// Measured by ideal time: the TCP transfer time ratio (section 4.1.2). 1 is ideal.
    pub transfer_time_ratio: Estimate,
}

impl Rfc6349 {
    /// `None` for UDP, and in journals without the facts.
    pub(crate) fn of(ways: &[(u32, &Transfer)]) -> Option<Self> {
        let facts = |transfer: &Transfer| transfer.tcp.clone();
        let repeats: Vec<(u32, (&Transfer, TcpFacts))> = ways
            .iter()
            .map(|&(repeat, transfer)| Some((repeat, (transfer, facts(transfer)?))))
            .collect::<Option<_>>()?;
        let rtt = |of: fn(&TcpFacts) -> Option<u64>| {
            estimate(&repeats, |(_, facts)| of(facts).map(|ns| ns as f64))
        };
        Some(Self {
            ideal: None,
            efficiency_percent: estimate(&repeats, |(transfer, facts)| {
                // Tools count retransmitted segments and not bytes. Full ones make the efficiency a
                // lower bound.
                let again = transfer.retransmits?.saturating_mul(facts.segment_bytes?);
                ratio(
                    transfer.sent_bytes,
                    transfer.sent_bytes.saturating_add(again),
                )
                .map(|share| 100.0 * share)
            }),
            baseline_rtt_ns: rtt(|facts| facts.baseline_rtt_ns),
            loaded_rtt_ns: rtt(|facts| facts.loaded_rtt_ns),
            buffer_delay_percent: estimate(&repeats, |(_, facts)| {
                let loaded = ratio(facts.loaded_rtt_ns?, facts.baseline_rtt_ns?)?;
                // Shorter than on the idle path, as on veth: the baseline then contains the wake-up
                // of `ping`, and a negative delay would be nonsense.
                (loaded >= 1.0).then_some(100.0 * (loaded - 1.0))
            }),
            buffer_delay_ns: estimate(&repeats, |(_, facts)| {
                let increase = facts.loaded_rtt_ns?.checked_sub(facts.baseline_rtt_ns?)?;
                Some(increase as f64)
            }),
            // All repeats of a cell run with one setting, so the first one names it.
            congestion_control: repeats
                .first()
                .and_then(|(_, (_, facts))| facts.congestion.clone()),
            received: ways
                .iter()
                .map(|(repeat, way)| (*repeat, way.received_bytes, way.duration_ns))
                .collect(),
        })
    }

    /// Whether the round trip under load can be compared with the baseline: no repeat's is shorter.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        let (Some(baseline), Some(loaded)) = (&self.baseline_rtt_ns, &self.loaded_rtt_ns) else {
            return true;
        };
        let mut pairs = loaded.values.iter();
        pairs.all(|own| {
            baseline
                .at(own.repeat)
                .is_none_or(|least| own.value >= least)
        })
    }

    /// The ideal transfer of the received payload, at that rate.
    pub(crate) fn ideal(&self, basis: CeilingBasis, payload_bps: f64) -> Option<Ideal> {
        let times = |of: &dyn Fn(u64, u64) -> f64| {
            let received = self.received.iter();
            Estimate::of_all(received.map(|&(repeat, bytes, ns)| (repeat, Some(of(bytes, ns)))))
        };
        let ideal_ns = |bytes: u64| bytes as f64 * 8e9 / payload_bps;
        Some(Ideal {
            basis,
            payload_bps,
            ideal_transfer_ns: times(&|bytes, _| ideal_ns(bytes))?,
            measured_transfer_ns: times(&|_, ns| ns as f64)?,
            transfer_time_ratio: times(&|bytes, ns| ns as f64 / ideal_ns(bytes))?,
        })
    }
}
