//! Repeats that are added to cells.

use serde::{Deserialize, Serialize};

/// A round of further repeats of the cells that leave limits undecided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// Repeats that each of the cells has from now on.
    pub repeats: u32,
    /// [`plan::Cell::id`] of the cells; at least one.
    pub cells: Vec<String>,
}
