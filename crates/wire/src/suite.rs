//! ESP cipher suites: their names and the lengths they fix on the wire.

use serde::{Deserialize, Serialize};

/// Length of every suite's salt, which is keyed but not sent, in bytes (RFC 4106 §4, RFC 7634 §2).
pub const SALT_BYTES: usize = 4;

/// An ESP transform: cipher and integrity together.
///
/// Closed on purpose: whoever adds one is shown every place that must know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Suite {
    /// AES-128-GCM with a 16-byte ICV (RFC 4106).
    #[serde(rename = "aes-128-gcm")]
    Aes128Gcm,
    /// AES-256-GCM with a 16-byte ICV (RFC 4106).
    #[serde(rename = "aes-256-gcm")]
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 7634).
    #[serde(rename = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

impl Suite {
    /// Every suite, strongest first.
    pub const ALL: [Self; 3] = [Self::Aes256Gcm, Self::Aes128Gcm, Self::ChaCha20Poly1305];

    /// The name used in campaigns, configuration and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    /// The suite of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Length of the cipher key in bytes, without the salt.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    /// Length of the initialisation vector that is sent, in bytes.
    #[must_use]
    pub const fn iv_bytes(self) -> usize {
        8
    }

    /// Length of the integrity check value, in bytes.
    #[must_use]
    pub const fn icv_bytes(self) -> usize {
        16
    }

    /// The plaintext with its trailer is padded to a multiple of this (RFC 4303 §2.4).
    #[must_use]
    pub const fn pad_to_bytes(self) -> usize {
        4
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
