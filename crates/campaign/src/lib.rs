//! Campaign and lab files to a [`Plan`] with every default explicit.

#![forbid(unsafe_code)]

pub mod plan;

pub use plan::Plan;
