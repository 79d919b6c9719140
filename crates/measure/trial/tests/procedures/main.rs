//! Procedures over simulated rigs of known truth.

mod disturbed;
mod flaws;
mod procedures;
mod queues;
mod rig;
mod searches;
mod soak;
