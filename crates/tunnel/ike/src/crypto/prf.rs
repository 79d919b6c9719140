//! Pseudo-random functions (RFC 7296 section 2.13).

use super::Secret;
use crate::message::PrfId;
use aws_lc_rs::{cmac, hmac};
use zeroize::Zeroizing;

/// A pseudo-random function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prf {
    /// HMAC-SHA-1.
    HmacSha1,
    /// HMAC-SHA-256.
    HmacSha256,
    /// HMAC-SHA-384.
    HmacSha384,
    /// HMAC-SHA-512.
    HmacSha512,
    /// AES-CMAC with keys of any length (RFC 4615).
    AesCmac,
}

impl Prf {
    /// All functions.
    pub const ALL: [Self; 5] = [
        Self::HmacSha256,
        Self::HmacSha384,
        Self::HmacSha512,
        Self::HmacSha1,
        Self::AesCmac,
    ];

    /// The function of a transform, if it is implemented.
    #[must_use]
    pub fn of(id: PrfId) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.id() == id)
    }

    /// The transform.
    #[must_use]
    pub const fn id(self) -> PrfId {
        match self {
            Self::HmacSha1 => PrfId::HMAC_SHA1,
            Self::HmacSha256 => PrfId::HMAC_SHA2_256,
            Self::HmacSha384 => PrfId::HMAC_SHA2_384,
            Self::HmacSha512 => PrfId::HMAC_SHA2_512,
            Self::AesCmac => PrfId::AES128_CMAC,
        }
    }

    /// The size of its output, which is also its preferred size of keys.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::HmacSha1 => 20,
            Self::HmacSha256 => 32,
            Self::HmacSha384 => 48,
            Self::HmacSha512 => 64,
            Self::AesCmac => 16,
        }
    }

    /// `prf(key, parts…)`.
    #[must_use]
    pub fn compute(self, key: &[u8], parts: &[&[u8]]) -> Secret {
        let algorithm = match self {
            Self::HmacSha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::HmacSha256 => hmac::HMAC_SHA256,
            Self::HmacSha384 => hmac::HMAC_SHA384,
            Self::HmacSha512 => hmac::HMAC_SHA512,
            Self::AesCmac => return cmac_prf(key, parts),
        };
        let mut context = hmac::Context::with_key(&hmac::Key::new(algorithm, key));
        for part in parts {
            context.update(part);
        }
        Zeroizing::new(context.sign().as_ref().to_vec())
    }

    /// `prf+(key, seed…)`, as many bytes as requested.
    ///
    /// # Panics
    /// When more bytes are requested than the function defines: 255 outputs.
    #[must_use]
    pub fn plus(self, key: &[u8], seed: &[&[u8]], bytes: usize) -> Secret {
        assert!(bytes <= 255 * self.bytes(), "prf+ ends after 255 outputs");
        let mut out = Zeroizing::new(Vec::with_capacity(bytes + self.bytes()));
        let mut last = Zeroizing::new(Vec::new());
        let mut counter = 0u8;
        while out.len() < bytes {
            counter += 1;
            let number = [counter];
            let mut parts: Vec<&[u8]> = vec![&last];
            parts.extend(seed);
            parts.push(&number);
            last = self.compute(key, &parts);
            out.extend_from_slice(&last);
        }
        out.truncate(bytes);
        out
    }
}

fn cmac_prf(key: &[u8], parts: &[&[u8]]) -> Secret {
    let cmac = |key: &[u8], parts: &[&[u8]]| {
        let key = cmac::Key::new(cmac::AES_128, key).expect("a key of 16 bytes");
        let mut context = cmac::Context::with_key(&key);
        for part in parts {
            context.update(part).expect("AES-CMAC has no limit of data");
        }
        let tag = context.sign().expect("AES-CMAC cannot fail");
        Zeroizing::new(tag.as_ref().to_vec())
    };
    // Another length is hashed to 16 bytes by the function itself (RFC 4615 section 3).
    if key.len() == 16 {
        cmac(key, parts)
    } else {
        cmac(&cmac(&[0; 16], &[key]), parts)
    }
}
