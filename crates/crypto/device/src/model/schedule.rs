//! The schedule of a modelled coprocessor in simulated time; nothing here waits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{PS_PER_NS, Ps};
use catalog::device::DeviceModel;

/// The units and the queue.
pub(super) struct Schedule {
    /// When each unit becomes free.
    units: BinaryHeap<Reverse<Ps>>,
    /// When the result of each operation in the device will be back.
    back: BinaryHeap<Reverse<Ps>>,
}

impl Schedule {
    /// The schedule of an idle device.
    pub(super) fn new(model: &DeviceModel) -> Self {
        Self {
            units: (0..model.parallel).map(|_| Reverse(0)).collect(),
            back: BinaryHeap::new(),
        }
    }

    /// Submits an operation on `bytes` bytes, now or once there is room. Returns when it is back.
    pub(super) fn submit(&mut self, model: &DeviceModel, now: Ps, bytes: usize) -> Ps {
        while self.back.peek().is_some_and(|back| back.0 <= now) {
            self.back.pop();
        }
        // The queue is full: the operation enters when the earliest one in it is back.
        let room = if self.back.len() < model.queue as usize {
            now
        } else {
            self.back.pop().map_or(now, |back| back.0)
        };
        let unit = self.units.pop().map_or(0, |unit| unit.0);
        let busy = Ps::from(model.operation_ns) * PS_PER_NS
            + bytes as Ps * 8 * 1_000_000_000_000 / Ps::from(model.rate_bps);
        // The latency is not part of it: a unit takes its next operation while the result is on its
        // way.
        let free = unit.max(room) + busy;
        let back = free + Ps::from(model.latency_ns) * PS_PER_NS;
        self.units.push(Reverse(free));
        self.back.push(Reverse(back));
        back
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::device::DeviceFault;

    /// 1000 operations per second and unit.
    const MODEL: DeviceModel = DeviceModel {
        latency_ns: 500_000,
        rate_bps: 1_000_000_000_000_000,
        operation_ns: 1_000_000,
        parallel: 4,
        queue: 64,
        errors_ppm: 0,
        fault: DeviceFault::Fails,
    };

    /// Returns the operations completed in a second if each thread submits the next one when one of
    /// its operations is back.
    fn pace(model: &DeviceModel, threads: usize, depth: usize, bytes: usize) -> u64 {
        let second = 1_000_000_000 * PS_PER_NS;
        let mut schedule = Schedule::new(model);
        let mut waiting: BinaryHeap<Reverse<Ps>> =
            (0..threads * depth).map(|_| Reverse(0)).collect();
        let mut done = 0;
        while let Some(Reverse(now)) = waiting.pop() {
            let back = schedule.submit(model, now, bytes);
            if back <= second {
                done += 1;
                waiting.push(Reverse(back));
            }
        }
        done
    }

    #[test]
    fn the_schedule_is_exact_to_the_last_operation() {
        // 1 ms each, and 0.5 ms until the first ones are back.
        assert_eq!(pace(&MODEL, 16, 1, 0), 4 * 999);
        assert_eq!(pace(&MODEL, 1, 16, 0), 4 * 999);
        let one = DeviceModel {
            parallel: 1,
            ..MODEL
        };
        assert_eq!(pace(&one, 16, 1, 0), 999);
        // A thread that waits for each operation has the latency as well: 1.5 ms.
        assert_eq!(pace(&MODEL, 1, 1, 0), 666);
        assert_eq!(pace(&MODEL, 2, 1, 0), 2 * 666);
        // Two operations are in the device, each for 1.5 ms: the other units are idle.
        let short = DeviceModel { queue: 2, ..MODEL };
        assert_eq!(pace(&short, 16, 1, 0), 2 * 666);
    }

    #[test]
    fn bytes_take_time_at_the_units_rate() {
        // 1000 B take a millisecond, plus 0.1 ms for each operation.
        let slow = DeviceModel {
            rate_bps: 8_000_000,
            operation_ns: 100_000,
            parallel: 1,
            ..MODEL
        };
        assert_eq!(pace(&slow, 8, 1, 1000), 908);
        assert_eq!(pace(&slow, 8, 1, 0), 9995);
    }
}
