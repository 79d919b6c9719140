//! Checks of a trial of IKEv2.

use crate::evidence::machine::machine_was_ours;
use crate::evidence::{check, count, then_repeat, then_repeat_or};
use ike_peers::LATE_NS_MAX;
use journal::record::{Check, Cpu, Explanation, IkeTrial};
use units::human::duration_ns;

/// Whether the generator offered the load at its times.
pub(super) fn is_on_schedule(trial: &IkeTrial) -> bool {
    trial.late_p99_ns <= LATE_NS_MAX && trial.started == trial.intended && trial.generator_lost == 0
}

/// Every check of a load.
pub(super) fn checks(trial: &IkeTrial, cpu: &Cpu) -> Vec<Check> {
    let all = [
        machine_was_ours(cpu),
        schedule_kept(trial),
        setups_succeeded(trial),
        gateway_agrees(trial),
        gateway_forgot(trial),
    ];
    all.into_iter().flatten().collect()
}

/// Checks that the load was open-loop: set-ups began at their times.
fn schedule_kept(trial: &IkeTrial) -> Option<Check> {
    let failure = (!is_on_schedule(trial)).then(|| {
        let difference = if trial.generator_lost > 0 {
            format!(
                "the generator lost {} itself",
                count(
                    trial.generator_lost,
                    trial.sent + trial.received,
                    "datagram"
                )
            )
        } else if trial.started < trial.intended {
            let unsent = trial.intended - trial.started;
            format!("{} never began", count(unsent, trial.intended, "set-up"))
        } else {
            format!(
                "1 of 100 set-ups began {} or more after its time",
                duration_ns(trial.late_p99_ns as f64)
            )
        };
        Explanation::new(
            difference,
            "the generator waited for a core, or does not make so many set-ups per second",
            then_repeat_or(
                "stop what else uses this machine",
                "offer fewer set-ups per second in a new run",
            ),
        )
    });
    let detail = format!(
        "{} of {} set-ups began, 99 % at most {} late ({} allowed); the generator lost {} datagrams itself",
        trial.started,
        trial.intended,
        duration_ns(trial.late_p99_ns as f64),
        duration_ns(LATE_NS_MAX as f64),
        trial.generator_lost
    );
    check("schedule-kept", failure, detail)
}

/// Checks that a set-up completed. Failures are a figure.
fn setups_succeeded(trial: &IkeTrial) -> Option<Check> {
    let most = trial.failed.iter().max_by_key(|(_, it)| it.count);
    let failure = (trial.completed == 0).then(|| {
        let (difference, cause) = match most {
            Some((name, failure)) => (
                format!("no set-up completed: {} × {name}", failure.count),
                failure.example.clone(),
            ),
            None => (
                "no set-up completed".to_owned(),
                "no peer had begun".to_owned(),
            ),
        };
        Explanation::new(
            difference,
            cause,
            then_repeat("correct what the notification names"),
        )
    });
    let reasons: Vec<String> = (trial.failed.iter())
        .map(|(name, it)| format!("{} {name}", it.count))
        .collect();
    let reasons = if reasons.is_empty() {
        "none".to_owned()
    } else {
        reasons.join(", ")
    };
    let detail = format!(
        "{} of {} set-ups completed, {} of them in time; failed: {reasons}; {} requests sent again, {} cookies",
        trial.completed, trial.intended, trial.in_time, trial.retransmissions, trial.cookies
    );
    check("setups-succeeded", failure, detail)
}

/// Checks that the gateway counts as many new IKE SAs as peers are up, no more and no less.
fn gateway_agrees(trial: &IkeTrial) -> Option<Check> {
    let counted = trial.gateway;
    let established = counted.up.saturating_sub(counted.half_open);
    let new = established.saturating_sub(counted.before);
    // What failed at the peer may be established at the gateway, as its last response was lost or
    // late; never the reverse.
    let most = trial.completed + trial.failures();
    let failure = (new < trial.completed || new > most).then(|| {
        Explanation::new(
            format!(
                "the gateway has {new} new IKE SAs, and the peers {}",
                trial.completed
            ),
            "the gateway dropped IKE SAs that its peers still have, or another peer set some up",
            then_repeat("look at the gateway's log"),
        )
    });
    let detail = format!(
        "the gateway counts {established} IKE SAs and {} half-open ones, {} before: {new} new; the peers have {}",
        counted.half_open, counted.before, trial.completed
    );
    check("gateway-agrees", failure, detail)
}

/// Checks that the gateway is as before once the peers have deleted their IKE SAs.
fn gateway_forgot(trial: &IkeTrial) -> Option<Check> {
    let counted = trial.gateway;
    let failure = (counted.after != counted.before).then(|| {
        Explanation::new(
            format!(
                "the gateway has {} IKE SAs after the deletes, and had {} before",
                counted.after, counted.before
            ),
            "it lost a standing tunnel, or keeps IKE SAs whose peers have left, which the next load meets",
            then_repeat("look at the gateway's log"),
        )
    });
    let detail = format!(
        "{} IKE SAs before the load, {} after the peers had deleted theirs",
        counted.before, counted.after
    );
    check("gateway-forgot", failure, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{GatewaySas, IkeFailure};

    fn failed(change: fn(&mut IkeTrial)) -> Vec<String> {
        let mut trial = IkeTrial {
            per_s: 50,
            intended: 100,
            started: 100,
            completed: 98,
            in_time: 98,
            failed: [(
                "no response".to_owned(),
                IkeFailure {
                    count: 2,
                    example: "it is silent".to_owned(),
                },
            )]
            .into(),
            gateway: GatewaySas {
                before: 1,
                up: 101,
                half_open: 2,
                after: 1,
            },
            ..IkeTrial::default()
        };
        change(&mut trial);
        let checks = checks(&trial, &Cpu::default());
        let failed = checks.iter().filter(|check| !check.passed);
        failed.map(|check| check.name.clone()).collect()
    }

    #[test]
    fn each_contradiction_fails_its_check() {
        assert_eq!(failed(|_| {}), Vec::<String>::new());
        // Established at the gateway, and late at the peer.
        assert_eq!(failed(|it| it.gateway.half_open = 0), Vec::<String>::new());
        type Change = fn(&mut IkeTrial);
        let cases: [(Change, &str); 6] = [
            (|it| it.late_p99_ns = LATE_NS_MAX + 1, "schedule-kept"),
            (|it| it.started = 99, "schedule-kept"),
            (|it| it.generator_lost = 1, "schedule-kept"),
            (|it| it.gateway.up = 100, "gateway-agrees"),
            (|it| it.gateway.up = 104, "gateway-agrees"),
            (|it| it.gateway.after = 0, "gateway-forgot"),
        ];
        for (change, name) in cases {
            assert_eq!(failed(change), [name]);
        }
        let silent = failed(|it| {
            it.completed = 0;
            it.in_time = 0;
            it.gateway.up = 1;
            it.gateway.half_open = 0;
        });
        assert_eq!(silent, ["setups-succeeded"]);
    }
}
