//! A search for the throughput.

use super::ProcedureTrials;
use crate::error::TrialError;
use crate::frames::basis::{Basis, search};
use crate::frames::throughput::Confirm;
use crate::frames::trials::Trials;
use plan::ThroughputSearch;

impl ProcedureTrials for ThroughputSearch {
    fn carry_out(&self, trials: &mut Trials<'_>) -> Result<Basis, TrialError> {
        search(trials, self, Confirm::Sampled)
    }
}
