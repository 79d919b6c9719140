//! Contradictions of a trial of IKEv2.

use super::Contradictions;
use crate::record::{IkeResult, IkeTrial};

/// `most_ns`: the time that the whole trial took.
pub(super) fn of_result(ike: &IkeResult, most_ns: u64, found: &mut Contradictions) {
    for trial in &ike.trials {
        of_trial(trial, most_ns, found);
    }
}

fn of_trial(trial: &IkeTrial, most_ns: u64, found: &mut Contradictions) {
    found.part(
        (trial.elapsed_ns, "ns of set-ups"),
        (most_ns, "ns of the trial"),
    );
    let started = (trial.started, "set-ups begun");
    found.part(started, (trial.intended, "set-ups intended"));
    let over = trial.completed.saturating_add(trial.failures());
    found.part((over, "set-ups completed and failed"), started);
    found.part(
        (trial.in_time, "set-ups in time"),
        (trial.completed, "set-ups completed"),
    );
    found.part(
        (trial.gateway.half_open, "half-open IKE SAs"),
        (trial.gateway.up, "IKE SAs of the gateway"),
    );
    // Each set-up is at least two requests and two responses.
    let least = trial.completed.saturating_mul(2);
    for count in [trial.sent, trial.received] {
        found.part(
            (least, "requests of completed set-ups"),
            (count, "datagrams"),
        );
    }
    found.measurable("bytes", [trial.sent_bytes, trial.received_bytes]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::GatewaySas;

    fn contradictions(change: fn(&mut IkeTrial)) -> Vec<String> {
        let mut trial = IkeTrial {
            per_s: 10,
            intended: 100,
            started: 100,
            completed: 98,
            in_time: 97,
            elapsed_ns: 10_000_000_000,
            sent: 200,
            received: 196,
            sent_bytes: 40_000,
            received_bytes: 40_000,
            gateway: GatewaySas {
                before: 1,
                up: 100,
                half_open: 1,
                after: 1,
            },
            ..IkeTrial::default()
        };
        change(&mut trial);
        let ike = IkeResult {
            trials: vec![trial],
            ..IkeResult::default()
        };
        let mut found = Contradictions::default();
        of_result(&ike, 20_000_000_000, &mut found);
        found.into_reasons()
    }

    #[test]
    fn more_than_was_intended_begun_or_sent_is_impossible() {
        assert_eq!(contradictions(|_| {}), Vec::<String>::new());
        type Change = fn(&mut IkeTrial);
        let changes: [(Change, &str); 6] = [
            (|trial| trial.started = 101, "set-ups intended"),
            (|trial| trial.completed = 101, "set-ups begun"),
            (|trial| trial.in_time = 99, "set-ups completed"),
            (|trial| trial.gateway.half_open = 101, "IKE SAs"),
            (|trial| trial.received = 195, "datagrams"),
            (|trial| trial.elapsed_ns *= 3, "ns of set-ups"),
        ];
        for (change, what) in changes {
            let found = contradictions(change);
            assert!(!found.is_empty() && found[0].contains(what), "{found:?}");
        }
    }
}
