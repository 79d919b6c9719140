//! Synchronisation primitives of the mailbox; its test substitutes those of a model checker.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
