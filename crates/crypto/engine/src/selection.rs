//! Selection of the engine for a suite.
//!
//! To add an engine: write a module that implements [`Engine`], and add it to [`ENGINES`] and to
//! the table in crate `catalog`, ordered by speed. The tests then check it against every vector and
//! the other engines.

use crate::aws_lc::AwsLc;
use crate::engine::Engine;
use crate::gost;
use crate::ipsec_mb::IpsecMb;
use crate::known_answers::{self, Failure};
use crate::null::Null;
use crate::rustcrypto::RustCrypto;
use crate::{Aead, SequenceNumbers, Transform};
use catalog::{CpuChoice, UnknownEngine};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use wire::Suite;

/// Every engine, in the order of [`catalog::engines`].
static ENGINES: [&dyn Engine; 6] = [
    &IpsecMb,
    &AwsLc,
    &RustCrypto,
    &gost::AVX512,
    &gost::AVX2,
    &gost::PORTABLE,
];

/// An engine's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// Its name in campaigns, configuration and reports.
    pub name: &'static str,
    /// Its version; or the reason why it is unavailable on this host, with a remedy.
    pub version: Result<String, String>,
}

/// Returns every engine, available on this host or not, in the order in which [`CpuChoice::Auto`]
/// tries them.
pub fn engines() -> &'static [EngineInfo] {
    static INFO: OnceLock<Vec<EngineInfo>> = OnceLock::new();
    INFO.get_or_init(|| {
        let info = |engine: &&dyn Engine| EngineInfo {
            name: engine.name(),
            version: engine.probe(),
        };
        ENGINES.iter().map(info).collect()
    })
}

/// The error if no engine can be selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// There is no engine of this name.
    #[error(transparent)]
    Unknown(#[from] UnknownEngine),
    /// The engine is unavailable on this host.
    #[error("engine {name} cannot be used here: {reason}")]
    Unavailable {
        /// The engine.
        name: &'static str,
        /// The reason, with a remedy.
        reason: String,
    },
    /// The engine does not have the suite.
    #[error("engine {name} does not have {suite}\nhelp: {help}")]
    NotServed {
        /// The engine.
        name: &'static str,
        /// The suite.
        suite: Suite,
        /// The engines that have it.
        help: String,
    },
    /// The engine computes wrongly and must not be used, whatever the cause.
    #[error("engine {name} is refused for {suite}: it {failure}")]
    Refused {
        /// The engine.
        name: &'static str,
        /// The suite.
        suite: Suite,
        /// The failed test.
        failure: Failure,
    },
    /// [`CpuChoice::Auto`] found none.
    #[error("no engine can serve {suite}: {reasons}")]
    None {
        /// The suite.
        suite: Suite,
        /// The reasons of all engines.
        reasons: String,
    },
}

impl EngineError {
    /// Returns the first line of the text, without the remedy, for lists of reasons.
    #[must_use]
    pub fn in_short(&self) -> String {
        let text = self.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    }
}

/// An engine that [`CpuChoice::Auto`] preferred but could not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The engine.
    pub engine: &'static str,
    /// The reason.
    pub reason: EngineError,
}

/// An engine that has passed every known answer of a suite. Makes keys.
#[derive(Clone)]
pub struct Selection {
    engine: &'static dyn Engine,
    version: String,
    suite: Suite,
    passed_over: Vec<PassedOver>,
}

impl Selection {
    /// Returns the name of the engine.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// Returns the engine's version, for reports.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns its suite.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Whether other engines are much faster with the suite on this processor, so that it need not
    /// be compared.
    #[must_use]
    pub fn is_outrun(&self) -> bool {
        self.engine.is_outrun(self.suite)
    }

    /// Returns the preferred engines that have the suite but could not be used, with reasons to
    /// show to the user.
    #[must_use]
    pub fn passed_over(&self) -> &[PassedOver] {
        &self.passed_over
    }

    /// Prepares the keying material of one SA: cipher key, then salt or HMAC key. It is wiped on
    /// drop; the caller wipes `keymat`.
    ///
    /// # Panics
    /// If the length of `keymat` is not [`Suite::keymat_bytes`].
    #[must_use]
    pub fn transform(&self, keymat: &[u8]) -> Box<dyn Transform> {
        self.transform_with(keymat, SequenceNumbers::Extended)
    }

    /// As [`transform`](Self::transform), for a peer with these sequence numbers.
    ///
    /// # Panics
    /// Also if they are short and the suite is not one of [`Suite::COMMON`].
    #[must_use]
    pub fn transform_with(&self, keymat: &[u8], numbers: SequenceNumbers) -> Box<dyn Transform> {
        assert!(
            numbers.are_extended() || Suite::COMMON.contains(&self.suite),
            "{} has no short sequence numbers",
            self.suite
        );
        assert_eq!(
            keymat.len(),
            self.suite.keymat_bytes(),
            "length of the keying material of {}",
            self.suite
        );
        self.engine.transform(self.suite, keymat, numbers)
    }

    /// Prepares an AEAD's key, without salt.
    ///
    /// # Panics
    /// If the suite is not an AEAD, or the length of `key` is not [`Suite::key_bytes`].
    #[must_use]
    pub fn aead(&self, key: &[u8]) -> Box<dyn Aead> {
        let suite = self.suite;
        assert!(Suite::AEADS.contains(&suite), "{suite} is an AEAD");
        assert_eq!(key.len(), suite.key_bytes(), "key length of {suite}");
        self.engine.aead(suite, key)
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection")
            .field("engine", &self.engine())
            .field("version", &self.version)
            .field("suite", &self.suite)
            .field("passed_over", &self.passed_over)
            .finish()
    }
}

/// Selects the engine for `suite`. Each engine is tested by the known answers of a suite once per
/// process, before it is first returned (some milliseconds).
///
/// # Errors
/// [`EngineError`]: the named engine is unknown, does not have the suite, is unavailable on this
/// host or computes wrongly; or, for [`CpuChoice::Auto`], this applies to all of them.
pub fn select(choice: &CpuChoice, suite: Suite) -> Result<Selection, EngineError> {
    select_from(&ENGINES, choice, suite)
}

/// Selects every engine that has the suite and can be used, in the order of [`engines`]. Returns
/// also those that have it and cannot be used.
///
/// # Errors
/// [`EngineError::None`], with the reasons of all engines.
pub fn select_all(suite: Suite) -> Result<(Vec<Selection>, Vec<PassedOver>), EngineError> {
    let (mut selected, mut passed_over) = (Vec::new(), Vec::new());
    for info in engines() {
        match select(&CpuChoice::Named(info.name.to_owned()), suite) {
            Ok(selection) => selected.push(selection),
            Err(reason) => passed_over.push(PassedOver {
                engine: info.name,
                reason,
            }),
        }
    }
    if selected.is_empty() {
        return Err(none(suite, &ENGINES, &passed_over));
    }
    // An engine without the suite is not worth reporting.
    passed_over.retain(|over| !matches!(over.reason, EngineError::NotServed { .. }));
    Ok((selected, passed_over))
}

fn select_from(
    engines: &[&'static dyn Engine],
    choice: &CpuChoice,
    suite: Suite,
) -> Result<Selection, EngineError> {
    match choice {
        // The control has no known answers.
        CpuChoice::Named(name) if name == crate::NULL => Ok(Selection {
            engine: &Null,
            version: Null.probe().unwrap_or_default(),
            suite,
            passed_over: Vec::new(),
        }),
        CpuChoice::Named(name) => {
            let Some(engine) = engines.iter().find(|engine| engine.name() == name) else {
                let known = engines.iter().map(|engine| engine.name());
                return Err(UnknownEngine::new(name, known).into());
            };
            // Otherwise the known answers would call it with a suite that it does not have.
            if !engine.serves(suite) {
                return Err(not_served(engine.name(), suite, engines));
            }
            prove(*engine, suite)
        }
        CpuChoice::Auto => {
            let mut passed_over = Vec::new();
            // An engine that does not have the suite is not worth reporting.
            let serving = engines.iter().filter(|engine| engine.serves(suite));
            let mut serving: Vec<_> = serving.collect();
            // Stable: within both groups the order of `ENGINES` remains, which is by speed.
            serving.sort_by_key(|engine| engine.is_outrun(suite));
            for engine in serving {
                match prove(*engine, suite) {
                    Ok(selection) => {
                        return Ok(Selection {
                            passed_over,
                            ..selection
                        });
                    }
                    Err(reason) => passed_over.push(PassedOver {
                        engine: engine.name(),
                        reason,
                    }),
                }
            }
            Err(none(suite, engines, &passed_over))
        }
    }
}

/// Returns the error if [`CpuChoice::Auto`] found no engine.
fn none(suite: Suite, engines: &[&'static dyn Engine], passed_over: &[PassedOver]) -> EngineError {
    let reasons: Vec<_> = passed_over
        .iter()
        .map(|over| over.reason.in_short())
        .collect();
    let reasons = if reasons.is_empty() {
        let names: Vec<_> = engines.iter().map(|engine| engine.name()).collect();
        format!("none of {} has it", names.join(", "))
    } else {
        reasons.join("; ")
    };
    EngineError::None { suite, reasons }
}

/// Selects the engine, which has the suite, if it is available and passes its known answers, now or
/// before.
fn prove(engine: &'static dyn Engine, suite: Suite) -> Result<Selection, EngineError> {
    type Answers = BTreeMap<(&'static str, Suite), Result<(), Failure>>;
    static PROVEN: Mutex<Answers> = Mutex::new(BTreeMap::new());

    let name = engine.name();
    // Availability first: an engine that this CPU cannot run must not be called.
    let version = engine
        .probe()
        .map_err(|reason| EngineError::Unavailable { name, reason })?;
    // The lock is held during the test, so that a second thread waits for the result. A poisoned
    // map is valid: entries are complete when inserted.
    let mut proven = PROVEN.lock().unwrap_or_else(PoisonError::into_inner);
    proven
        .entry((name, suite))
        .or_insert_with(|| known_answers::check(engine, suite))
        .clone()
        .map_err(|failure| EngineError::Refused {
            name,
            suite,
            failure,
        })?;
    Ok(Selection {
        engine,
        version,
        suite,
        passed_over: Vec::new(),
    })
}

fn not_served(name: &'static str, suite: Suite, engines: &[&'static dyn Engine]) -> EngineError {
    // Of those that work here: others are no help.
    let having: Vec<_> = engines
        .iter()
        .filter(|engine| engine.serves(suite) && engine.probe().is_ok())
        .map(|engine| engine.name())
        .collect();
    let help = match &having[..] {
        [] => "no engine on this host has it: use another suite".to_owned(),
        [only] => format!("{only} has it, and `auto` selects it"),
        _ => format!(
            "{} have it, and `auto` selects the fastest",
            having.join(", ")
        ),
    };
    EngineError::NotServed { name, suite, help }
}

#[cfg(test)]
mod tests;
