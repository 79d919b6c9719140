//! A coprocessor that is not there: real cryptography by an engine, and the time that a card would
//! take.
//!
//! Packets go in in their order and come back in their order. Each of the device's units takes the
//! next packet as soon as it is free, and `bytes / rate` for it; `latency` later the packet is
//! back, and only then is there room for another. A batch is done when its last packet is back: its
//! lane waits for that, and other lanes' packets wait for the units in between.
//!
//! Lanes share the queue behind a mutex, which is held while a batch's times are worked out and
//! never while one is computed or waited for: a model's price, which no real engine has.
//!
//! It cannot be faster than the engine that computes inside, and does not say so.

use std::collections::VecDeque;
use std::hint;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use engine::{EngineFailed, Packet, Transform};
use wire::Suite;

use crate::curve::Load;
use choice::Model;

/// What the engine is called where it failed.
pub(crate) const NAME: &str = "model";

/// Times are sums of what packets take: in picoseconds, and in 128 bits, which no service outlives.
type Ps = u128;

const PS_PER_NS: Ps = 1_000;
const PPM: u64 = 1_000_000;
/// The kernel wakes a sleeper up about this late; the rest is waited out awake.
const OVERSLEEP: Duration = Duration::from_micros(80);

/// One device, which all lanes share.
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
    /// Where a prediction is worked out.
    scratch: Occupation,
    random: u64,
}

/// What is in the device.
struct Occupation {
    /// When each unit is free.
    units: Vec<Ps>,
    /// When each packet that is in it will be back, the first first.
    back: VecDeque<Ps>,
    /// When the last of all packets will be back.
    last: Ps,
}

impl Occupation {
    /// A device that has nothing to do.
    fn idle(units: usize, queue: usize) -> Self {
        Self {
            units: vec![0; units],
            back: VecDeque::with_capacity(queue),
            last: 0,
        }
    }

    /// Becomes the same as another of the same device, without allocating.
    fn copy(&mut self, other: &Self) {
        self.units.copy_from_slice(&other.units);
        self.back.clear();
        self.back.extend(&other.back);
        self.last = other.last;
    }
}

/// When a batch will be done, and whether it comes back undone.
struct Ticket {
    done: Instant,
    fails: bool,
}

impl Device {
    pub(crate) fn new(model: &Model) -> Self {
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

    /// The time until a batch that were handed in now would be done, in picoseconds. All its
    /// packets are taken for equally long.
    pub(crate) fn predict_ps(&self, load: Load) -> u64 {
        let now = self.now();
        let mut state = self.lock();
        let State {
            now: occupation,
            scratch,
            ..
        } = &mut *state;
        scratch.copy(occupation);
        let done = self.schedule(scratch, now, equal_packets(load));
        u64::try_from(done - now).unwrap_or(u64::MAX)
    }

    /// The same for a device that has nothing to do.
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

    /// Puts packets into the device; returns when the last is back.
    fn schedule(&self, state: &mut Occupation, now: Ps, packets: impl Iterator<Item = u64>) -> Ps {
        while state.back.front().is_some_and(|&back| back <= now) {
            state.back.pop_front();
        }
        let mut done = now;
        for bytes in packets {
            let room = match state.back.len() < self.queue {
                true => now,
                false => state.back.pop_front().unwrap_or(now),
            };
            let unit = state.units.iter_mut().min().expect("a device has units");
            let taken = Ps::from(bytes) * 8 * 1_000_000_000_000 / self.rate_bps;
            *unit = (*unit).max(room).max(now) + taken;
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
        // Nothing in it can be half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn equal_packets(load: Load) -> impl Iterator<Item = u64> {
    let each = load.bytes / load.packets.max(1);
    std::iter::repeat_n(each, load.packets as usize)
}

/// The next number of a sequence that is the same in every process (SplitMix64).
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
    /// What computes.
    pub(crate) inside: Box<dyn Transform>,
}

impl OnDevice {
    /// Hands a batch in, lets it be computed, and waits until it is back.
    fn process(
        &mut self,
        bytes: impl Iterator<Item = usize>,
        compute: impl FnOnce(&mut dyn Transform) -> Result<(), EngineFailed>,
    ) -> Result<(), EngineFailed> {
        let ticket = self.device.submit(bytes);
        let computed = match ticket.fails {
            true => Err(EngineFailed {
                engine: NAME,
                reason: "an error that the model is to have".to_owned(),
            }),
            false => compute(&mut *self.inside),
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

    /// 50 µs away; a unit takes 1 ns for 1 byte.
    fn device(queue: u32, parallel: u16) -> Device {
        Device::new(&Model {
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
        // One at a time: each pays the latency.
        assert_eq!(idle(1, 4), 4 * 51_000);
        // Two at a time: the third goes in when the first is back.
        assert_eq!(idle(2, 4), 51_000 + 1_000 + 51_000);
        assert_eq!(idle(4, 4), 54_000);
    }

    #[test]
    fn what_others_have_handed_in_is_waited_for() {
        let device = device(64, 1);
        let load = Load::uniform(10, 1000);
        let before = device.predict_ps(load);
        assert_eq!(before / NS, 60_000, "a prediction changes nothing");
        assert_eq!(device.predict_ps(load) / NS, 60_000);
        // 100 s: what this test takes does not matter.
        let _ = device.submit([100_000_000_000].into_iter());
        let after = device.predict_ps(load);
        assert!(after > 50_000_000_000 * NS, "{after} ps");
    }

    #[test]
    fn the_same_errors_come_in_every_run_and_as_often_as_asked_for() {
        let model = |errors_ppm| {
            let device = Device::new(&Model {
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
    fn nobody_is_back_before_his_time() {
        let start = Instant::now();
        for wait in [0, 30, 300] {
            let until = Instant::now() + Duration::from_micros(wait);
            wait_until(until);
            assert!(Instant::now() >= until);
        }
        assert!(start.elapsed() >= Duration::from_micros(330));
    }
}
