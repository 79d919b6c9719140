//! The place where a run shows its state to any number of viewers.

use super::state::State;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

/// The newest state of a run. Viewers read it when they want: the run waits for none, and a state
/// that nobody has read is replaced by the next.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Mutex<Option<Arc<State>>>>);

impl Board {
    /// Returns the newest state; `None` before the first.
    #[must_use]
    pub fn read(&self) -> Option<Arc<State>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Shows a state, unless a viewer reads at this moment: the next one follows soon.
    pub(crate) fn show(&self, state: &State) {
        let place = match self.0.try_lock() {
            Ok(place) => Some(place),
            Err(TryLockError::Poisoned(place)) => Some(place.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut place) = place {
            *place = Some(Arc::new(state.clone()));
        }
    }

    /// Shows the last state, after which none follows.
    pub(crate) fn show_last(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(state));
    }
}
