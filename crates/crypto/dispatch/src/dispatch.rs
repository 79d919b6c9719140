//! From a choice to transforms.

use std::fmt;
use std::sync::Arc;

use engine::{EngineError, PassedOver, Transform};
use wire::Suite;
use wire::overhead::esp_bytes;

use crate::cache::Cache;
use crate::contender::{Contender, Found, unavailable};
use crate::contest::{self, BATCH_TOLD, Cost, Crossover};
use crate::curve::{Direction, EngineCurves, Load};
use crate::device::{self, Device, OnDevice};
use crate::measure;
use crate::routed::{Failures, Policy, Predictor, Route, Routed};
use choice::{Choice, CpuChoice, Model};

/// What a choice comes to for a suite: makes the keying material of SAs. Clones are the same one.
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
    /// Contenders worth a key for SAs that seal, that open, and that may do either.
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
    /// SAs for which that has happened.
    pub sas: u64,
    /// What it said the first time, for people.
    pub reason: String,
}

/// An engine and the length of the inner packets from which on it is the fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// From here on, in bytes of an inner packet.
    pub from_inner_bytes: usize,
    /// The engine.
    pub engine: String,
}

impl Dispatch {
    /// Finds out which engines serve the suite and pass. Where more than one may be chosen, what
    /// they cost is taken from the user's cache, or measured: about a tenth of a second, once in a
    /// process.
    ///
    /// # Errors
    /// [`EngineError`]: a named engine is unknown, unusable here or computes wrongly; or all of
    /// them are.
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
                let contenders = [select(small)?, select(large)?].map(Contender::of);
                let turns = format!("{small} below {below} B, {large}");
                let limit = Policy::Below(esp_bytes(suite, *below));
                Ok(Self::new(suite, contenders.into(), limit, turns))
            }
            Choice::Model { model, otherwise } => {
                Self::with_model(model, otherwise.as_ref(), suite, cache)
            }
        }
    }

    /// [`prepare`](Self::prepare) of an engine or the best of all, with what they cost measured
    /// now, even if there is only one. What all engines cost is kept for later, as far as it was
    /// measured undisturbed; what one costs that was named is not.
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
        let found = Found::of(choice, suite)?;
        measure::anew(suite, &found.engines, found.cache(cache)).map_err(unavailable)?;
        let (contenders, curves, passed_over) = found.compared(suite, &Cache::none())?;
        Ok(Self::soonest(suite, contenders, curves, passed_over))
    }

    fn on_cpu(choice: &CpuChoice, suite: Suite, cache: &Cache) -> Result<Self, EngineError> {
        let found = Found::of(choice, suite)?;
        if let [only] = &found.engines[..] {
            let name = only.engine().to_owned();
            let contenders = vec![Contender::of(only.clone())];
            let this = Self::new(suite, contenders, Policy::Soonest, name);
            return Ok(this.having_passed_over(found.passed_over));
        }
        let (contenders, curves, passed_over) = found.compared(suite, cache)?;
        Ok(Self::soonest(suite, contenders, curves, passed_over))
    }

    fn with_model(
        model: &Model,
        otherwise: Option<&CpuChoice>,
        suite: Suite,
        cache: &Cache,
    ) -> Result<Self, EngineError> {
        let inside = Self::on_cpu(&model.engine, suite, cache)?;
        let device = Arc::new(Device::new(model));
        let name = format!("{} of {}", device::NAME, inside.engine());
        let contender = Contender {
            name: name.clone(),
            version: inside.version().to_owned(),
            predictor: Predictor::Device(Arc::clone(&device)),
            make: Box::new(move |keymat| {
                Box::new(OnDevice {
                    device: Arc::clone(&device),
                    inside: inside.transform(keymat),
                })
            }),
        };
        let Some(otherwise) = otherwise else {
            return Ok(Self::new(suite, vec![contender], Policy::Soonest, name));
        };
        let found = Found::of(otherwise, suite)?;
        let (mut contenders, curves, passed_over) = found.compared(suite, cache)?;
        contenders.push(contender);
        Ok(Self::soonest(suite, contenders, curves, passed_over))
    }

    /// The soonest of several, as far as they are worth a key.
    fn soonest(
        suite: Suite,
        contenders: Vec<Contender>,
        curves: Vec<EngineCurves>,
        passed_over: Vec<PassedOver>,
    ) -> Self {
        let this = Self::new(suite, contenders, Policy::Soonest, String::new());
        let mut inner = Arc::into_inner(this.0).expect("just made, and not cloned");
        inner.sealing = inner.worth_a_key(&[Direction::Seal, Direction::SealFrom]);
        inner.opening = inner.worth_a_key(&[Direction::Open]);
        inner.either = inner.worth_a_key(&Direction::ALL);
        inner.engine = match &inner.either[..] {
            [only] => inner.contenders[*only].name.clone(),
            _ => inner.auto_in_words(),
        };
        inner.version = inner.versions();
        inner.curves = curves;
        inner.passed_over = passed_over;
        Self(Arc::new(inner))
    }

    /// All contenders get a key.
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

    fn having_passed_over(self, passed_over: Vec<PassedOver>) -> Self {
        let mut inner = Arc::into_inner(self.0).expect("just made, and not cloned");
        inner.passed_over = passed_over;
        Self(Arc::new(inner))
    }

    /// The suite that it was prepared for.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.0.suite
    }

    /// What does the batches, for people and reports: `ipsec-mb`, or which engine seals 32 packets
    /// in a batch below which length of inner packets, `auto: one-engine below 96 B, another`, and
    /// which seals single ones, where that differs: `auto: ipsec-mb (single packets: rustcrypto
    /// below 239 B, aws-lc)`.
    #[must_use]
    pub fn engine(&self) -> &str {
        &self.0.engine
    }

    /// Versions of what computes, separated by commas.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.0.version
    }

    /// Engines that have the suite but could not be taken, and why; a program tells its user.
    #[must_use]
    pub fn passed_over(&self) -> &[PassedOver] {
        &self.0.passed_over
    }

    /// What the engines cost that were compared; empty where none had to be.
    #[must_use]
    pub fn curves(&self) -> &[EngineCurves] {
        &self.0.curves
    }

    /// Engines that have failed since, and were replaced where there was another. To be looked at
    /// now and then: reading it costs nothing, and disturbs nobody.
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

    /// Which engine is the fastest from which size on, for batches of so many packets of one
    /// length. Empty where nothing was compared.
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

    /// The keying material of one SA ready for use, whether it seals or opens: cipher key, then
    /// salt or HMAC key. It wipes itself when dropped; whoever passes `keymat` wipes that.
    ///
    /// Where one engine does everything, it is that engine's own transform. Where several take
    /// turns, it holds a key for each. When one fails, the batch goes to the next with nothing
    /// lost, and the key that failed is dropped. The error of the last one is returned; of a batch
    /// that a threshold divides, a part may then be done: it must be dropped.
    ///
    /// # Panics
    /// If `keymat` has not [`Suite::keymat_bytes`].
    #[must_use]
    pub fn transform(&self, keymat: &[u8]) -> Box<dyn Transform> {
        self.make(&self.0.either, keymat)
    }

    /// [`transform`](Self::transform) of an SA that only seals: without keys for engines that are
    /// better at opening alone.
    ///
    /// # Panics
    /// The same.
    #[must_use]
    pub fn sealing(&self, keymat: &[u8]) -> Box<dyn Transform> {
        self.make(&self.0.sealing, keymat)
    }

    /// [`transform`](Self::transform) of an SA that only opens.
    ///
    /// # Panics
    /// The same.
    #[must_use]
    pub fn opening(&self, keymat: &[u8]) -> Box<dyn Transform> {
        self.make(&self.0.opening, keymat)
    }

    fn make(&self, worth: &[usize], keymat: &[u8]) -> Box<dyn Transform> {
        let inner = &self.0;
        if let [only] = worth {
            return (inner.contenders[*only].make)(keymat);
        }
        let route = |&contender: &usize| Route {
            contender,
            transform: (inner.contenders[contender].make)(keymat),
            predictor: inner.contenders[contender].predictor.clone(),
        };
        let routes = worth.iter().map(route).collect();
        let failures = Arc::clone(&inner.failures);
        Box::new(Routed::new(inner.suite, routes, inner.policy, failures))
    }
}

impl Inner {
    /// Contenders with a key in a direction.
    fn of(&self, direction: Direction) -> &[usize] {
        match direction {
            Direction::Seal | Direction::SealFrom => &self.sealing,
            Direction::Open => &self.opening,
        }
    }

    /// Best first. A device gets a key only if it can win; what computes on the CPU stays beside
    /// it, for when its queue is long or it fails.
    fn worth_a_key(&self, directions: &[Direction]) -> Vec<usize> {
        let cost = |contender: usize, direction, load| {
            self.contenders[contender]
                .predictor
                .predict_idle_ps(direction, load)
        };
        let mut worth = contest::worth_a_key(self.contenders.len(), self.suite, directions, cost);
        let is_device = |&at: &usize| matches!(self.contenders[at].predictor, Predictor::Device(_));
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

    /// Who seals batches, and who seals single packets where those are others.
    fn auto_in_words(&self) -> String {
        let winners = |packets| {
            let crossovers = self.crossovers(Direction::Seal, packets);
            crossovers
                .into_iter()
                .map(|crossover| crossover.winner)
                .collect::<Vec<_>>()
        };
        let batches = self.in_words(Direction::Seal, BATCH_TOLD);
        if winners(BATCH_TOLD) == winners(1) {
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

    /// Of all that have keys, each once.
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

    /// Curves that no engine has, kept as those of all.
    fn kept(cache: &Cache) -> (Identity, Vec<EngineCurves>) {
        let engines = Found::of(&CpuChoice::Auto, SUITE).unwrap().engines;
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
    fn what_a_named_engine_costs_does_not_replace_what_all_cost() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let (identity, curves) = kept(&cache);
        let named = CpuChoice::Named(ENGINE.to_owned());
        let model = Model {
            latency: Duration::from_micros(1),
            rate_bps: 1_000_000_000,
            queue: 64,
            parallel: 1,
            errors_ppm: 0,
            engine: named.clone(),
        };
        // First, while this process does not know yet what the engine costs.
        Dispatch::with_model(&model, Some(&named), SUITE, &cache).unwrap();
        assert_eq!(cache.load(&identity).as_ref(), Some(&curves));
        // What is disturbed is never kept: a few attempts, so that one was not.
        for name in [ENGINE, engine::NULL, ENGINE, engine::NULL] {
            let choice = CpuChoice::Named(name.to_owned());
            let measured = Dispatch::measure_and_keep(&choice, SUITE, &cache).unwrap();
            assert_eq!(measured.curves().len(), 1, "{name}");
            assert_eq!(cache.load(&identity).as_ref(), Some(&curves), "{name}");
        }
    }
}
