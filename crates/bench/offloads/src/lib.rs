//! Which offload breaks or slows a path.
//!
//! ```text
//! settings ─► covering ─► rows ─► Subject ─► answers ─► examine ─► narrow ─► findings ─► report
//!                                 (nodes)   (probe)
//! ```
//!
//! Every pair of settings is tried by a covering array; a combination that fails or is slow is then
//! narrowed to the setting, or the few of them, that make it so. Search and judgement are pure and
//! driven by any [`Subject`]; [`OnNodes`] is the one of a lab.

#![forbid(unsafe_code)]

pub mod covering;
mod examine;
mod narrow;
mod nodes;
mod observed;
mod report;
mod setting;

pub use examine::{Examination, Finding, Subject, Symptom, examine};
pub use narrow::{Narrowed, narrow};
pub use nodes::{OnNodes, PathUnderTest, Refused};
pub use observed::{Answer, Answers, DirectedQuestion, Question, answers};
pub use report::Report;
pub use setting::{FEATURES, Feature, Keep, Place, Setting};
