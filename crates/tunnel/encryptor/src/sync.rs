//! Synchronisation primitives of the mailbox; its test substitutes a model checker's primitives.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
