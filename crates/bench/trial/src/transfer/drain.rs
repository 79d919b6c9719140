//! A queue that drains after the sender of datagrams ended.
//!
//! A device that is slower than the sender and never refuses a packet (a tunnel in user space, say)
//! queues packets, and delivers them after the sender has ended. Then the receiver receives for
//! longer than planned, at the device's rate. A receiver that stalled looks different: nothing
//! arrives for a while, or everything in one interval.
//!
//! A device that shares cores with the sender carries more as soon as the sender has ended. Its
//! queue is recognised too, but there is no one rate that is the device's.

use super::{TransferSettings, UnsteadyDrain, Window};
use crate::iperf3::Step;
use journal::record::Drain;

/// Allowed difference of a step's rate after the sender's end from the rate before, in percent.
const STEADY_PERCENT: u128 = 25;
/// Minimum time for which a queue drains: the ends of a tool do not begin at the same moment.
const DRAIN_NS_LEAST: u64 = 100_000_000;
/// Whole steps for which a queue drains at another rate than before. A socket's buffer is read
/// within one step.
const UNSTEADY_STEPS_LEAST: usize = 3;

/// The steps of a receiver around the end of its sender.
struct Around<'s> {
    end_ns: u64,
    /// The later half of those before it: by the end of the load the queue has formed.
    before: &'s [Step],
    after: &'s [Step],
}

impl<'s> Around<'s> {
    /// `None` if the receiver ended with its sender.
    fn of(sent: &Window<'_>, received: &Window<'s>, asked: &TransferSettings<'_>) -> Option<Self> {
        let end_ns = sent.steps.last()?.end_ns;
        // To the nearest step, as in `Window::cut`.
        let begins_after = |step: &Step| step.start_ns + asked.timing.step_ns / 2 >= end_ns;
        let first = received.steps.iter().position(begins_after)?;
        let (before, after) = received.steps.split_at(first);
        Some(Self {
            end_ns,
            before: &before[before.len() / 2..],
            after,
        })
    }

    fn time_ns(&self) -> u64 {
        let last = self.after.last();
        last.map_or(0, |last| last.end_ns.saturating_sub(self.end_ns))
    }
}

/// The queue that drained after the sender of a pair had ended, if one did: the windows of sender
/// and receiver, and the datagrams sent in the former.
pub(super) fn of(
    sent: &Window<'_>,
    received: &Window<'_>,
    asked: &TransferSettings<'_>,
) -> Option<Drain> {
    let around = Around::of(sent, received, asked)?;
    let (before, time_ns) = (around.before, around.time_ns());
    let (last, whole) = around.after.split_last()?;
    // Every step, not their mean: a path that pauses and then delivers in a burst has the mean of a
    // queue.
    let is_steady = whole
        .iter()
        .all(|step| differs_by(step, before, STEADY_PERCENT));
    // It may end in the middle of the last one, but brings no more than the others.
    let (bytes, most) = (
        u128::from(last.bytes),
        u128::from(100 + STEADY_PERCENT as u64),
    );
    let expected = rate_in(before, last.end_ns - last.start_ns);
    // With a partial step alone, there is no rate to compare.
    let drains = !whole.is_empty() && time_ns >= DRAIN_NS_LEAST;
    (drains && is_steady && bytes * 100 <= expected * most).then(|| Drain {
        time_ns,
        offered: sent.packets(),
        offered_ns: sent.duration_ns(),
    })
}

/// The queue that drained at another rate than before the sender of a pair had ended, if one did:
/// without a gap, and not in one step.
pub(super) fn unsteady(
    sent: &Window<'_>,
    received: &Window<'_>,
    asked: &TransferSettings<'_>,
) -> Option<UnsteadyDrain> {
    let around = Around::of(sent, received, asked)?;
    let (_, whole) = around.after.split_last()?;
    let all: u64 = around.after.iter().map(|step| step.bytes).sum();
    // A reader that has stalled takes all that was buffered in one step.
    let flows = |step: &Step| step.bytes > 0 && step.bytes <= all / 2;
    let drains = whole.len() >= UNSTEADY_STEPS_LEAST && whole.iter().all(flows);
    const SECOND_NS: u64 = 1_000_000_000;
    let bps = |steps: &[Step]| {
        let bits = rate_in(steps, SECOND_NS).saturating_mul(8);
        u64::try_from(bits).unwrap_or(u64::MAX)
    };
    drains.then(|| UnsteadyDrain {
        time_ns: around.time_ns(),
        before_bps: bps(around.before),
        after_bps: bps(whole),
    })
}

/// Whether a step's bytes differ from the rate of others by no more than this.
fn differs_by(step: &Step, others: &[Step], percent: u128) -> bool {
    let expected = rate_in(others, step.end_ns - step.start_ns);
    let bytes = u128::from(step.bytes);
    bytes > 0 && bytes.abs_diff(expected) * 100 <= expected * percent
}

/// Bytes in a time at the mean rate of steps.
fn rate_in(steps: &[Step], time_ns: u64) -> u128 {
    let bytes: u128 = steps.iter().map(|step| u128::from(step.bytes)).sum();
    let all_ns = steps.iter().map(|step| step.end_ns - step.start_ns);
    bytes * u128::from(time_ns) / u128::from(all_ns.sum::<u64>().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Timing;
    use journal::record::ToolParameters;
    use plan::FlowDirection;

    const MS: u64 = 1_000_000;
    const TIMING: Timing = Timing {
        interval_ns: 100 * MS,
        step_ns: 100 * MS,
        warmup_ns: 0,
        run_ns: 1000 * MS,
    };

    /// Steps of 100 ms with these bytes; the last one takes `last_ms`.
    fn steps(bytes: &[u64], last_ms: u64) -> Vec<Step> {
        let each = bytes.iter().zip(0_u64..);
        let mut steps: Vec<Step> = each
            .map(|(&bytes, number)| Step {
                start_ns: number * 100 * MS,
                end_ns: (number + 1) * 100 * MS,
                bytes,
                packets: Some(bytes),
                ..Step::default()
            })
            .collect();
        if let Some(last) = steps.last_mut() {
            last.end_ns = last.start_ns + last_ms * MS;
        }
        steps
    }

    /// The drain of a receiver with these bytes per step after its sender, which sends for a
    /// second.
    fn drain(after: &[u64], last_ms: u64) -> Option<Drain> {
        found(after, last_ms, of)
    }

    fn found<T>(
        after: &[u64],
        last_ms: u64,
        find: impl Fn(&Window<'_>, &Window<'_>, &TransferSettings<'_>) -> Option<T>,
    ) -> Option<T> {
        let sent = steps(&[300; 10], 100);
        let received = [&[100; 10], after].concat();
        let received = steps(&received, last_ms);
        let parameters = ToolParameters::default();
        let asked = TransferSettings {
            tool: "iperf3",
            timing: &TIMING,
            parameters: &parameters,
            way: FlowDirection::AToB,
            link_bps: None,
            apart_ns: 0,
        };
        find(
            &Window { steps: &sent },
            &Window { steps: &received },
            &asked,
        )
    }

    #[test]
    fn a_receiver_that_goes_on_at_one_rate_drains_a_queue() {
        let found = drain(&[100, 90, 110, 40], 50);
        let expected = Drain {
            time_ns: 350 * MS,
            offered: 3000,
            offered_ns: 1000 * MS,
        };
        assert_eq!(found, Some(expected));
        // It was empty in the middle of the last step.
        assert_eq!(
            drain(&[100, 100, 10], 100).map(|found| found.time_ns),
            Some(300 * MS)
        );
        assert_eq!(
            drain(&[100, 0], 20).map(|found| found.time_ns),
            Some(120 * MS)
        );
    }

    #[test]
    fn a_receiver_that_stood_still_or_only_waited_drains_none() {
        // Nothing came, or nothing for a while.
        assert_eq!(drain(&[0, 0, 0], 100), None);
        assert_eq!(drain(&[100, 0, 100, 100], 100), None);
        // Everything sent meanwhile, in one step.
        assert_eq!(drain(&[100, 400], 100), None);
        assert_eq!(drain(&[300, 100], 100), None);
        // The last moments of the tool.
        assert_eq!(drain(&[], 100), None);
        assert_eq!(drain(&[10], 10), None);
    }

    /// strongSwan's libipsec at the highest rate on two cores, which its sender left it at its end.
    #[test]
    fn a_queue_that_drains_faster_without_its_sender_is_one_too() {
        let after = [153, 214, 444, 448, 595, 523, 570, 713];
        assert_eq!(drain(&after, 50), None);
        let of_unsteady = |after: &[u64], last_ms| found(after, last_ms, unsteady);
        let expected = UnsteadyDrain {
            time_ns: 750 * MS,
            before_bps: 8000,
            after_bps: 33_680,
        };
        assert_eq!(of_unsteady(&after, 50), Some(expected));
        // As slow as a tunnel that the receiver's work delays.
        assert!(of_unsteady(&[40, 30, 40, 20], 50).is_some());
        // A socket that is read in one step, a gap, and the last moments of the tool.
        assert_eq!(of_unsteady(&[4000, 100, 100, 100], 100), None);
        assert_eq!(of_unsteady(&[100, 0, 300, 300, 200], 100), None);
        assert_eq!(of_unsteady(&[150, 150], 100), None);
    }
}
