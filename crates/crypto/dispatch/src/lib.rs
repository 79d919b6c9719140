//! Selection of the engine that processes each batch of packets.
//!
//! ```text
//! Choice ─► Dispatch::prepare ─► Dispatch::transform ─► engine::Transform, one per SA
//!           engines that pass     one engine: its own
//!           curves: cache or      several: each batch to the earliest one
//!           measured now
//! ```
//!
//! A [`Choice`] is the configuration: `auto`, an engine's name, a threshold by size, or a modelled
//! coprocessor. [`Dispatch`] replaces [`engine::Selection`]: it makes the keying material of SAs.
//! [`Curve`]s, measured at start or read from the user's cache, predict the cost of each batch on
//! each engine. A batch changes engines only if the gain is significant. When an engine fails, the
//! next one processes the same batch.
//!
//! Deliberately not here: engines (`engine`), sequence numbers (`esp`), threads. `docs/speed.md`
//! describes measurement and selection.

#![forbid(unsafe_code)]

mod cache;
mod contender;
mod contest;
mod curve;
mod device;
mod dispatch;
mod measure;
pub mod pace;
mod routed;

pub use catalog::{Choice, CpuChoice, EngineModel};
pub use curve::{Curve, Direction, EngineCurves, Fit, Load, Point};
pub use dispatch::{Dispatch, Replaced, Turn};
