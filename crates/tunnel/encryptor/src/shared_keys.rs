//! Keys that several lanes share.

use keying::Keys;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys of a key file, which tunnels may share, or the negotiated keys of one tunnel. Lanes share
/// them, off the packet path.
pub type SharedKeys = Arc<Mutex<Keys>>;

/// Locks a value, ignoring poison.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
