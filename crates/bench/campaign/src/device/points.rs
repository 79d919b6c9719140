//! Points of trials of crypto devices: every combination of their axes.

use super::{DeviceTrial, Fatigue, SLICES, Speed};
use crate::grid::Grid;
use crate::point::Point;
use catalog::Operation;
use plan::{Axis, DeviceSpeed, DeviceTest, Kat, Measurement, Value, Workers, nanos};
use std::fmt::Display;
use std::time::Duration;
use yaml::Place;

/// More names than that make an id too long.
const NAMES_MAX: usize = 3;

impl DeviceTrial {
    /// Its points; the first axis of an id varies slowest.
    pub(crate) fn points<'a>(&'a self, trial: &'a Place) -> Grid<'a, Point<'a>> {
        match self {
            Self::Kat(algorithms) => {
                let test = DeviceTest::Kat(Kat {
                    algorithms: algorithms.iter().map(ToString::to_string).collect(),
                });
                let point = Point::new(trial, Measurement::Device(test));
                Grid::new(trial, point).with(Axis::Algorithms, names(algorithms))
            }
            Self::Speed(speed) => speed.points(trial),
            Self::Fatigue(fatigue) => fatigue.points(trial),
        }
    }
}

impl Speed {
    /// Operations with the sizes of their input; without a size if there is nothing to choose.
    fn sized(&self) -> Vec<(Operation, Option<u32>)> {
        let of = |&operation: &Operation| {
            if operation.takes_size() {
                self.size
                    .iter()
                    .map(|size| (operation, Some(size.value)))
                    .collect()
            } else {
                vec![(operation, None)]
            }
        };
        self.operations.iter().flat_map(of).collect()
    }

    fn points<'a>(&'a self, trial: &'a Place) -> Grid<'a, Point<'a>> {
        let start = DeviceSpeed {
            operation: String::new(),
            bytes: None,
            concurrency: 1,
            workers: Workers::Threads,
            depth: 1,
            duration_ns: 0,
            slices: SLICES,
        };
        Grid::new(trial, start)
            // One axis for both: sizes do not multiply with operations that have none.
            .over_each(&self.sized(), |mut speed, (operation, bytes)| {
                speed.operation = operation.to_string();
                speed.bytes = *bytes;
                let mut at = vec![Axis::Operation.at(speed.operation.as_str())];
                at.extend(bytes.map(|bytes| Axis::Bytes.at(bytes)));
                (speed, at)
            })
            .over(Axis::AtOnce, &self.concurrency, |speed, concurrency| {
                speed.concurrency = concurrency;
            })
            .over(Axis::Workers, &self.workers, |speed, workers| {
                speed.workers = workers;
            })
            .over(Axis::Depth, &self.depth, |speed, depth| speed.depth = depth)
            .over(Axis::Duration, &self.duration, |speed, time: Duration| {
                speed.duration_ns = nanos(time);
            })
            .map(|speed| Point::new(trial, Measurement::Device(DeviceTest::Speed(speed))))
    }
}

impl Fatigue {
    fn points<'a>(&'a self, trial: &'a Place) -> Grid<'a, Point<'a>> {
        Grid::new(trial, 0)
            .with(Axis::Operations, names(&self.operations))
            .over(Axis::Threads, &self.threads, |point, threads: u32| {
                *point = threads;
            })
            .with(Axis::Loops, self.loops)
            .with(Axis::Duration, self.duration)
            .with(Axis::InvalidEvery, self.invalid_every)
            .with(Axis::Restart, self.restart)
            .map(|threads| Point::new(trial, Measurement::Device(self.test(threads))))
    }
}

/// A few names as they are, many by their number.
fn names(of: &[impl Display]) -> Value {
    match of.len() {
        0..=NAMES_MAX => {
            let names: Vec<_> = of.iter().map(ToString::to_string).collect();
            names.join("+").into()
        }
        many => (many as u64).into(),
    }
}
