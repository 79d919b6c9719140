//! Keys of a network of quantum key distribution, fetched from a key management entity (KME) as ETSI GS QKD 014 v1.1.1
//! has it: JSON over HTTP/1.1 over TLS, both sides with certificates.
//!
//! The *master* SAE (the side of a tunnel that connects) gets new keys and tells the *slave* their ids; the slave gets the same keys
//! from its own KME. [`Kme`] makes the three calls, [`Pool`] fetches a master's keys before they are needed, [`types`] are what
//! is sent, [`answer`] judges what comes, and [`kme`] is a simulator of KMEs for labs.
//!
//! Keys and the text that they came in are wiped when they are dropped. The TLS library and hyper free the buffers that
//! the text passed through without wiping them.

#![forbid(unsafe_code)]

pub mod answer;
mod channel;
mod client;
mod error;
pub mod kme;
mod ledger;
mod pool;
mod tls;
pub mod types;

pub use client::{Kme, QkdKey, Setup};
pub use error::{Failure, KmeError, SetupError};
pub use pool::{Pool, PoolSettings};
