//! Contradictions of a trial over HTTP.

use super::Contradictions;
use crate::record::{HttpResult, TimeBucket};

/// `most_ns`: the time that the whole trial took.
pub(super) fn of_result(http: &HttpResult, most_ns: u64, found: &mut Contradictions) {
    found.part((http.duration_ns, "ns of HTTP"), (most_ns, "ns of the trial"));
    let attempted = (http.attempted, "transactions attempted");
    found.measurable("bytes", [http.object_bytes, http.received_bytes]);
    found.measurable("transactions", [http.attempted]);
    let ended = http.transactions.saturating_add(http.failures());
    found.part((ended, "transactions ended"), attempted);
    let bytes = (http.received_bytes, "bytes received");
    found.part((http.object_bytes, "bytes of objects"), bytes);
    if let Some(connections) = http.connections {
        let in_all = (http.connections_in_all, "connections of the run");
        found.part((connections, "connections of the sustain phase"), in_all);
    }
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
