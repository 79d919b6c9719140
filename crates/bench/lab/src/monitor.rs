//! Values of devices and machines, read at an interval while traffic flows.
//!
//! ```text
//! Source ─► Query ─► Answer ─► SeriesBuilder ─► Monitored
//!         (command, SNMP, page, RAPL)   ▲
//!                      TrafficLog ──────┘  which load a reading belongs to
//! ```
//!
//! Each box and each machine has one thread, which makes its readings one after the other. A
//! reading that fails, or is skipped because the readings before took longer than the interval, is
//! a gap with its reason. When the trial is over, a command is ended, and a request is awaited at
//! most for its time limit.
//!
//! What this deliberately does not do: evaluate the values.

mod answer;
mod command;
mod count;
mod poller;
mod query;
pub(crate) mod rapl;
mod secret;
mod series;
mod snmp;

pub(crate) use answer::Answer;
pub(crate) use command::BoxCommand;
pub(crate) use count::Count;
pub(crate) use poller::{DevicePoller, Reader};
pub(crate) use query::Queries;
