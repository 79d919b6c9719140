//! A fleet: one queue of campaigns for many labs, and one archive of their runs, on NATS JetStream.
//!
//! ```text
//! submit ─► jobs, states ─► agent of a lab ─► `cipherbench run` ─► run folder ─► files, runs ─► fetch
//! ```
//!
//! The measuring knows nothing of it: an agent starts the program exactly as a person would, and
//! the run's own journal on the agent's disk is the truth. What the server has is a copy, repeated
//! until it was read back.
//!
//! Every change of what the server keeps is a comparison and a swap of one entry by its revision,
//! so that two agents, or an agent and a person, never both win. No wall clock decides anything.

#![forbid(unsafe_code)]

mod agent;
mod archive;
mod lease;
mod message;
mod queue;
mod server;
mod store;

pub use agent::{Agent, AgentLab};
pub use archive::{fetch, upload};
pub use message::{Held, Job, LabOffer, Manifest, RunFile, SCHEMA, Selector, State};
pub use queue::{Row, submit};
pub use server::{Server, ServerOptions, free_address};
pub use store::{Access, Fleet, FleetError};
