//! Generator and analyser of test frames.
//!
//! ```text
//! Spec (JSON) ─► schedule ─► frames ─► port ~~~ DUT ~~~ port ─► analyser ─► Report (JSON)
//! ```
//!
//! It sees ports only: no lab, no files but a key file where a station seals or opens by itself. One
//! [`spec::Spec`] is one station's part in one trial; the binary serves it as `cipherbench frames`, the memory
//! lab calls it directly.

#![forbid(unsafe_code)]

pub mod report;
pub mod spec;
