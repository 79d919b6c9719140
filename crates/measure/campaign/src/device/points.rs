//! Points of trials of crypto devices: every combination of their axes.

use super::{DeviceTrial, Fatigue, SLICES, Speed, point};
use crate::axis::nanos;
use crate::axis::product;
use crate::expand::{AxisValue, Point, always, sometimes};
use crate::plan::{DeviceSpeed, DeviceTest, Kat};
use crate::trial::Trial;
use crate::words::{compact_time, on_off};
use operation::Operation;
use std::fmt::Display;

/// More names than that make an id too long.
const NAMES_MAX: usize = 3;

impl DeviceTrial {
    /// How many points it has; saturates.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Kat(_) => 1,
            Self::Fatigue(fatigue) => fatigue.threads.len(),
            Self::Speed(speed) => {
                let sizes = speed
                    .operations
                    .iter()
                    .map(|operation| speed.sizes(*operation));
                let first = sizes.fold(0_usize, |sum, sizes| sum.saturating_add(sizes.len()));
                let others = [
                    speed.concurrency.len(),
                    speed.workers.len(),
                    speed.depth.len(),
                    speed.duration.len(),
                ];
                others.into_iter().fold(first, usize::saturating_mul)
            }
        }
    }

    /// Its points; the first axis of an id varies slowest.
    pub(crate) fn points<'a>(&'a self, trial: &'a Trial) -> Vec<Point<'a>> {
        match self {
            Self::Kat(algorithms) => {
                let test = DeviceTest::Kat(Kat {
                    algorithms: algorithms.iter().map(ToString::to_string).collect(),
                });
                let axes = vec![sometimes("algorithms", names(algorithms))];
                vec![point(trial, test, axes)]
            }
            Self::Speed(speed) => speed.points(trial),
            Self::Fatigue(fatigue) => fatigue.points(trial),
        }
    }
}

impl Speed {
    /// Sizes of the input of an operation; one that is none where there is nothing to choose.
    fn sizes(&self, operation: Operation) -> Vec<Option<u32>> {
        match operation.takes_size() {
            true => self.size.iter().map(|size| Some(size.value)).collect(),
            false => vec![None],
        }
    }

    fn points<'a>(&'a self, trial: &'a Trial) -> Vec<Point<'a>> {
        let what = self.operations.iter().flat_map(|operation| {
            let sizes = self.sizes(*operation).into_iter();
            sizes.map(move |bytes| (*operation, bytes))
        });
        let lengths = [
            self.concurrency.len(),
            self.workers.len(),
            self.depth.len(),
            self.duration.len(),
        ];
        what.flat_map(|what| product(lengths).map(move |at| self.point(trial, what, at)))
            .collect()
    }

    fn point<'a>(
        &'a self,
        trial: &'a Trial,
        (operation, bytes): (Operation, Option<u32>),
        [concurrency, workers, depth, duration]: [usize; 4],
    ) -> Point<'a> {
        let concurrency = self.concurrency[concurrency].value;
        let (workers, depth) = (self.workers[workers].value, self.depth[depth].value);
        let duration = self.duration[duration].value;
        let mut axes = vec![always("operation", operation.to_string().replace(' ', "-"))];
        axes.extend(bytes.map(|bytes| always("bytes", bytes)));
        axes.extend([
            always("at-once", concurrency),
            sometimes("workers", workers.name()),
            sometimes("depth", depth),
            sometimes("duration", compact_time(duration)),
        ]);
        let test = DeviceTest::Speed(DeviceSpeed {
            operation: operation.to_string(),
            bytes,
            concurrency,
            workers,
            depth,
            duration_ns: nanos(duration),
            slices: SLICES,
        });
        point(trial, test, axes)
    }
}

impl Fatigue {
    fn points<'a>(&'a self, trial: &'a Trial) -> Vec<Point<'a>> {
        let make = |threads: u32| {
            let axes: Vec<AxisValue> = vec![
                sometimes("operations", names(&self.operations)),
                always("threads", threads),
                sometimes("loops", or_none(self.loops)),
                sometimes("duration", or_none(self.duration.map(compact_time))),
                sometimes("invalid-every", self.invalid_every),
                sometimes("restart", on_off(self.restart)),
            ];
            point(trial, self.test(threads), axes)
        };
        let threads = self.threads.iter();
        threads.map(|threads| make(threads.value)).collect()
    }
}

fn or_none(value: Option<impl Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// A few names as they are, many by their number.
fn names(of: &[impl Display]) -> String {
    match of.len() {
        0..=NAMES_MAX => {
            let names: Vec<_> = of
                .iter()
                .map(|name| name.to_string().replace(' ', "-"))
                .collect();
            names.join("+")
        }
        many => many.to_string(),
    }
}
