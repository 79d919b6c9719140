//! Round trips of small datagrams, idle and while a stream runs.

use crate::datagrams::{Datagrams, Kind};
use crate::findings::RoundTrips;
use std::time::{Duration, Instant};

/// A ping's payload, of the length of a small request.
const BYTES: usize = 64;
const INTERVAL: Duration = Duration::from_millis(20);
/// A ping without an answer after this time is lost.
const LOST: Duration = Duration::from_secs(1);
/// Fewer answers give no percentiles.
const ANSWERS_LEAST: usize = 5;

/// Pings while `goes_on`, which gets the number of pings sent. An error is a clause for people.
pub(crate) fn pings(
    datagrams: &Datagrams,
    goes_on: impl Fn(u32) -> bool,
) -> Result<RoundTrips, String> {
    let mut sent: Vec<Instant> = Vec::new();
    let mut times = Vec::new();
    while goes_on(sent.len() as u32) {
        let begun = Instant::now();
        sent.push(begun);
        // A refused ping counts as lost.
        let _ = datagrams.send(Kind::Ping, sent.len() as u32 - 1, (BYTES, &[0]));
        collect(datagrams, &sent, &mut times, begun + INTERVAL);
    }
    let last = sent.last().map_or_else(Instant::now, |last| *last + LOST);
    while times.len() < sent.len() && Instant::now() < last {
        collect(
            datagrams,
            &sent,
            &mut times,
            last.min(Instant::now() + INTERVAL),
        );
    }
    summary(sent.len(), times)
}

/// Takes the answers that come by then.
fn collect(datagrams: &Datagrams, sent: &[Instant], times: &mut Vec<u64>, by: Instant) {
    while let Some(answer) = datagrams.next(by) {
        let Some(begun) = sent.get(answer.number as usize) else {
            continue;
        };
        // Answers that a search or an earlier series left behind are no pongs of this one.
        if answer.kind == Kind::Pong && answer.at >= *begun {
            times.push(answer.at.duration_since(*begun).as_nanos() as u64);
        }
    }
}

fn summary(sent: usize, mut times: Vec<u64>) -> Result<RoundTrips, String> {
    times.sort_unstable();
    // A repeated answer would count as two.
    times.truncate(sent);
    if times.len() < ANSWERS_LEAST {
        let answered = times.len();
        return Err(format!("{answered} of {sent} pings (UDP) were answered"));
    }
    let max_ns = times[times.len() - 1];
    // Of few answers the longest is beyond no percentile.
    let at = |per_mille| stats::percentile(&times, per_mille).unwrap_or(max_ns);
    Ok(RoundTrips {
        sent: sent as u32,
        lost: (sent - times.len()) as u32,
        p50_ns: at(500),
        p95_ns: at(950),
        max_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagrams::tests::pair;

    #[test]
    fn pings_are_answered_and_counted() {
        let [asker, _listener] = pair();
        // One that comes late from an earlier series has another time.
        let trips = pings(&asker, |sent| sent < 10).unwrap();
        assert_eq!(trips.sent, 10);
        assert!(trips.p50_ns > 0 && trips.p50_ns <= trips.p95_ns && trips.p95_ns <= trips.max_ns);
    }

    #[test]
    fn too_few_answers_are_no_figure() {
        let times = (1..=100).map(|ms| ms * 1_000_000).collect();
        let trips = summary(120, times).unwrap();
        assert_eq!(
            (trips.lost, trips.p50_ns, trips.max_ns),
            (20, 50_000_000, 100_000_000)
        );
        let said = summary(100, vec![1; 4]).unwrap_err();
        assert_eq!(said, "4 of 100 pings (UDP) were answered");
    }
}
