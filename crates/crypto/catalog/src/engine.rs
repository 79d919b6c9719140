//! Engines by name, with their suites.

use std::fmt;
use std::str::FromStr;
use wire::{Cipher, Hmac, Suite};

/// Name of the control that neither encrypts nor authenticates. Not one of [`engines`]; used only
/// if named.
pub const NULL: &str = "null";

/// Whether an engine has a suite.
type HasSuite = fn(Suite) -> bool;

/// Engines that compute on the CPU, with their suites, in the order of trial by
/// [`CpuChoice::Auto`]. Engines far slower than others come last (`engine::Selection::is_outrun`).
///
/// ipsec-mb is the fastest with each suite and at each packet size, then AWS-LC with AEADs
/// (AES-256-GCM at 64 B and 1408 B, in Gbit/s on one core: 21 and 97, 5 and 58, 2 and 17).
/// RustCrypto covers the suites that these lack. If an engine does not have a suite, the next one
/// is tried. Only Cipherbench's engines have GOST ciphers, the widest vectors first.
const ENGINES: [(&str, HasSuite); 6] = [
    ("ipsec-mb", is_common),
    ("aws-lc", aws_lc_serves),
    ("rustcrypto", is_common),
    ("gost-avx512", is_gost),
    ("gost-avx2", is_gost),
    ("gost-portable", is_gost),
];

const fn is_gost(suite: Suite) -> bool {
    matches!(suite, Suite::Gost(_))
}

const fn is_common(suite: Suite) -> bool {
    // These libraries have no ciphers of GOST.
    !is_gost(suite)
}

const fn aws_lc_serves(suite: Suite) -> bool {
    match suite {
        Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => true,
        Suite::EncryptThenMac(cipher, hmac) => {
            matches!(cipher, Cipher::Null | Cipher::Aes128Cbc | Cipher::Aes256Cbc)
                && !matches!(hmac, Hmac::Md5)
        }
        Suite::Gost(_) => false,
    }
}

/// Returns the names of the engines in campaigns, configuration and reports, in the order of trial
/// by [`CpuChoice::Auto`].
pub fn engines() -> impl Iterator<Item = &'static str> {
    ENGINES.into_iter().map(|(name, _)| name)
}

/// Whether the engine of that name has the suite, wherever it can run; the control has all suites.
#[must_use]
pub fn serves(name: &str, suite: Suite) -> bool {
    // The control has every suite, since it computes none.
    let mut named = ENGINES.into_iter().filter(|(engine, _)| *engine == name);
    name == NULL || named.any(|(_, serves)| serves(suite))
}

/// A choice of an engine that computes on the CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CpuChoice {
    /// The fastest engine that is available on this host and passes its known-answer tests. Written
    /// `auto`.
    #[default]
    Auto,
    /// Only this engine.
    Named(String),
}

/// The error for an unknown engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine `{name}`\nhelp: known engines are auto, {known}")]
pub struct UnknownEngine {
    /// The name given.
    pub name: String,
    /// Names of the engines, separated by commas.
    pub known: String,
}

impl UnknownEngine {
    /// Makes the error for a name that is not one of `known`.
    pub fn new(name: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        let known: Vec<_> = known.into_iter().collect();
        Self {
            name: name.to_owned(),
            known: known.join(", "),
        }
    }
}

impl FromStr for CpuChoice {
    type Err = UnknownEngine;

    /// Parses `auto`, the name of an engine, available on this host or not, or the control's name.
    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        // Whether it works here is for crate `engine` to find out: a plan may be of another host.
        if name == "auto" {
            Ok(Self::Auto)
        } else if name == NULL || engines().any(|known| known == name) {
            Ok(Self::Named(name.to_owned()))
        } else {
            // Without the control in the list, which nobody should choose by mistake.
            Err(UnknownEngine::new(name, engines()))
        }
    }
}

impl CpuChoice {
    /// Whether it is the control that neither encrypts nor authenticates.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Named(name) if name == NULL)
    }
}

impl fmt::Display for CpuChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Named(name) => f.pad(name),
        }
    }
}
