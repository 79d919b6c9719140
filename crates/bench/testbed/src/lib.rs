//! The boundary between trials and the lab that they run on.
//!
//! ```text
//! trial ─► Bench ─► Node ─► Request, Response ─► station
//! ```
//!
//! Crate `trial` measures through the traits [`Bench`] and [`Node`]. Crate `lab` implements them
//! with namespaces and hosts, tests with fakes. Stations answer the requests of [`protocol`].
//!
//! No privileges: this crate reads `/proc` ([`machine`]), and contains no cryptography.

#![forbid(unsafe_code)]

mod bench;
pub mod clocks;
mod counted;
mod dut;
mod ended;
mod error;
pub mod ethtool;
mod frame_path;
mod ike_peers;
mod interrupt;
pub mod machine;
mod monitor;
mod node;
mod node_id;
mod path;
pub mod protocol;
pub mod time_stamps;
mod traffic_log;
mod tunnel_keys;

pub use bench::{Bench, ClockEnd, Links};
pub use counted::Counted;
pub use dut::{DutAction, RunningDut};
pub use error::{LabError, Result};
pub use frame_path::{FrameEnd, FramePath, StationKeys, StationPeer};
pub use ike_peers::{IkeSas, PeersGateway, PeersProof};
pub use interrupt::Interrupt;
pub use monitor::{Monitor, Poller};
pub use node::Node;
pub use node_id::{ElementId, NodeId};
pub use path::{DIRECT, End, OVERLAY_INTERFACE, PATH, direct_interfaces, path_interfaces};
pub use traffic_log::TrafficLog;
pub use tunnel_keys::TunnelKeys;
