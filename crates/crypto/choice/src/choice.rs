//! The engine that a user asks for, as it is written.

use crate::{CpuChoice, NULL};

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use units::{BitRate, Bytes, Layer, Ratio};

/// The engine that a user asks for. In files it is the text that [`Display`](fmt::Display) writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// The fastest for each batch among all that can be used here and pass. Written `auto`.
    #[default]
    Auto,
    /// This one and no other; may be the control [`NULL`]. Written as its name.
    Named(String),
    /// One for short packets and one for the others. Written
    /// `{ below: 128 B, use: rustcrypto, else: ipsec-mb }`.
    Threshold {
        /// Inner packets shorter than this are short, in bytes; padding may move it by less than a
        /// block.
        below: usize,
        /// Engine for short packets.
        small: String,
        /// Engine for the others.
        large: String,
    },
    /// A coprocessor that is not there. Written `{ model: { latency: 50 µs, rate: 10 Gbit/s },
    /// else: auto }`.
    Model {
        /// What it is like.
        model: Model,
        /// What does the batches that would be later from it, and all when it has failed; `None`:
        /// nothing.
        otherwise: Option<CpuChoice>,
    },
}

/// A coprocessor as it is modelled: real cryptography by an engine, and a time that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// From the end of a packet's processing until it is back: what every batch waits at least.
    pub latency: Duration,
    /// What one unit processes, in bit/s of ESP packets.
    pub rate_bps: u64,
    /// Packets that may be in it at once, of all lanes together; more wait for room.
    pub queue: u32,
    /// Units that process packets side by side.
    pub parallel: u16,
    /// Share of batches that it fails, in parts per million.
    pub errors_ppm: u32,
    /// What computes inside.
    pub engine: CpuChoice,
}

impl Choice {
    /// The engines of a hybrid, each as who has it alone writes it; none of what is no hybrid.
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

/// YAML in flow style; reading it gives the same value.
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

impl fmt::Display for Model {
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

/// An engine's name as YAML has it: without quotes, `null` is nothing.
fn quoted(name: &str) -> Cow<'_, str> {
    match name {
        NULL => format!("\"{name}\"").into(),
        _ => name.into(),
    }
}

/// A text that is no choice of an engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}{help}", if help.is_empty() { "" } else { ": " })]
pub struct NotAChoice {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub help: String,
}

impl FromStr for Choice {
    type Err = NotAChoice;

    /// Reads what `Display` writes, and `null` without quotes. The control is let pass: whoever
    /// holds the text has been asked before.
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
