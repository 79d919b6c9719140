//! Trials that a busy machine spoils are repeated, and after that the test is skipped, loudly.
//!
//! Only the record of a trial decides whether the machine was the cause: each failed check must be
//! one that a busy machine fails. A test that fails for any other reason fails.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Repeats of what a busy machine spoilt.
pub const REPEATS: usize = 3;

/// Checks that a busy machine fails.
const OF_THE_MACHINE: [&str; 11] = [
    "machine-was-ours",
    "tools-kept-time",
    "offered-as-intended",
    "processes-in-step",
    "station-kept-up",
    "schedule-kept",
    "receiver-kept-up",
    "players-kept-up",
    "throughput-confirmed",
    "losses-attributed",
    "impair-kept-up",
];

/// A search without loss finds no load that such a machine carries, which has no check.
const NO_LOAD: &str = "no load met the goal";

/// Whether the machine is the only cause of these reasons of an invalid trial.
pub fn is_the_cause<'a>(reasons: impl IntoIterator<Item = &'a str>) -> bool {
    let reasons = reasons.into_iter();
    let mut checks = reasons
        .filter(|reason| !reason.starts_with(NO_LOAD))
        .peekable();
    let check = |reason: &'a str| reason.split_once(": ").map_or(reason, |(check, _)| check);
    // Without a failed check there is no proof that it was the machine.
    checks.peek().is_some() && checks.all(|reason| OF_THE_MACHINE.contains(&check(reason)))
}

/// Why there is no result: the machine was too busy for it.
struct TooBusy(String);

/// Ends an attempt that a busy machine spoilt, in any depth.
pub fn too_busy(why: String) -> ! {
    // Not `panic!`: its hook would print a failure that is none.
    resume_unwind(Box::new(TooBusy(why)))
}

/// Makes an attempt, and repeats it so often while the machine is too busy.
///
/// # Errors
/// Why the machine was too busy, each time.
pub fn repeated<T>(repeats: usize, mut attempt: impl FnMut() -> T) -> Result<T, String> {
    let mut spoilt = Vec::new();
    while spoilt.len() <= repeats {
        match catch_unwind(AssertUnwindSafe(&mut attempt)) {
            Ok(found) => return Ok(found),
            Err(payload) => match payload.downcast::<TooBusy>() {
                Ok(busy) => spoilt.push(busy.0),
                Err(other) => resume_unwind(other),
            },
        }
    }
    Err(spoilt.join("; again: "))
}

/// Runs a test, repeated as by [`repeated`]; returns why it was skipped, if it was.
pub fn skipped(repeats: usize, test: impl FnMut()) -> Option<String> {
    let why = repeated(repeats, test).err()?;
    eprintln!("SKIPPED: this machine is too busy: {why}");
    Some(why)
}
