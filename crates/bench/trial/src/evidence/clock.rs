//! Checks of the tools' time against the tester's clock.

use super::failure::{size, then_repeat};
use super::{Load, ToolObserved, check};
use crate::transfer::UnsteadyDrain;
use impair::Profile;
use journal::record::{Check, Explanation};
use units::human::{bit_rate, duration_ns};

/// Allowed difference of a process's end from the measured time, in percent of it.
const OFF_PERCENT: u64 = 5;
/// The least that is allowed: starting a process and exchanging results takes part of it.
const OFF_NS_LEAST: u64 = 250_000_000;
/// How much longer than planned an interval may last. A tool that stalls for 300 ms lengthens an
/// interval of up to 200 ms by 100 ms at least; a sender of a set rate catches up immediately, so
/// that nothing else shows it.
const STILL_NS: u64 = 80_000_000;
/// How long a new connection waits before it sends a lost segment again (RFC 6298 section 2).
const RESEND_NS: u64 = 1_000_000_000;

/// Checks that each tool ran for the requested time, by its clock and by the tester's, and did not
/// stall: a process that was stopped reports the rate of the time it ran.
pub(super) fn tools_kept_time(observed: &ToolObserved<'_>) -> Option<Check> {
    let Load::Transfer { transfer, totals } = &observed.load else {
        return None;
    };
    let timing = observed.commands.timing;
    let slack_ns = (timing.measured_ns() / 100 * OFF_PERCENT).max(OFF_NS_LEAST);
    let profile = observed.path.cell.impair.as_ref();
    let measured_ns = timing.measured_ns();
    // The tool's ends agree over separate connections.
    let end_slack_ns = slack_ns.saturating_add(apart_ns(profile));
    let slack_ns = slack_ns.saturating_add(profile.map_or(0, agreeing_ns));
    let ms = |ns: u64| ns / 1_000_000;
    let is_near = |ns: u64, planned_ns: u64| ns.abs_diff(planned_ns) <= slack_ns;
    // The tool's last words wait in the queue behind the datagrams.
    let drained_ns = transfer.drain().map_or(0, |drain| drain.time_ns);
    let is_drained = |ns: u64| is_near(ns, measured_ns) || is_near(ns, measured_ns + drained_ns);
    let ends_late_ns = observed.drained_most_ns();
    let end_ns = observed.client_ends_ns.iter().copied().max()?;
    let [from, to] = observed.stations();
    let own = [totals.offered_ns, transfer.duration_ns];
    let still_ns = totals.longest_step_ns.saturating_sub(timing.step_ns);
    // Several are compared with one another as well, by `processes-in-step`.
    let is_alone = observed.client_ends_ns.len() == 1;
    let difference = match (is_alone, own) {
        // First, since a stall explains late ends too.
        _ if still_ns > STILL_NS => Some(format!(
            "the tool stood still for {} or more",
            duration_ns(still_ns as f64)
        )),
        (true, _)
            if end_ns > timing.run_ns + end_slack_ns + ends_late_ns
                || end_ns + end_slack_ns < timing.run_ns =>
        {
            Some(apart("the tool ended", end_ns, timing.run_ns))
        }
        (_, [sent_ns, _]) if !is_near(sent_ns, measured_ns) => Some(apart(
            &format!("station {from} stopped sending"),
            sent_ns,
            measured_ns,
        )),
        (_, [_, received_ns]) if !is_drained(received_ns) => Some(apart(
            &format!("station {to} stopped receiving"),
            received_ns,
            measured_ns,
        )),
        _ => None,
    };
    // A queue explains at most the time for which it drained.
    let is_queue = |drain: &UnsteadyDrain| {
        let most_ns = timing.run_ns + drain.time_ns + end_slack_ns;
        still_ns <= STILL_NS
            && is_near(own[0], measured_ns)
            && is_near(own[1], measured_ns + drain.time_ns)
            && (!is_alone || (timing.run_ns..=most_ns).contains(&end_ns))
    };
    let unsteady = totals.unsteady_drain.filter(is_queue);
    let failure = difference.map(|difference| match unsteady {
        Some(drain) => of_queue(drain, [from, to]),
        None => Explanation::new(
            difference,
            "it waited for a core that something else used, was stopped, or the clock was set",
            then_repeat("stop what else uses this machine"),
        ),
    });
    let drained = match drained_ns {
        0 => String::new(),
        ns => format!(
            "; station {to} received for {} ms longer than station {from} sent, at the same rate as before: a queue on \
             the path drained, and the rate is over the receiver's time",
            ms(ns)
        ),
    };
    let detail = format!(
        "by the tester's clock the tool ended after {} ms of {} planned; by its own clock station {from} sent for {} ms and {to} received \
         for {} ms of {} planned; the longest of the intervals of {} ms took {} ms, {} ms more are allowed; of its end {} ms and \
         of all else {} ms more or less{drained}",
        ms(end_ns),
        ms(timing.run_ns),
        ms(own[0]),
        ms(own[1]),
        ms(measured_ns),
        ms(timing.step_ns),
        ms(totals.longest_step_ns),
        ms(STILL_NS),
        ms(end_slack_ns),
        ms(slack_ns)
    );
    check("tools-kept-time", failure, detail)
}

/// A queue that drained at another rate than while the sender sent.
fn of_queue(drain: UnsteadyDrain, [from, to]: [&str; 2]) -> Explanation {
    let UnsteadyDrain {
        time_ns,
        before_bps,
        after_bps,
    } = drain;
    Explanation::new(
        format!(
            "station {to} received for {} after station {from} had stopped sending, at {} instead of {} before",
            duration_ns(time_ns as f64),
            bit_rate(after_bps as f64),
            bit_rate(before_bps as f64)
        ),
        "a queue on the path drained, as that of a tunnel in user space, and faster or slower than under load: the sender \
         and the device share cores, so that no one rate is the device's",
        "offer less than the device carries (`rate:`), or give the device cores that no station uses, in a new run",
    )
}

/// By how much the ends of a tool may begin apart on an impaired path.
pub(crate) fn apart_ns(profile: Option<&Profile>) -> u64 {
    let resend_ns = if profile.is_some_and(Profile::loses) {
        RESEND_NS
    } else {
        0
    };
    profile.map_or(0, agreeing_ns).saturating_add(resend_ns)
}

/// Time that an impaired path adds to the agreement of the tool's ends, before and after they send:
/// about ten round trips, two of them through full queues.
fn agreeing_ns(profile: &Profile) -> u64 {
    let round_trips_ns = profile.round_trip_ns().saturating_mul(10);
    round_trips_ns.saturating_add(profile.full_queues_ns().saturating_mul(2))
}

/// `the tool ended 300 ms (6 %) later than planned`.
fn apart(what: &str, found_ns: u64, planned_ns: u64) -> String {
    let than = if found_ns > planned_ns {
        "later"
    } else {
        "earlier"
    };
    let by = size(found_ns.abs_diff(planned_ns), planned_ns, duration_ns);
    format!("{what} {by} {than} than planned")
}
