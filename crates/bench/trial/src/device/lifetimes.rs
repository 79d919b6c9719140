//! Times without failure of a device, from the failures and restarts that its workers report and
//! the deaths of their processes.

use catalog::worker::Fatigue;
use journal::record::{DeviceFatigue, FatiguePoint, Life};

const REASONS_MAX: usize = 20;
/// Maximum number of points in a segment's timeline; beyond it every other one is removed.
const POINTS_MAX: usize = 400;

/// The end of a worker's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It still works, was stopped, or its time was up.
    Censored,
    /// Its process died or stopped responding.
    Died,
}

/// Adds one worker process to the sum of those before it. It began to work `from_ns` after the
/// segment's beginning and ended, as far as is known, `elapsed_ns` after that.
pub(super) fn add_process(
    to: &mut DeviceFatigue,
    from_ns: u64,
    elapsed_ns: u64,
    fatigue: &Fatigue,
    end: End,
) {
    to.elapsed_ns = to.elapsed_ns.saturating_add(elapsed_ns);
    to.counts += fatigue.counts;
    // Older versions of the worker do not report them.
    if let Some(rounds) = fatigue.rounds {
        to.rounds = Some(to.rounds.unwrap_or(0) + rounds);
    }
    to.resident_bytes_max = to.resident_bytes_max.max(fatigue.resident_bytes_max);
    // The first reasons are kept: later ones mostly follow from them.
    let room = REASONS_MAX.saturating_sub(to.reasons.len());
    let reasons = fatigue.reasons.iter().take(room).cloned();
    to.reasons.extend(reasons);
    for life in lives(fatigue, elapsed_ns, end) {
        let moved = Life {
            began_ns: life.began_ns.saturating_add(from_ns),
            ended_ns: life.ended_ns.saturating_add(from_ns),
            ..life
        };
        if to.lives.len() < DeviceFatigue::LIVES_MAX {
            to.lives.push(moved)
        } else {
            to.lives_left_out += 1
        }
    }
    if end == End::Died {
        to.crashes += 1;
        // The operation in progress failed.
        to.counts.failed += 1;
        // Operations after the last report are lost with the process, so their time is recorded
        // apart.
        to.unreported_ns += elapsed_ns.saturating_sub(fatigue.elapsed_ns);
    }
    // Lives that the worker itself did not keep.
    let kept = fatigue.restarts_ns.len() as u64;
    to.lives_left_out += fatigue.counts.restarts.saturating_sub(kept);
}

/// Returns the lives in one process: each from a start to the next failure, the last to the end.
fn lives(fatigue: &Fatigue, elapsed_ns: u64, end: End) -> Vec<Life> {
    // Failures and restarts alternate, so the n-th failure ends the n-th life.
    let starts = std::iter::once(0).chain(fatigue.restarts_ns.iter().copied());
    let mut failures = fatigue.failures_ns.iter().copied();
    let mut lives = Vec::new();
    for began_ns in starts {
        let life = match failures.next() {
            Some(failed_ns) => Life {
                began_ns,
                ended_ns: failed_ns.max(began_ns),
                failed: true,
            },
            None => Life {
                began_ns,
                ended_ns: elapsed_ns.max(began_ns),
                failed: end == End::Died,
            },
        };
        lives.push(life);
    }
    lives
}

/// Adds a point to the timeline; `of` is the device's sum at that time.
pub(super) fn add_point(points: &mut Vec<FatiguePoint>, at_ns: u64, of: &DeviceFatigue) {
    points.push(FatiguePoint {
        at_ns,
        right: of.counts.good(),
        bad: of.counts.bad(),
    });
    if points.len() > POINTS_MAX {
        let mut index = 0;
        // Keeps the last point, unless the next point repeats it.
        points.retain(|_| {
            index += 1;
            index % 2 == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::FatigueCounts;

    fn fatigue(failures_ns: &[u64], restarts_ns: &[u64]) -> Fatigue {
        Fatigue {
            elapsed_ns: 100,
            counts: FatigueCounts {
                right: 10,
                failed: failures_ns.len() as u64,
                refused: 1,
                restarts: restarts_ns.len() as u64,
                ..FatigueCounts::default()
            },
            rounds: Some(2),
            failures_ns: failures_ns.to_vec(),
            restarts_ns: restarts_ns.to_vec(),
            reasons: vec!["it failed".to_owned()],
            resident_bytes_max: 1,
        }
    }

    fn times(lives: &[Life]) -> Vec<(u64, u64, bool)> {
        lives
            .iter()
            .map(|life| (life.began_ns, life.ended_ns, life.failed))
            .collect()
    }

    #[test]
    fn a_life_goes_from_a_start_to_the_next_failure_or_to_the_end() {
        let times = |failures: &[u64], restarts: &[u64], end| {
            times(&lives(&fatigue(failures, restarts), 100, end))
        };
        assert_eq!(times(&[], &[], End::Censored), [(0, 100, false)]);
        assert_eq!(times(&[], &[], End::Died), [(0, 100, true)]);
        assert_eq!(
            times(&[30, 70], &[35, 80], End::Censored),
            [(0, 30, true), (35, 70, true), (80, 100, false)]
        );
        // It was not restarted after the last failure.
        assert_eq!(
            times(&[30, 70], &[35], End::Censored),
            [(0, 30, true), (35, 70, true)]
        );
    }

    #[test]
    fn processes_that_follow_one_another_are_one_device() {
        let mut device = DeviceFatigue::default();
        add_process(&mut device, 0, 100, &fatigue(&[30], &[35]), End::Died);
        add_process(&mut device, 150, 100, &fatigue(&[], &[]), End::Censored);
        assert_eq!(
            times(&device.lives),
            [(0, 30, true), (35, 100, true), (150, 250, false)]
        );
        // The reported failure, and the operation in progress when it died.
        assert_eq!(
            (device.counts.failed, device.crashes, device.counts.right),
            (2, 1, 20)
        );
        assert_eq!(device.rounds, Some(4));
        // It reported until its end.
        assert_eq!(device.unreported_ns, 0);
        add_process(&mut device, 250, 130, &fatigue(&[], &[]), End::Died);
        add_process(&mut device, 380, 40, &Fatigue::default(), End::Died);
        assert_eq!(device.unreported_ns, 30 + 40);
        assert!(!device.is_sound());
    }

    #[test]
    fn the_timeline_of_weeks_stays_short() {
        let mut points = Vec::new();
        for second in 0..100_000 {
            let device = DeviceFatigue {
                counts: FatigueCounts {
                    right: second,
                    ..FatigueCounts::default()
                },
                ..DeviceFatigue::default()
            };
            add_point(&mut points, second, &device);
        }
        assert!(points.len() <= POINTS_MAX);
        assert!(points.is_sorted_by_key(|point| point.at_ns));
        assert!(points.last().is_some_and(|last| last.at_ns > 99_000));
    }
}
