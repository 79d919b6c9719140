//! The overlay network between the stations during a trial.

use crate::measurer::Trial;
use plan::Overlay;
use testbed::{Bench, LabError};

/// The overlay of a trial's cell, if it has one: set up until [`Self::end`]; removed on drop too.
pub(crate) struct Connected<'a> {
    /// `None` once it is removed.
    bench: Option<&'a dyn Bench>,
}

impl<'a> Connected<'a> {
    /// Sets up the overlay of the cell through the running DUT.
    pub(crate) fn begin(bench: &'a dyn Bench, trial: &Trial<'_>) -> Result<Self, LabError> {
        let overlay = of(trial);
        if !overlay.is_some() {
            return Ok(Self { bench: None });
        }
        bench.start_overlay(overlay, trial.links)?;
        Ok(Self { bench: Some(bench) })
    }

    /// Removes it.
    pub(crate) fn end(mut self) -> Result<(), LabError> {
        match self.bench.take() {
            Some(bench) => bench.stop_overlay(),
            None => Ok(()),
        }
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        if let Some(bench) = self.bench {
            // The trial has failed already. The next one removes what is left, and the end of the
            // stations does.
            let _ = bench.stop_overlay();
        }
    }
}

fn of(trial: &Trial<'_>) -> Overlay {
    let stations = trial.cell.stations;
    stations.map_or(Overlay::None, |stations| stations.overlay)
}
