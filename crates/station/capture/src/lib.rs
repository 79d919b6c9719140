//! Captures frames of one interface into a bounded pcapng file while a trial runs, and counts them.
//!
//! 1. A [`port::Tap`] copies frames; the kernel selects and cuts them before the copy.
//! 2. A bounded store in memory keeps the first, the last, or a sample of them. Nothing is written
//!    while frames are captured, and the thread runs only when a core is idle.
//! 3. At the end the store is written to the file, and its protocols and lengths are counted.
//!
//! The crate neither evaluates nor decrypts frames. It lists their ESP SAs, so that the caller can
//! write the keys next to the file.

#![forbid(unsafe_code)]

mod count;
mod dissect;
mod pcapng;
mod serve;
mod store;

pub use dissect::{Dissected, EspFlow, dissect};
pub use serve::{CaptureError, CaptureReport, CaptureSpec, serve};
