//! Measurement of engines' curves, in a hundred milliseconds.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{EngineFailed, Selection, Transform};
use wire::Suite;

use crate::cache::{Cache, Identity};
use crate::curve::{Direction, EngineCurves, Fit, Load, Point};
use crate::pace::{self, Workload};

/// Length of inner packets in bytes, and packets per batch.
///
/// Curves cross at short packets, so the steps are finer there. Long packets are sealed one by one
/// (`seal_from`), and 32 of 8 KB would take too long on the slowest engines.
const BATCHES: [(usize, usize); 11] = [
    (64, 1),
    (256, 1),
    (1408, 1),
    (8192, 1),
    (256, 8),
    (1408, 8),
    (64, 32),
    (128, 32),
    (256, 32),
    (512, 32),
    (1408, 32),
];
/// Lengths of inner packets that are sealed one by one, in bytes.
const SINGLES: [usize; 5] = [64, 128, 256, 1408, 8192];
/// Bytes of a round: few, so that the slowest engines finish in time.
const ROUND_BYTES: usize = 8 << 10;
/// Number of repeats. The shortest time counts, since disturbances only make it longer.
const REPEATS: usize = 9;
/// A round longer than this many slices is measured only twice: it takes longer and is disturbed
/// less.
const SLOW_SLICES: u32 = 4;
/// Target duration of a repeat in each direction.
const SLICE: Duration = Duration::from_micros(100);
/// Maximum rounds of a slice.
const ROUNDS_MAX: u32 = 64;
/// A higher ratio of median to minimum means that something else ran: these curves are not stored
/// for other processes.
const STEADY: f64 = 1.25;

/// Curves of engines, and whether other processes may use them.
struct Measured {
    curves: Vec<EngineCurves>,
    steady: bool,
}

/// Curves by suite and names of engines.
type Known = BTreeMap<(Suite, Vec<&'static str>), Vec<EngineCurves>>;

/// Curves known to this process. Locked during a measurement: concurrent measurements would disturb
/// each other.
static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());

fn known() -> MutexGuard<'static, Known> {
    // A poisoned map is valid: entries are complete when inserted.
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn names(engines: &[Selection]) -> Vec<&'static str> {
    engines.iter().map(Selection::engine).collect()
}

/// Returns the curves of these engines for their suite: from this process's memory, from the cache,
/// or measured now.
///
/// # Errors
/// [`EngineFailed`] of the first engine that fails.
pub(crate) fn curves(
    suite: Suite,
    engines: &[Selection],
    cache: &Cache,
) -> Result<Vec<EngineCurves>, EngineFailed> {
    let mut known = known();
    let key = (suite, names(engines));
    if let Some(curves) = known.get(&key) {
        return Ok(curves.clone());
    }
    let identity = Identity::of(suite, engines);
    let curves = match cache.load(&identity) {
        Some(curves) => curves,
        None => measure_and_keep(engines, &identity, suite, cache)?,
    };
    known.insert(key, curves.clone());
    Ok(curves)
}

/// Measures them even if their curves are known, and replaces these.
///
/// # Errors
/// [`EngineFailed`] of the first engine that fails.
pub(crate) fn remeasure(
    suite: Suite,
    engines: &[Selection],
    cache: &Cache,
) -> Result<(), EngineFailed> {
    let mut known = known();
    let identity = Identity::of(suite, engines);
    let curves = measure_and_keep(engines, &identity, suite, cache)?;
    known.insert((suite, names(engines)), curves);
    Ok(())
}

fn measure_and_keep(
    engines: &[Selection],
    identity: &Identity,
    suite: Suite,
    cache: &Cache,
) -> Result<Vec<EngineCurves>, EngineFailed> {
    let measured = measure(suite, engines)?;
    // A disturbed measurement serves this process only: the next one may be better.
    if measured.steady {
        cache.store(identity, &measured.curves);
    }
    Ok(measured.curves)
}

/// Measures engines alternately: a machine that slows down affects all of them.
///
/// # Errors
/// [`EngineFailed`] of the first engine that fails.
fn measure(suite: Suite, engines: &[Selection]) -> Result<Measured, EngineFailed> {
    let keymat = pace::keymat(suite);
    // One key each, as in an SA; the expansion of keys is not measured.
    let mut transforms: Vec<_> = engines
        .iter()
        .map(|engine| engine.transform(&keymat))
        .collect();
    let mut unsteady = 0;
    let mut points = vec![[Vec::new(), Vec::new(), Vec::new()]; engines.len()];
    for (inner_bytes, batch) in BATCHES {
        let mut workload = Workload::new(suite, inner_bytes, batch, ROUND_BYTES);
        let load = workload.load();
        let times = times(&mut transforms, &mut workload, |workload, transform| {
            Ok([workload.seal(transform)?, workload.open(transform)?])
        })?;
        for (points, [seal, open]) in points.iter_mut().zip(times) {
            for (direction, times) in [(Direction::Seal, seal), (Direction::Open, open)] {
                unsteady += usize::from(!times.is_steady());
                points[direction as usize].push(times.point(&workload, load));
            }
        }
    }
    for inner_bytes in SINGLES {
        let mut workload = Workload::new(suite, inner_bytes, 1, ROUND_BYTES);
        let load = workload.load();
        let times = times(&mut transforms, &mut workload, |workload, transform| {
            Ok([workload.round(transform, Direction::SealFrom)?])
        })?;
        for (points, [times]) in points.iter_mut().zip(times) {
            unsteady += usize::from(!times.is_steady());
            points[Direction::SealFrom as usize].push(times.point(&workload, load));
        }
    }
    let curves = engines.iter().zip(points).map(|(engine, points)| {
        let [seal, seal_from, open] = points.map(Fit::of);
        EngineCurves {
            engine: engine.engine().to_owned(),
            seal,
            seal_from,
            open,
        }
    });
    let measured = engines.len() * (2 * BATCHES.len() + SINGLES.len());
    Ok(Measured {
        curves: curves.collect(),
        // A quarter may be disturbed: the shortest of several times is still right for most of
        // them.
        steady: unsteady * 4 <= measured,
    })
}

/// Times per round of several repeats, the shortest first.
struct Times {
    rounds_ps: Vec<f64>,
}

impl Times {
    fn of(mut rounds_ps: Vec<f64>) -> Self {
        rounds_ps.sort_by(f64::total_cmp);
        Self { rounds_ps }
    }

    fn is_steady(&self) -> bool {
        self.rounds_ps[self.rounds_ps.len() / 2] <= STEADY * self.rounds_ps[0]
    }

    /// Returns the time of one batch of a round.
    fn point(&self, workload: &Workload, load: Load) -> Point {
        let batches = workload.packets() as f64 / load.packets as f64;
        Point {
            load,
            measured_ps: (self.rounds_ps[0] / batches) as u64,
        }
    }
}

/// Times rounds of each transform. `round` returns the time of each of its parts.
fn times<const PARTS: usize>(
    transforms: &mut [Box<dyn Transform>],
    workload: &mut Workload,
    round: impl Fn(&mut Workload, &mut dyn Transform) -> Result<[Duration; PARTS], EngineFailed>,
) -> Result<Vec<[Times; PARTS]>, EngineFailed> {
    let slice = SLICE * PARTS as u32;
    let (mut rounds, mut slowest) = (Vec::new(), Duration::ZERO);
    for transform in &mut *transforms {
        // The first round warms up, and determines the number of rounds per slice.
        let first: Duration = round(workload, &mut **transform)?.iter().sum();
        // Short rounds are repeated within a slice: one alone would be near the resolution of the
        // clock.
        let fitting = slice.as_nanos() / first.as_nanos().max(1);
        rounds.push((fitting as u32).clamp(1, ROUNDS_MAX));
        slowest = slowest.max(first);
    }
    let repeats = if slowest > slice * SLOW_SLICES {
        2
    } else {
        REPEATS
    };
    let mut taken = vec![[const { Vec::new() }; PARTS]; transforms.len()];
    for _ in 0..repeats {
        // One slice of each engine in turn, so that a slow phase of the machine affects all of them
        // alike.
        for ((transform, &rounds), taken) in transforms.iter_mut().zip(&rounds).zip(&mut taken) {
            let mut sums = [Duration::ZERO; PARTS];
            for _ in 0..rounds {
                let parts = round(workload, &mut **transform)?;
                for (sum, part) in sums.iter_mut().zip(parts) {
                    *sum += part;
                }
            }
            for (times, sum) in taken.iter_mut().zip(sums) {
                times.push(sum.as_nanos() as f64 * 1e3 / f64::from(rounds));
            }
        }
    }
    Ok(taken
        .into_iter()
        .map(|parts| parts.map(Times::of))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_of_real_engines_have_costs_in_every_direction() {
        let choice = engine::CpuChoice::Auto;
        let selection = engine::select(&choice, Suite::Aes256Gcm).unwrap();
        let engines = [selection.clone(), selection];
        let measured = measure(Suite::Aes256Gcm, &engines).unwrap();
        assert_eq!(measured.curves.len(), 2);
        for curves in &measured.curves {
            for direction in Direction::ALL {
                let curve = curves.of(direction).curve;
                let cost = |packets, bytes| curve.predict_ps(Load::uniform(packets, bytes));
                assert!(cost(1, 100) > 0, "{curves:?}");
                assert!(cost(1, 9000) > cost(1, 100), "{curves:?}");
            }
        }
    }

    #[test]
    fn one_disturbed_repeat_has_no_effect_and_many_are_detected() {
        let times = Times::of(vec![5.0, 1.0, 1.1, 1.0, 1.05]);
        assert!(times.is_steady());
        let workload = Workload::new(Suite::Aes256Gcm, 64, 32, ROUND_BYTES);
        assert!(!Times::of(vec![5.0, 1.0, 3.0, 9.0, 8.0]).is_steady());
        let batches = workload.packets() as f64 / 32.0;
        let rounds_ps = [5e3, 1e3, 1e3, 1e3, 1e3].map(|time| time * batches);
        let times = Times::of(rounds_ps.to_vec());
        assert_eq!(times.point(&workload, workload.load()).measured_ps, 1000);
    }
}
