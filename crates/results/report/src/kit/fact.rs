//! Facts about a device, for the run in a few words and numbers.

use super::format::Scale;
use crate::layout::frames::FrameSet;
use crate::layout::{Protocol, Run, Set};
use stats::Estimate;

/// The device that facts are about, and the run's sets.
pub(crate) struct Subject<'r> {
    pub(crate) run: &'r Run<'r>,
    pub(crate) device: &'r str,
    /// Sets of tools.
    pub(crate) sets: &'r [Set<'r>],
    /// Sets of frame tests.
    pub(crate) frame_sets: &'r [FrameSet<'r>],
}

impl<'r> Subject<'r> {
    /// Returns the sets of one protocol.
    pub(crate) fn sets_of(&self, protocol: Protocol) -> impl Iterator<Item = &'r Set<'r>> {
        let sets = self.sets.iter();
        sets.filter(move |set| set.protocol == protocol)
    }
}

/// One fact: `TCP throughput: 0.49–0.62 × direct; repeats 0.47–0.65; at most 12.3 ± 0.4 Gbit/s (3
/// %), MTU 9000 B, 2 cores`.
pub(crate) struct Fact {
    pub(crate) label: String,
    /// The figure to remember.
    pub(crate) figure: String,
    /// Unit, if it is not part of the figure: `× direct`.
    pub(crate) unit: String,
    /// The smallest and the largest repeat or event, and their meaning; may be empty.
    pub(crate) range: String,
    /// Conditions and further figures.
    pub(crate) detail: String,
    /// Their part without which the figure says little, for the short form: the rate of a ratio,
    /// or the difference from the baseline. May be empty.
    pub(crate) brief: String,
}

impl Fact {
    /// `0.49–0.62 × direct; repeats 0.47–0.65; at most 12.3 Gbit/s`.
    pub(crate) fn sentence(&self) -> String {
        let figure = format!("{} {}", self.figure, self.unit);
        // A figure in words has no unit.
        let parts = [figure.trim_end(), self.range.as_str(), self.detail.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("; ")
    }
}

/// `repeats 6.88–7.20 Gbit/s`: the smallest and the largest repeat.
pub(crate) fn repeats(estimate: &Estimate, scale: &Scale) -> String {
    let (low, high) = (scale.number(estimate.min), scale.number(estimate.max));
    // Compared as printed: a range of two equal numbers would look like a mistake.
    let value = if low == high {
        scale.value(estimate.max)
    } else {
        format!("{low}–{}", scale.value(estimate.max))
    };
    // With one or two repeats, the range is no measure of the spread, so their number is stated.
    match estimate.n {
        1 => "one repeat".to_owned(),
        2 => format!("two repeats {value}"),
        _ => format!("repeats {value}"),
    }
}
