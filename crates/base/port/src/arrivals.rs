//! Arrival times of frames: the kernel notes them by CLOCK_REALTIME, which may be set at any time;
//! stations compare CLOCK_MONOTONIC.

/// Two readings of a clock at most this far apart are as close as they get, or nearly.
const TIGHT_NS: i64 = 1000;
/// Maximum number of readings: some machines read clocks by a system call, and take longer.
const READINGS_MAX: u32 = 8;
/// A change of the offset between two readings by more than this is a clock that was set, rather
/// than an inexact reading.
const SET_NS: u64 = 1_000_000;

/// Converts the kernel's arrival times to CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Arrivals {
    offset: ClockOffset,
    /// The last offset before the clock was set.
    before: Option<ClockOffset>,
}

/// The offset of CLOCK_REALTIME from CLOCK_MONOTONIC, which changes only when the former is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// By how many nanoseconds CLOCK_REALTIME is ahead.
    pub ahead_ns: i64,
    /// By how many nanoseconds that may be wrong, either way.
    pub within_ns: u64,
    /// When it was read, by CLOCK_MONOTONIC.
    pub at_ns: i64,
}

impl ClockOffset {
    /// Reads both clocks, and again if the reading was interrupted.
    #[must_use]
    pub fn read() -> Self {
        tightest(read)
    }
}

impl Arrivals {
    pub(crate) fn new() -> Self {
        Self {
            offset: ClockOffset::read(),
            before: None,
        }
    }

    /// Reads the clocks. Must be called when frames have arrived, before their times are converted.
    pub(crate) fn update(&mut self) {
        self.note(ClockOffset::read());
    }

    fn note(&mut self, offset: ClockOffset) {
        if offset.ahead_ns.abs_diff(self.offset.ahead_ns) > SET_NS {
            self.before = Some(self.offset);
        }
        self.offset = offset;
    }

    /// Returns the time by CLOCK_MONOTONIC that is this time by CLOCK_REALTIME. The frame may have
    /// waited since before the clock was set: then its time by the new offset is not between the
    /// last reading of the old one and now.
    pub(crate) fn monotonic_ns(&self, real_ns: i64) -> Option<u64> {
        let since_ns = real_ns - self.offset.ahead_ns;
        let noted_ns = match self.before {
            Some(before) if !(before.at_ns..=self.offset.at_ns).contains(&since_ns) => {
                real_ns - before.ahead_ns
            }
            _ => since_ns,
        };
        u64::try_from(noted_ns).ok()
    }
}

fn read() -> Reading {
    let read = |clock| {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` outlives the call; both clocks always exist.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    Reading {
        before_ns: read(libc::CLOCK_MONOTONIC),
        real_ns: read(libc::CLOCK_REALTIME),
        after_ns: read(libc::CLOCK_MONOTONIC),
    }
}

/// CLOCK_REALTIME between two readings of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
struct Reading {
    before_ns: i64,
    real_ns: i64,
    after_ns: i64,
}

impl Reading {
    const fn spread_ns(&self) -> i64 {
        self.after_ns - self.before_ns
    }
}

/// The offset by the first reading that is tight enough, or the tightest of a few: a reading is
/// wrong by half of any preemption during it.
fn tightest(mut read: impl FnMut() -> Reading) -> ClockOffset {
    let mut best = read();
    for _ in 1..READINGS_MAX {
        // Few readings are interrupted, so the usual cost is one.
        if best.spread_ns() < TIGHT_NS {
            break;
        }
        let next = read();
        if next.spread_ns() < best.spread_ns() {
            best = next;
        }
    }
    ClockOffset {
        ahead_ns: best.real_ns - best.before_ns.midpoint(best.after_ns),
        within_ns: best.spread_ns().unsigned_abs().div_ceil(2),
        at_ns: best.after_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD_NS: i64 = 1_700_000_000_000_000_000;
    const MS: i64 = 1_000_000;
    const HOUR_NS: i64 = 3_600_000 * MS;

    /// A reading with preemptions of these lengths before and after the clock in the middle.
    fn reading(at_ns: i64, away_before_ns: i64, away_after_ns: i64) -> Reading {
        let middle_ns = at_ns + away_before_ns + 20;
        Reading {
            before_ns: at_ns,
            real_ns: middle_ns + AHEAD_NS,
            after_ns: middle_ns + away_after_ns + 20,
        }
    }

    #[test]
    fn a_preempted_reading_of_two_clocks_is_repeated() {
        let mut readings = [(0, 4_000_000), (9000, 0), (0, 0), (0, 0)].into_iter();
        let offset = tightest(|| {
            let (before_ns, after_ns) = readings.next().unwrap();
            reading(77, before_ns, after_ns)
        });
        assert_eq!((offset.ahead_ns, offset.at_ns), (AHEAD_NS, 77 + 40));
        assert_eq!(offset.within_ns, 20);
        assert_eq!(readings.len(), 1, "the third was tight enough");
    }

    #[test]
    fn without_a_tight_reading_the_tightest_is_used() {
        let mut reads = 0;
        let offset = tightest(|| {
            reads += 1;
            reading(reads, 0, if reads == 3 { 2000 } else { 8000 })
        });
        let expected = (AHEAD_NS - 1000, i64::from(READINGS_MAX));
        assert_eq!((offset.ahead_ns, reads), expected);
    }

    /// Arrivals before and after a step, each read 5 ms later, and one that waited for 80 ms.
    #[test]
    fn a_clock_that_is_set_does_not_move_arrivals() {
        for step_ns in [HOUR_NS, -HOUR_NS, 200 * MS, -200 * MS] {
            let at = |ms: i64, ahead_ns| ClockOffset {
                ahead_ns,
                within_ns: 0,
                at_ns: ms * MS,
            };
            let mut arrivals = Arrivals {
                offset: at(1000, AHEAD_NS),
                before: None,
            };
            // Set at 1020 ms, and set back at 1520 ms.
            let set_ns = AHEAD_NS + step_ns;
            for (now_ms, ahead_ns, arrived) in [
                (1010, AHEAD_NS, vec![(1005, AHEAD_NS)]),
                (
                    1025,
                    set_ns,
                    vec![(930, AHEAD_NS), (1019, AHEAD_NS), (1021, set_ns)],
                ),
                (1030, set_ns, vec![(1019, AHEAD_NS), (1028, set_ns)]),
                (1515, set_ns, vec![(1510, set_ns)]),
                (1525, AHEAD_NS, vec![(1519, set_ns), (1521, AHEAD_NS)]),
                (9000, AHEAD_NS, vec![(8995, AHEAD_NS)]),
            ] {
                arrivals.note(at(now_ms, ahead_ns));
                for (came_ms, by_ns) in arrived {
                    let found = arrivals.monotonic_ns(came_ms * MS + by_ns);
                    let came_ns = came_ms as u64 * 1_000_000;
                    assert_eq!(found, Some(came_ns), "{came_ms} ms at {now_ms} ms");
                }
            }
        }
    }
}
