//! Checks that a device outside of the lab still carries frames when its trials are over. Nothing
//! else shows its end: no process of the lab ends at the same time, and lost frames are a figure.

use super::{Rig, RigLoad};
use crate::error::TrialError;
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Frames of one offer.
const FRAMES: u64 = 10;
/// Their maximum rate per second: far below a device's capacity.
const FRAMES_PER_S: u64 = 1000;
/// For how long they are offered again: a device may renew its keys just then.
const LIMIT: Duration = Duration::from_secs(5);

/// Offers a few frames until some arrive in each loaded direction. `load` is the load of the
/// figures.
///
/// # Errors
/// When none arrives within [`LIMIT`], and as [`Rig::run`].
pub(super) fn expect_carries(
    dut: &str,
    rig: &mut dyn Rig,
    load: &RigLoad,
    interrupt: &Interrupt,
) -> Result<(), TrialError> {
    let frames_per_s = load.frames_per_s.unwrap_or(FRAMES_PER_S);
    let few = RigLoad {
        unread: true,
        ..RigLoad::burst(FRAMES, frames_per_s.min(FRAMES_PER_S), load.drain_ns)
    };
    let begun = Instant::now();
    loop {
        let trial = rig.run(&few, interrupt)?.trial;
        if trial.each_direction().iter().all(|own| own.received > 0) {
            return Ok(());
        }
        if begun.elapsed() >= LIMIT {
            return Err(TrialError::frames(format!(
                "the device under test `{dut}` carries no frames any more: after its trials {FRAMES} frames at {} frames/s \
                 were offered again and again for {} s, and none arrived; its figures are those of a device that went away",
                few.frames_per_s.unwrap_or_default(),
                LIMIT.as_secs()
            )));
        }
    }
}
