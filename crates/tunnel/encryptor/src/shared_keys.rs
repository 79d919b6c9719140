//! Keys that lanes share.

use keying::Keys;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys of a key file, which tunnels may share, or those that one tunnel has negotiated. Lanes share them, off the packet
/// path.
pub type SharedKeys = Arc<Mutex<Keys>>;

/// Locks them.
pub(crate) fn lock(keys: &Mutex<Keys>) -> MutexGuard<'_, Keys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}
