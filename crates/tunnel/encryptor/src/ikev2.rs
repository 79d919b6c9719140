//! IKEv2 as a source of keys: the crate `ike` with sockets, a clock and the lanes.
//!
//! ```text
//! UDP ike_port ──────────────► thread ─► peer ─► ike::session
//! UDP port ─► lane 0 ─ marker ──┘          └───► child SAs ─► keys of the tunnel ─► lanes
//! ```
//!
//! Messages share the lane's port with ESP (RFC 3948): the lane passes those with the marker on.
//! Both sides claim to be behind a NAT, so that every peer encapsulates ESP in UDP.
//!
//! A tunnel has one IKE SA. While both sides change from one child SA to the next, packets of both
//! are accepted; sending changes when the peer is known to have the new one.

mod advice;
mod certificates;
mod children;
mod error;
mod names;
mod order;
mod peer;
mod setup;
mod thread;

pub(crate) use error::SetupError;
pub(crate) use setup::IkeSetup;
