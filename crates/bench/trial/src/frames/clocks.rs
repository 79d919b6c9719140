//! Compares the clocks of two hosts before the first trial and after each, so that a receiver can
//! count times by the sender's clock with a known error.
//!
//! 1. [`compare`] bounds the difference by the probes of one moment, for any delays.
//! 2. [`HostClocks`] predicts it for the next trial by the drift between comparisons.
//! 3. After the trial they are compared again. The difference from the prediction and the bounds of
//!    both comparisons bound the error of times across the hosts.

use crate::error::TrialError;
use crate::measurer::hello;
use crate::tools::sleep_until;
use journal::record::ClockAgreement;
use std::iter;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use testbed::clocks::{Ask, Exchanges};
use testbed::protocol::{Request, Response};
use testbed::time_stamps::card_clock;
use testbed::{Bench, ClockEnd, FrameEnd, FramePath, Interrupt, LabError, Node};
use traffic_spec::SenderClock;

/// Probes of a comparison: a few milliseconds.
const PROBES: u32 = 64;
/// Comparisons to try: a clock may be set in one, and a link may lose probes.
const TRIES: u32 = 3;
/// How much faster one clock can be than the other by itself, in parts of 10^9: an oscillator is
/// wrong by up to 100 ppm. The kernels' corrections come on top.
const FASTER_PPB: u64 = 200_000;
/// The drift during the first trial is known from two comparisons that are this far apart.
const SETTLE: Duration = Duration::from_secs(1);
/// Time from the request to the common start of several senders, for their programs to start.
const LEAD: Duration = Duration::from_millis(250);
const SECOND_NS: i64 = 1_000_000_000;

/// How far the answering host's clock is ahead of the asking one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Comparison {
    /// When, by the asking host's clock.
    at_ns: i64,
    ahead_ns: i64,
    /// By how much that may be wrong, either way.
    within_ns: u64,
    /// By how much the kernels correct the rates of the asking and of the answering host's clock.
    corrected_ppb: [i64; 2],
    /// Whether the asking and the answering host's cards stamped the probes.
    by_cards: [bool; 2],
}

/// Why clocks could not be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incomparable {
    TooFew,
    /// The probes contradict each other.
    Jumped,
}

/// Compares two clocks by probes of one moment.
fn compare(found: &Exchanges) -> Result<Comparison, Incomparable> {
    let (Some(first), Some(last)) = (found.exchanges.first(), found.exchanges.last()) else {
        return Err(Incomparable::TooFew);
    };
    let at_ns = first.sent_ns.midpoint(last.returned_ns);
    let corrected = found.corrected_ppb.map(i64::unsigned_abs);
    let faster_ppb = FASTER_PPB + corrected[0] + corrected[1];
    let drifted = |at: i64| {
        let drifted_ns = u128::from(at.abs_diff(at_ns)) * u128::from(faster_ppb) / 1_000_000_000;
        // Rounded up; no longer than the probes took.
        drifted_ns as i64 + 1
    };
    // A probe cannot arrive before it left: each exchange bounds the difference of the clocks from
    // both sides by its two delays, however they are divided between the ways. The true value is
    // within all bounds.
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    for exchange in &found.exchanges {
        let (there, back) = (drifted(exchange.sent_ns), drifted(exchange.returned_ns));
        most = most.min(exchange.received_ns - exchange.sent_ns + there);
        least = least.max(exchange.answered_ns - exchange.returned_ns - back);
    }
    // Bounds that exclude each other mean that a clock was set while probes were under way.
    if least > most {
        return Err(Incomparable::Jumped);
    }
    Ok(Comparison {
        at_ns,
        // The middle is off by half of the interval at most.
        ahead_ns: least.midpoint(most),
        within_ns: least
            .abs_diff(most)
            .div_ceil(2)
            .saturating_add(found.within_ns),
        corrected_ppb: found.corrected_ppb,
        by_cards: found.by_cards,
    })
}

/// How the difference of two clocks goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Course {
    last: Comparison,
    /// How much faster the answering host's clock is.
    faster_ppb: i64,
}

impl Course {
    /// Through two comparisons.
    fn through(first: Comparison, last: Comparison) -> Self {
        let passed_ns = i128::from(last.at_ns - first.at_ns);
        let gained_ns = i128::from(last.ahead_ns) - i128::from(first.ahead_ns);
        let faster = (gained_ns * i128::from(SECOND_NS)).checked_div(passed_ns);
        // A tenth is more than any kernel corrects.
        let most = i128::from(SECOND_NS / 10);
        let faster_ppb = faster.unwrap_or(0).clamp(-most, most) as i64;
        Self { last, faster_ppb }
    }

    /// The predicted difference at a time of the asking host's clock.
    fn ahead_ns(&self, at_ns: i64) -> i64 {
        let passed_ns = i128::from(at_ns - self.last.at_ns);
        let gained_ns = passed_ns * i128::from(self.faster_ppb) / i128::from(SECOND_NS);
        // At most a tenth of a time that fits.
        self.last.ahead_ns.saturating_add(gained_ns as i64)
    }

    /// Returns the error of times that rested on this course until the next comparison. If a kernel
    /// changed a rate once in between, the difference deviated from the straight line between both
    /// comparisons by at most a quarter of the change summed up over all of the time.
    fn agreement(&self, next: Comparison) -> ClockAgreement {
        // Times in between rested on the prediction. It was right at its beginning and off by this
        // at its end.
        let off_ns = next.ahead_ns.abs_diff(self.ahead_ns(next.at_ns));
        let passed_ns = u128::from(next.at_ns.abs_diff(self.last.at_ns));
        let rates = self.last.corrected_ppb.iter().zip(next.corrected_ppb);
        let changed_ppb: u64 = rates.map(|(before, after)| before.abs_diff(after)).sum();
        let bent_ns = passed_ns * u128::from(changed_ppb) / 4 / 1_000_000_000;
        let known_ns = off_ns.saturating_add(self.last.within_ns.max(next.within_ns));
        ClockAgreement {
            ahead_ns: next.ahead_ns,
            faster_ppb: self.faster_ppb,
            within_ns: known_ns.saturating_add(u64::try_from(bent_ns).unwrap_or(u64::MAX)),
        }
    }

    /// The result if the clocks could not be compared after a trial.
    const fn unknown(&self) -> ClockAgreement {
        ClockAgreement {
            ahead_ns: self.last.ahead_ns,
            faster_ppb: self.faster_ppb,
            within_ns: ClockAgreement::UNKNOWN_NS,
        }
    }

    /// Converts times of the answering host's clock to the asking host's, for a receiver on the
    /// former.
    fn asking_for_answering(&self) -> SenderClock {
        SenderClock {
            at_ns: self.last.at_ns.saturating_add(self.last.ahead_ns),
            ahead_ns: -self.last.ahead_ns,
            // Per second of the answering host, which is not quite as long.
            faster_ppb: -self.faster_ppb * SECOND_NS / (SECOND_NS + self.faster_ppb),
        }
    }

    /// Converts times of the asking host's clock to the answering host's, for a receiver on the
    /// former.
    const fn answering_for_asking(&self) -> SenderClock {
        SenderClock {
            at_ns: self.last.at_ns,
            ahead_ns: self.last.ahead_ns,
            faster_ppb: self.faster_ppb,
        }
    }
}

/// The path of the probes.
struct ProbePath<'a> {
    asking: ClockEnd<'a>,
    answering: ClockEnd<'a>,
    /// The destination of the first frame: the answering end, or a box.
    next_hop: [u8; 6],
    /// Source and target of probes over UDP; `None` on a link.
    udp: Option<[Ipv4Addr; 2]>,
}

impl<'a> ProbePath<'a> {
    /// Uses the link between the hosts or, without one, the path of the test frames, with their
    /// addresses: a device that passes them passes the probes.
    fn of(bench: &'a dyn Bench, path: &'a FramePath) -> Self {
        if let Some([a, b]) = bench.clock_ends() {
            // The first way's sender is on the asking host.
            let (asking, answering) = if path.begins_at_b() { (b, a) } else { (a, b) };
            return Self {
                asking,
                answering,
                next_hop: answering.mac,
                udp: None,
            };
        }
        let end = |end: &'a FrameEnd| ClockEnd {
            node: end.node,
            interface: &end.interface,
            mac: end.mac,
        };
        let FramePath { source, sink } = path;
        Self {
            asking: end(source),
            answering: end(sink),
            next_hop: source.next_hop_mac,
            udp: Some([source.test_address, sink.test_address]),
        }
    }
}

/// The clocks of the hosts of a path's two ends.
pub(super) struct HostClocks<'a> {
    bench: &'a dyn Bench,
    path: ProbePath<'a>,
    first: Comparison,
    course: Course,
    compared: Instant,
}

/// Whether the ends of a path read two clocks.
pub(super) fn are_two(bench: &dyn Bench, path: &FramePath) -> Result<bool, LabError> {
    let clock = |id| {
        let node = bench.node(id);
        match hello(node)? {
            Response::Hello { clock, .. } => Ok(clock),
            other => Err(node.unexpected(&other)),
        }
    };
    Ok(clock(path.source.node)? != clock(path.sink.node)?)
}

impl<'a> HostClocks<'a> {
    /// Compares the clocks twice, for their drift.
    pub(super) fn compared(
        bench: &'a dyn Bench,
        path: &'a FramePath,
        interrupt: &Interrupt,
    ) -> Result<Self, TrialError> {
        let path = ProbePath::of(bench, path);
        let first = compare_now(bench, &path)??;
        sleep_until(bench, iter::empty(), Instant::now() + SETTLE, interrupt)?;
        let second = compare_now(bench, &path)??;
        Ok(Self {
            bench,
            path,
            first,
            course: Course::through(first, second),
            compared: Instant::now(),
        })
    }

    /// Names the clocks that stamp the probes at both ends.
    pub(super) fn stamps_in_words(&self) -> Result<String, LabError> {
        let ends = [&self.path.asking, &self.path.answering];
        let ends = ends.into_iter().zip(self.course.last.by_cards);
        let ends = ends.map(|(end, by_card)| {
            let clock = card_clock(self.bench.node(end.node), end.interface)?;
            let by = match (clock, by_card) {
                (Some(clock), true) => format!("its card, by the clock ptp{clock}"),
                (Some(clock), false) => {
                    format!("the kernel; its card has the clock ptp{clock}, and is not set to stamp all frames")
                }
                (None, _) => "the kernel; its card cannot".to_owned(),
            };
            Ok(format!("{}/{} by {by}", end.node.name(), end.interface))
        });
        let ends: Result<Vec<_>, LabError> = ends.collect();
        Ok(ends?.join("; "))
    }

    /// Compares the clocks after a trial. Returns how far they agreed during it.
    pub(super) fn compare(&mut self) -> Result<ClockAgreement, TrialError> {
        // A trial is not lost for this: its counts do not depend on the clocks.
        let Ok(next) = compare_now(self.bench, &self.path)? else {
            return Ok(self.course.unknown());
        };
        self.compared = Instant::now();
        let agreement = self.course.agreement(next);
        // From the very first comparison: the longer the time in between, the less their errors
        // matter for the rate.
        self.course = Course::through(self.first, next);
        Ok(agreement)
    }

    /// For the receiver of a way: the sender's clock. The first way's sender is on the asking host.
    pub(super) fn sender_clock(&self, is_first_way: bool) -> SenderClock {
        if is_first_way {
            self.course.asking_for_answering()
        } else {
            self.course.answering_for_asking()
        }
    }

    /// An instant shortly from now, and the time of each way's sender's clock at that instant.
    pub(super) fn start(&self) -> (Instant, [u64; 2]) {
        let start = Instant::now() + LEAD;
        // The time since the comparison is nearly the same on every clock, so this program's
        // measures it for both hosts.
        let passed = start.saturating_duration_since(self.compared);
        let passed_ns = i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
        let at_ns = self.course.last.at_ns.saturating_add(passed_ns);
        let starts_ns = [at_ns, at_ns.saturating_add(self.course.ahead_ns(at_ns))];
        (start, starts_ns.map(|at_ns| at_ns.max(0).cast_unsigned()))
    }
}

impl Incomparable {
    const fn describe(self) -> &'static str {
        match self {
            Self::TooFew => {
                "the clocks of the two hosts cannot be compared: no probes are answered; let the switch of a cable pass \
                 them (EtherType 0x88B5), and external boxes (UDP, port 34997, between the addresses of test frames)"
            }
            Self::Jumped => {
                "the clock of one host jumped while it was compared with the other's: repeat"
            }
        }
    }
}

/// Answers probes on an end until it is dropped.
struct Answering<'a> {
    node: &'a dyn Node,
    own: [u8; 6],
}

impl<'a> Answering<'a> {
    fn start(bench: &'a dyn Bench, end: &ClockEnd<'_>) -> Result<Self, LabError> {
        let answering = Self {
            node: bench.node(end.node),
            own: end.mac,
        };
        answering.set(Some(end.interface))?;
        Ok(answering)
    }

    fn set(&self, interface: Option<&str>) -> Result<(), LabError> {
        let request = Request::ClockAnswer {
            interface: interface.map(str::to_owned),
            own: self.own,
        };
        match self.node.call(request)? {
            Response::Noted => Ok(()),
            other => Err(self.node.unexpected(&other)),
        }
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        // A station that is gone does not answer either.
        let _ = self.set(None);
    }
}

/// Compares the clocks now; the inner error is why that is not possible. Probes are answered only
/// meanwhile: a socket that waits for them would slow the frames of a trial.
fn compare_now(
    bench: &dyn Bench,
    path: &ProbePath<'_>,
) -> Result<Result<Comparison, TrialError>, TrialError> {
    let _answering = Answering::start(bench, &path.answering)?;
    let asking = &path.asking;
    let node = bench.node(asking.node);
    let mut tries = 0;
    loop {
        tries += 1;
        let request = Request::ClockAsk(Ask {
            interface: asking.interface.to_owned(),
            own: asking.mac,
            target: path.next_hop,
            udp: path.udp,
            probes: PROBES,
        });
        let found = match node.call(request) {
            Ok(Response::Clocks(exchanges)) => {
                compare(&exchanges).map_err(|why| TrialError::frames(why.describe()))
            }
            Ok(other) => return Err(node.unexpected(&other).into()),
            // The node's reason: a clock was set meanwhile, or the interface does not exist.
            Err(error @ LabError::Node { .. }) => Err(error.into()),
            Err(error) => return Err(error.into()),
        };
        if found.is_ok() || tries == TRIES {
            return Ok(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use testbed::clocks::Exchange;

    /// A true clock: the answering host's time at a time of the asking one.
    #[derive(Debug, Clone, Copy)]
    struct Truth {
        ahead_ns: i64,
        faster_ppb: i64,
    }

    impl Truth {
        fn ahead_at(self, at_ns: i64) -> i64 {
            let gained = i128::from(at_ns) * i128::from(self.faster_ppb) / i128::from(SECOND_NS);
            self.ahead_ns + gained as i64
        }

        /// Probes from a time on, with these delays there, at the other side, and back.
        fn probed(self, from_ns: i64, delays_ns: &[[i64; 3]]) -> Exchanges {
            let mut at_ns = from_ns;
            let exchanges = delays_ns.iter().map(|&[there, pause, back]| {
                let received = at_ns + there;
                let answered = received + pause;
                let returned = answered + back;
                let exchange = Exchange {
                    sent_ns: at_ns,
                    received_ns: received + self.ahead_at(received),
                    answered_ns: answered + self.ahead_at(answered),
                    returned_ns: returned,
                };
                at_ns = returned + 5_000;
                exchange
            });
            Exchanges {
                exchanges: exchanges.collect(),
                ..Exchanges::default()
            }
        }
    }

    fn truth() -> impl Strategy<Value = Truth> {
        let year_ns = 365 * 86_400 * SECOND_NS;
        (
            -year_ns..year_ns,
            -FASTER_PPB.cast_signed()..=FASTER_PPB.cast_signed(),
        )
            .prop_map(|(ahead_ns, faster_ppb)| Truth {
                ahead_ns,
                faster_ppb,
            })
    }

    fn delays() -> impl Strategy<Value = Vec<[i64; 3]>> {
        // Unequal there and back, as behind a queue on one side.
        let delay = || prop_oneof![500_i64..5_000, 500_i64..3_000_000];
        prop::collection::vec([delay(), delay(), delay()], 1..80)
    }

    proptest! {
        #[test]
        fn the_bound_holds_the_truth(truth in truth(), from_ns in 0..1_000 * SECOND_NS, delays in delays()) {
            let found = compare(&truth.probed(from_ns, &delays)).unwrap();
            let off_ns = found.ahead_ns.abs_diff(truth.ahead_at(found.at_ns));
            prop_assert!(off_ns <= found.within_ns, "{off_ns} of {}", found.within_ns);
        }

        /// Over a trial, at any time in it and by each receiver's conversion.
        #[test]
        fn a_trials_times_are_as_good_as_it_says(
            truth in truth(),
            starts_ns in (0..SECOND_NS, SECOND_NS / 2..2 * SECOND_NS, SECOND_NS / 10..100 * SECOND_NS),
            delays in [delays(), delays(), delays()],
            share in 0.0..1.0,
        ) {
            let (first_ns, settled_ns, took_ns) = starts_ns;
            let second_ns = first_ns + settled_ns;
            let compared = |from_ns, delays: &_| compare(&truth.probed(from_ns, delays)).unwrap();
            let first = compared(first_ns, &delays[0]);
            let course = Course::through(first, compared(second_ns, &delays[1]));
            let next = compared(second_ns + took_ns + SECOND_NS, &delays[2]);
            let within_ns = course.agreement(next).within_ns;

            let asking_ns = course.last.at_ns + ((next.at_ns - course.last.at_ns) as f64 * share) as i64;
            let answering_ns = asking_ns + truth.ahead_at(asking_ns);
            prop_assume!(answering_ns > 0);
            let converted = course.asking_for_answering().at(answering_ns.cast_unsigned());
            // Rates have nine digits.
            let slack_ns = 200;
            prop_assert!(converted.abs_diff(asking_ns.cast_unsigned()) <= within_ns + slack_ns);
            let converted = course.answering_for_asking().at(asking_ns.cast_unsigned());
            prop_assert!(converted.abs_diff(answering_ns.cast_unsigned()) <= within_ns + slack_ns);
        }
    }

    #[test]
    fn probes_on_both_sides_of_a_jump_are_not_compared() {
        let before = Truth {
            ahead_ns: 0,
            faster_ppb: 0,
        };
        let after = Truth {
            ahead_ns: 50_000,
            ..before
        };
        let delays = [[2_000, 500, 2_000]; 20];
        let mut found = before.probed(0, &delays);
        assert!(compare(&found).unwrap().within_ns < 2_100);
        found
            .exchanges
            .extend(after.probed(500_000, &delays).exchanges);
        assert_eq!(compare(&found), Err(Incomparable::Jumped));
        assert_eq!(compare(&Exchanges::default()), Err(Incomparable::TooFew));
    }

    proptest! {
        /// The kernel changes the rate of one clock once within a trial.
        #[test]
        fn a_rate_that_changes_within_a_trial_is_in_its_bound(
            rates_ppb in [-500_000_i64..500_000, -500_000..500_000],
            took_ns in SECOND_NS / 10..100 * SECOND_NS,
            changed in 0.0..1.0,
            asked in 0.0..1.0,
        ) {
            let part = |share: f64| (took_ns as f64 * share) as i64;
            let gained = |ns: i64, rate: i64| (i128::from(ns) * i128::from(rate) / i128::from(SECOND_NS)) as i64;
            let ahead_at = |at_ns: i64| {
                let before_ns = at_ns.min(part(changed));
                gained(before_ns, rates_ppb[0]) + gained(at_ns - before_ns, rates_ppb[1])
            };
            let at = |at_ns: i64, rate_ppb| Comparison {
                at_ns,
                ahead_ns: ahead_at(at_ns),
                within_ns: 0,
                corrected_ppb: [0, rate_ppb],
                by_cards: [false; 2],
            };
            let before = at(-SECOND_NS, rates_ppb[0]);
            let course = Course::through(before, at(0, rates_ppb[0]));
            let within_ns = course.agreement(at(took_ns, rates_ppb[1])).within_ns;
            let asked_ns = part(asked);
            let off_ns = course.ahead_ns(asked_ns).abs_diff(ahead_at(asked_ns));
            prop_assert!(off_ns <= within_ns + 200, "{off_ns} of {within_ns}");
        }
    }

    #[test]
    fn a_jump_during_a_trial_is_in_its_bound() {
        let still = Comparison {
            at_ns: 0,
            ahead_ns: 7,
            within_ns: 2_000,
            corrected_ppb: [0; 2],
            by_cards: [false; 2],
        };
        let course = Course::through(still, still);
        let jumped = Comparison {
            at_ns: SECOND_NS,
            ahead_ns: 7 + 300_000,
            within_ns: 3_000,
            ..still
        };
        assert_eq!(course.agreement(jumped).within_ns, 303_000);
        // The kernel slews one of them by 40 ppm now, since some time in this second.
        let slewed = Comparison {
            corrected_ppb: [0, 40_000],
            ..jumped
        };
        assert_eq!(course.agreement(slewed).within_ns, 303_000 + 10_000);
    }
}
