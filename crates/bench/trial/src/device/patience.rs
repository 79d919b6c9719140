//! How long a fatigue trial waits for a device that hangs or does not start again.
//!
//! A device without progress for [`Patience::silence`] has failed. Its whole time without load may
//! be three times that, plus its time under load ([`Patience::allows`]). So a trial of the duration
//! *D*, with a silence *S* of 10 s to 60 s, ends at most 2 *D* + 4 *S* after its beginning, plus
//! the few seconds that killing a process takes, for any behaviour of its devices.

use std::time::Duration;

/// Longest time without progress: of many threads that wait for one slow device, one completes an
/// operation within it. Progress reports alone are no progress: they do not wait for the device.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// The same in a short trial, which is not to wait much longer than it lasts.
const SILENCE_MIN: Duration = Duration::from_secs(10);
/// Silences that a device may lose besides the time that it was under load.
const SILENCES: u32 = 3;

/// The limits of one trial.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    silence: Duration,
}

impl Patience {
    /// The limits of a trial of this duration, if it has one. `silence` overrides the longest time
    /// without progress.
    pub(super) fn of(duration_ns: Option<u64>, silence: Option<Duration>) -> Self {
        let duration = duration_ns.map_or(SILENCE_MAX, Duration::from_nanos);
        let silence = silence.unwrap_or_else(|| duration.clamp(SILENCE_MIN, SILENCE_MAX));
        Self { silence }
    }

    /// The longest time without progress.
    pub(super) const fn silence(self) -> Duration {
        self.silence
    }

    /// Whether a device that was under load for `under_load` of `elapsed` is still waited for.
    pub(super) fn allows(self, elapsed: Duration, under_load: Duration) -> bool {
        elapsed.saturating_sub(under_load) <= SILENCES * self.silence + under_load
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn silence_follows_the_duration() {
        let silence = |ns| Patience::of(ns, None).silence();
        assert_eq!(silence(Some(5_000_000_000)), seconds(10));
        assert_eq!(silence(Some(30_000_000_000)), seconds(30));
        assert_eq!(silence(Some(3_600_000_000_000)), seconds(60));
        assert_eq!(silence(None), seconds(60));
        assert_eq!(Patience::of(None, Some(seconds(1))).silence(), seconds(1));
    }

    /// A device that works for `life` after each start and then hangs: how long its trial of
    /// `duration` takes, by the rules of the trial.
    fn trial_of_a_hanging_device(duration: Duration, life: Duration) -> Duration {
        let patience = Patience::of(Some(duration.as_nanos() as u64), None);
        let (mut elapsed, mut under_load) = (Duration::ZERO, Duration::ZERO);
        while under_load < duration && patience.allows(elapsed, under_load) {
            let worked = life.min(duration - under_load);
            under_load += worked;
            elapsed += worked + patience.silence();
        }
        elapsed
    }

    #[test]
    fn a_trial_of_a_hanging_device_is_bounded() {
        for duration in [1, 5, 60, 600, 3600] {
            for life_ms in [0, 1, 100, 999, 10_000, 59_000] {
                let duration = seconds(duration);
                let took = trial_of_a_hanging_device(duration, Duration::from_millis(life_ms));
                let silence = duration.clamp(SILENCE_MIN, SILENCE_MAX);
                assert!(took <= 2 * duration + 4 * silence, "{duration:?} {took:?}");
            }
        }
        // One that works for most of the time is not given up.
        let hour = seconds(3600);
        let took = trial_of_a_hanging_device(hour, seconds(300));
        assert!(took >= hour + 11 * SILENCE_MAX, "{took:?}");
    }
}
