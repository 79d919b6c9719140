//! Ctrl-C, for a lab.

use crate::{LabError, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a lab: pending and later calls end with [`LabError::Interrupted`].
///
/// Clones share one flag. Nothing resets it; the lab is then only good for being dropped.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The flag itself, for a signal handler to set.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        // All that a signal handler may do safely is to store into an atomic (signal-safety(7)).
        Arc::clone(&self.0)
    }

    /// Sets it.
    pub fn set(&self) {
        // The flag carries no data, so no order with other memory is needed.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`LabError::Interrupted`] when it is set.
    pub fn check(&self) -> Result<()> {
        if self.is_set() {
            Err(LabError::Interrupted)
        } else {
            Ok(())
        }
    }
}
