//! Collects the readings of one value: a series of limited length, and readings by load.

use super::{Answer, Count, answer::thousandths};
use journal::record::{LoadReading, Series, SeriesGap, SeriesPoint};
use plan::{Reading, ReadingKind};
use std::time::{Duration, Instant};

const MICROS_PER_UNIT: f64 = 1e6;

/// Readings of one value so far.
pub(super) struct SeriesBuilder {
    name: String,
    kind: ReadingKind,
    unit: String,
    scale_ppm: u64,
    interval_ns: u64,
    /// Whether the value is the rate of the reading.
    is_rate: bool,
    count: Count,
    /// When the count was read.
    counted: Option<Instant>,
    /// Intervals per point: a power of two.
    merged: u64,
    points: Vec<Sum>,
    gaps: Vec<SeriesGap>,
    missed: u64,
    loads: Vec<(Option<u64>, Sum)>,
}

/// Readings added up.
#[derive(Debug, Clone, Copy)]
struct Sum {
    at_ns: u64,
    milli: i128,
    max_milli: i64,
    readings: u64,
}

impl Sum {
    fn of(at_ns: u64, milli: i64) -> Self {
        Self {
            at_ns,
            milli: milli.into(),
            max_milli: milli,
            readings: 1,
        }
    }

    fn add(&mut self, other: &Self) {
        self.milli += other.milli;
        self.max_milli = self.max_milli.max(other.max_milli);
        self.readings += other.readings;
    }

    fn mean_milli(&self) -> i64 {
        // A mean of values of 64 bits fits.
        (self.milli / i128::from(self.readings.max(1))) as i64
    }
}

impl SeriesBuilder {
    /// `is_rate`: the value is the rate of the reading, as for every counter.
    pub(super) fn new(reading: &Reading, interval: Duration, is_rate: bool) -> Self {
        let is_counter = reading.kind == ReadingKind::Counter;
        let unit = if is_counter {
            format!("{}/s", reading.unit)
        } else {
            reading.unit.clone()
        };
        Self {
            name: reading.name.clone(),
            kind: reading.kind,
            unit,
            scale_ppm: reading.scale_ppm,
            interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            is_rate: is_rate || is_counter,
            count: Count::default(),
            counted: None,
            merged: 1,
            points: Vec::new(),
            gaps: Vec::new(),
            missed: 0,
            loads: Vec::new(),
        }
    }

    /// Adds an answer that was read from `from` to `to`. `load` returns the load that covers all of
    /// the time since a moment, if any: a rate covers the time since the previous reading.
    pub(super) fn add(
        &mut self,
        at_ns: u64,
        (from, to): (Instant, Instant),
        answer: Result<Answer, String>,
        load: impl Fn(Instant) -> Option<Option<u64>>,
    ) {
        let value = answer.and_then(|answer| {
            if self.is_rate {
                self.rate(&answer, to)
            } else {
                Ok(Some((answer.milli(self.scale_ppm)?, from)))
            }
        });
        match value {
            Ok(Some((milli, since))) => self.push(Sum::of(at_ns, milli), load(since)),
            // The first reading of a counter.
            Ok(None) => {}
            Err(reason) => self.miss(at_ns, 1, &reason),
        }
    }

    /// Counts readings that failed or were not made.
    pub(super) fn miss(&mut self, at_ns: u64, readings: u64, reason: &str) {
        self.missed += readings;
        // The help was already reported at the first reading, before the traffic.
        let reason = reason.split("\nhelp:").next().unwrap_or(reason);
        if let Some(last) = self.gaps.last_mut().filter(|last| last.reason == reason) {
            // A gap goes on unless a value came in between.
            let has_point = self
                .points
                .last()
                .is_some_and(|point| point.at_ns > last.at_ns);
            if !has_point {
                last.readings += readings;
                return;
            }
        }
        if self.gaps.len() < Series::GAPS_MAX {
            self.gaps.push(SeriesGap {
                at_ns,
                readings,
                reason: reason.to_owned(),
            });
        }
    }

    /// The rate since the last reading in thousandths, and when that was; `None` at the first.
    fn rate(&mut self, answer: &Answer, to: Instant) -> Result<Option<(i64, Instant)>, String> {
        let (count, range) = answer.count()?;
        // Replaced even if the count was reset, so that the next rate begins here.
        let last = self.counted.replace(to);
        let more = self.count.advance(count, range)?;
        let (Some(more), Some(last)) = (more, last) else {
            return Ok(None);
        };
        let seconds = to.saturating_duration_since(last).as_secs_f64();
        if seconds <= 0.0 {
            return Ok(None);
        }
        let scale = self.scale_ppm as f64 / MICROS_PER_UNIT;
        let milli = thousandths(more as f64 * scale / seconds)?;
        Ok(Some((milli, last)))
    }

    fn push(&mut self, sum: Sum, load: Option<Option<u64>>) {
        // Readings by load are never merged into points, so their means are exact.
        if let Some(load) = load {
            match self.loads.iter_mut().find(|(known, _)| *known == load) {
                Some((_, known)) => known.add(&sum),
                None => self.loads.push((load, sum)),
            }
        }
        let point_ns = self.point_ns();
        match self.merged {
            // Without merging each reading is a point, even if two fall into one interval.
            1 => self.points.push(sum),
            _ => append(&mut self.points, sum, point_ns),
        }
        // Two neighbours become one, so that a series of any length keeps its shape.
        while self.points.len() > Series::POINTS_MAX {
            self.merged *= 2;
            let point_ns = self.point_ns();
            for point in std::mem::take(&mut self.points) {
                append(&mut self.points, point, point_ns);
            }
        }
    }

    fn point_ns(&self) -> u64 {
        self.interval_ns.saturating_mul(self.merged).max(1)
    }

    pub(super) fn build(self) -> Series {
        let point_ns = self.point_ns();
        let points = self.points.iter().map(|sum| SeriesPoint {
            at_ns: sum.at_ns,
            mean_milli: sum.mean_milli(),
            max_milli: sum.max_milli,
            readings: sum.readings,
        });
        let loads = self.loads.iter().map(|(load, sum)| LoadReading {
            load: *load,
            mean_milli: sum.mean_milli(),
            max_milli: sum.max_milli,
            readings: sum.readings,
        });
        Series {
            points: points.collect(),
            loads: loads.collect(),
            name: self.name,
            kind: self.kind,
            unit: self.unit,
            point_ns,
            gaps: self.gaps,
            missed: self.missed,
        }
    }
}

/// Adds readings to the last point if they fall into the same time, else as a new point.
fn append(points: &mut Vec<Sum>, sum: Sum, point_ns: u64) {
    match points.last_mut() {
        Some(last) if last.at_ns / point_ns == sum.at_ns / point_ns => last.add(&sum),
        _ => points.push(sum),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Source;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn reading(kind: ReadingKind, scale_ppm: u64) -> Reading {
        Reading {
            name: "x".to_owned(),
            kind,
            unit: "B".to_owned(),
            scale_ppm,
            source: Source::Command("x".to_owned()),
        }
    }

    fn builder(kind: ReadingKind) -> SeriesBuilder {
        SeriesBuilder::new(&reading(kind, 1_000_000), SECOND, false)
    }

    #[test]
    fn a_counters_rate_passes_its_wrap_and_skips_a_reset() {
        let begun = Instant::now();
        let mut builder = builder(ReadingKind::Counter);
        let range = 1 << 32;
        let wrapping = |count| Ok(Answer::Wrapping { count, range });
        let text = |text: &str| Ok(Answer::Text(text.to_owned()));
        let answers = [
            wrapping(range - 100),
            wrapping(range - 50),
            // Over the end.
            wrapping(50),
            text("150"),
            text("30"),
            text("40"),
            text("?"),
        ];
        for (index, answer) in (0_u32..).zip(answers) {
            let at = begun + index * SECOND;
            let since = |since: Instant| (since > begun).then_some(Some(7));
            builder.add(u64::from(index) * 1_000_000_000, (at, at), answer, since);
        }
        let series = builder.build();
        let means: Vec<_> = series.points.iter().map(|point| point.mean_milli).collect();
        assert_eq!(
            (&*series.unit, means),
            ("B/s", vec![50_000, 100_000, 100_000, 10_000])
        );
        let reasons: Vec<_> = series.gaps.iter().map(|gap| &*gap.reason).collect();
        assert_eq!(
            reasons,
            ["it fell from 150 to 30: it was reset", "`?` is no count"]
        );
        // The first rate began before the load.
        let expected = LoadReading {
            load: Some(7),
            mean_milli: 70_000,
            max_milli: 100_000,
            readings: 3,
        };
        assert_eq!((series.loads, series.missed), (vec![expected], 2));
    }

    #[test]
    fn gaps_of_one_reason_are_one_and_many_are_counted() {
        let now = Instant::now();
        let mut builder = builder(ReadingKind::Gauge);
        for second in 0..500 {
            let answer = match second % 4 {
                0 => Ok(Answer::Number(5)),
                _ => Err("silent\nhelp: look".to_owned()),
            };
            builder.add(second * 1_000_000_000, (now, now), answer, |_| None);
        }
        let series = builder.build();
        assert_eq!((series.gaps.len(), series.missed), (Series::GAPS_MAX, 375));
        assert!(
            series
                .gaps
                .iter()
                .all(|gap| gap.readings == 3 && gap.reason == "silent")
        );
        assert!(series.loads.is_empty());
    }

    proptest! {
        #[test]
        fn a_long_series_keeps_its_sum_and_its_highest_value(
            values in proptest::collection::vec(-1_000_000_i64..1_000_000, 1..5000),
        ) {
            let now = Instant::now();
            let mut builder = builder(ReadingKind::Gauge);
            for (second, value) in (0_u64..).zip(&values) {
                let answer = Ok(Answer::Number(*value));
                builder.add(second * 1_000_000_000, (now, now), answer, |_| Some(None));
            }
            let series = builder.build();
            prop_assert!(series.points.len() <= Series::POINTS_MAX);
            // Merging halves the number of points, so at least half of the room is in use.
            prop_assert!(2 * series.points.len() >= Series::POINTS_MAX.min(values.len()));
            let readings: u64 = series.points.iter().map(|point| point.readings).sum();
            prop_assert_eq!(readings, values.len() as u64);
            let highest = series.points.iter().map(|point| point.max_milli).max();
            prop_assert_eq!(highest, values.iter().max().map(|value| value * 1000));
            let load = series.loads[0];
            let sum: i64 = values.iter().sum();
            prop_assert_eq!(load.mean_milli, sum * 1000 / values.len() as i64);
            prop_assert_eq!(Some(load.max_milli), highest);
            for point in &series.points {
                prop_assert!(point.readings * 1_000_000_000 <= series.point_ns);
                prop_assert!(point.mean_milli <= point.max_milli);
            }
        }
    }
}
