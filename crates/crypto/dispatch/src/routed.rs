//! One SA on several engines: each batch goes to the engine that will finish first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use engine::{EngineFailed, Packet, SequenceNumbers, Transform};
use wire::Suite;

use crate::contest::is_worth_a_change;
use crate::curve::{Curve, Direction, Load};
use crate::device::Device;

/// The policy that selects an engine for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The engine that is expected to finish first; the previous one, unless the gain is worth a
    /// change.
    Soonest,
    /// The first engine for ESP packets shorter than this, the second for the others. A batch with
    /// both is split.
    Below(usize),
}

/// Predicts the time that a contender takes.
#[derive(Clone)]
pub(crate) enum Predictor {
    /// Curves by direction; all zero for a contender that is never compared.
    Curves([Curve; 3]),
    /// The device itself, which predicts from its queue.
    Device(Arc<Device>),
}

impl Predictor {
    #[inline]
    fn predict_ps(&self, direction: Direction, load: Load) -> u64 {
        match self {
            Self::Curves(curves) => curves[direction as usize].predict_ps(load),
            Self::Device(device) => device.predict_ps(load),
        }
    }

    /// Predicts the time on an idle contender.
    pub(crate) fn predict_idle_ps(&self, direction: Direction, load: Load) -> u64 {
        match self {
            Self::Curves(curves) => curves[direction as usize].predict_ps(load),
            Self::Device(device) => device.predict_idle_ps(load),
        }
    }
}

/// Counts of failed and replaced contenders, shared by all SAs.
#[derive(Debug)]
pub(crate) struct Failures(Vec<Failed>);

#[derive(Debug, Default)]
struct Failed {
    sas: AtomicU64,
    first: OnceLock<EngineFailed>,
}

impl Failures {
    pub(crate) fn of(contenders: usize) -> Self {
        Self((0..contenders).map(|_| Failed::default()).collect())
    }

    fn note(&self, contender: usize, error: &EngineFailed) {
        let failed = &self.0[contender];
        // The first reason is the cause; later ones may be its consequences.
        failed.first.get_or_init(|| error.clone());
        failed.sas.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns, for each contender that failed, the SAs for which it was replaced and its first
    /// error.
    pub(crate) fn list(&self) -> impl Iterator<Item = (u64, &EngineFailed)> {
        self.0
            .iter()
            .filter_map(|failed| Some((failed.sas.load(Ordering::Relaxed), failed.first.get()?)))
    }
}

/// A contender's key for the SA.
pub(crate) struct Route {
    /// Index among the contenders.
    pub(crate) contender: usize,
    pub(crate) transform: Box<dyn Transform>,
    pub(crate) predictor: Predictor,
}

/// The keying material of an SA on several engines.
pub(crate) struct Routed {
    suite: Suite,
    numbers: SequenceNumbers,
    /// The first is the default if all are equal. A failed route is removed.
    routes: Vec<Route>,
    policy: Policy,
    /// The route of the last batch, by direction.
    current: [usize; 3],
    failures: Arc<Failures>,
    /// The error of the last removed route.
    last_error: Option<EngineFailed>,
}

impl Routed {
    pub(crate) fn new(
        suite: Suite,
        routes: Vec<Route>,
        policy: Policy,
        failures: Arc<Failures>,
    ) -> Self {
        let first = routes.first();
        Self {
            suite,
            numbers: first.map_or_else(SequenceNumbers::default, |it| it.transform.numbers()),
            routes,
            policy,
            current: [0; 3],
            failures,
            last_error: None,
        }
    }

    /// Selects the route for a batch; `None` if there is none left.
    #[inline]
    fn choose(&mut self, direction: Direction, load: Load) -> Option<usize> {
        // The only one left after failures, or none. No prediction is needed, nor a threshold.
        if self.routes.len() <= 1 {
            return self.routes.first().map(|_| 0);
        }
        if let Policy::Below(limit) = self.policy {
            return Some(usize::from(load.longest_bytes >= limit as u64));
        }
        let current = self.current[direction as usize];
        // Compared with the engine of the last batch: its code and keys are in the caches.
        let before_ps = self.routes[current].predictor.predict_ps(direction, load);
        let (mut best, mut best_ps) = (current, before_ps);
        for (index, route) in self.routes.iter().enumerate() {
            if index == current {
                continue;
            }
            let ps = route.predictor.predict_ps(direction, load);
            if ps < best_ps && is_worth_a_change(before_ps, ps) {
                (best, best_ps) = (index, ps);
            }
        }
        self.current[direction as usize] = best;
        Some(best)
    }

    /// Runs a batch on the selected engine, and on the next one if that fails. A failed engine is
    /// not used again.
    #[inline]
    fn run(
        &mut self,
        direction: Direction,
        load: Load,
        mut work: impl FnMut(&mut dyn Transform) -> Result<(), EngineFailed>,
    ) -> Result<(), EngineFailed> {
        loop {
            let Some(index) = self.choose(direction, load) else {
                return Err(self
                    .last_error
                    .clone()
                    .expect("routes are removed only when they fail"));
            };
            match work(&mut *self.routes[index].transform) {
                Ok(()) => return Ok(()),
                // A failed engine leaves the batch unchanged (`Transform`), so the next one can
                // process it.
                Err(error) => self.remove_failed(index, error),
            }
        }
    }

    /// Removes a failed route, which wipes its key. No packet is in the engine, since each call
    /// waits for its batch.
    #[cold]
    fn remove_failed(&mut self, index: usize, error: EngineFailed) {
        let route = self.routes.remove(index);
        self.failures.note(route.contender, &error);
        self.last_error = Some(error);
        for current in &mut self.current {
            // Indexes behind it have moved; the first route replaces it.
            *current = match (*current).cmp(&index) {
                std::cmp::Ordering::Less => *current,
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Greater => *current - 1,
            };
        }
    }

    /// Whether two packets may share a call.
    fn may_share_a_call(policy: Policy) -> impl Fn(&Packet, &Packet) -> bool {
        move |a, b| match policy {
            Policy::Soonest => true,
            Policy::Below(limit) => (a.bytes < limit) == (b.bytes < limit),
        }
    }
}

impl Transform for Routed {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    #[inline]
    fn seal_from(
        &mut self,
        sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        let load = Load::uniform(1, packet.len() as u64);
        self.run(Direction::SealFrom, load, |transform| {
            transform.seal_from(sequence_high, text, packet)
        })
    }

    #[inline]
    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        for part in packets.chunk_by(Self::may_share_a_call(self.policy)) {
            self.run(Direction::Seal, Load::of(part), |transform| {
                transform.seal(buffer, part)
            })?;
        }
        Ok(())
    }

    #[inline]
    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        assert_eq!(packets.len(), authentic.len(), "one verdict per packet");
        let mut verdicts = authentic;
        for part in packets.chunk_by(Self::may_share_a_call(self.policy)) {
            let (of_part, rest) = verdicts.split_at_mut(part.len());
            self.run(Direction::Open, Load::of(part), |transform| {
                transform.open(buffer, part, of_part)
            })?;
            verdicts = rest;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
