//! Rates of engines: rounds of packets in memory, on dedicated cores.

use crate::cores::on_each;
use crate::error::SpeedError;
use crate::figure::{Figure, REPEATS};
use crate::insecure;
use crate::request::Request;
use dispatch::Direction;
use dispatch::pace::{self, Workload};
use engine::{EngineFailed, Selection};
use std::time::Duration;

/// Bytes of a round: more than the L1 cache and less than the L2 cache, like packets that come from
/// a socket.
const ROUND_BYTES: usize = 128 << 10;

/// Measures every figure of the engines for a suite, first on one core, then on all given cores if
/// there are several. Calls `see` with a line for each figure.
pub(crate) fn measure(
    request: &Request<'_>,
    engines: &[Selection],
    mut see: impl FnMut(String),
) -> Result<Vec<Figure>, SpeedError> {
    let Request {
        sizes,
        directions,
        cores,
        ..
    } = request;
    let mut figures = Vec::new();
    let together = [&cores[..1], &cores[..]];
    // With one core both figures would be the same.
    let together = if cores.len() > 1 {
        &together[..]
    } else {
        &together[..1]
    };
    let all = engines.len() * directions.len() * sizes.len() * together.len();
    for engine in engines {
        for &direction in *directions {
            for &inner_bytes in *sizes {
                for cores in together {
                    let figure = one(request, engine, direction, inner_bytes, cores)?;
                    see(format!("[{}/{all}] {}", figures.len() + 1, figure.line()));
                    figures.push(figure);
                }
            }
        }
    }
    Ok(figures)
}

fn one(
    request: &Request<'_>,
    engine: &Selection,
    direction: Direction,
    inner_bytes: u16,
    cores: &[usize],
) -> Result<Figure, SpeedError> {
    let suite = engine.suite();
    // The time of the figure is shared by its repeats.
    let slice = request.duration / REPEATS as u32;
    let batch = match direction {
        // It takes one packet per call.
        Direction::SealFrom => 1,
        Direction::Seal | Direction::Open => usize::from(request.batch),
    };
    let rates = on_each(cores, |working| {
        // Made on the core that uses them, so that their memory is near it.
        let mut transform = engine.transform(&pace::keymat(suite));
        let mut workload = Workload::new(suite, inner_bytes.into(), batch, ROUND_BYTES);
        let mut round = || workload.round(&mut *transform, direction);
        let rates = rates(&mut round, slice);
        let others_work = working.end();
        // A thread that finishes early keeps its core busy until the others finish.
        while rates.is_ok() && others_work() {
            // Its result does not matter: the rates are taken already.
            let _ = round();
        }
        let (rounds_per_s, packets) = (rates?, workload.packets() as f64);
        Ok(rounds_per_s.map(|rate| rate * packets))
    });
    let mut sums = [0.0; REPEATS];
    for of_core in rates {
        // Repeats with the same number run at about the same time on all cores, so their sum is a
        // rate of the machine.
        for (sum, rate) in sums.iter_mut().zip(of_core?) {
            *sum += rate;
        }
    }
    let figure = Figure {
        suite,
        engine: engine.engine().to_owned(),
        engine_version: engine.version().to_owned(),
        insecure: insecure::reason(suite, engine.engine()),
        direction,
        inner_bytes,
        threads: cores.len(),
        rate_bps_best: 0.0,
        rate_bps_median: 0.0,
        packets_per_s_best: 0.0,
        packets_per_s_median: 0.0,
    };
    Ok(figure.with_rates(&mut sums))
}

/// Rounds per second of each repeat.
fn rates(
    round: &mut impl FnMut() -> Result<Duration, EngineFailed>,
    slice: Duration,
) -> Result<[f64; REPEATS], SpeedError> {
    // The first round warms the caches.
    round()?;
    let mut rates = [0.0; REPEATS];
    for rate in &mut rates {
        let (mut rounds, mut taken) = (0u32, Duration::ZERO);
        // `round` times itself, without the preparation of packets to open; the loop runs longer
        // than the slice then.
        while taken < slice {
            taken += round()?;
            rounds += 1;
        }
        *rate = f64::from(rounds) / taken.as_secs_f64();
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cores::cores;
    use dispatch::CpuChoice;
    use nix::sched::CpuSet;
    use wire::Suite;

    #[test]
    fn a_thread_that_cannot_be_pinned_ends_the_measurement() {
        let choice = CpuChoice::Named(engine::NULL.to_owned());
        let suite = Suite::Aes128Gcm;
        let one = cores(1).expect("a core")[0];
        let request = Request {
            suites: &[suite],
            engines: &choice,
            sizes: &[64],
            directions: &[Direction::Seal],
            batch: 1,
            duration: Duration::from_millis(1),
            // No machine has a core of this number.
            cores: &[one, CpuSet::count()],
            curves: false,
            version: "",
            command: String::new(),
        };
        let engines = [engine::select(&choice, suite).expect("the engine has every suite")];
        let failed = measure(&request, &engines, |_| {}).expect_err("there is no such core");
        assert!(
            matches!(failed, SpeedError::Pin { core, .. } if core == CpuSet::count()),
            "{failed}"
        );
    }
}
