//! A search for the throughput.

use super::{Procedure, ProcedureKind, ProcedurePlan, search_time};
use crate::ThroughputSearch;
use std::time::Duration;

impl ThroughputSearch {
    /// The search without its loads, which may depend on the frame size.
    pub(super) fn at_any_load(&self) -> Self {
        // Loads given as bit rates are other numbers of frames for each size.
        Self {
            max_load: None,
            min_load: 0,
            ..self.clone()
        }
    }
}

impl ProcedurePlan for ThroughputSearch {
    fn kind(&self) -> ProcedureKind {
        ProcedureKind::Throughput
    }

    fn search(&self) -> Option<&ThroughputSearch> {
        Some(self)
    }

    fn without_loads(&self) -> Procedure {
        Procedure::Throughput(self.at_any_load())
    }

    fn is_at_its_most(&self) -> bool {
        true
    }

    /// The search alone.
    fn time(&self, _trial: &dyn Fn(u64) -> Duration, searches: u32) -> Duration {
        search_time(self, searches)
    }

    /// The goals and the limits of a search are printed for every procedure that has one.
    fn in_words(&self) -> Option<String> {
        None
    }

    fn settings(&self) -> Vec<String> {
        vec![format!("profile {}", self.profile.name())]
    }
}
