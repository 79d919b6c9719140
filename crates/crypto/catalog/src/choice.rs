//! The configured choice of an engine, and its text form, which journals have. Crate `choice` reads
//! the one in files.

use crate::{CpuChoice, NULL, UnknownEngine};

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
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
    /// Highest [threshold](Self::Threshold): one above the longest inner packet has no effect.
    pub const BELOW_MAX: u64 = 65_535;

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
                // Without another engine all batches wait for the model, as they do for a device.
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
            // The control is used only if it is named.
            Self::Auto => false,
            Self::Named(name) => name == NULL,
            Self::Threshold { small, large, .. } => small == NULL || large == NULL,
            Self::Model { model, otherwise } => {
                model.engine.is_null() || otherwise.as_ref().is_some_and(CpuChoice::is_null)
            }
        }
    }
}

impl EngineModel {
    /// No device has a latency of more than a second.
    pub const LATENCY_MAX: Duration = Duration::from_secs(1);
    /// Lowest rate: slower than any link.
    pub const BPS_MIN: u64 = 1_000_000;
    /// Highest rate: faster than any memory.
    pub const BPS_MAX: u64 = 10_000_000_000_000;
    /// Longest queue: the model stores a time for each place in it.
    pub const QUEUE_MAX: u64 = 4096;
    /// Most units.
    pub const PARALLEL_MAX: u64 = 256;
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
        // All keys, also those with a default: the text keeps its meaning if a default changes.
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
pub enum NotAChoice {
    /// The name of no engine.
    #[error("the engine `{}` is not known: known engines are auto, {}", .0.name, .0.known)]
    Unknown(#[from] UnknownEngine),
    /// A map without the keys of a choice, or with values that it cannot have.
    #[error("`{0}` is no choice of an engine")]
    Malformed(String),
}

impl FromStr for Choice {
    type Err = NotAChoice;

    /// Parses the output of `Display`, and `null` without quotes; keys of a model may be missing
    /// that have a default in files. Accepts the control, since `insecure` was checked when the
    /// text was first read.
    fn from_str(text: &str) -> Result<Self, NotAChoice> {
        let Some(keys) = keys(text, &["below", "use", "else", "model"]) else {
            return Ok(cpu(text)?.into());
        };
        let malformed = || NotAChoice::Malformed(text.to_owned());
        // A threshold names both of its engines; with `auto` one of them could be the other one.
        let otherwise = keys.get("else").map(|name| cpu(name)).transpose()?;
        match (keys.get("below"), keys.get("use"), keys.get("model")) {
            (Some(below), Some(small), None) => {
                // 0 is out of range as well.
                let below = Bytes::parse(below).map_or(0, Bytes::get);
                let (CpuChoice::Named(small), Some(CpuChoice::Named(large))) =
                    (cpu(small)?, otherwise)
                else {
                    return Err(malformed());
                };
                Ok(Self::Threshold {
                    below: within(below, 1..=Self::BELOW_MAX).ok_or_else(malformed)? as usize,
                    small,
                    large,
                })
            }
            (None, None, Some(model)) => Ok(Self::Model {
                model: EngineModel::parse(model).ok_or_else(malformed)?,
                otherwise,
            }),
            _ => Err(malformed()),
        }
    }
}

impl EngineModel {
    fn parse(text: &str) -> Option<Self> {
        let known = ["latency", "rate", "queue", "parallel", "errors", "engine"];
        let keys = keys(text, &known)?;
        let number = |key: &str, default: u64, most| {
            let number = keys
                .get(key)
                .map_or(Some(default), |text| text.parse().ok());
            within(number?, 1..=most)
        };
        let latency = units::time::parse(keys.get("latency")?).ok()?;
        let rate_bps = BitRate::parse(keys.get("rate")?, Layer::Ip).ok()?.bps();
        // In files it may be a plain number too, but `Display` writes per cent.
        let errors = keys.get("errors").map(|text| Ratio::parse(text).ok());
        let errors_ppm = errors.map_or(Some(0), |errors| errors.map(Ratio::ppm));
        Some(Self {
            latency: within(latency, Duration::ZERO..=Self::LATENCY_MAX)?,
            rate_bps: within(rate_bps, Self::BPS_MIN..=Self::BPS_MAX)?,
            queue: number("queue", 64, Self::QUEUE_MAX)? as u32,
            parallel: number("parallel", 1, Self::PARALLEL_MAX)? as u16,
            errors_ppm: within(errors_ppm?, 0..=1_000_000)? as u32,
            engine: cpu(keys.get("engine").unwrap_or(&"auto")).ok()?,
        })
    }
}

/// Parses an engine's name with or without quotes, or `auto`.
fn cpu(text: &str) -> Result<CpuChoice, UnknownEngine> {
    // `Display` quotes the control, since YAML takes `null` for no text at all.
    let bare = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    bare.unwrap_or(text).parse()
}

/// The keys of a map in flow style with their values, which may be such maps; `None` if it is none,
/// or has a key that is not known.
fn keys<'t>(text: &'t str, known: &[&str]) -> Option<BTreeMap<&'t str, &'t str>> {
    // With the blanks that `Display` writes: this is no reader of YAML.
    let inner = text.strip_prefix("{ ")?.strip_suffix(" }")?;
    let mut depth = 0;
    // Commas of a map that is a value are not between the keys of this one.
    let entries = inner.split(|c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    let entries = entries.map(|entry| entry.trim_start().split_once(": "));
    let keys: BTreeMap<&str, &str> = entries.collect::<Option<_>>()?;
    keys.keys().all(|key| known.contains(key)).then_some(keys)
}

fn within<T: PartialOrd>(value: T, range: RangeInclusive<T>) -> Option<T> {
    range.contains(&value).then_some(value)
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // One text, as journals have had it from the first.
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
