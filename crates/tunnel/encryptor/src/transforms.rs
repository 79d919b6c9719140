//! Transforms of SAs from their keys.

use dispatch::Dispatch;
use engine::{SequenceNumbers, Transform};
use keying::SaKeys;

/// The transform of an SA that only seals.
pub(crate) fn sealing(selection: &Dispatch, sa: &SaKeys) -> Box<dyn Transform> {
    selection.sealing_with(&sa.keymat, numbers(sa))
}

/// The transform of an SA that only opens.
pub(crate) fn opening(selection: &Dispatch, sa: &SaKeys) -> Box<dyn Transform> {
    selection.opening_with(&sa.keymat, numbers(sa))
}

const fn numbers(sa: &SaKeys) -> SequenceNumbers {
    if sa.are_numbers_extended {
        SequenceNumbers::Extended
    } else {
        SequenceNumbers::Short
    }
}
