//! The maximum receive rate.

use super::Repeats;
use super::loads::{self, LoadResult};
use super::rates::Lengths;
use journal::record::FrameTrial;
use schemars::JsonSchema;
use serde::Serialize;

/// Received rate under the highest offered load (CSIT's MRR), in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MrrResult {
    /// The load; a repeat's value is the mean of its trials. Its forwarding rate is the MRR.
    pub load: LoadResult,
    /// Trials, over all repeats.
    pub trials: u32,
    /// Lowest forwarding rate of a trial, in frames/s.
    pub min_frames_per_s: f64,
    /// Highest forwarding rate of a trial, in frames/s.
    pub max_frames_per_s: f64,
    /// Sample standard deviation of the trials' forwarding rates, in frames/s; `null` for one.
    pub standard_deviation_frames_per_s: Option<f64>,
}

impl MrrResult {
    /// `None` without trials, or if one sent nothing.
    pub(super) fn of(lengths: &Lengths, repeats: &Repeats<'_>) -> Option<Self> {
        let trials: Vec<(u32, &FrameTrial)> = repeats
            .iter()
            .flat_map(|(repeat, found)| loads::own(found).map(|trial| (*repeat, trial)))
            .collect();
        let load = loads::result(lengths, None, &trials)?;
        let directions = lengths.directions as f64;
        let rate = |trial| loads::per_direction(trial, trial.received, directions);
        let rates = trials.iter().map(|(_, trial)| rate(trial));
        // Extremes and deviation are of single trials, as CSIT states them, while the estimate is
        // over repeats.
        let rates: Vec<f64> = rates.collect::<Option<Vec<_>>>()?;
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        Some(Self {
            load,
            trials: u32::try_from(rates.len()).unwrap_or(u32::MAX),
            min_frames_per_s: rates.iter().copied().reduce(f64::min)?,
            max_frames_per_s: rates.iter().copied().reduce(f64::max)?,
            standard_deviation_frames_per_s: (rates.len() > 1)
                .then(|| (squares / (rates.len() - 1) as f64).sqrt()),
        })
    }
}
