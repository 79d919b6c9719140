//! Views of a fleet and of its runs: texts for a terminal, JSON, and pages of a browser.
//!
//! ```text
//! Fleet ─► status, course ─► history ─► terminal
//!   └────► cache ─► report ─┐
//!   └────► cells, overview ─┴─► site ─► browser
//! ```
//!
//! The frame of pages, their updates and the answers to requests are in `page`; the routes and
//! their contents (`site`) are here.

#![forbid(unsafe_code)]

mod cache;
mod course;
mod error;
mod figures;
mod history;
mod site;
mod status;
mod text;

pub use cache::cached;
pub use error::ViewError;
pub use figures::figures;
pub use history::{cells, history};
pub use site::serve;
pub use status::{Status, job_line, progress_line};
pub use text::{labels, visible_json};
