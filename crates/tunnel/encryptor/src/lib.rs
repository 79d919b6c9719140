//! The encryptor: ties ports, ESP, engines and keys together.
//!
//! ```text
//! TUN queue i -> cut -> seal -> train -> UDP port + i      one worker thread a lane,
//! TUN queue i <- join <- open <- train <- UDP port + i     one pair of SAs, nothing shared
//! ```
//!
//! [`service::run`] is the whole service; [`worker::Worker`] is one lane over any ports, so tests
//! drive it without a kernel. Control plane and data plane share only the keys of a new inbound
//! epoch, mailboxes and counters.
//!
//! It does not negotiate keys (`control`, `keying`), know packet formats (`wire`) or talk to the
//! kernel (`port`).

#![forbid(unsafe_code)]

mod aggregate;
pub mod barrier;
pub mod config;
pub mod counters;
mod datagrams;
mod desync;
mod ike_suite;
mod ikev2;
pub mod inbound;
mod inbound_keys;
pub mod lane;
mod lines;
mod log;
mod mailbox;
pub mod metrics;
mod open;
pub mod outbound;
mod outgoing;
pub mod payload;
pub mod policy;
pub mod privileges;
pub mod renewal;
mod sas;
pub mod service;
mod shared_keys;
pub mod status;
mod sync;
mod transforms;
pub mod tunnel;
pub mod worker;

pub use config::Config;
pub use service::{Program, ServiceError, run};
