//! What the mailbox stands on; its test takes that of a model checker.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
