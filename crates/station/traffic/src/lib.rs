//! Generator and analyser of test frames.
//!
//! ```text
//! Spec (JSON) ─► schedule ─► frames ─► port ~~~ DUT ~~~ port ─► analyser ─► Report (JSON)
//! ```
//!
//! [`serve`] does all of that for a program. A caller that has ports uses [`send`] and [`receive`],
//! or with several threads [`send_all`] and [`receive_all`]; a caller with an event loop steps a
//! [`Generator`] and polls an [`Analyser`].
//!
//! [`Witness`] opens frames that were sampled on a link, with the keys of both its ends.
//!
//! A [`Bridge`] carries frames as the model of an impaired path decides; the binary serves it as
//! `cipherbench impair`.
//!
//! It uses ports only: no lab, and no files or sockets except for keys when a station itself seals
//! or opens: a key file, the log of the station's IKE daemon, WireGuard's handshakes.
//! One [`Spec`](traffic_spec::Spec) is one station's part in one trial; the binary serves it as
//! `cipherbench frames`, the memory lab calls it directly.

#![forbid(unsafe_code)]

mod analyser;
mod attack;
mod bins;
mod bridge;
mod delays;
mod error;
mod flows;
mod frames;
mod generator;
mod histogram;
pub mod hostile;
mod keys;
mod open;
mod parse;
mod periods;
mod reflect;
mod seal;
mod sequences;
mod serve;
mod tally;
mod threads;
mod variation;
mod witness;

pub use analyser::{Analyser, receive};
pub use attack::attack;
pub use bridge::{Bridge, BridgePort, serve_bridge};
pub use delays::DELAY_SLICES;
pub use error::TrafficError;
pub use flows::{RANDOM_SOURCE_PORT_MIN, SOURCE_PORT_MIN};
pub use generator::{Generator, Step, send};
pub use keys::charon::Log as DaemonLog;
pub use keys::{KeyUse, Keys};
pub use open::Refusal;
pub use reflect::{exchange_ends, reflect_all};
pub use serve::{ServeError, analysers, generators, receive_all, send_all, sender_threads, serve};
pub use witness::{Content, Payload, Tunnels, Witness};
