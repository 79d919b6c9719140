//! Child processes that the thread that started them awaits, rather than the reaper of a station.
//!
//! The standard library waits for a child itself, immediately if the program cannot be executed,
//! and panics if another thread was quicker.

use std::sync::atomic::{AtomicUsize, Ordering};

static EXPECTED: AtomicUsize = AtomicUsize::new(0);

/// While one of these exists, a station's reaper leaves unknown children alone.
pub(crate) struct OwnChild(());

impl OwnChild {
    /// Hold it from before the start of a child until the child has been awaited.
    pub(crate) fn expect() -> Self {
        // The strongest order: the reaper must see it before the child can end.
        EXPECTED.fetch_add(1, Ordering::SeqCst);
        Self(())
    }

    /// Whether one exists.
    pub(crate) fn is_expected() -> bool {
        EXPECTED.load(Ordering::SeqCst) > 0
    }
}

impl Drop for OwnChild {
    fn drop(&mut self) {
        EXPECTED.fetch_sub(1, Ordering::SeqCst);
    }
}
