//! A fleet: one queue of campaigns for many labs, and one archive of their runs, on NATS JetStream.
//!
//! ```text
//! submit ─► jobs, states ─► agent ─► `cipherbench run` ─► run folder ─► files, runs ─► fetch
//! ```
//!
//! A measurement does not depend on the fleet: an agent starts the program exactly as a person
//! would, and the run's journal on the agent's disk is authoritative. The server has a copy, which
//! is sent until it was read back intact.
//!
//! Every change on the server is a compare-and-swap of one entry by its revision, so that two
//! agents, or an agent and a person, never both succeed. No wall clock decides which one does.

#![forbid(unsafe_code)]

mod agent;
mod archive;
mod bucket;
mod changes;
mod child;
mod connection;
mod denial;
mod discard;
mod error;
mod history;
mod identity;
mod kept;
mod lease;
mod leftovers;
mod message;
mod overview;
mod pin;
mod progress;
mod queue;
mod ran;
mod records;
mod repeat;
mod room;
mod server;
mod serving;
mod signing;
mod store;
mod streams;
mod turn;
mod unreadable;
mod users;
mod view;

pub use agent::{Agent, AgentLab};
pub use archive::{fetch, fetch_if, upload};
pub use changes::Change;
pub use connection::Access;
pub use error::FleetError;
pub use history::{Figure, Headline, LoadHistogram, Point, RunFigures};
pub use identity::Identity;
pub use leftovers::{LEFT_AFTER, leftovers_removed};
pub use message::{
    Assignment, Job, LabOffer, Manifest, RunFile, SCHEMA, SIGNATURE_VERSION, Selector, Signature,
    State, Terms, is_id,
};
pub use overview::{LabStatus, Overview, Snapshot};
pub use progress::{LastTrial, Progress};
pub use queue::{Listing, Row, submit};
pub use records::Record;
pub use server::{FirstUsers, Server, ServerExtras, ServerOptions, ServerTls, free_address};
pub use signing::Trust;
pub use store::Fleet;
/// The channel that stops an agent: it carries whether to stop.
pub use tokio::sync::watch;
pub use unreadable::UnreadableEntry;
pub use users::{Role, Users};

use std::time::{SystemTime, UNIX_EPOCH};

/// Runs a future to its end on this thread.
///
/// # Panics
/// When the kernel gives no event queue (epoll).
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .unwrap_or_else(|error| panic!("no event queue: {error}"))
        .block_on(future)
}

/// Returns an id for a new job. Ids from one clock sort by time.
#[must_use]
pub fn new_id() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("{:011x}-{}", since.as_millis(), random_word())
}

/// Returns eight random hexadecimal digits.
fn random_word() -> String {
    random_digits::<4>()
}

/// Returns a unique id.
fn random_id() -> String {
    random_digits::<16>()
}

/// Returns two random hexadecimal digits for each byte.
fn random_digits<const BYTES: usize>() -> String {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .unwrap_or_else(|error| panic!("the kernel has no random bytes: {error}"));
    base16ct::lower::encode_string(&bytes)
}
