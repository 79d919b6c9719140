//! The configured choice of an engine, and its text form.

use crate::{CpuChoice, NULL};

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::{BitRate, Bytes, Layer, Ratio};

/// A configured choice of an engine. Files contain the text that [`Display`](fmt::Display) writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// For each batch the fastest engine among all that are available on this host and pass their
    /// known-answer tests. Written `auto`.
    #[default]
    Auto,
    /// Only this engine; may be the control [`NULL`]. Written as its name.
    Named(String),
    /// One engine for short packets and one for the others. Written as:
    ///
    /// `{ below: 128 B, use: rustcrypto, else: ipsec-mb }`
    Threshold {
        /// Threshold in bytes: inner packets shorter than this are short. Padding may shift it by
        /// less than a block.
        below: usize,
        /// Engine for short packets.
        small: String,
        /// Engine for the others.
        large: String,
    },
    /// A modelled coprocessor. Written as:
    ///
    /// `{ model: { latency: 50 µs, rate: 10 Gbit/s }, else: auto }`
    Model {
        /// Its parameters.
        model: EngineModel,
        /// Engine for batches that the coprocessor would finish later, and for all batches once it
        /// has failed; `None`: no other engine.
        otherwise: Option<CpuChoice>,
    },
}

/// Parameters of a modelled coprocessor: an engine computes real results, and the model sets their
/// timing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineModel {
    /// Time from the end of a packet's processing until its return: the minimum wait of every
    /// batch.
    pub latency: Duration,
    /// Rate of one unit, in bit/s of ESP packets.
    pub rate_bps: u64,
    /// Maximum number of packets in the device, over all lanes; more wait for room.
    pub queue: u32,
    /// Units that process packets in parallel.
    pub parallel: u16,
    /// Share of batches that fail, in parts per million.
    pub errors_ppm: u32,
    /// The engine that computes.
    pub engine: CpuChoice,
}

impl Choice {
    /// Returns the engines of a hybrid, each as a separate choice; empty if this is not a hybrid.
    #[must_use]
    pub fn parts(&self) -> Vec<Self> {
        match self {
            Self::Threshold { small, large, .. } => {
                vec![Self::Named(small.clone()), Self::Named(large.clone())]
            }
            Self::Model {
                model,
                otherwise: Some(cpu),
            } => {
                let alone = Self::Model {
                    model: model.clone(),
                    otherwise: None,
                };
                let cpu = match cpu {
                    CpuChoice::Auto => Self::Auto,
                    CpuChoice::Named(name) => Self::Named(name.clone()),
                };
                vec![alone, cpu]
            }
            Self::Auto
            | Self::Named(_)
            | Self::Model {
                otherwise: None, ..
            } => Vec::new(),
        }
    }

    /// Whether some packets may be neither encrypted nor authenticated.
    #[must_use]
    pub fn is_null(&self) -> bool {
        match self {
            Self::Auto => false,
            Self::Named(name) => name == NULL,
            Self::Threshold { small, large, .. } => small == NULL || large == NULL,
            Self::Model { model, otherwise } => {
                model.engine.is_null() || otherwise.as_ref().is_some_and(CpuChoice::is_null)
            }
        }
    }
}

impl From<CpuChoice> for Choice {
    fn from(choice: CpuChoice) -> Self {
        match choice {
            CpuChoice::Auto => Self::Auto,
            CpuChoice::Named(name) => Self::Named(name),
        }
    }
}

/// YAML in flow style; parsing it gives the same value.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Named(name) => f.pad(&quoted(name)),
            Self::Threshold {
                below,
                small,
                large,
            } => {
                let below = Bytes::new(*below as u64);
                let (small, large) = (quoted(small), quoted(large));
                write!(f, "{{ below: {below}, use: {small}, else: {large} }}")
            }
            Self::Model { model, otherwise } => {
                write!(f, "{{ model: {model}")?;
                if let Some(otherwise) = otherwise {
                    write!(f, ", else: {}", quoted(&otherwise.to_string()))?;
                }
                f.write_str(" }")
            }
        }
    }
}

impl fmt::Display for EngineModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{{ latency: {}, rate: {}, queue: {}, parallel: {}, errors: {}, engine: {} }}",
            units::time::print(self.latency),
            BitRate::new(self.rate_bps, Layer::Ip),
            self.queue,
            self.parallel,
            Ratio::from_ppm(self.errors_ppm.into()),
            quoted(&self.engine.to_string())
        )
    }
}

/// Quotes an engine's name for YAML, since an unquoted `null` is not a string.
fn quoted(name: &str) -> Cow<'_, str> {
    match name {
        NULL => format!("\"{name}\"").into(),
        _ => name.into(),
    }
}

/// The error for a text that is not a choice of an engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}{help}", if help.is_empty() { "" } else { ": " })]
pub struct NotAChoice {
    /// The fault.
    pub what: String,
    /// Its remedy.
    pub help: String,
}

impl FromStr for Choice {
    type Err = NotAChoice;

    /// Parses the output of `Display`, and `null` without quotes. Accepts the control, since
    /// `insecure` was checked when the text was first read.
    fn from_str(text: &str) -> Result<Self, NotAChoice> {
        if text == NULL {
            return Ok(Self::Named(text.to_owned()));
        }
        let mistakes = match yaml::parse("engine", text) {
            Ok(document) => match document.decode(|root| Self::read(root, true)) {
                Ok(choice) => return Ok(choice),
                Err(mistakes) => mistakes,
            },
            Err(mistakes) => mistakes,
        };
        let mut mistakes = mistakes.iter();
        let first = mistakes.next();
        Err(NotAChoice {
            what: first.map_or_else(String::new, |first| first.what.clone()),
            help: first.map_or_else(String::new, |first| first.help.clone()),
        })
    }
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
