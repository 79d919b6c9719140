//! Contradictions of a trial over HTTP.

use super::Contradictions;
use crate::record::{HttpResult, TimeBucket};

/// `most_ns`: the time that the whole trial took.
pub(super) fn of_result(http: &HttpResult, most_ns: u64, found: &mut Contradictions) {
    found.part(
        (http.duration_ns, "ns of HTTP"),
        (most_ns, "ns of the trial"),
    );
    let attempted = (http.attempted, "transactions attempted");
    found.measurable("bytes", [http.object_bytes, http.received_bytes]);
    found.measurable("transactions", [http.attempted]);
    // Transactions that the end of the run cut off are neither.
    let ended = http.transactions.saturating_add(http.failures());
    found.part((ended, "transactions ended"), attempted);
    let bytes = (http.received_bytes, "bytes received");
    found.part((http.object_bytes, "bytes of objects"), bytes);
    // Only some clients count them.
    if let Some(connections) = http.connections {
        let in_all = (http.connections_in_all, "connections of the run");
        found.part((connections, "connections of the sustain phase"), in_all);
    }
    // Each kind of object has histograms: none has more than all transactions.
    for times in &http.objects {
        for buckets in [&times.first_byte, &times.last_byte] {
            found.rising(
                "times in ns",
                buckets.iter().map(|bucket: &TimeBucket| bucket.upto_ns),
            );
            let counts = buckets.iter().map(|bucket| bucket.count);
            let timed = counts.fold(0, u64::saturating_add);
            found.part((timed, "transactions timed"), attempted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::HttpFailure;

    fn contradictions(http: &HttpResult) -> Vec<String> {
        let mut found = Contradictions::default();
        of_result(http, 2_000_000_000, &mut found);
        found.into_reasons()
    }

    #[test]
    fn more_than_was_attempted_received_or_opened_is_impossible() {
        let whole = HttpResult {
            duration_ns: 1_000_000_000,
            transactions: 8,
            object_bytes: 800,
            connections: Some(1),
            attempted: 10,
            failed: [(HttpFailure::Reset, 2)].into(),
            received_bytes: 900,
            connections_in_all: 2,
            ..HttpResult::default()
        };
        assert_eq!(contradictions(&whole), Vec::<String>::new());
        for (changed, what) in [
            (
                HttpResult {
                    transactions: 9,
                    ..whole.clone()
                },
                "transactions ended",
            ),
            (
                HttpResult {
                    object_bytes: 901,
                    ..whole.clone()
                },
                "bytes of objects",
            ),
            (
                HttpResult {
                    connections: Some(3),
                    ..whole.clone()
                },
                "sustain phase",
            ),
            (
                HttpResult {
                    duration_ns: 3_000_000_000,
                    ..whole.clone()
                },
                "ns of HTTP",
            ),
        ] {
            let found = contradictions(&changed);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(what), "{found:?}");
        }
    }
}
