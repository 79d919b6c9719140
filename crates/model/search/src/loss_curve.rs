//! Frame loss at falling loads (RFC 2544 §26.3).

use crate::{Counts, SearchError, Step, Trial};

/// Loss at falling loads: from the highest down in equal steps, until two successive loads are
/// without loss.
///
/// RFC 2544 requires steps of 10 % or finer. The curve also ends when the next step would reach 0.
#[derive(Debug, Clone)]
pub struct LossCurve {
    max_load: u64,
    step_percent: u8,
    trial_ns: u64,
    points: Vec<(Trial, Counts)>,
}

impl LossCurve {
    /// Starts a curve at a load in frames/s, with steps in per cent of it and trials of one
    /// duration.
    ///
    /// # Errors
    /// When the step is not from 1 to 50, or load or duration is 0.
    pub const fn new(max_load: u64, step_percent: u8, trial_ns: u64) -> Result<Self, SearchError> {
        if step_percent < 1 || step_percent > 50 {
            return Err(SearchError::CurveStep {
                percent: step_percent,
            });
        }
        if max_load == 0 {
            return Err(SearchError::Zero {
                what: "the highest load",
            });
        }
        if trial_ns == 0 {
            return Err(SearchError::Zero {
                what: "the trial duration",
            });
        }
        Ok(Self {
            max_load,
            step_percent,
            trial_ns,
            points: Vec::new(),
        })
    }

    /// The next trial, or the end. Asking twice changes nothing.
    #[must_use]
    pub fn next(&self) -> Step {
        if let [.., (_, before), (_, last)] = self.points.as_slice()
            && before.lost() == 0
            && last.lost() == 0
        {
            return Step::Done;
        }
        // Counted in steps of the highest load, so that no rounding adds up.
        let steps = self.points.len() as u64;
        let percent = 100_u64.saturating_sub(steps.saturating_mul(u64::from(self.step_percent)));
        let load = u128::from(self.max_load) * u128::from(percent) / 100;
        match u64::try_from(load) {
            Ok(load) if load > 0 => Step::Measure(Trial {
                load,
                duration_ns: self.trial_ns,
            }),
            _ => Step::Done,
        }
    }

    /// Records a trial.
    pub fn record(&mut self, trial: Trial, counts: Counts) {
        self.points.push((trial, counts));
    }

    /// The curve so far, from the highest load down.
    #[must_use]
    pub fn points(&self) -> &[(Trial, Counts)] {
        &self.points
    }
}
