//! A modelled coprocessor: an engine computes, and results take the time of a card.
//!
//! Packets enter and leave in order. Each of the device's units takes the next packet as soon as it
//! is free, and processes it in `bytes / rate`; the packet is back `latency` later, and only then
//! is there room for another. A batch is done when its last packet is back: its lane waits for
//! that, and packets of other lanes queue for the units meanwhile.
//!
//! Lanes share the queue behind a mutex, which is held while a batch's times are computed but never
//! during cryptography or waiting. Real engines have no such cost.
//!
//! Limit: it cannot be faster than the engine that computes, which it does not detect.

use std::collections::VecDeque;
use std::hint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use engine::{EngineFailed, Packet, SequenceNumbers, Transform};
use wire::Suite;

use crate::curve::Load;
use catalog::EngineModel;

/// The engine's name in errors.
pub(crate) const NAME: &str = "model";

/// Picoseconds. 128 bits, since times are sums over all packets of a service.
type Ps = u128;

const PS_PER_NS: Ps = 1_000;
const PPM: u64 = 1_000_000;
/// The kernel wakes threads about this late; the rest is a busy wait.
const OVERSLEEP: Duration = Duration::from_micros(80);

/// A device, shared by all lanes.
pub(crate) struct Device {
    latency_ps: Ps,
    rate_bps: Ps,
    queue: usize,
    errors_ppm: u64,
    origin: Instant,
    state: Mutex<State>,
}

struct State {
    now: Occupation,
    /// Scratch space for predictions.
    scratch: Occupation,
    random: u64,
}

/// The packets in the device.
struct Occupation {
    /// The time at which each unit becomes free.
    units: Vec<Ps>,
    /// The time at which each packet in the device will be back, in order.
    back: VecDeque<Ps>,
    /// The time at which the last packet will be back.
    last: Ps,
}

impl Occupation {
    /// Returns an idle device.
    fn idle(units: usize, queue: usize) -> Self {
        Self {
            units: vec![0; units],
            back: VecDeque::with_capacity(queue),
            last: 0,
        }
    }

    /// Copies another occupation of the same device without allocating.
    fn copy(&mut self, other: &Self) {
        self.units.copy_from_slice(&other.units);
        self.back.clear();
        self.back.extend(&other.back);
        self.last = other.last;
    }
}

/// The completion time of a batch, and whether it fails.
struct Ticket {
    done: Instant,
    fails: bool,
}

impl Device {
    pub(crate) fn new(model: &EngineModel) -> Self {
        let (units, queue) = (usize::from(model.parallel), model.queue as usize);
        Self {
            latency_ps: model.latency.as_nanos() * PS_PER_NS,
            rate_bps: model.rate_bps.into(),
            queue,
            errors_ppm: model.errors_ppm.into(),
            origin: Instant::now(),
            state: Mutex::new(State {
                now: Occupation::idle(units, queue),
                scratch: Occupation::idle(units, queue),
                random: 0,
            }),
        }
    }

    /// Predicts the time until a batch submitted now is done, in picoseconds. Assumes that all its
    /// packets have the same length.
    pub(crate) fn predict_ps(&self, load: Load) -> u64 {
        let now = self.now();
        let mut state = self.lock();
        let State {
            now: occupation,
            scratch,
            ..
        } = &mut *state;
        // A prediction must not change the schedule. The scratch space is kept, so that none
        // allocates.
        scratch.copy(occupation);
        let done = self.schedule(scratch, now, equal_packets(load));
        u64::try_from(done - now).unwrap_or(u64::MAX)
    }

    /// Predicts the time of a batch on an idle device, in picoseconds.
    pub(crate) fn predict_idle_ps(&self, load: Load) -> u64 {
        let units = self.lock().now.units.len();
        let mut idle = Occupation::idle(units, self.queue);
        let done = self.schedule(&mut idle, 0, equal_packets(load));
        u64::try_from(done).unwrap_or(u64::MAX)
    }

    fn submit(&self, bytes: impl Iterator<Item = usize>) -> Ticket {
        let now = self.now();
        let mut state = self.lock();
        let done = self.schedule(&mut state.now, now, bytes.map(|bytes| bytes as u64));
        let fails = split_mix(&mut state.random) % PPM < self.errors_ppm;
        let ns = u64::try_from(done / PS_PER_NS).unwrap_or(u64::MAX);
        Ticket {
            done: self.origin + Duration::from_nanos(ns),
            fails,
        }
    }

    /// Submits packets. Returns the time at which the last is back.
    fn schedule(&self, state: &mut Occupation, now: Ps, packets: impl Iterator<Item = u64>) -> Ps {
        // Packets that are back by now have left the queue.
        while state.back.front().is_some_and(|&back| back <= now) {
            state.back.pop_front();
        }
        let mut done = now;
        for bytes in packets {
            // A full queue takes a packet when its first one is back.
            let room = if state.back.len() < self.queue {
                now
            } else {
                state.back.pop_front().unwrap_or(now)
            };
            let unit = state.units.iter_mut().min().expect("a device has units");
            let taken = Ps::from(bytes) * 8 * 1_000_000_000_000 / self.rate_bps;
            *unit = (*unit).max(room).max(now) + taken;
            // Packets leave in order: one that is ready early waits for those before it.
            done = state.last.max(*unit + self.latency_ps);
            state.last = done;
            state.back.push_back(done);
        }
        done
    }

    fn now(&self) -> Ps {
        self.origin.elapsed().as_nanos() * PS_PER_NS
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic cannot leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn equal_packets(load: Load) -> impl Iterator<Item = u64> {
    let each = load.bytes / load.packets.max(1);
    std::iter::repeat_n(each, load.packets as usize)
}

/// Returns the next number of a sequence that is the same in every process (SplitMix64).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn wait_until(time: Instant) {
    loop {
        let left = time.saturating_duration_since(Instant::now());
        match left.checked_sub(OVERSLEEP) {
            _ if left.is_zero() => return,
            Some(long) if !long.is_zero() => thread::sleep(long),
            _ => hint::spin_loop(),
        }
    }
}

/// The keying material of one SA on the device.
pub(crate) struct OnDevice {
    pub(crate) device: Arc<Device>,
    /// The engine that computes.
    pub(crate) inside: Box<dyn Transform>,
}

impl OnDevice {
    /// Submits a batch, computes it, and waits until it is back.
    fn process(
        &mut self,
        bytes: impl Iterator<Item = usize>,
        compute: impl FnOnce(&mut dyn Transform) -> Result<(), EngineFailed>,
    ) -> Result<(), EngineFailed> {
        let ticket = self.device.submit(bytes);
        let computed = if ticket.fails {
            Err(EngineFailed {
                engine: NAME,
                reason: "an injected error of the model".to_owned(),
            })
        } else {
            compute(&mut *self.inside)
        };
        wait_until(ticket.done);
        computed
    }
}

fn lengths(packets: &[Packet]) -> impl Iterator<Item = usize> {
    packets.iter().map(|packet| packet.bytes)
}

impl Transform for OnDevice {
    fn suite(&self) -> Suite {
        self.inside.suite()
    }

    fn numbers(&self) -> SequenceNumbers {
        self.inside.numbers()
    }

    fn seal_from(
        &mut self,
        sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        self.process([packet.len()].into_iter(), |inside| {
            inside.seal_from(sequence_high, text, packet)
        })
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        self.process(lengths(packets), |inside| inside.seal(buffer, packets))
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        self.process(lengths(packets), |inside| {
            inside.open(buffer, packets, authentic)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: u64 = 1_000;

    /// A device with 50 µs of latency, whose units take 1 ns per byte.
    fn device(queue: u32, parallel: u16) -> Device {
        Device::new(&EngineModel {
            latency: Duration::from_micros(50),
            rate_bps: 8_000_000_000,
            queue,
            parallel,
            errors_ppm: 0,
            engine: engine::CpuChoice::Auto,
        })
    }

    #[test]
    fn an_idle_device_takes_latency_and_the_bytes_of_its_busiest_unit() {
        let idle = |device: Device, packets, bytes| {
            device.predict_idle_ps(Load::uniform(packets, bytes)) / NS
        };
        assert_eq!(idle(device(64, 1), 1, 1000), 51_000);
        assert_eq!(idle(device(64, 1), 8, 1000), 58_000);
        assert_eq!(idle(device(64, 2), 8, 1000), 54_000);
        assert_eq!(idle(device(64, 2), 9, 1000), 55_000);
        assert_eq!(idle(device(64, 16), 8, 1000), 51_000);
    }

    #[test]
    fn a_short_queue_waits_for_packets_to_come_back() {
        let idle =
            |queue, packets| device(queue, 1).predict_idle_ps(Load::uniform(packets, 1000)) / NS;
        // One at a time: each has the full latency.
        assert_eq!(idle(1, 4), 4 * 51_000);
        // Two at a time: the third enters when the first is back.
        assert_eq!(idle(2, 4), 51_000 + 1_000 + 51_000);
        assert_eq!(idle(4, 4), 54_000);
    }

    #[test]
    fn a_batch_waits_for_those_before_it() {
        let device = device(64, 1);
        let load = Load::uniform(10, 1000);
        let before = device.predict_ps(load);
        assert_eq!(before / NS, 60_000, "a prediction changes nothing");
        assert_eq!(device.predict_ps(load) / NS, 60_000);
        // 100 s: the duration of this test does not matter.
        let _ = device.submit([100_000_000_000].into_iter());
        let after = device.predict_ps(load);
        assert!(after > 50_000_000_000 * NS, "{after} ps");
    }

    #[test]
    fn errors_are_reproducible_and_have_the_configured_rate() {
        let model = |errors_ppm| {
            let device = Device::new(&EngineModel {
                latency: Duration::ZERO,
                rate_bps: 1_000_000_000_000,
                queue: 1,
                parallel: 1,
                errors_ppm,
                engine: engine::CpuChoice::Auto,
            });
            (0..10_000)
                .map(|_| device.submit([64].into_iter()).fails)
                .collect::<Vec<_>>()
        };
        let failed = |fails: &[bool]| fails.iter().filter(|&&fails| fails).count();
        assert_eq!(model(500_000), model(500_000));
        assert!((4_800..5_200).contains(&failed(&model(500_000))));
        assert!((60..140).contains(&failed(&model(10_000))));
        assert_eq!(failed(&model(0)), 0);
        assert_eq!(failed(&model(1_000_000)), 10_000);
    }

    #[test]
    fn waiting_never_ends_early() {
        let start = Instant::now();
        for wait in [0, 30, 300] {
            let until = Instant::now() + Duration::from_micros(wait);
            wait_until(until);
            assert!(Instant::now() >= until);
        }
        assert!(start.elapsed() >= Duration::from_micros(330));
    }
}
