//! Crypto devices and their trials, in words.

use crate::words::time;
use crate::{DeviceTest, Workers};
use units::human::counted;

/// A trial of a device, in words.
pub(super) fn in_words(test: &DeviceTest) -> String {
    match test {
        DeviceTest::Kat(kat) => format!(
            "functional trial of {}",
            counted(kat.algorithms.len() as u64, "algorithm")
        ),
        DeviceTest::Speed(speed) => {
            let size = speed
                .bytes
                .map_or_else(String::new, |bytes| format!(" of {bytes} B"));
            let what = match speed.workers {
                Workers::Threads => counted(speed.concurrency, "thread"),
                // `counted` forms plurals with an s alone.
                Workers::Processes if speed.concurrency == 1 => "1 process".to_owned(),
                Workers::Processes => format!("{} processes", speed.concurrency),
            };
            let depth = match speed.depth {
                1 => String::new(),
                depth => format!(", {depth} at once in each"),
            };
            let duration = time(speed.duration_ns);
            format!("{}{size} by {what}{depth}, {duration}", speed.operation)
        }
        DeviceTest::Fatigue(fatigue) => {
            let loops = fatigue
                .loops
                .map(|loops| format!("{loops} rounds of each thread"));
            // With both, the trial ends at the first of them.
            let end = [loops, fatigue.duration_ns.map(time)];
            let end: Vec<_> = end.into_iter().flatten().collect();
            let invalid = match fatigue.invalid_every {
                0 => "no invalid inputs".to_owned(),
                1 => "all inputs invalid".to_owned(),
                every => format!("one input in {every} invalid"),
            };
            let restart = if fatigue.restart {
                "restarted when it fails"
            } else {
                "not restarted"
            };
            format!(
                "{} by {} on each device for {}, every result verified, {invalid}, {restart}",
                counted(fatigue.operations.len() as u64, "operation"),
                counted(fatigue.threads, "thread"),
                end.join(" or "),
            )
        }
    }
}
