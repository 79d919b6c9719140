//! Key sources of Cipherbench's encryptor.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::IntoStaticStr;

/// Source of the tunnels' keys. Unless they are static, the gateways agree on them by TLS 1.3
/// outside the tunnels, with certificates generated at the start, and renew them periodically.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum KeySource {
    /// A key file that both gateways have. A new epoch needs no message between them; there are no
    /// periodic epochs.
    #[default]
    Static,
    /// The hybrid handshake, X25519 and ML-KEM-768.
    Pqc,
    /// The hybrid handshake and a pre-shared key of both gateways (RFC 8784).
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

    /// Name of the single pre-shared key in labs.
    pub const PPK: &str = "lab";

    /// Default lifetime of agreed keys.
    pub const REKEY_EVERY: Duration = Duration::from_secs(3600);

    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
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

    /// Required key sources, as named in the encryptor's configuration and facts; `None` for static
    /// keys.
    #[must_use]
    pub const fn policy(self) -> Option<&'static str> {
        match self {
            Self::Static => None,
            // A pre-shared key is mixed into the handshake, which the policy requires already.
            Self::Pqc | Self::Ppk => Some("pqc"),
            Self::Qkd => Some("qkd"),
            Self::Both => Some("both"),
        }
    }

    /// The sources of each tunnel's keys, as the encryptor reports them; `None` for static keys.
    #[must_use]
    pub fn sources(self) -> Option<String> {
        match self {
            Self::Static => None,
            Self::Pqc => Some("handshake".to_owned()),
            // Each pre-shared key is listed by name, and this is the only one.
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
