//! From the sessions of several iperf3 processes to one transfer.
//!
//! Bytes are the receiver's. The warm-up is cut off each process's intervals at the first one that begins
//! after it ([`Timing`] says why iperf3's own `-O` is not used).
//!
//! UDP loss is counted by sequence numbers. A datagram is *decided* when B saw it or a later one: sent in the
//! measured time are those by which the highest number seen at B rose in it, and lost are those of them that
//! B did not get. What A sent after the last one that B saw is undecided: on its way or unread in B's socket
//! buffer when iperf3 ended, which does not wait for stragglers as RFC 2544 §23 asks. But when that is more
//! than [`UNDECIDED_NS`] of traffic, the path was dead, and all of it is lost; iperf3's own figure leaves it out.

use crate::iperf3::{Session, Step};
use crate::timing::Timing;
use journal::record::{Datagrams, Interval, ToolParameters, Transfer};

/// More than a socket buffer of [`crate::command::UDP_WINDOW_BYTES`] holds at the rates of one core.
const UNDECIDED_NS: u64 = 100_000_000;

/// Client and server of one iperf3 process pair.
#[derive(Debug, Clone, Default)]
pub struct Pair {
    /// On station A.
    pub client: Session,
    /// On station B.
    pub server: Session,
}

/// What the tools counted over the whole run, warm-up included: comparable with interface counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Payload bytes that A's processes handed to their sockets.
    pub sent_bytes: u64,
    /// Payload bytes that B's processes got.
    pub received_bytes: u64,
    /// TCP segments sent again.
    pub retransmits: u64,
    /// As [`Self::sent_bytes`], by the tools' closing summaries.
    pub sent_summary_bytes: Option<u64>,
    /// As [`Self::received_bytes`], by the tools' closing summaries.
    pub received_summary_bytes: Option<u64>,
    /// Payload bytes that A sent in the measured time, by A's clock.
    pub offered_bytes: u64,
    /// That time.
    pub offered_ns: u64,
}

/// Why sessions cannot be put together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The tool stopped before anything was measured.
    #[error("iperf3 on station {station} reports nothing after the warm-up of {warmup_ms} ms")]
    NothingMeasured {
        /// `a` or `b`.
        station: &'static str,
        /// Warm-up.
        warmup_ms: u64,
    },
    /// The bytes of a station's tool are not those of datagrams of the length asked for.
    #[error(
        "iperf3 on station {station} counts {bytes} B, but datagrams of {datagram_bytes} B were asked for"
    )]
    NotTheDatagrams {
        /// `a` or `b`.
        station: &'static str,
        /// Sent or received.
        bytes: u64,
        /// `-l`.
        datagram_bytes: u32,
    },
}

/// Puts the pairs of one trial together.
///
/// # Errors
/// When nothing was measured, or what was cannot be datagrams.
pub fn assemble(
    pairs: &[Pair],
    timing: &Timing,
    parameters: &ToolParameters,
) -> Result<(Transfer, Totals), TransferError> {
    let mut transfer = Transfer {
        parameters: parameters.clone(),
        ..Transfer::default()
    };
    let mut totals = Totals {
        sent_summary_bytes: Some(0),
        received_summary_bytes: Some(0),
        ..Totals::default()
    };
    let mut sent = 0;
    let mut retransmits = Some(0);
    let mut received_windows = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let a = Window::cut(&pair.client, timing, "a")?;
        let b = Window::cut(&pair.server, timing, "b")?;
        sent += b.packets() + unanswered(pair, &a);
        retransmits = sum(retransmits, a.retransmits());
        transfer.sent_bytes += a.bytes();
        transfer.received_bytes += b.bytes();
        transfer.duration_ns = transfer.duration_ns.max(b.duration_ns());

        totals.sent_bytes += pair.client.bytes();
        totals.received_bytes += pair.server.bytes();
        let all = Window {
            steps: &pair.client.steps,
        };
        totals.retransmits += all.retransmits().unwrap_or(0);
        totals.sent_summary_bytes = sum(totals.sent_summary_bytes, pair.client.summary_bytes);
        totals.received_summary_bytes =
            sum(totals.received_summary_bytes, pair.server.summary_bytes);
        totals.offered_bytes += a.bytes();
        totals.offered_ns = totals.offered_ns.max(a.duration_ns());
        received_windows.push(b);
    }
    transfer.intervals = timeline(&received_windows, timing.interval_ns);
    match parameters.datagram_bytes {
        None => transfer.retransmits = retransmits,
        Some(bytes) => {
            transfer.sent_bytes = sent.saturating_mul(u64::from(bytes));
            transfer.datagrams = Some(datagrams(pairs, sent, transfer.received_bytes, bytes)?);
        }
    }
    Ok((transfer, totals))
}

/// Datagrams sent to a dead path: those after the last one that B saw, when they are too many to have been
/// on their way.
fn unanswered(pair: &Pair, a: &Window<'_>) -> u64 {
    let after_last = pair.client.packets().saturating_sub(pair.server.packets());
    let undecided = u128::from(a.packets()) * u128::from(UNDECIDED_NS);
    if u128::from(after_last) * u128::from(a.duration_ns()) <= undecided {
        return 0;
    }
    after_last.min(a.packets())
}

fn datagrams(
    pairs: &[Pair],
    sent: u64,
    received_bytes: u64,
    datagram_bytes: u32,
) -> Result<Datagrams, TransferError> {
    let size = u64::from(datagram_bytes).max(1);
    let wrong = |station, bytes| {
        Err(TransferError::NotTheDatagrams {
            station,
            bytes,
            datagram_bytes,
        })
    };
    for Pair { client, .. } in pairs {
        if client.packets().checked_mul(size) != Some(client.bytes()) {
            return wrong("a", client.bytes());
        }
    }
    if !received_bytes.is_multiple_of(size) {
        return wrong("b", received_bytes);
    }
    let jitter: u64 = pairs.iter().map(|pair| pair.server.jitter_ns).sum();
    Ok(Datagrams {
        sent,
        // Duplicates can make more arrive than were sent; the check `tool-agrees-with-itself` tells of it.
        lost: sent.saturating_sub(received_bytes / size),
        out_of_order: pairs.iter().map(|pair| pair.server.out_of_order).sum(),
        jitter_ns: jitter / (pairs.len() as u64).max(1),
    })
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left? + right?)
}

/// The part of a session that is measured.
struct Window<'a> {
    /// Not empty.
    steps: &'a [Step],
}

impl<'a> Window<'a> {
    fn cut(
        session: &'a Session,
        timing: &Timing,
        station: &'static str,
    ) -> Result<Self, TransferError> {
        // Steps begin a little late, never half a step.
        let begins = |step: &Step| step.start_ns + timing.interval_ns / 2 >= timing.warmup_ns;
        match session.steps.iter().position(begins) {
            Some(first) => Ok(Self {
                steps: &session.steps[first..],
            }),
            None => Err(TransferError::NothingMeasured {
                station,
                warmup_ms: timing.warmup_ns / 1_000_000,
            }),
        }
    }

    fn bytes(&self) -> u64 {
        self.steps.iter().map(|step| step.bytes).sum()
    }

    fn packets(&self) -> u64 {
        self.steps.iter().filter_map(|step| step.packets).sum()
    }

    fn retransmits(&self) -> Option<u64> {
        self.steps.iter().map(|step| step.retransmits).sum()
    }

    fn start_ns(&self) -> u64 {
        self.steps.first().map_or(0, |step| step.start_ns)
    }

    fn duration_ns(&self) -> u64 {
        self.steps
            .last()
            .map_or(0, |step| step.end_ns - self.start_ns())
    }

    /// Bytes from the window's start to `at_ns` after it, taking them as evenly spread within a step.
    fn bytes_until(&self, at_ns: u64) -> u64 {
        let at_ns = at_ns.saturating_add(self.start_ns());
        let part = |step: &Step| {
            if step.end_ns <= at_ns {
                return step.bytes;
            }
            let (done, whole) = (
                at_ns.saturating_sub(step.start_ns),
                step.end_ns - step.start_ns,
            );
            // `done < whole` or both are 0, so the quotient is no larger than `bytes`.
            (u128::from(step.bytes) * u128::from(done) / u128::from(whole.max(1))) as u64
        };
        self.steps.iter().map(part).sum()
    }
}

/// Sums the windows on a common grid of `interval_ns`. A rest shorter than half a step goes to the last one.
fn timeline(windows: &[Window<'_>], interval_ns: u64) -> Vec<Interval> {
    let end_ns = windows.iter().map(Window::duration_ns).max().unwrap_or(0);
    let steps = ((end_ns + interval_ns / 2) / interval_ns).max(1);
    let bytes_until = |at_ns| {
        windows
            .iter()
            .map(|window| window.bytes_until(at_ns))
            .sum::<u64>()
    };
    let mut intervals = Vec::new();
    let (mut start_ns, mut before) = (0, 0);
    for step in 1..=steps {
        let step_end_ns = if step == steps {
            end_ns
        } else {
            step * interval_ns
        };
        let until = bytes_until(step_end_ns);
        intervals.push(Interval {
            start_ns,
            end_ns: step_end_ns,
            bytes: until - before,
        });
        (start_ns, before) = (step_end_ns, until);
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    macro_rules! pair {
        ($name:literal) => {
            Pair {
                client: Session::parse(include_str!(concat!(
                    "../tests/data/iperf3-3.12-",
                    $name,
                    ".client.json"
                )))
                .unwrap(),
                server: Session::parse(include_str!(concat!(
                    "../tests/data/iperf3-3.12-",
                    $name,
                    ".server.json"
                )))
                .unwrap(),
            }
        };
    }

    fn timing(warmup_ms: u64) -> Timing {
        Timing {
            interval_ns: 100 * MS,
            warmup_ns: warmup_ms * MS,
            run_ns: 1000 * MS,
        }
    }

    fn udp() -> ToolParameters {
        ToolParameters {
            datagram_bytes: Some(1472),
            ..ToolParameters::default()
        }
    }

    #[test]
    fn two_processes_are_summed_in_bytes_and_on_the_timeline() {
        let pairs = [pair!("tcp-process-0"), pair!("tcp-process-1")];
        let (transfer, totals) = assemble(&pairs, &timing(0), &ToolParameters::default()).unwrap();
        assert_eq!(transfer.received_bytes, 1_466_595_976 + 1_453_387_056);
        assert_eq!(transfer.sent_bytes, 1_467_875_328 + 1_456_603_136);
        assert_eq!(transfer.duration_ns, 1_003_440_000);
        assert_eq!(transfer.retransmits, Some(0));
        assert_eq!(transfer.datagrams, None);
        assert_eq!(transfer.intervals.len(), 10);
        assert_eq!(
            transfer.intervals.iter().map(|i| i.bytes).sum::<u64>(),
            transfer.received_bytes
        );
        assert_eq!(totals.received_bytes, transfer.received_bytes);
        assert_eq!(totals.received_summary_bytes, Some(totals.received_bytes));
    }

    #[test]
    fn the_warm_up_is_left_out_of_the_figure_but_not_of_the_totals() {
        let (transfer, totals) = assemble(
            &[pair!("tcp-2-streams")],
            &timing(300),
            &ToolParameters::default(),
        )
        .unwrap();
        let warm_up = 162_725_512 + 119_341_432 + 118_095_872;
        assert_eq!(totals.received_bytes, 1_259_601_920);
        assert_eq!(transfer.received_bytes, totals.received_bytes - warm_up);
        assert_eq!(transfer.duration_ns, 1_005_715_000 - 300_775_000);
        assert_eq!(transfer.intervals.len(), 7);
        assert_eq!(
            (totals.offered_bytes, totals.offered_ns),
            (transfer.sent_bytes, 702_481_000)
        );
    }

    #[test]
    fn udp_loss_is_sent_minus_received() {
        let (transfer, _) = assemble(&[pair!("udp-loss")], &timing(0), &udp()).unwrap();
        let datagrams = transfer.datagrams.unwrap();
        assert_eq!((datagrams.sent, datagrams.lost), (33_462, 869));
        assert_eq!(transfer.received_bytes, (33_462 - 869) * 1472);
        let (transfer, _) = assemble(&[pair!("udp-100m")], &timing(0), &udp()).unwrap();
        assert_eq!(transfer.datagrams.unwrap().lost, 0);
    }

    #[test]
    fn udp_loss_after_the_warm_up_leaves_out_what_was_lost_in_it() {
        // The first two intervals lost 514 + 191 of the 869.
        let (transfer, _) = assemble(&[pair!("udp-loss")], &timing(200), &udp()).unwrap();
        assert_eq!(transfer.datagrams.unwrap().lost, 869 - 514 - 191);
    }

    #[test]
    fn the_last_datagrams_that_nobody_waited_for_are_not_lost() {
        // A sent 271190; B's highest sequence number is 265014, with 18517 missing below it.
        let (transfer, totals) = assemble(&[pair!("udp-flood")], &timing(0), &udp()).unwrap();
        let datagrams = transfer.datagrams.unwrap();
        assert_eq!((datagrams.sent, datagrams.lost), (265_014, 18_517));
        assert_eq!(transfer.received_bytes, (265_014 - 18_517) * 1472);
        assert_eq!(totals.sent_bytes, 271_190 * 1472);
    }

    #[test]
    fn a_path_that_dies_at_the_end_loses_all_that_was_sent_since() {
        let mut pair = pair!("udp-100m");
        // B saw nothing of the last two intervals of 0.1 s: 1698 datagrams.
        for step in &mut pair.server.steps[8..] {
            (step.bytes, step.packets) = (0, Some(0));
        }
        let (transfer, _) = assemble(&[pair], &timing(0), &udp()).unwrap();
        let datagrams = transfer.datagrams.unwrap();
        assert_eq!((datagrams.sent, datagrams.lost), (8486, 1698));
    }

    #[test]
    fn a_path_that_carries_nothing_after_the_warm_up_loses_everything() {
        let step = |n: u64, packets| Step {
            start_ns: n * 100 * MS,
            end_ns: (n + 1) * 100 * MS,
            bytes: packets * 100,
            packets: Some(packets),
            retransmits: None,
        };
        let client = Session {
            steps: (0..10).map(|n| step(n, 50)).collect(),
            ..Session::default()
        };
        let server = Session {
            steps: (0..10)
                .map(|n| step(n, if n < 2 { 50 } else { 0 }))
                .collect(),
            ..Session::default()
        };
        let parameters = ToolParameters {
            datagram_bytes: Some(100),
            ..ToolParameters::default()
        };
        let (transfer, _) =
            assemble(&[Pair { client, server }], &timing(300), &parameters).unwrap();
        let datagrams = transfer.datagrams.unwrap();
        assert_eq!(
            (datagrams.sent, datagrams.lost, transfer.received_bytes),
            (350, 350, 0)
        );
    }

    #[test]
    fn a_tool_that_stopped_in_the_warm_up_is_an_error() {
        let error = assemble(
            &[pair!("tcp-2-streams")],
            &timing(5000),
            &ToolParameters::default(),
        );
        assert_eq!(
            error,
            Err(TransferError::NothingMeasured {
                station: "a",
                warmup_ms: 5000
            })
        );
    }

    #[test]
    fn bytes_that_are_not_those_of_whole_datagrams_are_an_error() {
        for datagram_bytes in [1471, 736] {
            let datagram_bytes = Some(datagram_bytes);
            let parameters = ToolParameters {
                datagram_bytes,
                ..ToolParameters::default()
            };
            let error = assemble(&[pair!("udp-loss")], &timing(0), &parameters).unwrap_err();
            assert!(
                error.to_string().contains("station a counts 49256064 B"),
                "{error}"
            );
        }
        let mut pair = pair!("udp-loss");
        pair.server.steps[3].bytes += 1;
        let error = assemble(&[pair], &timing(0), &udp()).unwrap_err();
        assert!(error.to_string().contains("station b counts"), "{error}");
    }

    proptest! {
        #[test]
        fn a_timeline_keeps_every_byte(
            lengths in proptest::collection::vec((50 * MS..150 * MS, 0..1u64 << 40), 1..30),
            others in proptest::collection::vec((0..150 * MS, 0..1u64 << 40), 1..30),
        ) {
            let session = |lengths: &[(u64, u64)]| {
                let mut start_ns = 0;
                let steps = lengths.iter().map(|&(length, bytes)| {
                    let step = Step { start_ns, end_ns: start_ns + length, bytes, ..Step::default() };
                    start_ns += length;
                    step
                });
                Session { steps: steps.collect(), ..Session::default() }
            };
            let (one, two) = (session(&lengths), session(&others));
            let windows = [Window { steps: &one.steps }, Window { steps: &two.steps }];
            let intervals = timeline(&windows, 100 * MS);
            prop_assert_eq!(intervals.iter().map(|i| i.bytes).sum::<u64>(), one.bytes() + two.bytes());
            prop_assert!(intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
            prop_assert_eq!(intervals[0].start_ns, 0);
        }
    }
}
