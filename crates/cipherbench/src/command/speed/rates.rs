//! Rates of engines: rounds of packets in memory, on dedicated cores.

use super::insecure::{self, engine_name, suite_name};
use super::table::Table;
use crate::cli::Speed;
use crate::exit::{Exit, Failure};
use crate::output;
use dispatch::Direction;
use dispatch::pace::{self, Workload};
use engine::{EngineFailed, Selection};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use units::human;
use wire::Suite;

/// Number of parts of a figure's time; each part gives a rate. Parts are short, so that some are
/// undisturbed.
pub(super) const REPEATS: usize = 100;
/// A median farther below the best than this share shows that something else ran.
const DISTURBED: f64 = 0.15;
/// Bytes of a round: more than the L1 cache and less than the L2 cache, like packets that come from
/// a socket.
const ROUND_BYTES: usize = 128 << 10;

/// The rate of an engine.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Figure {
    pub(super) suite: Suite,
    pub(super) engine: String,
    engine_version: String,
    /// Why it must not protect data.
    #[serde(skip_serializing_if = "Option::is_none")]
    insecure: Option<&'static str>,
    pub(super) direction: Direction,
    /// Length of an inner packet.
    pub(super) inner_bytes: u16,
    /// Number of concurrent cores; rates are the sum over all.
    threads: usize,
    /// Rate of inner packets: the best repeat, since disturbances only reduce it.
    pub(super) rate_bps_best: f64,
    rate_bps_median: f64,
    packets_per_s_best: f64,
    packets_per_s_median: f64,
}

impl Figure {
    /// Whether it is the rate of a single core.
    pub(super) const fn is_alone(&self) -> bool {
        self.threads == 1
    }

    fn of(rates_pps: &mut [f64], figure: Self) -> Self {
        rates_pps.sort_by(f64::total_cmp);
        let best = rates_pps[rates_pps.len() - 1];
        let median = rates_pps[rates_pps.len() / 2];
        let bits = f64::from(figure.inner_bytes) * 8.0;
        Self {
            rate_bps_best: best * bits,
            rate_bps_median: median * bits,
            packets_per_s_best: best,
            packets_per_s_median: median,
            ..figure
        }
    }

    /// Distance of the median below the best, as a share of the best.
    fn spread(&self) -> f64 {
        1.0 - self.rate_bps_median / self.rate_bps_best
    }
}

/// Warnings about the figures.
pub(super) fn warning(figures: &[Figure]) -> Option<String> {
    let disturbed = figures
        .iter()
        .filter(|figure| figure.spread() > DISTURBED)
        .count();
    (disturbed > 0).then(|| {
        format!(
            "in {disturbed} of {} figures the median is more than {:.0} % below the best: something else ran; \
             measure again on an idle machine, or for longer (`--duration 1s`)",
            figures.len(),
            DISTURBED * 100.0
        )
    })
}

/// Cores for the threads: those with the highest numbers, since the first usually handle
/// interrupts.
pub(super) fn cores(threads: u16) -> Result<Vec<usize>, Failure> {
    let failed = |error| Failure::new(Exit::CannotBuild, format!("cannot read the cores: {error}"));
    let allowed = sched_getaffinity(Pid::from_raw(0)).map_err(failed)?;
    let all = (0..CpuSet::count()).filter(|&core| allowed.is_set(core) == Ok(true));
    let mut cores: Vec<_> = all.collect();
    let threads = usize::from(threads);
    if threads > cores.len() {
        let have = cores.len();
        let help = "each thread is measured on a core of its own";
        let text = format!("{threads} threads are more than the {have} cores here\nhelp: {help}");
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(cores.split_off(cores.len() - threads))
}

/// Runs a function in a thread pinned to a core.
pub(super) fn pinned<T: Send>(core: usize, work: impl Fn() -> T + Sync) -> Result<T, Failure> {
    on_each(&[core], || Ok(work())).swap_remove(0)
}

/// Runs a function on each core, in pinned threads.
fn on_each<T: Send>(
    cores: &[usize],
    work: impl Fn() -> Result<T, Failure> + Sync,
) -> Vec<Result<T, Failure>> {
    let stay_and_work = |core| {
        let mut only = CpuSet::new();
        let stays = only
            .set(core)
            .and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
        stays.map_err(|error| {
            Failure::new(
                Exit::CannotBuild,
                format!("cannot pin a thread to core {core}: {error}"),
            )
        })?;
        work()
    };
    let stay_and_work = &stay_and_work;
    thread::scope(|scope| {
        let threads = cores
            .iter()
            .map(|&core| scope.spawn(move || stay_and_work(core)));
        let threads: Vec<_> = threads.collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    })
}

/// Measures every figure of a suite, first on one core, then on all given cores if there are
/// several.
pub(super) fn measure(
    arguments: &Speed,
    sizes: &[u16],
    directions: &[Direction],
    engines: &[Selection],
    cores: &[usize],
) -> Result<Vec<Figure>, Failure> {
    let mut figures = Vec::new();
    let together = [&cores[..1], cores];
    let together = if cores.len() > 1 {
        &together[..]
    } else {
        &together[..1]
    };
    let all = engines.len() * directions.len() * sizes.len() * together.len();
    for engine in engines {
        for &direction in directions {
            for &inner_bytes in sizes {
                for cores in together {
                    let figure = one(arguments, engine, direction, inner_bytes, cores)?;
                    figures.push(figure);
                    progress(arguments, &figures, all);
                }
            }
        }
    }
    Ok(figures)
}

/// Prints a line for each figure, unless `--quiet`.
fn progress(arguments: &Speed, figures: &[Figure], all: usize) {
    let Some(figure) = figures.last().filter(|_| !arguments.output.quiet) else {
        return;
    };
    let cores = match figure.threads {
        1 => String::new(),
        threads => format!(", {threads} cores"),
    };
    output::stderr(&format!(
        "[{}/{all}] {} {} {} {} B{cores}: {}\n",
        figures.len(),
        suite_name(figure.suite),
        engine_name(&figure.engine),
        figure.direction.name(),
        figure.inner_bytes,
        human::bit_rate(figure.rate_bps_best)
    ));
}

fn one(
    arguments: &Speed,
    engine: &Selection,
    direction: Direction,
    inner_bytes: u16,
    cores: &[usize],
) -> Result<Figure, Failure> {
    let suite = engine.suite();
    let slice = arguments.duration / REPEATS as u32;
    let batch = match direction {
        Direction::SealFrom => 1,
        Direction::Seal | Direction::Open => usize::from(arguments.batch),
    };
    let working = AtomicUsize::new(cores.len());
    let rates = on_each(cores, || {
        let mut transform = engine.transform(&pace::keymat(suite));
        let mut workload = Workload::new(suite, inner_bytes.into(), batch, ROUND_BYTES);
        let mut round = || workload.round(&mut *transform, direction);
        let rates = rates(&mut round, slice);
        working.fetch_sub(1, Ordering::Relaxed);
        // A thread that finishes early keeps its core busy until the others finish.
        while rates.is_ok() && working.load(Ordering::Relaxed) > 0 {
            let _ = round();
        }
        let (rounds_per_s, packets) = (rates?, workload.packets() as f64);
        Ok(rounds_per_s.map(|rate| rate * packets))
    });
    let mut sums = [0.0; REPEATS];
    for of_core in rates {
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
    Ok(Figure::of(&mut sums, figure))
}

/// Rounds per second of each repeat.
fn rates(
    round: &mut impl FnMut() -> Result<Duration, EngineFailed>,
    slice: Duration,
) -> Result<[f64; REPEATS], Failure> {
    let failed = |error| Failure::new(Exit::CriterionFailed, error);
    // The first round warms the caches.
    round().map_err(failed)?;
    let mut rates = [0.0; REPEATS];
    for rate in &mut rates {
        let (mut rounds, mut taken) = (0u32, Duration::ZERO);
        while taken < slice {
            taken += round().map_err(failed)?;
            rounds += 1;
        }
        *rate = f64::from(rounds) / taken.as_secs_f64();
    }
    Ok(rates)
}

/// Tables of all figures, by suite and number of cores.
pub(super) fn tables(figures: &[Figure], batch: u16) -> Vec<String> {
    let mut tables = Vec::new();
    let of_suite = |a: &Figure, b: &Figure| a.suite == b.suite;
    for figures in figures.chunk_by(of_suite) {
        let threads_max = figures
            .iter()
            .map(|figure| figure.threads)
            .max()
            .unwrap_or(1);
        for threads in if threads_max > 1 {
            vec![1, threads_max]
        } else {
            vec![1]
        } {
            let figures: Vec<_> = figures.iter().filter(|it| it.threads == threads).collect();
            let cores = if threads == 1 {
                "one core".to_owned()
            } else {
                format!("{threads} cores in parallel")
            };
            let suite = suite_name(figures[0].suite);
            let title = format!("{suite}, Gbit/s of inner packets ({cores}, batches of {batch})");
            tables.push(table(
                title,
                &figures,
                |figure| figure.rate_bps_best / 1e9,
                true,
            ));
            let title = format!("{suite}, million packets per second ({cores})");
            tables.push(table(
                title,
                &figures,
                |it| it.packets_per_s_best / 1e6,
                false,
            ));
        }
        if threads_max > 1 {
            let all: Vec<_> = figures
                .iter()
                .filter(|it| it.threads == threads_max)
                .collect();
            let alone = |figure: &Figure| {
                let same = |it: &&Figure| {
                    it.threads == 1
                        && it.engine == figure.engine
                        && it.direction == figure.direction
                        && it.inner_bytes == figure.inner_bytes
                };
                figures
                    .iter()
                    .find(same)
                    .map_or(f64::NAN, |it| it.rate_bps_best)
            };
            let suite = suite_name(figures[0].suite);
            let title = format!("{suite}, {threads_max} cores compared with one");
            let ratio = |figure: &Figure| figure.rate_bps_best / alone(figure);
            tables.push(table(title, &all, ratio, false));
        }
    }
    tables
}

/// A row for each engine and direction, a column for each size.
fn table(
    title: String,
    figures: &[&Figure],
    value: impl Fn(&Figure) -> f64,
    with_spread: bool,
) -> String {
    let row = |a: &&Figure, b: &&Figure| a.engine == b.engine && a.direction == b.direction;
    let rows: Vec<_> = figures.chunk_by(row).collect();
    let sizes = rows.first().map_or(&[][..], |row| row);
    let sizes = sizes
        .iter()
        .map(|figure| format!("{} B", figure.inner_bytes));
    let mut head = vec!["engine".to_owned(), "direction".to_owned()];
    head.extend(sizes);
    if with_spread {
        head.push("median".to_owned());
    }
    let mut table = Table::new(title, head, 2);
    for figures in rows {
        let first = figures[0];
        let mut cells = vec![
            engine_name(&first.engine),
            first.direction.name().to_owned(),
        ];
        cells.extend(figures.iter().map(|figure| human::number(value(figure))));
        if with_spread {
            let widest = figures
                .iter()
                .map(|figure| figure.spread())
                .fold(0.0, f64::max);
            cells.push(format!("-{:.0} %", widest * 100.0));
        }
        table.push(cells);
    }
    table.text()
}
