//! The clocks of two hosts: compared before the first trial and after each, so that a receiver can
//! count times by the sender's clock, and it is known how wrong they may be.
//!
//! 1. [`compare`] bounds the difference by the probes of one moment, whatever their delays.
//! 2. [`HostClocks`] predicts it for the next trial by the drift between comparisons.
//! 3. After the trial they are compared again. The difference from the prediction and the bounds of
//!    both comparisons are how wrong times across the hosts may be.

use crate::error::TrialError;
use crate::measurer::hello;
use journal::record::ClockAgreement;
use lab::clocks::{Ask, Exchanges};
use lab::protocol::{Request, Response};
use lab::{Bench, ClockEnd, FramePath, LabError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use traffic::spec::SenderClock;

/// Probes of a comparison: a few milliseconds.
const PROBES: u32 = 64;
/// Comparisons to try: a clock may be set in one, and a link may lose probes.
const TRIES: u32 = 3;
/// How much faster one clock can be than the other, in parts of 10^9: the kernel lets each be
/// slewed by 500 ppm (adjtimex(2)), and an oscillator is wrong by up to 100 ppm by itself.
const FASTER_PPB_MAX: i64 = 1_200_000;
/// Time between the first two comparisons, which tell the drift in the first trial.
const SETTLE: Duration = Duration::from_millis(500);
/// Time from the word to start until senders start together: programs start within it.
const LEAD: Duration = Duration::from_millis(100);
const SECOND_NS: i64 = 1_000_000_000;

/// How far the answering host's clock is ahead of the asking one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Comparison {
    /// When, by the asking host's clock.
    at_ns: i64,
    ahead_ns: i64,
    /// By how much that may be wrong, either way.
    within_ns: u64,
}

/// Compares two clocks by probes of one moment; `None` if there are none, or if they contradict
/// each other: then a clock jumped.
pub(super) fn compare(found: &Exchanges) -> Option<Comparison> {
    let (first, last) = (found.exchanges.first()?, found.exchanges.last()?);
    let at_ns = first.sent_ns.midpoint(last.returned_ns);
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    for exchange in &found.exchanges {
        let drifted = |at: i64| (at - at_ns).abs() * (FASTER_PPB_MAX / 1000) / 1_000_000 + 1;
        let (there, back) = (drifted(exchange.sent_ns), drifted(exchange.returned_ns));
        most = most.min(exchange.received_ns - exchange.sent_ns + there);
        least = least.max(exchange.answered_ns - exchange.returned_ns - back);
    }
    (least <= most).then(|| Comparison {
        at_ns,
        ahead_ns: least.midpoint(most),
        within_ns: least.abs_diff(most).div_ceil(2) + found.within_ns,
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
        let gained_ns = i128::from(last.ahead_ns - first.ahead_ns);
        let faster = (gained_ns * i128::from(SECOND_NS)).checked_div(passed_ns);
        let most = i128::from(FASTER_PPB_MAX);
        // Clamped to what fits.
        let faster_ppb = faster.unwrap_or(0).clamp(-most, most) as i64;
        Self { last, faster_ppb }
    }

    /// The predicted difference at a time of the asking host's clock.
    fn ahead_ns(&self, at_ns: i64) -> i64 {
        let passed_ns = i128::from(at_ns - self.last.at_ns);
        let gained_ns = passed_ns * i128::from(self.faster_ppb) / i128::from(SECOND_NS);
        // At most a thousandth of a time that fits.
        self.last.ahead_ns + gained_ns as i64
    }

    /// How wrong times were that rested on this course until the next comparison.
    fn agreement(&self, next: Comparison) -> ClockAgreement {
        let off_ns = next.ahead_ns.abs_diff(self.ahead_ns(next.at_ns));
        ClockAgreement {
            ahead_ns: next.ahead_ns,
            faster_ppb: self.faster_ppb,
            within_ns: off_ns + self.last.within_ns.max(next.within_ns),
        }
    }

    /// What a receiver on the answering host needs to count by the asking host's clock.
    fn asking_for_answering(&self) -> SenderClock {
        SenderClock {
            at_ns: self.last.at_ns + self.last.ahead_ns,
            ahead_ns: -self.last.ahead_ns,
            // By the answering host's seconds, which are not quite as long.
            faster_ppb: -self.faster_ppb * SECOND_NS / (SECOND_NS + self.faster_ppb),
        }
    }

    /// What a receiver on the asking host needs to count by the answering host's clock.
    const fn answering_for_asking(&self) -> SenderClock {
        SenderClock {
            at_ns: self.last.at_ns,
            ahead_ns: self.last.ahead_ns,
            faster_ppb: self.faster_ppb,
        }
    }
}

/// The clocks of the hosts of a path's two ends.
pub(super) struct HostClocks<'a> {
    bench: &'a dyn Bench,
    /// The asking end, and the answering one.
    ends: [ClockEnd<'a>; 2],
    first: Comparison,
    course: Course,
    compared: Instant,
}

impl<'a> HostClocks<'a> {
    /// Compares the clocks; `None` where both ends of the path have the same.
    pub(super) fn of(bench: &'a dyn Bench, path: &FramePath) -> Result<Option<Self>, TrialError> {
        let clock = |id| {
            let node = bench.node(id);
            match hello(node)? {
                Response::Hello { clock, .. } => Ok(clock),
                other => Err(node.unexpected(&other)),
            }
        };
        if clock(path.source.node)? == clock(path.sink.node)? {
            return Ok(None);
        }
        let ends = bench.clock_ends().ok_or_else(|| {
            TrialError::frames(
                "test frames carry time stamps of one clock, the stations are on hosts with two, and there is no \
                 cable between the hosts on which those can be compared: measure with `tcp`, `udp` and `ping`",
            )
        })?;
        let [_, answering] = &ends;
        answer(bench, answering, true)?;
        let first = compare_now(bench, &ends)?;
        let mut clocks = Self {
            bench,
            ends,
            first,
            course: Course::through(first, first),
            compared: Instant::now(),
        };
        sleep(SETTLE);
        clocks.compare()?;
        Ok(Some(clocks))
    }

    /// Compares the clocks after a trial. Returns how far they agreed during it.
    pub(super) fn compare(&mut self) -> Result<ClockAgreement, TrialError> {
        let next = compare_now(self.bench, &self.ends)?;
        self.compared = Instant::now();
        let agreement = self.course.agreement(next);
        self.course = Course::through(self.first, next);
        Ok(agreement)
    }

    /// For the receiver of a way: the sender's clock. The first way's sender is on the asking host.
    pub(super) fn sender_clock(&self, is_first_way: bool) -> SenderClock {
        match is_first_way {
            true => self.course.asking_for_answering(),
            false => self.course.answering_for_asking(),
        }
    }

    /// An instant shortly from now, by the clock of each way's sender.
    pub(super) fn start_ns(&self) -> [u64; 2] {
        let passed = self.compared.elapsed() + LEAD;
        let passed_ns = i64::try_from(passed.as_nanos()).unwrap_or(i64::MAX);
        let at_ns = self.course.last.at_ns.saturating_add(passed_ns);
        [at_ns, at_ns + self.course.ahead_ns(at_ns)].map(|at_ns| at_ns.max(0).cast_unsigned())
    }
}

impl Drop for HostClocks<'_> {
    fn drop(&mut self) {
        let [_, answering] = &self.ends;
        // A station that is gone does not answer either.
        let _ = answer(self.bench, answering, false);
    }
}

fn answer(bench: &dyn Bench, end: &ClockEnd<'_>, is_on: bool) -> Result<(), LabError> {
    let node = bench.node(end.node);
    let request = Request::ClockAnswer {
        interface: is_on.then(|| end.interface.to_owned()),
        own: end.mac,
    };
    match node.call(request)? {
        Response::Noted => Ok(()),
        other => Err(node.unexpected(&other)),
    }
}

fn compare_now(
    bench: &dyn Bench,
    [asking, answering]: &[ClockEnd<'_>; 2],
) -> Result<Comparison, TrialError> {
    let node = bench.node(asking.node);
    let request = || {
        Request::ClockAsk(Ask {
            interface: asking.interface.to_owned(),
            own: asking.mac,
            target: answering.mac,
            probes: PROBES,
        })
    };
    let mut last = None;
    for _ in 0..TRIES {
        match node.call(request()) {
            Ok(Response::Clocks(found)) => {
                if let Some(comparison) = compare(&found) {
                    return Ok(comparison);
                }
            }
            Ok(other) => return Err(node.unexpected(&other).into()),
            Err(error) => last = Some(error),
        }
    }
    Err(last.map_or_else(
        || {
            TrialError::frames(
                "the clock of one host jumped while it was compared with the other's",
            )
        },
        TrialError::from,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::clocks::Exchange;
    use proptest::prelude::*;

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
                within_ns: 0,
            }
        }
    }

    fn truth() -> impl Strategy<Value = Truth> {
        let year_ns = 365 * 86_400 * SECOND_NS;
        (-year_ns..year_ns, -FASTER_PPB_MAX..=FASTER_PPB_MAX).prop_map(|(ahead_ns, faster_ppb)| {
            Truth {
                ahead_ns,
                faster_ppb,
            }
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
        assert_eq!(
            compare(&found).map(|found| found.within_ns < 2_100),
            Some(true)
        );
        found
            .exchanges
            .extend(after.probed(500_000, &delays).exchanges);
        assert_eq!(compare(&found), None);
        assert_eq!(compare(&Exchanges::default()), None);
    }

    #[test]
    fn a_jump_during_a_trial_is_in_its_bound() {
        let still = Comparison {
            at_ns: 0,
            ahead_ns: 7,
            within_ns: 2_000,
        };
        let course = Course::through(still, still);
        let jumped = Comparison {
            at_ns: SECOND_NS,
            ahead_ns: 7 + 300_000,
            within_ns: 3_000,
        };
        assert_eq!(course.agreement(jumped).within_ns, 303_000);
    }
}
