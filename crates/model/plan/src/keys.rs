//! Key sources of Cipherbench's encryptor.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::IntoStaticStr;
use wire::{Cipher, Hmac, Suite};

/// Source of the tunnels' keys. Unless they are static, the gateways agree on them by TLS 1.3
/// outside the tunnels, or by IKEv2, with certificates generated at the start, and renew them
/// periodically.
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
    /// IKEv2 with X25519 and ML-KEM-768 (RFC 9370).
    Ike,
    /// IKEv2 with X25519 alone.
    IkeClassic,
    /// IKEv2 with X25519, ML-KEM-768 and a pre-shared key of both gateways (RFC 8784).
    IkePpk,
}

impl KeySource {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Static,
        Self::Pqc,
        Self::Ppk,
        Self::Qkd,
        Self::Both,
        Self::Ike,
        Self::IkeClassic,
        Self::IkePpk,
    ];

    /// Name of the single pre-shared key in labs.
    pub const PPK: &str = "lab";

    /// Default lifetime of agreed keys.
    pub const REKEY_EVERY: Duration = Duration::from_secs(3600);

    /// Name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether gateways agree on keys.
    #[must_use]
    pub const fn is_agreed(self) -> bool {
        !matches!(self, Self::Static)
    }

    /// Whether they do so by IKEv2, on the ports of ESP and 500.
    #[must_use]
    pub const fn is_ike(self) -> bool {
        matches!(self, Self::Ike | Self::IkeClassic | Self::IkePpk)
    }

    /// Whether they do so by our handshake, over a control channel in TCP.
    #[must_use]
    pub const fn has_channel(self) -> bool {
        self.is_agreed() && !self.is_ike()
    }

    /// Whether a pre-shared key is mixed in.
    #[must_use]
    pub const fn has_ppk(self) -> bool {
        matches!(self, Self::Ppk | Self::IkePpk)
    }

    /// Whether keys of this source can be those of a suite: IKE has no number for the others.
    #[must_use]
    pub const fn suits(self, suite: Suite) -> bool {
        match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm | Suite::ChaCha20Poly1305 => true,
            Suite::EncryptThenMac(Cipher::Aes128Cbc | Cipher::Aes256Cbc, hmac) => {
                !self.is_ike() || !matches!(hmac, Hmac::Md5)
            }
            Suite::EncryptThenMac(..) | Suite::Gost(_) => !self.is_ike(),
        }
    }

    /// Key exchanges of IKE, in the notation of the encryptor's configuration; `None` without IKE.
    #[must_use]
    pub const fn proposal(self) -> Option<&'static str> {
        match self {
            Self::Ike | Self::IkePpk => Some("aes256gcm16-prfsha384-x25519-ke1_mlkem768"),
            Self::IkeClassic => Some("aes256gcm16-prfsha384-x25519"),
            _ => None,
        }
    }

    /// Whether keys are requested from a QKD network.
    #[must_use]
    pub const fn has_qkd(self) -> bool {
        matches!(self, Self::Qkd | Self::Both)
    }

    /// Required key sources of the handshake, as named in the encryptor's configuration and facts;
    /// `None` without it.
    #[must_use]
    pub const fn policy(self) -> Option<&'static str> {
        match self {
            Self::Static | Self::Ike | Self::IkeClassic | Self::IkePpk => None,
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
            Self::Ike => Some("x25519+mlkem768".to_owned()),
            Self::IkeClassic => Some("x25519".to_owned()),
            Self::IkePpk => Some("x25519+mlkem768+ppk".to_owned()),
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
            Self::Ike => "keys by IKEv2 with ML-KEM",
            Self::IkeClassic => "keys by IKEv2",
            Self::IkePpk => "keys by IKEv2 with ML-KEM and PPK",
        }
    }
}
