//! Checks of the report of an HTTP client.

use super::failure::{count, then_repeat_or};
use super::{Load, ToolObserved, check};
use journal::record::{Check, Explanation, HttpFailure, HttpResult};

/// Fewer than one in this many transactions may fail (RFC 9411 §7.1.3.3: 0.001 %).
const FAILED_ONE_IN: u64 = 100_000;
/// One in this many transactions of a schedule may be left out.
const UNSENT_ONE_IN: u64 = 1000;

/// Checks that every transaction brought each byte of its object, except for the share that RFC
/// 9411 allows to fail.
pub(super) fn transactions_succeeded(observed: &ToolObserved<'_>) -> Option<Check> {
    let Load::Http(http) = observed.load else {
        return None;
    };
    let failed = http.failures();
    let reasons: Vec<String> = (http.failed.iter())
        .map(|(why, count)| format!("{count} {}", why.in_words()))
        .collect();
    let reasons = if reasons.is_empty() {
        String::new()
    } else {
        format!(" ({})", reasons.join(", "))
    };
    // "Less than 0.001 %": a strict bound, so that a trial with few transactions must not fail
    // once.
    let few = failed.saturating_mul(FAILED_ONE_IN) < http.attempted;
    // Without a transaction the share of failures is 0 of 0, which would pass.
    let failure = if http.transactions == 0 {
        let difference = format!("no transaction of the sustain phase succeeded{reasons}");
        Some(explained(difference, http))
    } else if !few {
        let failed = count(failed, http.attempted, "transaction");
        Some(explained(format!("{failed} failed{reasons}"), http))
    } else {
        None
    };
    let detail = format!(
        "of {} transactions {failed} failed{reasons}, less than 1 in {FAILED_ONE_IN} may; {} of the sustain phase \
         brought the object, compared byte by byte",
        http.attempted, http.transactions
    );
    check("transactions-succeeded", failure, detail)
}

fn explained(difference: String, http: &HttpResult) -> Explanation {
    // The most frequent reason gets the advice; the others often follow from it.
    let most = http.failed.iter().max_by_key(|(_, count)| **count);
    let (cause, advice) = match most.map(|(why, _)| why) {
        Some(HttpFailure::Refused | HttpFailure::Reset) => (
            "the server ended or refuses connections, or something on the path resets them",
            "set fewer `connections`, or look at the server's last words",
        ),
        Some(HttpFailure::WrongLength | HttpFailure::Truncated) => (
            "the server announces or sends another length than its file has, or the path ends connections",
            "look what answers in the server's place",
        ),
        Some(HttpFailure::WrongContent) => (
            "something changes the data on the path, or another server answered",
            "look what changes or answers requests between the stations",
        ),
        Some(HttpFailure::Cached) => (
            "a cache on the path answered instead of the server",
            "take the cache out of the path",
        ),
        Some(HttpFailure::NoPort) => (
            "the client opened connections faster than the kernel frees their ports",
            "set more `transactions_per_connection` or fewer `connections`",
        ),
        Some(HttpFailure::NoDescriptor) => (
            "the client may not open so many files",
            "raise the limit of file descriptors (`ulimit -Hn`), or set fewer `connections`",
        ),
        Some(HttpFailure::StoreFull) => (
            "the client's store has no room for the files",
            "free space there, fetch smaller objects or fewer files in parallel",
        ),
        Some(HttpFailure::Tls) => (
            "another certificate than the trial's was shown, or TLS 1.3 could not be agreed",
            "look what answers in the server's place",
        ),
        _ => (
            "the server or the path cannot carry this load in time",
            "ask for less in a new run",
        ),
    };
    Explanation::new(
        difference,
        cause,
        then_repeat_or("stop what else uses this machine", advice),
    )
}

/// Checks that an open-loop client began all transactions of its schedule.
pub(super) fn schedule_kept(observed: &ToolObserved<'_>) -> Option<Check> {
    let Load::Http(http) = observed.load else {
        return None;
    };
    // A closed loop has no schedule: a client begins when its last transaction has ended.
    let planned = http.planned?;
    let unsent = planned.saturating_sub(http.attempted);
    let failure = (unsent.saturating_mul(UNSENT_ONE_IN) > planned).then(|| {
        Explanation::new(
            format!(
                "{} of the schedule never began",
                count(unsent, planned, "transaction")
            ),
            "all connections were busy: the server, the path or the client does not carry this rate",
            "set a lower `transactions_per_s` or more `connections`, in a new run",
        )
    });
    let detail = format!(
        "{} of {planned} planned transactions began; 1 in {UNSENT_ONE_IN} may not",
        http.attempted
    );
    check("schedule-kept", failure, detail)
}
