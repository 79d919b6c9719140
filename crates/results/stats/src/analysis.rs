//! Findings that need more than one cell: comparisons, series, verdicts, rankings.

pub(crate) mod calibration;
pub(crate) mod ceiling;
pub(crate) mod change;
pub(crate) mod claims;
pub(crate) mod compare;
pub(crate) mod contrast;
pub(crate) mod cores;
pub(crate) mod device;
pub(crate) mod expect;
pub(crate) mod gate;
pub(crate) mod levels;
pub(crate) mod mean_frame_rate;
pub(crate) mod metric;
pub(crate) mod pairs;
pub(crate) mod published;
pub(crate) mod quantity;
pub(crate) mod ranked_by;
pub(crate) mod ranking;
pub(crate) mod scaling;
pub(crate) mod significance;
pub(crate) mod sittings;
pub(crate) mod suites;
pub(crate) mod tools;
pub(crate) mod verdict;
