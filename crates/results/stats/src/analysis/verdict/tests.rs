use super::*;
use crate::figures::estimate::Sample;

fn estimate(values: &[f64]) -> Estimate {
    let samples = (1..)
        .zip(values)
        .map(|(repeat, &value)| Sample { repeat, value });
    Estimate::of(samples.collect()).unwrap()
}

/// A device of 400 kpps on a rig of 1.5 Mpps that lost frames on the way.
struct Case {
    figure: Option<Estimate>,
    upper: Option<Estimate>,
    bounded: Bounded,
    failed: LossAccount,
    allowed_ppm: u32,
    link: Option<Link>,
    rig: CaseRig,
    slower_suite: Option<[Suite; 2]>,
    contention: Option<Contention>,
}

/// The rig of a case.
enum CaseRig {
    Unknown,
    NoFigure,
    Itself,
    Known(Estimate),
}

/// A rig with all repeats within a tenth of a per cent.
fn rig(figure: f64) -> CaseRig {
    CaseRig::Known(estimate(&[0.999, 1.001, 1.0].map(|share| share * figure)))
}

const SHARED: Contention = Contention::Shared {
    wanted: 4,
    cpus: 2,
    host: None,
};
const FULL: Contention = Contention::Full {
    station: 'A',
    busy: 0.98,
    cores: 1,
};

impl Default for Case {
    fn default() -> Self {
        Self {
            figure: Some(estimate(&[400e3, 401e3, 399e3])),
            upper: Some(estimate(&[402e3, 403e3, 401e3])),
            bounded: Bounded::Line,
            failed: LossAccount {
                intended: 400_000,
                received: 390_000,
                lost: 10_000,
                ..LossAccount::default()
            },
            allowed_ppm: 0,
            link: None,
            rig: rig(1.5e6),
            slower_suite: None,
            contention: None,
        }
    }
}

impl Case {
    fn judge(&self) -> Verdict {
        let question = Question {
            figure: self.figure.as_ref(),
            upper: self.upper.as_ref(),
            irregular: &["No lower bound in any repeat.".to_owned()],
            bounded: self.bounded,
            unit: Unit::Rate,
            failed: Some(self.failed),
            allowed_ppm: self.allowed_ppm,
            link: self.link,
            rig: match &self.rig {
                CaseRig::Unknown => Rig::Unknown,
                CaseRig::NoFigure => Rig::NoFigure("calib"),
                CaseRig::Itself => Rig::Itself,
                CaseRig::Known(figure) => Rig::Known("rig", figure),
            },
            slower_suite: self.slower_suite,
            contention: self.contention,
            level: Level::default(),
        };
        judge(&question)
    }

    /// Checks the limit, and that the sentence contains all of these.
    fn assert(&self, limit: Limit, words: &[&str]) {
        let found = self.judge();
        assert_eq!(found.limit, limit, "{found:?}");
        for word in words {
            assert!(found.reason.contains(word), "{word}: {}", found.reason);
        }
        assert!(found.reason.ends_with('.'), "{}", found.reason);
    }
}

#[test]
fn a_device_far_below_the_rig_is_its_own_limit() {
    // The factor is to the upper bound: 1500 by 402.
    Case::default().assert(Limit::DutLimited, &["1.5 Mpps", "3.73 times", "402 kpps"]);
    let found = Case::default().judge();
    assert_eq!(found.rig_cell.as_deref(), Some("rig"));
    assert!((found.of_rig.unwrap() - 0.2667).abs() < 1e-3, "{found:?}");
}

#[test]
fn a_device_as_fast_as_the_rig_is_limited_by_the_tester() {
    let beside = |figure| Case {
        rig: rig(figure),
        ..Case::default()
    };
    // 400 by 410, above 95 %.
    beside(410e3).assert(Limit::TesterLimited, &["97.6 %", "410 kpps"]);
    // Just below the share, with the upper bound above it: undecided.
    beside(422e3).assert(Limit::Inconclusive, &["422 kpps", "do not decide"]);
    // 402 by 440 are 91.4 %, and the spread of both is far less than the distance to 95 %.
    beside(440e3).assert(Limit::DutLimited, &["1.09 times", "at least 1.0"]);
}

#[test]
fn the_rigs_spread_counts() {
    // Its mean is 10 % above the device's upper bound, but the repeats leave much less possible.
    let wide = CaseRig::Known(estimate(&[420e3, 470e3, 437e3]));
    let beside = |rig| Case {
        rig,
        ..Case::default()
    };
    beside(wide).assert(Limit::Inconclusive, &["442 kpps", "repeats do not decide"]);
    // A rig in two bands has no mean to compare with, though each of its repeats is above the
    // device.
    let bands = [0.7e6, 0.701e6, 1.5e6, 1.501e6, 1.502e6];
    beside(CaseRig::Known(estimate(&bands))).assert(
        Limit::Inconclusive,
        &["The rig's own repeats fall in two bands", "2 of 700 kpps"],
    );
    let found = beside(rig(1.5e6)).judge();
    let (low, high) = (found.of_rig_low.unwrap(), found.of_rig_high.unwrap());
    assert!(
        low < 0.2667 && 0.2667 < high && high - low < 0.01,
        "{found:?}"
    );
}

#[test]
fn one_repeat_decides_nothing() {
    let single = || Case {
        figure: Some(estimate(&[400e3])),
        upper: Some(estimate(&[402e3])),
        ..Case::default()
    };
    single().assert(Limit::Inconclusive, &["One repeat decides nothing"]);
    let rig = CaseRig::Known(estimate(&[1.5e6]));
    Case {
        rig,
        ..Case::default()
    }
    .assert(Limit::Inconclusive, &["One repeat decides nothing"]);
    let failed = LossAccount {
        intended: 400_000,
        received: 390_000,
        lost: 10_000,
        receiver_dropped: 10_000,
        ..LossAccount::default()
    };
    Case { failed, ..single() }.assert(
        Limit::Inconclusive,
        &["One repeat decides nothing; by it tester-limited: Of 400000 frames"],
    );
    // That a link is full, nothing is in the path, or cores are shared, one repeat shows.
    let link = Some(Link {
        side: "clear",
        l1_bps: 0.999e9,
        link_bps: 1_000_000_000,
    });
    Case { link, ..single() }.assert(Limit::LinkLimited, &[]);
    let rig = CaseRig::Itself;
    Case { rig, ..single() }.assert(Limit::TesterLimited, &[]);
    let contention = Some(SHARED);
    Case {
        contention,
        ..single()
    }
    .assert(Limit::MachineLimited, &[]);
}

#[test]
fn a_device_that_shares_cores_with_the_stations_is_not_the_limit() {
    let shared = || Case {
        contention: Some(SHARED),
        ..Case::default()
    };
    shared().assert(
        Limit::MachineLimited,
        &["400 kpps", "want 4 cores of a machine that has 2"],
    );
    assert_eq!(shared().judge().shared_cores_wanted, Some(4));
    // Nor are the stations' losses theirs alone.
    let failed = LossAccount {
        intended: 400_000,
        not_sent: 10_000,
        received: 390_000,
        ..LossAccount::default()
    };
    Case { failed, ..shared() }.assert(Limit::MachineLimited, &[]);
    Case {
        upper: None,
        bounded: Bounded::Generator,
        ..shared()
    }
    .assert(Limit::MachineLimited, &[]);
    // It is known without the rig, but not without a limit.
    Case {
        rig: CaseRig::Unknown,
        ..shared()
    }
    .assert(Limit::MachineLimited, &[]);
    Case {
        upper: None,
        bounded: Bounded::Given,
        ..shared()
    }
    .assert(Limit::Inconclusive, &["no limit was reached"]);
    Case {
        rig: CaseRig::Itself,
        ..shared()
    }
    .assert(Limit::TesterLimited, &["No device is in the path"]);
}

#[test]
fn a_station_without_idle_time_may_be_the_limit() {
    let full = || Case {
        contention: Some(FULL),
        ..Case::default()
    };
    full().assert(
        Limit::MachineLimited,
        &["station A, the generator, had no idle time: 0.98 of 1 cores busy"],
    );
    assert_eq!(full().judge().shared_cores_wanted, None);
    // At the tester's limit it is the tester.
    Case {
        rig: rig(410e3),
        ..full()
    }
    .assert(Limit::TesterLimited, &[]);
    Case {
        figure: Some(estimate(&[400e3])),
        ..full()
    }
    .assert(
        Limit::Inconclusive,
        &["One repeat decides nothing; by it machine-limited"],
    );
}

#[test]
fn a_load_that_was_not_offered_says_nothing_of_the_device() {
    let failed = LossAccount {
        intended: 400_000,
        not_sent: 10_000,
        received: 390_000,
        ..LossAccount::default()
    };
    Case {
        failed,
        ..Case::default()
    }
    .assert(Limit::TesterLimited, &["10000 never left the generator"]);
}

#[test]
fn a_load_that_took_too_long_to_offer_says_nothing_of_the_device() {
    // All were sent and received, but took too long for the load.
    let failed = LossAccount {
        intended: 400_000,
        received: 400_000,
        too_late: 20_000,
        ..LossAccount::default()
    };
    Case {
        failed,
        ..Case::default()
    }
    .assert(Limit::TesterLimited, &["20000 left when its time was over"]);
}

#[test]
fn what_the_receiving_station_dropped_is_not_the_devices_loss() {
    let failed = LossAccount {
        intended: 400_000,
        received: 390_000,
        lost: 10_000,
        receiver_dropped: 9_900,
        ..LossAccount::default()
    };
    // 100 of 400 000 are 250 ppm.
    let with = |allowed_ppm| Case {
        failed,
        allowed_ppm,
        ..Case::default()
    };
    with(250).assert(
        Limit::TesterLimited,
        &[
            "the receiving station lost 9900",
            "lost on the way: 100 frames",
        ],
    );
    // One ppm less, and the device's part of the loss fails the goal by itself.
    with(249).assert(Limit::DutLimited, &[]);
}

#[test]
fn a_full_link_is_the_limit_whatever_the_rig_does() {
    let link = |l1_bps| {
        Some(Link {
            side: "cipher",
            l1_bps,
            link_bps: 1_000_000_000,
        })
    };
    let full = Case {
        link: link(0.991e9),
        ..Case::default()
    };
    full.assert(
        Limit::LinkLimited,
        &["991 Mbit/s", "cipher", "99.1 %", "1 Gbit/s"],
    );
    let rig = CaseRig::Itself;
    Case { rig, ..full }.assert(Limit::LinkLimited, &[]);
    // More than its sustained rate, in trials of a second or less.
    Case {
        link: link(1.06e9),
        ..Case::default()
    }
    .assert(
        Limit::LinkLimited,
        &[
            "106.0 %",
            "lets a burst through",
            "queues on the path hold the rest",
        ],
    );
    Case {
        // Below 99 %: the link does not count as full.
        link: link(0.989e9),
        ..Case::default()
    }
    .assert(Limit::DutLimited, &[]);
}

#[test]
fn a_rig_is_its_own_limit() {
    let rig = CaseRig::Itself;
    Case {
        rig,
        ..Case::default()
    }
    .assert(Limit::TesterLimited, &["No device is in the path"]);
}

#[test]
fn without_an_upper_bound_what_bounded_the_load_is_the_limit() {
    let with = |bounded| Case {
        upper: None,
        bounded,
        ..Case::default()
    };
    with(Bounded::Generator).assert(
        Limit::Inconclusive,
        &["reaches 400 kpps beside the device", "holds it back"],
    );
    let equal = Case {
        rig: rig(410e3),
        ..with(Bounded::Generator)
    };
    equal.assert(
        Limit::TesterLimited,
        &["the generator reaches was carried, 400 kpps"],
    );
    with(Bounded::Line).assert(Limit::LinkLimited, &["The line rate was carried, 400 kpps"]);
    with(Bounded::Time).assert(Limit::Inconclusive, &["time was up"]);
    with(Bounded::Given).assert(Limit::Inconclusive, &["no limit was reached"]);
}

#[test]
fn without_a_figure_of_the_rig_or_of_the_cell_the_verdict_is_inconclusive() {
    let with = |rig| Case {
        rig,
        ..Case::default()
    };
    with(CaseRig::Unknown).assert(Limit::Inconclusive, &["no cell of this group"]);
    with(CaseRig::NoFigure).assert(Limit::Inconclusive, &["`calib` has no figure"]);
    // A rig that carried nothing gives no ratio.
    let nothing = CaseRig::Known(estimate(&[0.0, 0.0]));
    with(nothing).assert(Limit::Inconclusive, &["`rig` has no figure"]);
    let figure = None;
    Case {
        figure,
        ..Case::default()
    }
    .assert(Limit::Inconclusive, &["No lower bound"]);
}

#[test]
fn repeats_in_two_bands_are_inconclusive() {
    let figure = Some(estimate(&[350e3, 351e3, 400e3, 401e3, 402e3]));
    Case {
        figure,
        ..Case::default()
    }
    .assert(
        Limit::Inconclusive,
        &["two bands, 2 of 350 kpps to 351 kpps and 3 of 400 kpps"],
    );
    // Far apart, and yet far below the rig.
    let figure = Some(estimate(&[400e3, 300e3, 410e3]));
    Case {
        figure,
        ..Case::default()
    }
    .assert(Limit::DutLimited, &[]);
}

#[test]
fn a_station_that_may_be_slower_than_the_rig_may_be_the_limit() {
    let suite = Suite::from_name("aes-128-cbc-hmac-sha1").unwrap();
    let beside = |figure| Case {
        rig: rig(figure),
        slower_suite: Some([suite, Suite::Aes256Gcm]),
        ..Case::default()
    };
    beside(1.5e6).assert(
        Limit::Inconclusive,
        &[
            "aes-128-cbc-hmac-sha1",
            "aes-256-gcm",
            "1.5 Mpps",
            "400 kpps",
        ],
    );
    // A rate that the rig does not reach either raises no doubt.
    beside(405e3).assert(Limit::TesterLimited, &[]);
}
