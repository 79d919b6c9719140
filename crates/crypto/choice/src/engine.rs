//! Engines by name, and which suites each has.

use std::fmt;
use std::str::FromStr;
use wire::{Cipher, Hmac, Suite};

/// Name of the control that neither encrypts nor authenticates; not one of [`EngineName::ALL`], and
/// never taken unless it is named.
pub const NULL: &str = "null";

/// An engine that computes on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineName {
    /// Intel's multi-buffer library.
    IpsecMb,
    /// AWS-LC.
    AwsLc,
    /// RustCrypto, in safe Rust.
    RustCrypto,
    /// Our GOST ciphers with AVX-512.
    GostAvx512,
    /// Our GOST ciphers with AVX2.
    GostAvx2,
    /// Our GOST ciphers in portable code.
    GostPortable,
}

impl EngineName {
    /// Every engine, in the order in which [`CpuChoice::Auto`] tries them but for those that are
    /// outrun: ipsec-mb is the fastest with each suite and at each packet size, then AWS-LC with
    /// AEADs (AES-256-GCM, 64 B and 1408 B, in Gbit/s on one core: 21 and 97, 5 and 58, 2 and 17).
    /// RustCrypto has what they lack. A suite that an engine does not have falls to the next; those
    /// of GOST ciphers are ours alone, the widest vectors first.
    pub const ALL: [Self; 6] = [
        Self::IpsecMb,
        Self::AwsLc,
        Self::RustCrypto,
        Self::GostAvx512,
        Self::GostAvx2,
        Self::GostPortable,
    ];

    /// Name in campaigns, configuration and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IpsecMb => "ipsec-mb",
            Self::AwsLc => "aws-lc",
            Self::RustCrypto => "rustcrypto",
            Self::GostAvx512 => "gost-avx512",
            Self::GostAvx2 => "gost-avx2",
            Self::GostPortable => "gost-portable",
        }
    }

    /// Whether the engine, where it can be used, has the suite.
    #[must_use]
    pub const fn serves(self, suite: Suite) -> bool {
        match self {
            Self::IpsecMb | Self::RustCrypto => !matches!(suite, Suite::Gost(_)),
            Self::AwsLc => match suite {
                Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => true,
                Suite::EncryptThenMac(cipher, hmac) => {
                    matches!(cipher, Cipher::Null | Cipher::Aes128Cbc | Cipher::Aes256Cbc)
                        && !matches!(hmac, Hmac::Md5)
                }
                Suite::Gost(_) => false,
            },
            Self::GostAvx512 | Self::GostAvx2 | Self::GostPortable => {
                matches!(suite, Suite::Gost(_))
            }
        }
    }
}

/// Whether the engine of that name has the suite; the control has all.
#[must_use]
pub fn serves(name: &str, suite: Suite) -> bool {
    let mut named = EngineName::ALL
        .into_iter()
        .filter(|engine| engine.name() == name);
    name == NULL || named.any(|engine| engine.serves(suite))
}

/// Choice of an engine among those that compute on the CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CpuChoice {
    /// The fastest that can be used here and passes its known answers. Written `auto`.
    #[default]
    Auto,
    /// This one and no other.
    Named(String),
}

/// A name that no engine has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine `{name}`\nhelp: known engines are auto, {known}")]
pub struct UnknownEngine {
    /// The name given.
    pub name: String,
    /// Names of the engines, separated by commas.
    pub known: String,
}

impl UnknownEngine {
    /// The error for a name that is none of `known`.
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

    /// Reads `auto`, the name of an engine, usable here or not, or that of the control.
    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        let known = || EngineName::ALL.into_iter().map(EngineName::name);
        if name == "auto" {
            Ok(Self::Auto)
        } else if name == NULL || known().any(|known| known == name) {
            Ok(Self::Named(name.to_owned()))
        } else {
            Err(UnknownEngine::new(name, known()))
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
