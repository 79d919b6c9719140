//! Goals by name: what most searches are for.

use crate::{Goal, Method};

const SECOND: u64 = 1_000_000_000;

/// A set of goals, and the way to search for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// How.
    pub method: Method,
    /// Each goal's name, `ndr` (no frame lost) or `pdr` (half a per cent lost), and the goal.
    pub goals: &'static [(&'static str, Goal)],
}

/// NDR and PDR in seconds: trials from 50 ms to 1 s, of which half a duration sum of 2 s may be lossy.
/// For work in progress and for wide campaigns; its NDR is not a throughput by RFC 2544.
pub const FAST: Profile = Profile {
    method: Method::Mlr,
    goals: &[
        ("ndr", FAST_NDR),
        (
            "pdr",
            Goal {
                loss_ratio_ppm: 5_000,
                ..FAST_NDR
            },
        ),
    ],
};

/// Zero loss in one trial of 60 s: unconditionally compliant with RFC 2544 (RFC 9971, MLRsearch Compliant
/// with RFC 2544).
pub const RFC2544: Profile = Profile {
    method: Method::Mlr,
    goals: &[(
        "ndr",
        Goal {
            loss_ratio_ppm: 0,
            exceed_ratio_ppm: 0,
            initial_trial_ns: SECOND,
            final_trial_ns: 60 * SECOND,
            duration_sum_ns: 60 * SECOND,
            width_ppm: 5_000,
        },
    )],
};

/// Zero loss in one of two trials of 60 s: bisection with loss verification, max(r) = 2 (ETSI GS NFV-TST
/// 009 §12.3.3).
pub const TST009: Profile = Profile {
    method: Method::Tst009,
    goals: &[(
        "ndr",
        Goal {
            loss_ratio_ppm: 0,
            exceed_ratio_ppm: 500_000,
            initial_trial_ns: 60 * SECOND,
            final_trial_ns: 60 * SECOND,
            duration_sum_ns: 120 * SECOND,
            width_ppm: 5_000,
        },
    )],
};

const FAST_NDR: Goal = Goal {
    loss_ratio_ppm: 0,
    exceed_ratio_ppm: 500_000,
    initial_trial_ns: SECOND / 20,
    final_trial_ns: SECOND,
    duration_sum_ns: 2 * SECOND,
    width_ppm: 5_000,
};
