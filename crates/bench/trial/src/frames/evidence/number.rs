//! The check of the number of frames on the cipher link in every frame trial.

use super::every::{coverage, failed, name, place, read, sent_most};
use super::{FrameObserved, FrameReadings};
use crate::evidence::{check, number};
use journal::record::Check;

/// Checks that in every trial at least the number of frames received, and at most the number sent,
/// crossed the cipher link.
pub(super) fn cipher_link_frames(
    observed: &FrameObserved<'_>,
    seen: &FrameReadings<'_>,
) -> Option<Check> {
    let is_seen = seen.path.cipher.is_some();
    (is_seen && number::applies(&seen.path)).then_some(())?;
    let mut covered = Vec::new();
    let mut first = None;
    let mut failures = Vec::new();
    for read in read(observed) {
        let Some(carried) = read.2.cipher else {
            continue;
        };
        covered.push(read);
        let (sent, _) = sent_most(read.1);
        let frames = (sent, read.1.received);
        // The time between the readings, which is longer than the load: keepalives go on in
        // between.
        let bounds = number::expected(&seen.path, frames, read.2.wall_ns);
        if !bounds.hold(carried.packets) {
            let place = format!("in {}", place(read));
            first.get_or_insert_with(|| number::differs(&place, carried.packets, bounds));
            failures.push(format!(
                "{}: {} frames crossed, of {} to {} expected for {} received and {sent} sent",
                name(read),
                carried.packets,
                bounds.least,
                bounds.most,
                read.1.received
            ));
        }
    }
    let (uncovered, words) = coverage(observed, &covered);
    let detail = format!(
        "by the counters of the cipher link: {words}{}",
        failed(&failures)
    );
    check(number::NAME, first.or(uncovered), detail)
}
