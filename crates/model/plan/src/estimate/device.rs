//! How long trials of crypto devices take.

use crate::{DeviceTest, Workers};
use std::time::Duration;

/// One algorithm of the functional trial, all its cases.
pub const ALGORITHM: Duration = Duration::from_millis(50);
/// One worker process, until it is ready.
pub const PROCESS: Duration = Duration::from_millis(15);
/// One thread, with its session and key.
pub const THREAD: Duration = Duration::from_micros(200);
/// One operation of a fatigue trial that counts loops, checked: somewhere between a hash and an RSA
/// signature.
pub const OPERATION: Duration = Duration::from_micros(100);

/// Time that the trial itself takes.
pub(super) fn time(test: &DeviceTest) -> Duration {
    match test {
        DeviceTest::Kat(kat) => ALGORITHM * u32::try_from(kat.algorithms.len()).unwrap_or(u32::MAX),
        DeviceTest::Speed(speed) => {
            let ready = match speed.workers {
                // Threads share a process; each still has its session and key.
                Workers::Threads => PROCESS + THREAD * speed.concurrency,
                Workers::Processes => PROCESS * speed.concurrency,
            };
            ready + Duration::from_nanos(speed.duration_ns)
        }
        DeviceTest::Fatigue(fatigue) => {
            let loops = fatigue.loops.map(|loops| {
                let each = (fatigue.operations.len() as u64).saturating_mul(fatigue.threads.into());
                let operations = loops.saturating_mul(each);
                Duration::from_nanos(operations.saturating_mul(OPERATION.as_nanos() as u64))
            });
            let given = fatigue.duration_ns.map(Duration::from_nanos);
            // The trial ends at the lower of the two limits.
            let work = [loops, given].into_iter().flatten().min();
            // One of the two is set; a changed journal may have neither.
            PROCESS + THREAD * fatigue.threads + work.unwrap_or_default()
        }
    }
}
