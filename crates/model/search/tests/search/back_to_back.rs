//! The longest burst without loss (RFC 9004).

use proptest::prelude::*;
use search::simulate::{Behaviour, Device};
use search::{BackToBack, BurstBounds, BurstStep};

const LONGEST: u64 = 2_976_190;

/// Runs a search on a device that computes the frames lost of a burst; also returns the bursts
/// sent.
fn search(repeats: u32, mut lost: impl FnMut(u64) -> u64) -> (BurstBounds, u32) {
    let mut search = BackToBack::new(LONGEST, repeats).unwrap();
    let mut bursts = 0;
    while let BurstStep::Send { frames, .. } = search.next() {
        assert!((1..=LONGEST).contains(&frames));
        search.record(lost(frames));
        bursts += 1;
    }
    (search.bounds(), bursts)
}

#[test]
fn a_device_that_carries_the_highest_load_passes_the_longest_burst() {
    let (bounds, bursts) = search(50, |_| 0);
    assert_eq!(
        bounds,
        BurstBounds {
            passed: Some(LONGEST),
            lost: None,
            confirmed: 50
        }
    );
    assert_eq!(bursts, 51);
}

#[test]
fn a_device_that_loses_each_burst_has_none() {
    let (bounds, _) = search(50, |frames| frames);
    assert_eq!(
        bounds,
        BurstBounds {
            passed: None,
            lost: Some(1),
            confirmed: 0
        }
    );
}

#[test]
fn a_buffer_that_varies_is_answered_with_a_length_that_passes_each_time() {
    for seed in 0..100 {
        // Room for 100 000 frames, less up to 2000 that other work occupies at times.
        let mut device = Device::new(
            Behaviour::TwoBands {
                low: 98_000,
                high: 100_000,
                low_ppm: 200_000,
            },
            seed,
        );
        let (bounds, bursts) = search(50, |frames| {
            let second = search::Trial {
                load: 1_000_000,
                duration_ns: 1_000_000_000,
            };
            let room = device.measure(second).forwarded;
            frames.saturating_sub(room)
        });
        let passed = bounds.passed.unwrap();
        assert_eq!(bounds.confirmed, 50);
        assert!((95_000..=98_000).contains(&passed), "seed {seed}: {passed}");
        assert!(
            bounds.lost.is_some_and(|lost| passed < lost),
            "seed {seed}: {bounds:?}"
        );
        assert!(bursts <= 200, "seed {seed}: {bursts} bursts");
    }
}

#[test]
fn a_search_without_frames_or_repeats_is_refused() {
    assert!(BackToBack::new(0, 50).is_err());
    assert!(BackToBack::new(1, 0).is_err());
}

proptest! {
    #[test]
    fn finds_any_buffer_to_the_frame(room in 1_u64..LONGEST) {
        let (bounds, bursts) = search(50, |frames| frames.saturating_sub(room));
        let expected = BurstBounds { passed: Some(room), lost: Some(room + 1), confirmed: 50 };
        prop_assert_eq!(bounds, expected);
        prop_assert!(bursts <= 1 + 22 + 50);
    }

    #[test]
    fn ends_on_a_device_that_loses_at_random(seed: u64, low_ppm in 0_u32..=1_000_000) {
        let mut device =
            Device::new(Behaviour::TwoBands { low: 0, high: 1_000_000, low_ppm }, seed);
        let (bounds, bursts) = search(50, |_| {
            let second = search::Trial { load: 1_000_000, duration_ns: 1_000_000_000 };
            device.measure(second).lost()
        });
        prop_assert!(bounds.passed.is_none() || bounds.confirmed == 50);
        prop_assert!(bursts <= 1_500, "{} bursts", bursts);
    }
}
