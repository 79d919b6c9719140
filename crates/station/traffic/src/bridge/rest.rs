//! When a bridge without work sleeps, and when it stays awake because a sleeper wakes up late.

use std::ops::{Range, RangeInclusive};

/// A sleep ends a tenth before the next frame is due, but within these bounds; the rest is spent
/// looking at the ports. A sleeping core may need 200 us to wake; frames at this interval or less
/// keep it awake.
const SPIN_NS: RangeInclusive<u64> = 30_000..=400_000;
/// If frames are closer together than this on average, the bridge stays awake for the next,
const OFTEN_NS: u64 = 60_000;
/// for this long: a brief pause of the sender is no reason to sleep.
const LINGER_NS: u64 = 250_000;
/// Longer distances count as this one, so that a few short ones outweigh any pause.
const SELDOM_NS: u64 = 500_000;
/// A new distance counts for one part in this many of the average.
const AVERAGED: u64 = 8;

/// The next step of a bridge without work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Looks at the ports again.
    Awake,
    /// Sleeps until a frame comes, or for this long.
    Asleep(Option<u64>),
}

/// The state that decides the next rest; times in nanoseconds.
#[derive(Debug)]
pub(super) struct Rests {
    /// When it stays awake for the frame that is due at the end.
    awake: Range<u64>,
    /// When the last frame came.
    came_ns: u64,
    /// Average distance of frames that came one after the other.
    distance_ns: u64,
}

impl Default for Rests {
    fn default() -> Self {
        Self {
            awake: 0..0,
            came_ns: 0,
            distance_ns: SELDOM_NS,
        }
    }
}

impl Rests {
    /// Frames came in this time.
    pub(super) fn came(&mut self, times: RangeInclusive<u64>) {
        // From the last frame of a batch to the first of the next: within a batch they came
        // together.
        let distance_ns = times.start().saturating_sub(self.came_ns).min(SELDOM_NS);
        self.distance_ns = ((AVERAGED - 1) * self.distance_ns + distance_ns) / AVERAGED;
        self.came_ns = *times.end();
    }

    /// The next rest, given that no frame has come and the next one leaves at `due_ns`.
    pub(super) fn next(&mut self, now_ns: u64, due_ns: Option<u64>) -> Rest {
        if self.distance_ns <= OFTEN_NS && now_ns <= self.came_ns + LINGER_NS {
            return Rest::Awake;
        }
        let Some(due_ns) = due_ns else {
            return Rest::Asleep(None);
        };
        // It has slept for this frame already; an earlier one would end the wait sooner.
        if self.awake.contains(&now_ns) && due_ns <= self.awake.end {
            return Rest::Awake;
        }
        let left_ns = due_ns.saturating_sub(now_ns);
        let spin_ns = (left_ns / 10).clamp(*SPIN_NS.start(), *SPIN_NS.end());
        // Too soon to sleep at all.
        if left_ns <= spin_ns {
            return Rest::Awake;
        }
        self.awake = due_ns - spin_ns..due_ns;
        Rest::Asleep(Some(left_ns - spin_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::Rest::{Asleep, Awake};
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn it_sleeps_until_shortly_before_a_frame_is_due_and_then_stays_awake() {
        let mut rests = Rests::default();
        let due_ns = Some(3 * MS);
        assert_eq!(rests.next(MS, due_ns), Asleep(Some(2 * MS - 200_000)));
        assert_eq!(rests.next(3 * MS - 200_000, due_ns), Awake);
        assert_eq!(rests.next(3 * MS - 1, due_ns), Awake);
        // Woken early by a frame that leaves immediately, it goes back to sleep.
        assert_eq!(rests.next(2 * MS, due_ns), Asleep(Some(MS - 100_000)));
        // Near and far bounds of the time awake.
        assert_eq!(rests.next(0, Some(100_000)), Asleep(Some(70_000)));
        assert_eq!(rests.next(0, Some(20_000)), Awake);
        assert_eq!(
            rests.next(0, Some(50 * MS)),
            Asleep(Some(50 * MS - 400_000))
        );
    }

    #[test]
    fn it_sleeps_for_ever_where_nothing_is_due() {
        assert_eq!(Rests::default().next(5 * MS, None), Asleep(None));
    }

    /// A rest after frames at this distance, the last of them at the end.
    fn after(frames: u64, distance_ns: u64) -> (Rests, u64) {
        let mut rests = Rests::default();
        for nth in 1..=frames {
            rests.came(MS + nth * distance_ns..=MS + nth * distance_ns);
        }
        (rests, MS + frames * distance_ns)
    }

    #[test]
    fn it_stays_awake_for_frames_that_come_often_and_only_for_them() {
        let (mut rests, last_ns) = after(40, 50_000);
        assert_eq!(rests.next(last_ns + LINGER_NS, None), Awake);
        assert_eq!(
            rests.next(last_ns + LINGER_NS + 1, None),
            Asleep(None),
            "it did not come"
        );
        let (mut rests, last_ns) = after(40, 70_000);
        assert_eq!(rests.next(last_ns + 1, None), Asleep(None));
        let (mut rests, last_ns) = after(2, 5000);
        assert_eq!(
            rests.next(last_ns + 1, None),
            Asleep(None),
            "two frames are not many"
        );
    }

    #[test]
    fn one_pause_does_not_put_it_to_sleep_but_frames_that_come_seldom_do() {
        let (mut rests, last_ns) = after(100, 5000);
        let mut now_ns = last_ns + 300_000;
        rests.came(now_ns..=now_ns);
        assert_eq!(rests.next(now_ns + 1, None), Awake);
        for _ in 0..3 {
            now_ns += 300_000;
            rests.came(now_ns..=now_ns);
        }
        assert_eq!(rests.next(now_ns + 1, None), Asleep(None));
    }
}
