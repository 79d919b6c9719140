//! Trials that a busy machine spoils are repeated, and after that the test is skipped, loudly.
//!
//! The record of a trial decides whether the machine was the cause: each failed check must be one
//! that a busy machine fails. A test that fails for any other reason beside other tests is made
//! again alone, and fails if it does so there too, unless the hypervisor took the machine's time
//! away meanwhile: then a limit of time may have ended anything.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{PoisonError, RwLock};

/// Repeats of a test that a busy machine spoilt.
pub const REPEATS: usize = 3;

/// The share of the machine's time that the hypervisor may take before a failure proves nothing. A
/// machine of a laboratory has less than 1 %; at 10 % all tests have passed many times.
const STOLEN_SHARE: f64 = 0.15;

/// Repeats of a test that failed while the machine was taken away. They are slow there.
const STOLEN_REPEATS: usize = 2;

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

/// Checks that count only if `machine-was-ours` failed as well: a starved sender sends fewer
/// frames, of which key exchange, which goes by the clock, is then a larger share.
const BESIDE_OTHERS: [&str; 1] = ["cipher-link-encrypted"];

/// A search without loss may find no load that a busy machine carries, and this has no check.
const NO_LOAD: &str = "no load met the goal";

/// Whether the machine is the only cause of these reasons of an invalid trial.
pub fn is_the_cause<'a>(reasons: impl IntoIterator<Item = &'a str>) -> bool {
    let reasons = reasons.into_iter();
    let checks: Vec<&str> = reasons
        .filter(|reason| !reason.starts_with(NO_LOAD))
        .map(|reason| reason.split_once(": ").map_or(reason, |(check, _)| check))
        .collect();
    let others_ran = checks.contains(&"machine-was-ours");
    let excused = |check: &&str| {
        OF_THE_MACHINE.contains(check) || (others_ran && BESIDE_OTHERS.contains(check))
    };
    // Without a failed check there is no proof that it was the machine.
    !checks.is_empty() && checks.iter().all(excused)
}

/// Why there is no result: the machine was too busy for it.
struct TooBusy(String);

impl From<TooBusy> for String {
    fn from(busy: TooBusy) -> Self {
        busy.0
    }
}

/// Ends an attempt that a busy machine spoilt, in any depth.
pub fn too_busy(why: String) -> ! {
    // Not `panic!`: its hook would print a failure that is none.
    resume_unwind(Box::new(TooBusy(why)))
}

/// Makes an attempt, and repeats it up to `repeats` times while the machine is too busy.
///
/// # Errors
/// Why the machine was too busy, each time.
pub fn repeated<T>(repeats: usize, attempt: impl FnMut() -> T) -> Result<T, String> {
    repeated_after::<TooBusy, T>(repeats, attempt)
}

/// Repeats an attempt while it ends by a payload of type `P`, which has the reason.
fn repeated_after<P: Into<String> + 'static, T>(
    repeats: usize,
    mut attempt: impl FnMut() -> T,
) -> Result<T, String> {
    let mut spoilt: Vec<String> = Vec::new();
    while spoilt.len() <= repeats {
        match catch_unwind(AssertUnwindSafe(&mut attempt)) {
            Ok(found) => return Ok(found),
            Err(payload) => match payload.downcast::<P>() {
                Ok(reason) => spoilt.push((*reason).into()),
                Err(other) => resume_unwind(other),
            },
        }
    }
    Err(spoilt.join("; again: "))
}

/// Held by each test of a laboratory: shared while others may run beside it, exclusively by a test
/// that is made again alone.
static LAB_TURN: RwLock<()> = RwLock::new(());

/// Runs a test of a laboratory, repeated as by [`repeated`], again alone if it fails beside others,
/// and also while it fails on a machine that the hypervisor takes away; returns why it was skipped,
/// if it was.
pub fn skipped_in_lab(repeats: usize, mut test: impl FnMut()) -> Option<String> {
    let mut watched = || {
        let before = ticks();
        let Err(payload) = catch_unwind(AssertUnwindSafe(|| again_alone(&mut test))) else {
            return;
        };
        let stolen = stolen_share(before, ticks());
        if payload.is::<TooBusy>() || stolen < STOLEN_SHARE {
            resume_unwind(payload);
        }
        let why = format!(
            "it failed while the hypervisor took {:.0} % of the machine: {}",
            stolen * 100.0,
            words(&*payload)
        );
        eprintln!("{why}");
        resume_unwind(Box::new(Stolen(why)));
    };
    reported(
        repeated_after::<Stolen, _>(STOLEN_REPEATS, || repeated(repeats, &mut watched)).flatten(),
    )
}

/// Runs a test beside others, and alone if it fails there.
fn again_alone(test: &mut impl FnMut()) {
    let shared = LAB_TURN.read();
    let outcome = catch_unwind(AssertUnwindSafe(&mut *test));
    // A thread that keeps the shared lock would wait for itself below.
    drop(shared);
    let Err(payload) = outcome else {
        return;
    };
    if payload.is::<TooBusy>() {
        resume_unwind(payload);
    }
    eprintln!(
        "it failed beside other tests and is made again alone: {}",
        words(&*payload)
    );
    // What it guards is nothing that a panic could have left half done.
    let _alone = LAB_TURN.write().unwrap_or_else(PoisonError::into_inner);
    test();
}

/// A failure that the hypervisor may have caused.
struct Stolen(String);

impl From<Stolen> for String {
    fn from(stolen: Stolen) -> Self {
        stolen.0
    }
}

/// The message of a panic.
fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without words")
}

/// All time of the machine's CPUs since it started, and the hypervisor's part of it, in ticks;
/// zeros if the kernel has no counts.
fn ticks() -> [u64; 2] {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let counts = stat.lines().next().unwrap_or_default().split(' ');
    // user nice system idle iowait irq softirq steal; guests' time is in user and nice already.
    let counts: Vec<u64> = counts.filter_map(|word| word.parse().ok()).collect();
    let stolen = counts.get(7).copied().unwrap_or(0);
    [counts.iter().take(8).sum(), stolen]
}

fn stolen_share(before: [u64; 2], after: [u64; 2]) -> f64 {
    let [all, stolen] = [0, 1].map(|index| after[index].saturating_sub(before[index]));
    stolen as f64 / all.max(1) as f64
}

/// Runs a test, repeated as by [`repeated`]; returns why it was skipped, if it was.
pub fn skipped(repeats: usize, test: impl FnMut()) -> Option<String> {
    reported(repeated(repeats, test))
}

/// Reports why a test was skipped, if it was.
fn reported(outcome: Result<(), String>) -> Option<String> {
    let why = outcome.err()?;
    eprintln!("SKIPPED: this machine is too busy: {why}");
    Some(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_busy_machine_is_the_cause_of_known_checks_only() {
        let [busy, keys] = ["machine-was-ours: no", "cipher-link-encrypted: 17 of 60"];
        assert!(is_the_cause([busy]) && is_the_cause([busy, keys, NO_LOAD]));
        assert!(!is_the_cause([keys]) && !is_the_cause([NO_LOAD]) && !is_the_cause([]));
        assert!(!is_the_cause([busy, "no-clear-text: 3 frames"]));
    }

    #[test]
    fn only_failures_on_a_machine_that_was_taken_away_are_made_again() {
        let made = Cell::new(0);
        let stolen_until = |good: usize| {
            made.set(0);
            repeated_after::<Stolen, _>(STOLEN_REPEATS, || {
                made.set(made.get() + 1);
                if made.get() < good {
                    resume_unwind(Box::new(Stolen(format!("attempt {}", made.get()))));
                }
            })
        };
        assert_eq!((stolen_until(1), made.get()), (Ok(()), 1));
        assert_eq!((stolen_until(3), made.get()), (Ok(()), 3));
        let why = stolen_until(9).unwrap_err();
        assert_eq!(why, "attempt 1; again: attempt 2; again: attempt 3");
        // A failure on a quiet machine fails the test, even after other attempts.
        let fails = catch_unwind(|| {
            repeated_after::<Stolen, ()>(STOLEN_REPEATS, || resume_unwind(Box::new("a bug")))
        });
        assert_eq!(words(&*fails.unwrap_err()), "a bug");
    }

    #[test]
    fn a_test_that_fails_beside_others_fails_if_it_does_so_alone() {
        let made = Cell::new(0);
        let fails_until = |good: usize| {
            made.set(0);
            catch_unwind(AssertUnwindSafe(|| {
                again_alone(&mut || {
                    made.set(made.get() + 1);
                    if made.get() < good {
                        resume_unwind(Box::new("a bug"));
                    }
                });
            }))
        };
        assert!(fails_until(1).is_ok() && made.get() == 1);
        assert!(fails_until(2).is_ok() && made.get() == 2);
        let payload = fails_until(9).unwrap_err();
        assert_eq!((words(&*payload), made.get()), ("a bug", 2));
        // Nor does that failure keep others from being alone.
        assert!(fails_until(2).is_ok());
    }

    #[test]
    fn the_share_that_the_hypervisor_took_is_of_all_time() {
        assert!((stolen_share([1000, 10], [1200, 60]) - 0.25).abs() < 1e-9);
        assert!(stolen_share([1000, 10], [1000, 10]).abs() < 1e-9);
        let [all, stolen] = ticks();
        assert!(all > 0 && stolen <= all);
    }
}
