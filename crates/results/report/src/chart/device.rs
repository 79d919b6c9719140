//! Charts of crypto devices: speed over an axis, survival, and a batch by its times to failure.

pub(crate) mod batch;
pub(crate) mod kat;
pub(crate) mod speed;
pub(crate) mod survival;

use super::curves::distinct_colors;
use crate::layout::Run;

fn colors<'d>(run: &Run<'_>, duts: impl Iterator<Item = &'d String>) -> Vec<usize> {
    distinct_colors(duts.map(|dut| run.color(dut)))
}
