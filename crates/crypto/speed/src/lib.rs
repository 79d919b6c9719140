//! Speed of crypto engines by themselves: packets in memory, sealed and opened on dedicated cores.
//!
//! ```text
//! Request ─► rates, curves ─► Measured ─► tables, plots, JSON, page
//! ```

#![forbid(unsafe_code)]

mod chart;
mod cores;
mod curves;
mod error;
mod figure;
mod insecure;
mod measured;
mod page;
mod plot;
mod rates;
mod request;
mod table;

pub use cores::cores;
pub use error::SpeedError;
pub use measured::{Event, Measured};
pub use request::Request;
