//! Model of an impaired path, such as a radio link or the Internet.
//!
//! ```text
//! frame ─► loss ─► rate and queue ─► delay, jitter ─► reordering ─► copies, flipped bit ─► Fate
//! ```
//!
//! A [`Model`] decides the fate of each frame of one direction. It is pure: no I/O, no clock, and
//! nothing is allocated per frame. The fates depend on the seed, the lengths of the frames and
//! their times only. `traffic::bridge` carries frames by it.
//!
//! It does not model: loss or delay that depends on a frame's content, several queues, and
//! correlation of one frame's delay with the next.

#![forbid(unsafe_code)]

mod counts;
mod model;
mod profile;
mod random;

pub use counts::{Counts, Impaired};
pub use model::{Delivery, Fate, Model, SPARED_BYTES};
pub use profile::{
    Direction, Distribution, Impairment, Jitter, Loss, Profile, Queue, Rate, Reorder,
};
