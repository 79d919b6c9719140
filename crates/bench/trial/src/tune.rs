//! The search for the tool parameters with the highest rate, before a cell is measured.
//!
//! A pure controller: it calls a closure for each attempt and does not depend on stations.
//!
//! - **TCP**: coordinate search. All stream counts (1, 2, 4 and 8 per core) with the kernel's
//!   window; then all windows with the best count; if another window won, the neighbouring counts
//!   with that window.
//! - **UDP**: first the datagram length at full speed, if the campaign does not set it; then the
//!   offered rate: full speed, and a geometric ladder around the rate received then. A sender at
//!   full speed takes CPU time from a receiver on the same machine, so the highest *received* rate
//!   is often at a lower offered one.
//!
//! Attempts are short and noisy. So the two best are repeated and compared by their means, and a
//! simpler setting (fewer streams, the kernel's window, full speed) is kept unless another beats it
//! by [`BETTER_PERCENT`]. `plan::estimate` has the maximum number of attempts. This does not
//! search for a zero-loss rate (RFC 2544 throughput).

use crate::command;
use journal::record::{ToolParameters, TuneAttempt, Tuned};
use plan::{Cell, Measurement};

/// A setting replaces a simpler one if its rate is higher by this share, in per cent.
pub const BETTER_PERCENT: u64 = 2;
/// Numbers of streams per core to try.
const STREAMS_PER_CORE: [u16; 4] = [1, 2, 4, 8];
/// TCP windows to try; `None`: the kernel's autotuning (RFC 7323 scaling).
const WINDOWS_BYTES: [Option<u64>; 4] = [None, Some(256 << 10), Some(1 << 20), Some(4 << 20)];
/// Room for encapsulation, without which the full datagram may be fragmented behind the gateway.
const ENCAPSULATION_ROOM_BYTES: u32 = 100;
/// Smallest datagram tried.
const DATAGRAM_BYTES_MIN: u32 = 64;
/// Steps of the ladder of offered rates, in per mille of the rate received at full speed: factors
/// of 2^(1/4).
const LADDER_PER_MILLE: [u64; 6] = [841, 1000, 1189, 1414, 1682, 2000];
/// The ladder ends after this many consecutive steps below the best rate.
const STEPS_WITHOUT_GAIN: usize = 2;

/// Tuning ends when this many attempts have all failed: the cell's trials will report why.
const FAILURES: usize = 3;

/// The result of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gain {
    /// Payload bit/s received; 0 when it failed.
    pub payload_bps: u64,
    /// Datagrams lost in parts per million; `None` for TCP.
    pub lost_ppm: Option<u64>,
    /// Why it failed or is invalid; `None` if it succeeded. Only a successful attempt can win.
    pub error: Option<String>,
}

/// Searches for the best parameters of a cell, with one call of `attempt` each.
///
/// # Errors
/// Errors of `attempt`, which end the search.
pub fn tune<E>(
    cell: &Cell,
    attempt: impl FnMut(&ToolParameters) -> Result<Gain, E>,
) -> Result<Tuned, E> {
    let start = command::parameters(cell);
    let mut search = Search {
        attempt,
        made: Vec::new(),
    };
    match (&cell.measurement, cell.stations) {
        (Measurement::Tcp { .. }, Some(stations)) => search.tcp(&start, stations.cores)?,
        (
            Measurement::Udp {
                datagram_bytes,
                rate_bps,
                ..
            },
            Some(stations),
        ) => {
            let lengths = if datagram_bytes.is_none() {
                datagrams(stations.tool_mtu())
            } else {
                Vec::new()
            };
            search.udp(&start, &lengths, rate_bps.is_none())?;
        }
        _ => {}
    }
    search.repeat_the_best()?;
    // If every attempt has failed, the cell's trials fail in the same way and say why.
    let best = search.best().unwrap_or(start);
    Ok(Tuned {
        cell: cell.id.clone(),
        best,
        attempts: search.made,
    })
}

/// Returns the datagram lengths to try, the largest first.
fn datagrams(mtu: u16) -> Vec<u32> {
    let full = command::largest_datagram_bytes(mtu);
    let mut lengths = vec![
        full,
        full.saturating_sub(ENCAPSULATION_ROOM_BYTES),
        full / 2,
    ];
    lengths.retain(|&bytes| bytes >= DATAGRAM_BYTES_MIN.min(full));
    // Equal ones are neighbors, since the list falls.
    lengths.dedup();
    lengths
}

/// The attempts so far, simple settings first, so that the first of equal ones wins.
struct Search<F> {
    attempt: F,
    made: Vec<TuneAttempt>,
}

impl<E, F: FnMut(&ToolParameters) -> Result<Gain, E>> Search<F> {
    fn tcp(&mut self, start: &ToolParameters, cores: u16) -> Result<(), E> {
        let with = |streams: u16, window_bytes| ToolParameters {
            streams: Some(streams),
            window_bytes,
            ..start.clone()
        };
        let counts = STREAMS_PER_CORE.map(|per_core| cores.max(1).saturating_mul(per_core));
        for streams in counts {
            self.make(&with(streams, None))?;
        }
        let streams = self
            .best()
            .and_then(|best| best.streams)
            .unwrap_or(counts[0]);
        // The kernel's window is among them and was tried already: `make` does not repeat it.
        for window in WINDOWS_BYTES {
            self.make(&with(streams, window))?;
        }
        if let Some(window) = self.best().and_then(|best| best.window_bytes) {
            let at = counts
                .iter()
                .position(|&count| count == streams)
                .unwrap_or(0);
            // Before the first count, the index wraps, and `get` finds nothing.
            for neighbour in [at.wrapping_sub(1), at + 1] {
                if let Some(&streams) = counts.get(neighbour) {
                    self.make(&with(streams, Some(window)))?;
                }
            }
        }
        Ok(())
    }

    fn udp(
        &mut self,
        start: &ToolParameters,
        lengths: &[u32],
        rate_is_open: bool,
    ) -> Result<(), E> {
        if lengths.is_empty() && !rate_is_open {
            return Ok(());
        }
        for &bytes in lengths {
            self.make(&ToolParameters {
                datagram_bytes: Some(bytes),
                ..start.clone()
            })?;
        }
        let at_length = self.best().unwrap_or_else(|| start.clone());
        if !rate_is_open {
            return Ok(());
        }
        // At full speed. Without lengths to try, this is the first attempt.
        self.make(&at_length)?;
        let full_speed = self.mean_bps(&at_length);
        // Steps are shares of it: without it, each would offer next to nothing, and lose nothing.
        if full_speed == 0 {
            return Ok(());
        }
        let mut best_bps = full_speed;
        let mut without_gain = 0;
        for per_mille in LADDER_PER_MILLE {
            let rate = u128::from(full_speed) * u128::from(per_mille) / 1000;
            let rate_bps = Some(u64::try_from(rate).unwrap_or(u64::MAX).max(1));
            let bps = self.make(&ToolParameters {
                rate_bps,
                ..at_length.clone()
            })?;
            // Steps up to the rate of full speed hardly deliver more than that, which says nothing
            // of higher ones.
            if per_mille > 1000 {
                without_gain = if bps > best_bps { 0 } else { without_gain + 1 };
            }
            best_bps = best_bps.max(bps);
            if without_gain >= STEPS_WITHOUT_GAIN {
                break;
            }
        }
        Ok(())
    }

    /// Repeats the two best attempts, so that a single outlier does not decide.
    fn repeat_the_best(&mut self) -> Result<(), E> {
        let Some(best) = self.best() else {
            return Ok(());
        };
        let others = self
            .candidates()
            .into_iter()
            .filter(|candidate| *candidate != best);
        let second = others.max_by_key(|candidate| self.mean_bps(candidate));
        // `measure` and not `make`, which would not repeat them.
        for candidate in [Some(best), second].into_iter().flatten() {
            self.measure(&candidate)?;
        }
        Ok(())
    }

    /// Makes an attempt unless it was made before. Returns its mean rate.
    fn make(&mut self, parameters: &ToolParameters) -> Result<u64, E> {
        let hopeless =
            self.made.len() >= FAILURES && self.made.iter().all(|made| made.error.is_some());
        if hopeless {
            return Ok(0);
        }
        if !self.made.iter().any(|made| made.parameters == *parameters) {
            self.measure(parameters)?;
        }
        Ok(self.mean_bps(parameters))
    }

    fn measure(&mut self, parameters: &ToolParameters) -> Result<(), E> {
        let Gain {
            payload_bps,
            lost_ppm,
            error,
        } = (self.attempt)(parameters)?;
        let parameters = parameters.clone();
        self.made.push(TuneAttempt {
            parameters,
            payload_bps,
            lost_ppm,
            error,
        });
        Ok(())
    }

    /// Returns the parameters of the valid attempts without duplicates, in the order made.
    fn candidates(&self) -> Vec<ToolParameters> {
        let mut candidates: Vec<ToolParameters> = Vec::new();
        for made in &self.made {
            if self.mean_bps(&made.parameters) > 0 && !candidates.contains(&made.parameters) {
                candidates.push(made.parameters.clone());
            }
        }
        candidates
    }

    /// Returns the best parameters so far: the simplest of those within [`BETTER_PERCENT`] of the
    /// highest rate; among equally good datagram rates, the one with the least loss.
    fn best(&self) -> Option<ToolParameters> {
        let candidates = self.candidates();
        let top = candidates
            .iter()
            .map(|candidate| self.mean_bps(candidate))
            .max()?;
        let good =
            |bps: u64| u128::from(bps) * 100 >= u128::from(top) * u128::from(100 - BETTER_PERCENT);
        let good = candidates
            .into_iter()
            .filter(|candidate| good(self.mean_bps(candidate)));
        // `min_by_key` keeps the first of equals.
        good.min_by_key(|candidate| self.mean_lost_ppm(candidate))
    }

    /// Returns the mean rate of the attempts with these parameters; 0 if one of them failed.
    fn mean_bps(&self, parameters: &ToolParameters) -> u64 {
        let attempts = self
            .made
            .iter()
            .filter(|made| made.parameters == *parameters);
        let (mut sum, mut count) = (0_u128, 0_u128);
        for made in attempts {
            // A setting that works only sometimes is no candidate.
            if made.error.is_some() {
                return 0;
            }
            sum += u128::from(made.payload_bps);
            count += 1;
        }
        u64::try_from(sum / count.max(1)).unwrap_or(u64::MAX)
    }

    fn mean_lost_ppm(&self, parameters: &ToolParameters) -> u64 {
        let attempts = self
            .made
            .iter()
            .filter(|made| made.parameters == *parameters);
        let losses: Vec<u64> = attempts.filter_map(|made| made.lost_ppm).collect();
        losses.iter().sum::<u64>() / (losses.len() as u64).max(1)
    }
}

#[cfg(test)]
mod tests;
