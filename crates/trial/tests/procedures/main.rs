//! Procedures over simulated rigs of known truth.

mod flaws;
mod procedures;
mod rig;
mod searches;
