//! Profiles: sets of search goals and times with a name.
//!
//! | | `fast` | `rfc2544` | `tst009` |
//! | --- | --- | --- | --- |
//! | goals | NDR: 0 % loss, PDR: 0.5 % | NDR: 0 % | NDR: 0 % |
//! | exceed ratio | 50 % | 0 % | 50 % |
//! | initial trial | 100 ms | 1 s | 60 s |
//! | final trial | 500 ms | 60 s | 60 s |
//! | duration sum | 1 s | 60 s | 120 s |
//! | width | 3 % | 0.5 % | 0.5 % |
//! | drain | 100 ms | 2 s | 2 s |
//! | timeout | 60 s | 2 h | 4 h |
//! | latency: each load | 1 s | 120 s | 120 s |
//! | recovery: overload, relief | 2 s, 2 s | 60 s, 60 s | 60 s, 60 s |
//!
//! `rfc2544` and `tst009` are the goals that RFC 9971 gives for the two documents: one trial of 60
//! s without loss, and TST 009's loss verification, which repeats a lossy trial (an exceed ratio of
//! one half over a sum of two trials expresses this). Only trials of full length set bounds, so
//! `rfc2544` may search with shorter ones; TST 009's bisection has one length. `fast` has the usual
//! two loss ratios and that verification, with trials of a hundredth of the length: on a shared
//! machine, often the machine itself loses a frame, and a goal without verification would measure
//! that loss. Its width bounds the error below the capacity by 3 %; above it, a queue is detected
//! only when it grows by 1 % of the time (`search::DelayTrend`).

use super::{Criteria, Goal, Profile};
use crate::words::nanos;
use std::time::Duration;
use units::Ratio;

const NDR: &str = "ndr";
const PDR: &str = "pdr";
const PDR_LOSS: Ratio = Ratio::from_ppm(5_000);

/// Settings of a profile besides its goals.
#[derive(Debug, Clone, Copy)]
pub struct ProfileTimes {
    /// Time to wait for late frames after the last frame is sent.
    pub drain: Duration,
    /// Longest time for a whole search.
    pub timeout: Duration,
    /// Time of each load in a latency test.
    pub latency: Duration,
    /// Time of an overload, and time watched afterwards.
    pub recovery: Duration,
}

impl Profile {
    /// Its goals; for a custom profile, the NDR goal of `fast`.
    #[must_use]
    pub fn goals(self) -> Vec<Goal> {
        let ndr = match self {
            Self::Fast | Self::Custom => named(NDR, fast(Ratio::from_ppm(0))),
            Self::Rfc2544 => named(
                NDR,
                Criteria {
                    // The search may approach the bounds by shorter trials: only full ones set
                    // them.
                    initial_trial_ns: nanos(Duration::from_secs(1)),
                    ..minutes(0, 1)
                },
            ),
            Self::Tst009 => named(NDR, minutes(50, 2)),
        };
        match self {
            Self::Fast => vec![ndr, named(PDR, fast(PDR_LOSS))],
            Self::Rfc2544 | Self::Tst009 | Self::Custom => vec![ndr],
        }
    }

    /// Its times.
    #[must_use]
    pub const fn times(self) -> ProfileTimes {
        match self {
            Self::Fast | Self::Custom => ProfileTimes {
                drain: Duration::from_millis(100),
                timeout: Duration::from_secs(60),
                latency: Duration::from_secs(1),
                recovery: Duration::from_secs(2),
            },
            Self::Rfc2544 | Self::Tst009 => ProfileTimes {
                // RFC 2544 §23 d.
                drain: Duration::from_secs(2),
                // TST 009 verifies lossy trials by a second one, which doubles the duration sum.
                timeout: Duration::from_secs(match self {
                    Self::Tst009 => 4 * 3600,
                    _ => 2 * 3600,
                }),
                // RFC 2544 §26.2.
                latency: Duration::from_secs(120),
                // RFC 2544 §26.5.
                recovery: Duration::from_secs(60),
            },
        }
    }
}

fn named(name: &str, criteria: Criteria) -> Goal {
    Goal {
        name: name.to_owned(),
        criteria,
    }
}

fn fast(loss: Ratio) -> Criteria {
    Criteria {
        loss_ratio_ppm: ppm(loss),
        // One lossy trial of two is forgiven, as by TST 009's loss verification.
        exceed_ratio_ppm: ppm(Ratio::from_percent(50)),
        // Long enough for a rate, and short enough to look for the bounds in seconds.
        initial_trial_ns: nanos(Duration::from_millis(100)),
        final_trial_ns: nanos(Duration::from_millis(500)),
        duration_sum_ns: nanos(Duration::from_secs(1)),
        width_ppm: ppm(Ratio::from_percent(3)),
    }
}

/// Zero loss in trials of a minute.
fn minutes(exceed_percent: u32, trials: u32) -> Criteria {
    let minute = Duration::from_secs(60);
    Criteria {
        loss_ratio_ppm: 0,
        exceed_ratio_ppm: ppm(Ratio::from_percent(exceed_percent)),
        initial_trial_ns: nanos(minute),
        final_trial_ns: nanos(minute),
        // The number of full trials that decide about a load.
        duration_sum_ns: nanos(minute * trials),
        width_ppm: ppm(Ratio::from_ppm(5_000)),
    }
}

/// Ratios of goals are at most one, so they fit.
fn ppm(ratio: Ratio) -> u32 {
    u32::try_from(ratio.ppm()).unwrap_or(u32::MAX)
}
