//! Dispatch: from a choice to transforms.

use std::fmt;
use std::sync::Arc;

use engine::{EngineError, PassedOver, SequenceNumbers, Transform};
use serde::Serialize;
use wire::Suite;
use wire::overhead::esp_bytes;

use crate::cache::Cache;
use crate::contender::{Contender, UsableEngines, unavailable};
use crate::contest::{self, Cost, Crossover, REPORTED_BATCH};
use crate::curve::{Direction, EngineCurves, Load};
use crate::device::{self, Device, OnDevice};
use crate::measure;
use crate::routed::{Failures, Policy, Predictor, Route, Routed};
use catalog::{Choice, CpuChoice, EngineModel};

/// A prepared choice for a suite, which makes the keying material of SAs. Clones share one
/// instance.
#[derive(Clone)]
pub struct Dispatch(Arc<Inner>);

struct Inner {
    suite: Suite,
    engine: String,
    version: String,
    passed_over: Vec<PassedOver>,
    curves: Vec<EngineCurves>,
    contenders: Vec<Contender>,
    policy: Policy,
    /// Contenders worth a key for SAs that seal, that open, and that may do both.
    sealing: Vec<usize>,
    opening: Vec<usize>,
    either: Vec<usize>,
    failures: Arc<Failures>,
}

/// An engine that failed and was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The engine.
    pub engine: &'static str,
    /// Number of SAs for which it was replaced.
    pub sas: u64,
    /// Reason of the first failure, as text.
    pub reason: String,
}

/// An engine, and the length of inner packets from which on it is the fastest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// Length of inner packets, in bytes.
    pub from_inner_bytes: usize,
    /// The engine.
    pub engine: String,
}

impl Dispatch {
    /// Finds the engines that have the suite and pass. If there are several, reads their curves
    /// from the user's cache or measures them: about a tenth of a second, once per process.
    ///
    /// # Errors
    /// [`EngineError`]: a named engine is unknown, unavailable on this host or computes wrongly; or
    /// all of them are.
    pub fn prepare(choice: &Choice, suite: Suite) -> Result<Self, EngineError> {
        let cache = &Cache::of_user();
        match choice {
            Choice::Auto => Self::on_cpu(&CpuChoice::Auto, suite, cache),
            Choice::Named(name) => Self::on_cpu(&CpuChoice::Named(name.clone()), suite, cache),
            Choice::Threshold {
                below,
                small,
                large,
            } => {
                let select = |name: &str| engine::select(&CpuChoice::Named(name.to_owned()), suite);
                // Without curves: a threshold compares lengths, so nothing has to be measured.
                let contenders = [select(small)?, select(large)?].map(Contender::of);
                let turns = format!("{small} below {below} B, {large}");
                // The configuration counts inner packets, and a batch has ESP packets.
                let limit = Policy::Below(esp_bytes(suite, *below));
                Ok(Self::new(suite, contenders.into(), limit, turns))
            }
            Choice::Model { model, otherwise } => {
                Self::with_model(model, otherwise.as_ref(), suite, cache)
            }
        }
    }

    /// Like [`prepare`](Self::prepare), but always measures the curves, even of a single engine.
    /// Stores the curves of all engines in the cache if the measurement was undisturbed, but not
    /// those of a named engine.
    ///
    /// # Errors
    /// The same.
    pub fn measure(choice: &CpuChoice, suite: Suite) -> Result<Self, EngineError> {
        Self::measure_and_keep(choice, suite, &Cache::of_user())
    }

    fn measure_and_keep(
        choice: &CpuChoice,
        suite: Suite,
        cache: &Cache,
    ) -> Result<Self, EngineError> {
        let found = UsableEngines::of(choice, suite)?;
        // Leaves the curves in this process's memory, where the next call finds them; so that call
        // needs no cache.
        measure::remeasure(suite, &found.engines, found.cache(cache)).map_err(unavailable)?;
        let (contenders, curves, passed_over) = found.compared(suite, &Cache::none())?;
        Ok(Self::soonest(suite, contenders, curves, passed_over))
    }

    fn on_cpu(choice: &CpuChoice, suite: Suite, cache: &Cache) -> Result<Self, EngineError> {
        let found = UsableEngines::of(choice, suite)?;
        // Nothing to compare, so no time is spent on a measurement.
        if let [only] = &found.engines[..] {
            let name = only.engine().to_owned();
            let contenders = vec![Contender::of(only.clone())];
            let this = Self::new(suite, contenders, Policy::Soonest, name);
            return Ok(this.with_passed_over(found.passed_over));
        }
        let (contenders, curves, passed_over) = found.compared(suite, cache)?;
        Ok(Self::soonest(suite, contenders, curves, passed_over))
    }

    fn with_model(
        model: &EngineModel,
        otherwise: Option<&CpuChoice>,
        suite: Suite,
        cache: &Cache,
    ) -> Result<Self, EngineError> {
        let inside = Self::on_cpu(&model.engine, suite, cache)?;
        let device = Arc::new(Device::new(model));
        let name = format!("{} of {}", device::NAME, inside.engine());
        // Each of its transforms holds one of the engine inside, which computes the results.
        let contender = Contender {
            name: name.clone(),
            version: inside.version().to_owned(),
            predictor: Predictor::Device(Arc::clone(&device)),
            make: Box::new(move |keymat, numbers| {
                Box::new(OnDevice {
                    device: Arc::clone(&device),
                    inside: inside.make(&inside.0.either, keymat, numbers),
                })
            }),
        };
        let Some(otherwise) = otherwise else {
            return Ok(Self::new(suite, vec![contender], Policy::Soonest, name));
        };
        let found = UsableEngines::of(otherwise, suite)?;
        let (mut contenders, curves, passed_over) = found.compared(suite, cache)?;
        // At the end, so that the curves and the CPU engines have the same indexes.
        contenders.push(contender);
        Ok(Self::soonest(suite, contenders, curves, passed_over))
    }

    /// Makes a dispatch that selects the earliest of several contenders, of those worth a key.
    fn soonest(
        suite: Suite,
        contenders: Vec<Contender>,
        curves: Vec<EngineCurves>,
        passed_over: Vec<PassedOver>,
    ) -> Self {
        let this = Self::new(suite, contenders, Policy::Soonest, String::new());
        let mut inner = Arc::into_inner(this.0).expect("just made, and not cloned");
        // By direction: each engine with a key costs every SA its memory and the time to expand the
        // key.
        inner.sealing = inner.worth_a_key(&[Direction::Seal, Direction::SealFrom]);
        inner.opening = inner.worth_a_key(&[Direction::Open]);
        inner.either = inner.worth_a_key(&Direction::ALL);
        // After the selection, since the description names only engines that get a key.
        inner.engine = match &inner.either[..] {
            [only] => inner.contenders[*only].name.clone(),
            _ => inner.auto_in_words(),
        };
        inner.version = inner.versions();
        inner.curves = curves;
        inner.passed_over = passed_over;
        Self(Arc::new(inner))
    }

    /// Makes a dispatch in which all contenders get a key.
    fn new(suite: Suite, contenders: Vec<Contender>, policy: Policy, engine: String) -> Self {
        let all: Vec<_> = (0..contenders.len()).collect();
        let mut inner = Inner {
            suite,
            engine,
            version: String::new(),
            passed_over: Vec::new(),
            curves: Vec::new(),
            failures: Arc::new(Failures::of(contenders.len())),
            contenders,
            policy,
            sealing: all.clone(),
            opening: all.clone(),
            either: all,
        };
        inner.version = inner.versions();
        Self(Arc::new(inner))
    }

    fn with_passed_over(self, passed_over: Vec<PassedOver>) -> Self {
        let mut inner = Arc::into_inner(self.0).expect("just made, and not cloned");
        inner.passed_over = passed_over;
        Self(Arc::new(inner))
    }

    /// Returns its suite.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.0.suite
    }

    /// Describes its engines in reports: `ipsec-mb`, or the engines that seal batches of 32 packets
    /// by length of inner packets, `auto: one-engine below 96 B, another`, and those that seal
    /// single packets, if they differ: `auto: ipsec-mb (single packets: rustcrypto below 239 B,
    /// aws-lc)`.
    #[must_use]
    pub fn engine(&self) -> &str {
        &self.0.engine
    }

    /// Returns the versions of its engines, separated by commas.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Returns the engines that have the suite but could not be used, with reasons to show to the
    /// user.
    #[must_use]
    pub fn passed_over(&self) -> &[PassedOver] {
        &self.0.passed_over
    }

    /// Returns the curves of the compared engines; empty if none were compared.
    #[must_use]
    pub fn curves(&self) -> &[EngineCurves] {
        &self.0.curves
    }

    /// Returns the engines that have failed, which were replaced if there was another. Cheap to
    /// poll: reading does not block lanes.
    #[must_use]
    pub fn replaced(&self) -> Vec<Replaced> {
        let replaced = self.0.failures.list();
        replaced
            .map(|(sas, first)| Replaced {
                engine: first.engine,
                sas,
                reason: first.reason.clone(),
            })
            .collect()
    }

    /// Returns the fastest engine by packet size, for batches of `packets` packets of one length.
    /// Empty if no engines were compared.
    #[must_use]
    pub fn turns(&self, direction: Direction, packets: u64) -> Vec<Turn> {
        let inner = &self.0;
        if inner.curves.is_empty() {
            return Vec::new();
        }
        let turn = |crossover: Crossover| Turn {
            from_inner_bytes: crossover.from_inner_bytes,
            engine: inner.contenders[inner.of(direction)[crossover.winner]]
                .name
                .clone(),
        };
        inner
            .crossovers(direction, packets)
            .into_iter()
            .map(turn)
            .collect()
    }

    /// Prepares the keying material of one SA, which may seal and open: cipher key, then salt or
    /// HMAC key. It is wiped on drop; the caller wipes `keymat`.
    ///
    /// With a single engine, it is that engine's own transform. With several, it holds a key for
    /// each. When one fails, the next processes the batch, without loss, and the failed key is
    /// dropped. The error of the last engine is returned. A part of a batch that a threshold
    /// divides may then be processed: the batch must be dropped.
    ///
    /// # Panics
    /// If the length of `keymat` is not [`Suite::keymat_bytes`].
    #[must_use]
    pub fn transform(&self, keymat: &[u8]) -> Box<dyn Transform> {
        self.make(&self.0.either, keymat, SequenceNumbers::Extended)
    }

    /// Like [`transform`](Self::transform) for an SA that only seals, without keys for engines that
    /// are better only at opening.
    ///
    /// # Panics
    /// The same.
    #[must_use]
    pub fn sealing(&self, keymat: &[u8]) -> Box<dyn Transform> {
        self.sealing_with(keymat, SequenceNumbers::Extended)
    }

    /// Like [`sealing`](Self::sealing), for a peer with these sequence numbers.
    ///
    /// # Panics
    /// The same; and for short numbers, if the suite is not in [`Suite::COMMON`].
    #[must_use]
    pub fn sealing_with(&self, keymat: &[u8], numbers: SequenceNumbers) -> Box<dyn Transform> {
        self.make(&self.0.sealing, keymat, numbers)
    }

    /// Like [`transform`](Self::transform) for an SA that only opens.
    ///
    /// # Panics
    /// The same.
    #[must_use]
    pub fn opening(&self, keymat: &[u8]) -> Box<dyn Transform> {
        self.opening_with(keymat, SequenceNumbers::Extended)
    }

    /// Like [`opening`](Self::opening), for a peer with these sequence numbers.
    ///
    /// # Panics
    /// As [`sealing_with`](Self::sealing_with).
    #[must_use]
    pub fn opening_with(&self, keymat: &[u8], numbers: SequenceNumbers) -> Box<dyn Transform> {
        self.make(&self.0.opening, keymat, numbers)
    }

    fn make(&self, worth: &[usize], keymat: &[u8], numbers: SequenceNumbers) -> Box<dyn Transform> {
        let inner = &self.0;
        // The engine's transform itself: a single engine has no cost of a selection per batch.
        if let [only] = worth {
            return (inner.contenders[*only].make)(keymat, numbers);
        }
        let route = |&contender: &usize| Route {
            contender,
            transform: (inner.contenders[contender].make)(keymat, numbers),
            predictor: inner.contenders[contender].predictor.clone(),
        };
        let routes = worth.iter().map(route).collect();
        let failures = Arc::clone(&inner.failures);
        Box::new(Routed::new(inner.suite, routes, inner.policy, failures))
    }
}

impl Inner {
    /// Returns the contenders with a key in a direction.
    fn of(&self, direction: Direction) -> &[usize] {
        match direction {
            Direction::Seal | Direction::SealFrom => &self.sealing,
            Direction::Open => &self.opening,
        }
    }

    /// Returns the contenders worth a key, best first. A device gets a key only if it can win; a
    /// CPU engine gets one as well, for when the device's queue is long or it fails.
    fn worth_a_key(&self, directions: &[Direction]) -> Vec<usize> {
        let cost = |contender: usize, direction, load| {
            self.contenders[contender]
                .predictor
                .predict_idle_ps(direction, load)
        };
        let mut worth = contest::worth_a_key(self.contenders.len(), self.suite, directions, cost);
        let is_device = |&at: &usize| matches!(self.contenders[at].predictor, Predictor::Device(_));
        // A device cannot be the only one: its queue may be long, or it may fail.
        if worth.iter().all(is_device) {
            let others = (0..self.contenders.len())
                .filter(|at| !is_device(at))
                .collect::<Vec<_>>();
            let best =
                contest::worth_a_key(others.len(), self.suite, directions, |at, way, load| {
                    cost(others[at], way, load)
                });
            worth.extend(best.into_iter().map(|at| others[at]));
        }
        worth
    }

    fn crossovers(&self, direction: Direction, packets: u64) -> Vec<Crossover> {
        let costs: Vec<_> = self
            .of(direction)
            .iter()
            .map(|&at| {
                let predictor = &self.contenders[at].predictor;
                move |load: Load| predictor.predict_idle_ps(direction, load)
            })
            .collect();
        let costs: Vec<Cost<'_>> = costs.iter().map(|cost| cost as Cost<'_>).collect();
        contest::crossovers(self.suite, packets, &costs)
    }

    /// Describes the engines that seal batches, and those that seal single packets if they differ.
    fn auto_in_words(&self) -> String {
        let winners = |packets| {
            let crossovers = self.crossovers(Direction::Seal, packets);
            crossovers
                .into_iter()
                .map(|crossover| crossover.winner)
                .collect::<Vec<_>>()
        };
        let batches = self.in_words(Direction::Seal, REPORTED_BATCH);
        // Winners only: lengths at which engines change differ between batches, and are no reason
        // for a second list.
        if winners(REPORTED_BATCH) == winners(1) {
            return format!("auto: {batches}");
        }
        let single = self.in_words(Direction::Seal, 1);
        format!("auto: {batches} (single packets: {single})")
    }

    fn in_words(&self, direction: Direction, packets: u64) -> String {
        let names: Vec<_> = self
            .of(direction)
            .iter()
            .map(|&at| self.contenders[at].name.as_str())
            .collect();
        contest::in_words(&self.crossovers(direction, packets), &names)
    }

    /// Versions of all contenders with keys, each once.
    fn versions(&self) -> String {
        let mut versions: Vec<&str> = Vec::new();
        for &contender in &self.either {
            let version = self.contenders[contender].version.as_str();
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions.join(", ")
    }
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch")
            .field("engine", &self.engine())
            .field("version", &self.version())
            .field("suite", &self.suite())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Identity;
    use crate::curve::Fit;
    use std::time::Duration;

    const SUITE: Suite = Suite::Aes256Gcm;
    const ENGINE: &str = "aws-lc";

    /// Stores implausible curves of all engines in the cache.
    fn kept(cache: &Cache) -> (Identity, Vec<EngineCurves>) {
        let engines = UsableEngines::of(&CpuChoice::Auto, SUITE).unwrap().engines;
        let free = || Fit::of(Vec::new());
        let curves = engines.iter().map(|engine| EngineCurves {
            engine: engine.engine().to_owned(),
            seal: free(),
            seal_from: free(),
            open: free(),
        });
        let (identity, curves) = (Identity::of(SUITE, &engines), curves.collect::<Vec<_>>());
        cache.store(&identity, &curves);
        assert_eq!(cache.load(&identity).as_ref(), Some(&curves));
        (identity, curves)
    }

    #[test]
    fn curves_of_a_named_engine_do_not_replace_those_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let (identity, curves) = kept(&cache);
        let named = CpuChoice::Named(ENGINE.to_owned());
        let model = EngineModel {
            latency: Duration::from_micros(1),
            rate_bps: 1_000_000_000,
            queue: 64,
            parallel: 1,
            errors_ppm: 0,
            engine: named.clone(),
        };
        // First, while this process has no curves of the engine.
        Dispatch::with_model(&model, Some(&named), SUITE, &cache).unwrap();
        assert_eq!(cache.load(&identity).as_ref(), Some(&curves));
        // Disturbed measurements are never stored: several attempts, so that one is undisturbed.
        for name in [ENGINE, engine::NULL, ENGINE, engine::NULL] {
            let choice = CpuChoice::Named(name.to_owned());
            let measured = Dispatch::measure_and_keep(&choice, SUITE, &cache).unwrap();
            assert_eq!(measured.curves().len(), 1, "{name}");
            assert_eq!(cache.load(&identity).as_ref(), Some(&curves), "{name}");
        }
    }
}
