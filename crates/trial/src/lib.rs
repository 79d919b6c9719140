//! One measurement: the tools that carry traffic, the meters beside them, and the evidence that a figure is
//! what it seems.

#![forbid(unsafe_code)]

pub mod command;
pub mod iperf3;
pub mod ping;
pub mod timing;
pub mod transfer;

pub use command::{CommandError, Commands, Cores, commands, parameters};
pub use timing::Timing;
