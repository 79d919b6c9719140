//! Candidates for processing batches: engines that pass, and the modelled device.

use engine::{EngineError, EngineFailed, PassedOver, Selection, SequenceNumbers, Transform};
use wire::Suite;

use crate::cache::Cache;
use crate::curve::{Curve, Direction, EngineCurves};
use crate::measure;
use crate::routed::Predictor;
use catalog::CpuChoice;

/// A candidate for processing batches.
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) make: Make,
    pub(crate) predictor: Predictor,
}

/// Makes the transform of an SA from its keying material and the length of its sequence numbers.
pub(crate) type Make = Box<dyn Fn(&[u8], SequenceNumbers) -> Box<dyn Transform> + Send + Sync>;

impl Contender {
    pub(crate) fn of(selection: Selection) -> Self {
        Self::with_curves(selection, [Curve::default(); 3])
    }

    fn with_curves(selection: Selection, curves: [Curve; 3]) -> Self {
        Self {
            name: selection.engine().to_owned(),
            version: selection.version().to_owned(),
            make: Box::new(move |keymat, numbers| selection.transform_with(keymat, numbers)),
            predictor: Predictor::Curves(curves),
        }
    }
}

/// Contenders, their curves, and engines that were passed over.
pub(crate) type Compared = (Vec<Contender>, Vec<EngineCurves>, Vec<PassedOver>);

/// The error for an engine that fails while it is measured.
pub(crate) fn unavailable(failed: EngineFailed) -> EngineError {
    EngineError::Unavailable {
        name: failed.engine,
        reason: failed.reason,
    }
}

/// Engines on this CPU that have a suite and pass; at least one.
pub(crate) struct UsableEngines {
    pub(crate) engines: Vec<Selection>,
    pub(crate) passed_over: Vec<PassedOver>,
    /// Whether these are all engines, rather than a named one.
    are_all: bool,
}

static NO_CACHE: Cache = Cache::none();

impl UsableEngines {
    pub(crate) fn of(choice: &CpuChoice, suite: Suite) -> Result<Self, EngineError> {
        // A named engine that cannot be used is an error: another one must not take its place
        // unnoticed.
        let CpuChoice::Auto = choice else {
            return Ok(Self {
                engines: vec![engine::select(choice, suite)?],
                passed_over: Vec::new(),
                are_all: false,
            });
        };
        let (mut engines, passed_over) = engine::select_all(suite)?;
        // Measuring far slower engines would delay the first packet by seconds.
        if engines.iter().any(|engine| !engine.is_outrun()) {
            engines.retain(|engine| !engine.is_outrun());
        }
        Ok(Self {
            engines,
            passed_over,
            are_all: true,
        })
    }

    /// Returns the cache if it applies to these engines. Each suite has one file, for `auto`: the
    /// curves of a named engine must not replace it.
    pub(crate) const fn cache<'a>(&self, cache: &'a Cache) -> &'a Cache {
        if self.are_all { cache } else { &NO_CACHE }
    }

    /// Measures them or reads their curves from the cache.
    pub(crate) fn compared(self, suite: Suite, cache: &Cache) -> Result<Compared, EngineError> {
        let cache = self.cache(cache);
        let curves = measure::curves(suite, &self.engines, cache).map_err(unavailable)?;
        let contender = |(selection, curves): (Selection, &EngineCurves)| {
            let curves = Direction::ALL.map(|direction| curves.of(direction).curve);
            Contender::with_curves(selection, curves)
        };
        let contenders = self
            .engines
            .into_iter()
            .zip(&curves)
            .map(contender)
            .collect();
        Ok((contenders, curves, self.passed_over))
    }
}
