//! Where our own encryptor gets its keys from.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Where the keys of tunnels come from. What is not static is agreed on between the gateways by TLS
/// 1.3 beside the tunnels, with certificates made for the start, and renewed by time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// A key file that both gateways have. A new epoch needs no word between them, and none is due
    /// by time.
    #[default]
    Static,
    /// The hybrid handshake, X25519 and ML-KEM-768.
    Pqc,
    /// That, and a pre-shared key which both gateways have (RFC 8784).
    Ppk,
    /// Keys of a QKD network alone, by ETSI GS QKD 014 from two simulated KMEs; the handshake
    /// authenticates.
    Qkd,
    /// The hybrid handshake and keys of a QKD network.
    Both,
}

impl KeySource {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Static, Self::Pqc, Self::Ppk, Self::Qkd, Self::Both];

    /// What labs call the one pre-shared key.
    pub const PPK: &str = "lab";

    /// How long keys that are agreed on are used, unless it is said.
    pub const REKEY_EVERY: Duration = Duration::from_secs(3600);

    /// As campaigns have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Pqc => "pqc",
            Self::Ppk => "ppk",
            Self::Qkd => "qkd",
            Self::Both => "both",
        }
    }

    /// Whether gateways agree on keys over a control channel.
    #[must_use]
    pub const fn is_agreed(self) -> bool {
        !matches!(self, Self::Static)
    }

    /// Whether keys are requested from a QKD network.
    #[must_use]
    pub const fn has_qkd(self) -> bool {
        matches!(self, Self::Qkd | Self::Both)
    }

    /// Whether both gateways have a pre-shared key beside.
    #[must_use]
    pub const fn has_ppk(self) -> bool {
        matches!(self, Self::Ppk)
    }

    /// What keys must come from, as the encryptor's configuration and its own facts have it; `None`
    /// where nothing is agreed on.
    #[must_use]
    pub const fn policy(self) -> Option<&'static str> {
        match self {
            Self::Static => None,
            Self::Pqc | Self::Ppk => Some("pqc"),
            Self::Qkd => Some("qkd"),
            Self::Both => Some("both"),
        }
    }

    /// The sources of each tunnel's keys, as the encryptor reports them; `None` where nothing is
    /// agreed on.
    #[must_use]
    pub fn sources(self) -> Option<String> {
        match self {
            Self::Static => None,
            Self::Pqc => Some("handshake".to_owned()),
            Self::Ppk => Some(format!("handshake+ppk:{}", Self::PPK)),
            Self::Qkd => Some("qkd".to_owned()),
            Self::Both => Some("handshake+qkd".to_owned()),
        }
    }

    /// In words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Static => "static keys",
            Self::Pqc => "keys by hybrid handshake",
            Self::Ppk => "keys by hybrid handshake and PPK",
            Self::Qkd => "keys by QKD",
            Self::Both => "keys by hybrid handshake and QKD",
        }
    }
}
