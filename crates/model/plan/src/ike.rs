//! Trials of IKEv2: peers that set up tunnels to a gateway, at a rate.

use crate::words::time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A trial of IKEv2. Simulated peers beside gw2 set up tunnels to gw1, each its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IkeTest {
    /// Set-ups offered per second, whether earlier ones are over or not; `None`: the highest rate
    /// is searched at which [`Self::SHARE_PPM`] complete in time.
    pub setups_per_s: Option<u32>,
    /// Highest rate that a search tries.
    pub up_to_per_s: u32,
    /// A set-up is in time if it completes this long after its intended start, in nanoseconds.
    pub within_ns: u64,
    /// Set-ups are offered for this time, in nanoseconds.
    pub duration_ns: u64,
}

impl IkeTest {
    /// Set-ups that must complete in time at a rate that is found, in parts per million.
    pub const SHARE_PPM: u32 = 990_000;
    /// Peers that have addresses.
    pub const PEERS_MAX: u32 = 65_000;
    /// Relative width of the bounds at which a search ends, in parts per million.
    pub const WIDTH_PPM: u32 = 50_000;
    /// Set-ups may take this time longer than the last intended start, before they count as failed.
    pub const PATIENCE: Duration = Duration::from_secs(10);

    /// Peers that a rate needs: each sets up one tunnel.
    #[must_use]
    pub const fn peers_at(&self, per_s: u32) -> u64 {
        per_s as u64 * self.duration_ns / SECOND_NS
    }

    /// The highest rate that is offered.
    #[must_use]
    pub const fn highest_per_s(&self) -> u32 {
        match self.setups_per_s {
            Some(rate) => rate,
            None => self.up_to_per_s,
        }
    }

    /// Time of the whole measurement, about.
    #[must_use]
    pub fn time(&self) -> Duration {
        let once = Duration::from_nanos(self.duration_ns) + AROUND;
        let trials = match self.setups_per_s {
            Some(_) => 1,
            // It halves the interval until it is narrow, and confirms the lower bound.
            None => {
                let narrow = f64::from(Self::WIDTH_PPM) / 1e6;
                let halvings = (1.0 / narrow).log2().ceil() as u32;
                let highest = f64::from(self.up_to_per_s.max(1));
                // At low rates whole numbers end it earlier.
                halvings.min(highest.log2().ceil() as u32) + DESCENT + 1
            }
        };
        once * trials
    }

    /// A trial in words, without path.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (within, duration) = (time(self.within_ns), time(self.duration_ns));
        let share = Self::SHARE_PPM / 10_000;
        match self.setups_per_s {
            Some(rate) => {
                format!("{rate} IKEv2 set-ups per second for {duration}, in time within {within}")
            }
            None => format!(
                "highest rate of IKEv2 set-ups up to {} per second of which {share} % complete within {within}, \
                 offered for {duration}",
                self.up_to_per_s
            ),
        }
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// Time of a trial beyond its load: peers start, leave, and are forgotten by the gateway.
const AROUND: Duration = Duration::from_secs(4);
/// Halvings until a usual gateway's rate is reached from the highest.
const DESCENT: u32 = 2;
