//! Runs in a browser: their list, the report of each, a running one as it goes on, and two of them
//! compared.
//!
//! ```text
//! folder of runs ─► shelf ─► site ─► page::Shell ─► browser
//! run of this process ─► Board ─┘  (list, progress, comparison)
//! ```
//!
//! The site only reads. It runs on a thread of the lowest priority, with a bounded number of
//! connections and open pages, and renders one report at a time, so that it takes as little as
//! possible from a run on the same machine; the run never waits for it.

#![forbid(unsafe_code)]

mod error;
mod server;
mod shelf;
mod site;

pub use error::LiveError;
pub use page::parts::encoded;
pub use server::{Bound, Server};
pub use site::Site;
