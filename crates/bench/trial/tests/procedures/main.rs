//! Procedures over simulated rigs of known truth.

mod disturbed;
mod flaws;
mod procedures;
mod queues;
mod rig;
mod round_trips;
mod searches;
mod soak;
