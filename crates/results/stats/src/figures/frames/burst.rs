//! Bursts without loss, and recovery from an overload.

use super::{LossAccount, Repeats};
use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, estimate};
use journal::record::{FrameResult, RecoveryTrial};
use plan::BackToBack;
use schemars::JsonSchema;
use serde::Serialize;

const NANOS_PER_SECOND: f64 = 1e9;

/// The longest burst at the highest load without loss (RFC 9004), in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BackToBackResult {
    /// Longest burst of each repeat.
    pub burst_frames: Estimate,
    /// Rate within bursts; `null` when none was recorded.
    pub burst_frames_per_s: Option<f64>,
    /// Implied buffer time: the burst's frames by their rate (RFC 9004 §5.4).
    pub implied_buffer_ns: Option<f64>,
    /// Corrected buffer time: the implied one less the frames that the DUT forwards meanwhile, by
    /// the throughput of another cell of the run; `null` without that cell.
    pub corrected_buffer_ns: Option<f64>,
    /// Id of that cell.
    pub throughput_cell: Option<String>,
    /// Whether the longest tried burst passed in every repeat: the buffer may hold more.
    pub longest_tried_passed: bool,
    /// Confirming bursts, over all repeats.
    pub confirming_bursts: u64,
    /// Of those, bursts that lost a frame, after which a shorter length was tried.
    pub confirming_with_loss: u64,
    /// What became of the frames of each repeat's shortest bursts with loss; `null` when none lost
    /// a frame.
    pub failed_account: Option<LossAccount>,
}

/// Recovery from an overload (RFC 2544 §26.5).
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecoveryResult {
    /// From the end of the overload to the last loss; `null` when loss had not ended in a repeat.
    pub recovery_ns: Option<Estimate>,
    /// Repeats with loss that continued until the time was up.
    pub not_recovered: u32,
    /// Repeats without loss under the overload, so that there was nothing to recover from.
    pub not_overloaded: u32,
    /// Load of the overload.
    pub overload_frames_per_s: Estimate,
    /// Load afterwards.
    pub relief_frames_per_s: Estimate,
    /// Frames lost during the overload, over all repeats.
    pub overload_lost: u64,
    /// Frames lost afterwards, over all repeats.
    pub relief_lost: u64,
}

/// Returns the confirmed burst length: the last one, since a search steps down until a length is
/// confirmed; without confirming bursts, the longest without loss. 0 when every length lost a
/// frame, `None` when none was tried.
#[must_use]
pub fn longest_burst(found: &FrameResult) -> Option<u64> {
    let bursts = &found.bursts();
    bursts.first()?;
    let passed = || bursts.iter().filter(|burst| burst.lost == 0);
    let longest = if bursts.iter().any(|burst| burst.confirming) {
        passed()
            .rfind(|burst| burst.confirming)
            .map(|burst| burst.frames)
    } else {
        passed().map(|burst| burst.frames).max()
    };
    Some(longest.unwrap_or(0))
}

/// The rate within the bursts of one repeat, in frames/s.
fn burst_rate(found: &FrameResult) -> Option<f64> {
    let searched = found.throughput.as_ref().map(|found| found.max_load);
    let trials = found.trials.iter().enumerate();
    // The flood warms the device up and may find the highest load. It sends as fast as possible,
    // which is not the rate of the bursts.
    let own = trials.filter(|(place, _)| found.flood_trial != Some(*place));
    let rates = searched.into_iter().chain(own.map(|(_, trial)| trial.load));
    rates.max().filter(|rate| *rate > 0).map(|rate| rate as f64)
}

/// Whether the longest burst that the test allows passed in every repeat.
fn longest_passed(test: &BackToBack, repeats: &Repeats<'_>) -> bool {
    let passed = |found: &FrameResult| {
        let (longest, rate) = (longest_burst(found)?, burst_rate(found)?);
        // A frame less is rounding.
        let most = test.burst_ns_max as f64 * rate / NANOS_PER_SECOND - 1.0;
        Some(longest as f64 >= most)
    };
    repeats.iter().all(|(_, found)| passed(found) == Some(true))
}

/// Sums the trials of each repeat's shortest burst with loss that is longer than the confirmed
/// length.
fn failed_account(repeats: &Repeats<'_>) -> Option<LossAccount> {
    let mut sum: Option<LossAccount> = None;
    for (_, found) in repeats {
        let passed = longest_burst(found).unwrap_or(0);
        let failed = found.bursts().iter().filter(|burst| burst.lost > 0);
        let lengths = failed.map(|burst| burst.frames);
        let Some(shortest) = lengths.filter(|frames| *frames > passed).min() else {
            continue;
        };
        // Each burst was a trial. Before them comes the trial for the highest load, after them the
        // one for the evidence.
        let end = found.evidence_trial.unwrap_or(found.trials.len());
        let own = &found.trials[..end.min(found.trials.len())];
        let trials = &own[own.len().saturating_sub(found.bursts().len())..];
        for (burst, trial) in found.bursts().iter().zip(trials) {
            if burst.frames == shortest && burst.lost > 0 {
                sum.get_or_insert_default().add(trial);
            }
        }
    }
    sum
}

impl BackToBackResult {
    /// `None` when a repeat recorded no burst.
    pub(super) fn of(test: &BackToBack, repeats: &Repeats<'_>) -> Option<Self> {
        let burst_frames = estimate(repeats, |found| {
            longest_burst(found).map(|frames| frames as f64)
        })?;
        let rates = repeats.iter().filter_map(|(_, found)| burst_rate(found));
        let rate = rates.max_by(f64::total_cmp);
        let confirming = || {
            let bursts = repeats.iter().flat_map(|(_, found)| found.bursts());
            bursts.filter(|burst| burst.confirming)
        };
        Some(Self {
            longest_tried_passed: longest_passed(test, repeats),
            implied_buffer_ns: rate.map(|rate| burst_frames.mean / rate * NANOS_PER_SECOND),
            corrected_buffer_ns: None,
            throughput_cell: None,
            burst_frames_per_s: rate,
            confirming_bursts: confirming().count() as u64,
            confirming_with_loss: confirming().filter(|burst| burst.lost > 0).count() as u64,
            burst_frames,
            failed_account: failed_account(repeats),
        })
    }

    /// Subtracts the frames that the DUT forwards while the burst arrives (RFC 9004 §5.4).
    pub(crate) fn correct(&mut self, cell: &str, throughput_frames_per_s: f64) {
        if let (Some(rate), Some(implied)) = (self.burst_frames_per_s, self.implied_buffer_ns) {
            // A throughput above the rate of the bursts empties the buffer as fast as it fills.
            let kept = (1.0 - throughput_frames_per_s / rate).max(0.0);
            self.corrected_buffer_ns = Some(implied * kept);
            self.throughput_cell = Some(cell.to_owned());
        }
    }
}

const fn overloaded(found: &RecoveryTrial) -> bool {
    found.overload_lost > 0
}

impl RecoveryResult {
    /// `None` when a repeat recorded no recovery.
    pub(super) fn of(repeats: &Repeats<'_>) -> Option<Self> {
        let of = |value: fn(&RecoveryTrial) -> Option<u64>| {
            estimate(repeats, |found| {
                value(found.recovery()?).map(|value| value as f64)
            })
        };
        let all = || repeats.iter().filter_map(|(_, found)| found.recovery());
        Some(Self {
            recovery_ns: of(|found| {
                // Without loss under the overload there was nothing to recover from: a time of 0
                // would flatter a device that was not overloaded.
                let counts = found.recovered && overloaded(found);
                counts.then_some(found.recovery_ns)
            }),
            not_recovered: all().filter(|found| !found.recovered).count() as u32,
            not_overloaded: all().filter(|found| !overloaded(found)).count() as u32,
            overload_frames_per_s: of(|found| Some(found.overload))?,
            relief_frames_per_s: of(|found| Some(found.relief))?,
            overload_lost: all().map(|found| found.overload_lost).total(),
            relief_lost: all().map(|found| found.relief_lost).total(),
        })
    }
}
