//! Quantum key distribution (QKD) keys, fetched from a key management entity (KME) according to
//! ETSI GS QKD 014 v1.1.1: JSON over HTTP/1.1 over mutually authenticated TLS.
//!
//! The *master* SAE (the side of a tunnel that connects) gets new keys and sends their IDs to the
//! *slave*, which gets the same keys from its own KME. [`Kme`] makes the three calls, [`Pool`]
//! prefetches a master's keys, [`types`] defines the JSON bodies, [`answer`] validates responses,
//! and [`kme`] simulates KMEs for labs.
//!
//! Keys and the JSON text that contained them are wiped when dropped. The TLS library and hyper
//! free the buffers that the text passed through without wiping them.

#![forbid(unsafe_code)]

pub mod answer;
mod channel;
mod client;
mod error;
mod key;
pub mod kme;
mod ledger;
mod limited;
mod pool;
mod tls;
pub mod types;

pub use client::{Kme, Setup};
pub use error::{Failure, KmeError, SetupError};
pub use key::QkdKey;
pub use limited::serve_limited;
pub use pool::{Pool, PoolSettings};
