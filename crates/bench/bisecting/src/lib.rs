//! Which revision, program or set of settings changed a figure of a campaign, measured on the
//! bench.
//!
//! ```text
//! gate, campaign ─► Question ┐
//! git, programs, sets ─► versions ┴► Work ─► ends ─► Ask ─► build ─► pairs ─► bisect ─► Conclusion
//!                                └► bisect.jsonl ◄───────────┴─────────┘
//! ```
//!
//! Each question of the bisection is answered by trials of two versions, one after the other, in
//! one lab ([`Bench`], or another [`Measurer`]). Every answer is on the disk before the next trial
//! begins, so that [`Work::resume`] continues an interrupted bisection. `docs/bisect.md` has the
//! statistics, which crate `bisect` computes.
//!
//! The crate reads no command line and decides on no exit code; texts go to a reporter.

#![forbid(unsafe_code)]

mod bench;
mod build;
mod conclusion;
mod error;
mod figures;
mod file;
mod git;
mod measurer;
mod others;
mod question;
mod record;
mod sets;
mod shell;
mod versions;
mod words;
mod work;

pub use bench::Bench;
pub use conclusion::{Conclusion, End};
pub use error::BisectingError;
pub use measurer::{Fault, Measured, Measurer, Subject};
pub use others::Others;
pub use question::Question;
pub use record::FILE_NAME;
pub use versions::Version;
pub use work::{Request, Resume, Source, Work};
