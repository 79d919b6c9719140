//! Which engine does a batch of packets.
//!
//! ```text
//! Choice ─► Dispatch::prepare ─► Dispatch::transform ─► engine::Transform, one per SA
//!           engines that pass     one engine: its own
//!           curves: cache or      several: each batch to the one that is done first
//!           measured now
//! ```
//!
//! A [`Choice`] is what a user writes: `auto`, an engine's name, a threshold by size, or a modelled
//! coprocessor. [`Dispatch`] stands where [`engine::Selection`] could: it makes the keying material
//! of SAs. What each batch costs on each engine is predicted by [`Curve`]s, measured at start or
//! taken from the user's cache; a batch leaves the engine that did the last one only for a gain
//! worth a change. When an engine fails, the same batch is done by the next.
//!
//! What is deliberately not here: engines (`engine`), sequence numbers (`esp`), threads.
//! `docs/speed.md` tells how it is measured and chosen.

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

pub use choice::{Choice, CpuChoice, Model};
pub use curve::{Curve, Direction, EngineCurves, Fit, Load, Point};
pub use dispatch::{Dispatch, Replaced, Turn};
