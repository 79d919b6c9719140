//! When a bridge without work sleeps, and when it stays awake because a sleeper wakes up late.

use std::ops::{Range, RangeInclusive};

/// A sleep ends a tenth before the next frame is due, but within these bounds; the rest is spent
/// looking at the ports. A sleeping core may need 200 us to wake; frames that come as often as that
/// keep it awake.
const SPIN_NS: RangeInclusive<u64> = 30_000..=400_000;
/// Where frames come at shorter distances than this, it stays awake for the next.
const LINGER_NS: u64 = 60_000;

/// What a bridge without work does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Looks at the ports again.
    Awake,
    /// Sleeps until a frame comes, or for this long.
    Asleep(Option<u64>),
}

/// What the next rest depends on; times in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// When it stays awake for the frame that is due at the end.
    awake: Range<u64>,
    /// When the last frame came.
    came_ns: u64,
    /// Whether it came soon after the one before.
    come_often: bool,
}

impl Rests {
    /// Frames came in this time.
    pub(super) fn came(&mut self, times: RangeInclusive<u64>) {
        self.come_often = times.start().saturating_sub(self.came_ns) <= LINGER_NS;
        self.came_ns = *times.end();
    }

    /// The next rest, where the next frame leaves at `due_ns` and none has come.
    pub(super) fn next(&mut self, now_ns: u64, due_ns: Option<u64>) -> Rest {
        if self.come_often && now_ns <= self.came_ns + LINGER_NS {
            return Rest::Awake;
        }
        let Some(due_ns) = due_ns else {
            return Rest::Asleep(None);
        };
        if self.awake.contains(&now_ns) && due_ns <= self.awake.end {
            return Rest::Awake;
        }
        let left_ns = due_ns.saturating_sub(now_ns);
        let spin_ns = (left_ns / 10).clamp(*SPIN_NS.start(), *SPIN_NS.end());
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
        // Woken early by a frame that leaves at once, it goes back to sleep.
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

    #[test]
    fn it_stays_awake_for_frames_that_come_often_and_only_for_them() {
        let mut rests = Rests::default();
        rests.came(MS..=MS);
        assert_eq!(
            rests.next(MS + 1, None),
            Asleep(None),
            "the first after a pause"
        );
        rests.came(MS + LINGER_NS..=MS + 70_000);
        assert_eq!(rests.next(MS + 130_000, None), Awake);
        assert_eq!(
            rests.next(MS + 130_001, None),
            Asleep(None),
            "it did not come"
        );
        rests.came(2 * MS..=2 * MS);
        assert_eq!(rests.next(2 * MS + 1, None), Asleep(None));
    }
}
