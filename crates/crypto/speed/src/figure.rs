//! Rates of engines, as lines, tables and charts.

use crate::chart::{Chart, Series};
use crate::insecure::{engine_name, suite_name};
use crate::table::Table;
use dispatch::Direction;
use serde::Serialize;
use units::human;
use wire::Suite;

/// Number of parts of a figure's time; each part gives a rate. Parts are short, so that some are
/// undisturbed.
pub(crate) const REPEATS: usize = 100;
/// Heading of the distance between the best and the median repeat.
const SPREAD: &str = "below best";
/// A median farther below the best than this share shows that something else ran.
const DISTURBED: f64 = 0.15;

/// The rate of an engine.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figure {
    pub(crate) suite: Suite,
    pub(crate) engine: String,
    pub(crate) engine_version: String,
    /// Why it must not protect data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) insecure: Option<&'static str>,
    pub(crate) direction: Direction,
    /// Length of an inner packet.
    pub(crate) inner_bytes: u16,
    /// Number of concurrent cores; rates are the sum over all.
    pub(crate) threads: usize,
    /// Rate of inner packets: the best repeat, since disturbances only reduce it.
    pub(crate) rate_bps_best: f64,
    pub(crate) rate_bps_median: f64,
    pub(crate) packets_per_s_best: f64,
    pub(crate) packets_per_s_median: f64,
}

impl Figure {
    /// The figure in a line.
    pub(crate) fn line(&self) -> String {
        let cores = match self.threads {
            1 => String::new(),
            threads => format!(", {threads} cores"),
        };
        format!(
            "{} {} {} {} B{cores}: {}",
            suite_name(self.suite),
            engine_name(&self.engine),
            self.direction.name(),
            self.inner_bytes,
            human::bit_rate(self.rate_bps_best)
        )
    }

    /// The figure with the best and the median of its repeats.
    pub(crate) fn with_rates(self, rates_pps: &mut [f64]) -> Self {
        // Sorted, so the best is the last.
        rates_pps.sort_by(f64::total_cmp);
        let best = rates_pps[rates_pps.len() - 1];
        let median = rates_pps[rates_pps.len() / 2];
        let bits = f64::from(self.inner_bytes) * 8.0;
        Self {
            rate_bps_best: best * bits,
            rate_bps_median: median * bits,
            packets_per_s_best: best,
            packets_per_s_median: median,
            ..self
        }
    }

    /// Distance of the median below the best, as a share of the best.
    fn spread(&self) -> f64 {
        1.0 - self.rate_bps_median / self.rate_bps_best
    }
}

/// Warnings about the figures.
pub(crate) fn warning(figures: &[Figure]) -> Option<String> {
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

/// Tables of all figures, by suite and number of cores.
pub(crate) fn tables(figures: &[Figure], batch: u16, width: usize) -> Vec<String> {
    let mut tables = Vec::new();
    let of_suite = |a: &Figure, b: &Figure| a.suite == b.suite;
    for figures in figures.chunk_by(of_suite) {
        let threads_max = figures
            .iter()
            .map(|figure| figure.threads)
            .max()
            .unwrap_or(1);
        // One core first: it is what others are compared with.
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
                (true, width),
            ));
            let title = format!("{suite}, million packets per second ({cores})");
            tables.push(table(
                title,
                &figures,
                |it| it.packets_per_s_best / 1e6,
                (false, width),
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
                    // Printed as missing.
                    .map_or(f64::NAN, |it| it.rate_bps_best)
            };
            let suite = suite_name(figures[0].suite);
            let title = format!("{suite}, {threads_max} cores compared with one");
            let ratio = |figure: &Figure| figure.rate_bps_best / alone(figure);
            tables.push(table(title, &all, ratio, (false, width)));
        }
    }
    tables
}

/// A row for each engine and direction, a column for each size.
fn table(
    title: String,
    figures: &[&Figure],
    value: impl Fn(&Figure) -> f64,
    (with_spread, width): (bool, usize),
) -> String {
    // Neighbours only: figures come in the order of engines, directions and sizes.
    let row = |a: &&Figure, b: &&Figure| a.engine == b.engine && a.direction == b.direction;
    let rows: Vec<_> = figures.chunk_by(row).collect();
    let sizes = rows.first().map_or(&[][..], |row| row);
    let sizes = sizes
        .iter()
        .map(|figure| format!("{} B", figure.inner_bytes));
    let mut head = vec!["engine".to_owned(), "direction".to_owned()];
    head.extend(sizes);
    if with_spread {
        head.push(SPREAD.to_owned());
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
            cells.push(format!("{:.0} %", widest * 100.0));
        }
        table.push(cells);
    }
    let mut text = table.text(width);
    if with_spread {
        text += &format!(
            "  the best of {REPEATS} repeats; {SPREAD}: how far their median is, at most\n"
        );
    }
    text
}

/// Rates of one suite on one core.
pub(crate) fn chart(figures: &[Figure], direction: Direction) -> Chart {
    let alone = figures
        .iter()
        .filter(|it| it.direction == direction && it.threads == 1);
    let alone: Vec<_> = alone.collect();
    let series = alone.chunk_by(|a, b| a.engine == b.engine).map(|figures| {
        let point = |it: &&Figure| (f64::from(it.inner_bytes), it.rate_bps_best / 1e9);
        let mut points: Vec<_> = figures.iter().map(point).collect();
        // Sizes may be asked for in any order; a line goes from left to right.
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series {
            name: engine_name(&figures[0].engine),
            dots: points.clone(),
            points,
        }
    });
    Chart {
        title: format!("{}, {}", suite_name(figures[0].suite), direction.name()),
        unit: "Gbit/s of inner packets, one core",
        series: series.collect(),
        marks: Vec::new(),
    }
}
