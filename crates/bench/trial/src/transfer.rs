//! Combines the sessions of several processes of iperf3 or iperf2 into one transfer.
//!
//! One transfer has one way; the ways of a duplex one are combined separately. Bytes are the
//! receiver's. The warm-up is cut off each process's intervals at the first one that begins after
//! it ([`Timing`] says why iperf3's `-O` is not used).
//!
//! UDP loss is counted by sequence numbers. A datagram is *decided* when the receiver has received
//! it or a later one: the rise of its highest number in the measured time is the number of
//! datagrams sent in it, and the ones not received are lost. Datagrams sent after the last one
//! received are undecided: in flight or unread in the receiver's socket buffer when iperf3 ended,
//! which does not wait for stragglers as RFC 2544 §23 requires. But if they are more than 100 ms of
//! traffic, or more than its sockets hold, the path was stalled and all of them are lost; iperf3's
//! loss omits them. Datagrams that a queue delivers after the sender ended count, over the
//! receiver's time (`drain`). `plausible` refuses a receiver that counts datagrams that were never
//! sent.

mod drain;
mod plausible;

use crate::direction::ends;
use crate::iperf3::{Session, Step};
use crate::timing::Timing;
use journal::record::{Datagrams, Drain, Interval, TcpFacts, ToolParameters, Transfer};
use plan::FlowDirection;
use testbed::NodeId;

/// Traffic that may be in flight through a DUT, or in buffers, when the tool ends.
const UNDECIDED_NS: u64 = 100_000_000;
/// Minimum bytes that the kernel charges a socket per datagram beyond its payload.
const BUFFER_OVERHEAD_BYTES: u64 = 512;

/// Allowed difference of iperf3's counts of datagrams and bytes, in datagrams per stream and
/// interval: from version 3.16 on one thread sends and another reads both counts, without a lock.
const RACE_DATAGRAMS: u64 = 2;

/// Time that tools have to end after their running time: connecting, exchanging results.
pub(crate) const END_LIMIT_NS: u64 = 8_000_000_000;

/// The settings of the tools of one way.
#[derive(Debug, Clone, Copy)]
pub struct TransferSettings<'a> {
    /// The tool's name.
    pub tool: &'static str,
    /// Beginning and end of the measured time.
    pub timing: &'a Timing,
    /// Parameters in force.
    pub parameters: &'a ToolParameters,
    /// The way of the payload.
    pub way: FlowDirection,
    /// Rate of the links, if known.
    pub link_bps: Option<u64>,
    /// By how much the ends may begin apart, beyond one interval: an end begins when it hears from
    /// the other one, which an impaired path may delay.
    pub apart_ns: u64,
}

impl TransferSettings<'_> {
    /// The sending station and the receiving one.
    fn stations(&self) -> [&'static str; 2] {
        ends(self.way).map(NodeId::name)
    }

    fn impossible(&self, station: &'static str, what: String) -> TransferError {
        TransferError::Impossible {
            tool: self.tool,
            station,
            what,
        }
    }
}

/// Both ends of one pair of processes, one way.
#[derive(Debug, Clone, Default)]
pub struct Pair {
    /// On the sending station.
    pub sender: Session,
    /// On the receiving one.
    pub receiver: Session,
}

/// The tools' counts over the whole run including the warm-up: comparable with interface counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Payload bytes that the sender's processes wrote to their sockets; for UDP, by sequence
    /// numbers.
    pub sent_bytes: u64,
    /// Payload bytes that may have been sent in addition to [`Self::sent_bytes`] (TCP), or be
    /// missing from them (UDP): see [`Session::uncounted_bytes`].
    pub uncounted_bytes: u64,
    /// Payload bytes that the receiver's processes received.
    pub received_bytes: u64,
    /// Retransmitted TCP segments.
    pub retransmits: u64,
    /// As [`Self::sent_bytes`], by the tools' closing summaries.
    pub sent_summary_bytes: Option<u64>,
    /// As [`Self::received_bytes`], by the tools' closing summaries.
    pub received_summary_bytes: Option<u64>,
    /// Payload bytes sent in the measured time by the sender's clock; for UDP, by sequence numbers.
    pub offered_bytes: u64,
    /// The measured time by the sender's clock.
    pub offered_ns: u64,
    /// The longest interval of any process in the measured time. One longer than planned means that
    /// the process stalled.
    pub longest_step_ns: u64,
    /// How long a queue drained after the sender had ended; 0 without a queue.
    pub drained_ns: u64,
    /// A queue that drained at another rate than before the sender had ended.
    pub unsteady_drain: Option<UnsteadyDrain>,
}

/// A queue that drained at another rate than while the sender sent: there is no one rate of the
/// device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsteadyDrain {
    /// From the end of the sender to the last datagram.
    pub time_ns: u64,
    /// Rate of the payload received before the sender's end, in bit/s.
    pub before_bps: u64,
    /// Rate after it.
    pub after_bps: u64,
}

/// Why sessions cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    /// The tool stopped before anything was measured.
    #[error("{tool} on station {station} reports nothing after the warm-up of {warmup_ms} ms")]
    NothingMeasured {
        /// Its name.
        tool: &'static str,
        /// `a` or `b`.
        station: &'static str,
        /// Warm-up.
        warmup_ms: u64,
    },
    /// The bytes of a station's tool do not match datagrams of the configured length.
    #[error(
        "{tool} on station {station} counts {bytes} B, but datagrams of {datagram_bytes} B were configured"
    )]
    NotTheDatagrams {
        /// Its name.
        tool: &'static str,
        /// `a` or `b`.
        station: &'static str,
        /// Sent or received.
        bytes: u64,
        /// `-l`.
        datagram_bytes: u32,
    },
    /// The receiver knows of datagrams that were not sent.
    #[error(
        "{tool} on station {to} knows of {known} datagrams after {by_ms} ms, of which station {from} had sent {sent}: a \
         stray or damaged datagram, or another client of its server, raised its highest number; stop other programs \
         that use the lab's links and repeat the trial"
    )]
    MoreThanSent {
        /// Its name.
        tool: &'static str,
        /// The sending station.
        from: &'static str,
        /// The receiving one.
        to: &'static str,
        /// The receiver's highest number.
        known: u64,
        /// The sender's count, one interval later.
        sent: u64,
        /// Time by the receiver's clock.
        by_ms: u64,
    },
    /// Datagrams arrived that neither raised the highest number nor came out of order.
    #[error(
        "{tool} on station {station} received {datagrams} datagrams from {from_ms} to {to_ms} ms, which raised its highest \
         number by {raised}, and says that {out_of_order} came out of order in the whole test: its report is wrong; \
         repeat the trial, and if it happens again install another version of the tool"
    )]
    Unnumbered {
        /// Its name.
        tool: &'static str,
        /// The receiving station.
        station: &'static str,
        /// Start of the interval.
        from_ms: u64,
        /// Its end.
        to_ms: u64,
        /// By its bytes.
        datagrams: u64,
        /// By its sequence numbers.
        raised: u64,
        /// In the whole test.
        out_of_order: u64,
    },
    /// A figure that the trial, the link or the other end contradicts.
    #[error(
        "{tool} on station {station} reports {what}: that cannot be; repeat the trial, and if it happens again install \
         another version of the tool"
    )]
    Impossible {
        /// Its name.
        tool: &'static str,
        /// `a` or `b`.
        station: &'static str,
        /// The figure and its bound.
        what: String,
    },
}

/// Combines the pairs of one trial.
///
/// # Errors
/// When nothing was measured, the bytes do not match whole datagrams, or the ends contradict each
/// other, the clock or the link.
pub fn assemble(
    pairs: &[Pair],
    asked: &TransferSettings<'_>,
) -> Result<(Transfer, Totals), TransferError> {
    let (timing, parameters) = (asked.timing, asked.parameters);
    let [from, to] = asked.stations();
    let mut transfer = Transfer {
        parameters: parameters.clone(),
        ..Transfer::default()
    };
    // The summaries become `None` with the first process that prints none: a sum of some of them is
    // no total.
    let mut totals = Totals {
        sent_summary_bytes: Some(0),
        received_summary_bytes: Some(0),
        ..Totals::default()
    };
    let mut sent = 0;
    let mut retransmits = Some(0);
    let mut received_windows = Vec::with_capacity(pairs.len());
    let mut drains = Vec::with_capacity(pairs.len());
    let mut unsteady = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let a = Window::cut(&pair.sender, asked, from)?;
        let b = Window::cut(&pair.receiver, asked, to)?;
        // By the receiver's numbers, which decide. Datagrams beyond them count only if the path was
        // dead.
        sent += b.packets() + unanswered(pair, &a, parameters);
        retransmits = sum(retransmits, a.retransmits());
        transfer.sent_bytes += a.bytes();
        transfer.received_bytes += b.bytes();
        // The processes run in parallel, so the longest window has all bytes in it.
        transfer.duration_ns = transfer.duration_ns.max(b.duration_ns());

        // The totals include the warm-up, as interface counters of the whole run do.
        let all = Window {
            steps: &pair.sender.steps,
        };
        let sent_bytes = |window: &Window<'_>| match parameters.datagram_bytes {
            Some(bytes) => window.packets().saturating_mul(u64::from(bytes)),
            None => window.bytes(),
        };
        totals.sent_bytes += sent_bytes(&all);
        totals.uncounted_bytes += pair.sender.uncounted_bytes();
        totals.received_bytes += pair.receiver.bytes();
        totals.retransmits += all.retransmits().unwrap_or(0);
        totals.sent_summary_bytes = sum(totals.sent_summary_bytes, pair.sender.summary_bytes);
        totals.received_summary_bytes =
            sum(totals.received_summary_bytes, pair.receiver.summary_bytes);
        totals.offered_bytes += sent_bytes(&a);
        totals.offered_ns = totals.offered_ns.max(a.duration_ns());
        let steps = a.steps.iter().chain(b.steps);
        let longest_ns = steps.map(|step| step.end_ns - step.start_ns).max();
        totals.longest_step_ns = totals.longest_step_ns.max(longest_ns.unwrap_or(0));
        drains.push(drain::of(&a, &b, asked));
        unsteady.push(drain::unsteady(&a, &b, asked));
        received_windows.push(b);
    }
    transfer.intervals = timeline(&received_windows, timing.interval_ns);
    match parameters.datagram_bytes {
        None => {
            transfer.retransmits = retransmits;
            transfer.tcp = Some(tcp_facts(pairs, asked, from)?);
        }
        Some(bytes) => {
            // The byte count of a UDP sender includes undecided datagrams.
            transfer.sent_bytes = sent.saturating_mul(u64::from(bytes));
            let counted = datagrams(pairs, (sent, transfer.received_bytes), bytes, asked)?;
            let drain = of_all(drains, |one: Drain, other| Drain {
                time_ns: one.time_ns.max(other.time_ns),
                offered: one.offered + other.offered,
                offered_ns: one.offered_ns.max(other.offered_ns),
            });
            totals.drained_ns = drain.map_or(0, |drain| drain.time_ns);
            totals.unsteady_drain = match drain {
                // A queue that drained at a steady rate in every process explains the figure.
                Some(_) => None,
                None => of_all(unsteady, |one: UnsteadyDrain, other| UnsteadyDrain {
                    time_ns: one.time_ns.max(other.time_ns),
                    before_bps: one.before_bps.saturating_add(other.before_bps),
                    after_bps: one.after_bps.saturating_add(other.after_bps),
                }),
            };
            transfer.datagrams = Some(Datagrams { drain, ..counted });
        }
    }
    for pair in pairs {
        plausible::check(pair, asked)?;
    }
    Ok((transfer, totals))
}

/// The queues of all pairs as one; `None` unless each pair had one.
fn of_all<T>(each: Vec<Option<T>>, and: fn(T, T) -> T) -> Option<T> {
    // The processes run in parallel: of some of them only, there is no figure of the device.
    let each: Option<Vec<T>> = each.into_iter().collect();
    each?.into_iter().reduce(and)
}

/// Returns the senders' kernels' reports; without the baseline, which is measured before.
fn tcp_facts(
    pairs: &[Pair],
    asked: &TransferSettings<'_>,
    from: &'static str,
) -> Result<TcpFacts, TransferError> {
    let first = pairs.first();
    // A server of version 3.12 does not report its segments; both ends agree on them.
    let segment_bytes = first.and_then(|pair| {
        let receiver = pair.receiver.segment_bytes;
        pair.sender.segment_bytes.or(receiver)
    });
    // A mean over all steps of all processes. One step without a value leaves none at all: the mean
    // of the others would favor the times without load.
    let mut rtts = Vec::new();
    for pair in pairs {
        rtts.extend(
            Window::cut(&pair.sender, asked, from)?
                .steps
                .iter()
                .map(|step| step.rtt_ns),
        );
    }
    let rtts: Option<Vec<u64>> = rtts.into_iter().collect();
    let mean = |times: Vec<u64>| times.iter().sum::<u64>().checked_div(times.len() as u64);
    Ok(TcpFacts {
        segment_bytes,
        loaded_rtt_ns: rtts.and_then(mean),
        baseline_rtt_ns: None,
        congestion: first.and_then(|pair| pair.sender.congestion.clone()),
    })
}

/// Returns the datagrams sent to a dead path: those after the last one that the receiver got, if
/// they are too many to have been in flight.
fn unanswered(pair: &Pair, a: &Window<'_>, parameters: &ToolParameters) -> u64 {
    let buffered = match (parameters.window_bytes, parameters.datagram_bytes) {
        // The kernel doubles the requested size (socket(7)).
        (Some(window), Some(bytes)) => {
            let held = window.saturating_mul(2) / (u64::from(bytes) + BUFFER_OVERHEAD_BYTES);
            held.saturating_mul(pair.sender.streams)
        }
        _ => u64::MAX,
    };
    let after_last = pair
        .sender
        .packets()
        .saturating_sub(pair.receiver.packets());
    let undecided = u128::from(a.packets()) * u128::from(UNDECIDED_NS);
    // `after_last / packets <= UNDECIDED_NS / duration`, without a division.
    let in_time = u128::from(after_last) * u128::from(a.duration_ns()) <= undecided;
    if in_time && after_last <= buffered {
        return 0;
    }
    // The sender's count includes the warm-up, and the lost datagrams are of the measured time.
    after_last.min(a.packets())
}

fn datagrams(
    pairs: &[Pair],
    (sent, received_bytes): (u64, u64),
    datagram_bytes: u32,
    asked: &TransferSettings<'_>,
) -> Result<Datagrams, TransferError> {
    let [from, to] = asked.stations();
    let size = u64::from(datagram_bytes).max(1);
    let wrong = |station, bytes| {
        Err(TransferError::NotTheDatagrams {
            tool: asked.tool,
            station,
            bytes,
            datagram_bytes,
        })
    };
    for Pair { sender, .. } in pairs {
        // The race may happen at the end of every interval.
        let race = RACE_DATAGRAMS * sender.streams * sender.steps.len() as u64;
        let counted = sender.bytes() / size;
        if !sender.bytes().is_multiple_of(size) || sender.packets().abs_diff(counted) > race {
            return wrong(from, sender.bytes());
        }
    }
    // The receiver's datagrams are bytes by the length, which is right only for whole ones of that
    // length.
    if !received_bytes.is_multiple_of(size) {
        return wrong(to, received_bytes);
    }
    let jitter: u64 = pairs.iter().map(|pair| pair.receiver.jitter_ns).sum();
    Ok(Datagrams {
        sent,
        // With duplicates more can arrive than were sent; the check `tool-agrees-with-itself`
        // reports that.
        lost: sent.saturating_sub(received_bytes / size),
        station_lost: 0,
        copies: 0,
        drain: None,
        out_of_order: pairs.iter().map(|pair| pair.receiver.out_of_order).sum(),
        jitter_ns: jitter / (pairs.len() as u64).max(1),
    })
}

/// Removes the path's copies from the received datagrams, so that they hide no loss: a copy raises
/// no sequence number and counts as out of order, and so does a frame that the path held back.
pub(crate) fn leave_out_copies(transfer: &mut Transfer, totals: &Totals, counts: &impair::Counts) {
    let size = u64::from(transfer.parameters.datagram_bytes.unwrap_or(0)).max(1);
    let received = transfer.received_bytes / size;
    let Some(datagrams) = &mut transfer.datagrams else {
        return;
    };
    // The tool counts both alike. Frames that the path held back are originals, so they are
    // subtracted first.
    let late = datagrams.out_of_order.saturating_sub(counts.reordered);
    let copies = late.min(counts.duplicated);
    // The figures do not include copies of the warm-up.
    let whole_run = u128::from((totals.received_bytes / size).max(1));
    let copies = u128::from(copies) * u128::from(received) / whole_run;
    let copies = u64::try_from(copies).unwrap_or(u64::MAX).min(received);
    datagrams.copies = copies;
    datagrams.lost = datagrams.sent.saturating_sub(received - copies);
    let without = |bytes: u64| {
        let bytes = u128::from(bytes) * u128::from(received - copies);
        u64::try_from(bytes / u128::from(received.max(1))).unwrap_or(u64::MAX)
    };
    transfer.received_bytes = without(transfer.received_bytes);
    for interval in &mut transfer.intervals {
        interval.bytes = without(interval.bytes);
    }
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left? + right?)
}

/// The measured part of a session.
struct Window<'a> {
    /// Not empty.
    steps: &'a [Step],
}

impl<'a> Window<'a> {
    fn cut(
        session: &'a Session,
        asked: &TransferSettings<'_>,
        station: &'static str,
    ) -> Result<Self, TransferError> {
        let timing = asked.timing;
        // Steps begin slightly late, never half a step.
        let begins = |step: &Step| step.start_ns + timing.step_ns / 2 >= timing.warmup_ns;
        match session.steps.iter().position(begins) {
            Some(first) => Ok(Self {
                steps: &session.steps[first..],
            }),
            None => Err(TransferError::NothingMeasured {
                tool: asked.tool,
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

    /// Returns the bytes from the window's start to `at_ns` after it, interpolated within a step.
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

/// Sums the windows on a common grid of `interval_ns`. A remainder below half a step is added to
/// the last step.
fn timeline(windows: &[Window<'_>], interval_ns: u64) -> Vec<Interval> {
    let end_ns = windows.iter().map(Window::duration_ns).max().unwrap_or(0);
    // Rounded: processes end slightly early or late, which makes no further step.
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
            // `bytes_until` rises with its argument.
            bytes: until - before,
        });
        (start_ns, before) = (step_end_ns, until);
    }
    intervals
}

#[cfg(test)]
mod tests;
