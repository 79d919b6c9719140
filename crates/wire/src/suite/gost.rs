//! Suites of the ciphers of GOST R 34.12-2015.

/// A suite of Magma (RFC 8891) or Kuznyechik (RFC 7801).
///
/// Those in MGM are RFC 9227's. The others are what a published measurement of a GOST gateway compares, in the simplest form that
/// ESP allows; no other implementation is known to have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gost {
    /// Kuznyechik in MGM with keys of a tree (`ENCR_KUZNYECHIK_MGM_KTREE`).
    KuznyechikMgm,
    /// Magma in MGM with keys of a tree (`ENCR_MAGMA_MGM_KTREE`).
    MagmaMgm,
    /// Magma in CBC, then OMAC under another key over header, IV, ciphertext and the high half of the sequence number.
    MagmaCbcOmac,
    /// Magma in CTR, and nothing else. Its IV is the low half of the sequence number, which is sent anyhow.
    MagmaCtr,
    /// Magma in ECB, and nothing else.
    MagmaEcb,
}

impl Gost {
    /// Length of the key of both ciphers.
    pub const KEY_BYTES: usize = 32;

    /// The name used in campaigns, configuration and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KuznyechikMgm => "kuznyechik-mgm",
            Self::MagmaMgm => "magma-mgm",
            Self::MagmaCbcOmac => "magma-cbc-omac",
            Self::MagmaCtr => "magma-ctr",
            Self::MagmaEcb => "magma-ecb",
        }
    }

    pub(super) const fn insecure(self) -> Option<&'static str> {
        match self {
            Self::KuznyechikMgm | Self::MagmaMgm => None,
            Self::MagmaCbcOmac => {
                Some("one key for many blocks of 64 bits gives plaintext away (CVE-2016-2183)")
            }
            Self::MagmaCtr => Some("it does not authenticate"),
            Self::MagmaEcb => Some("equal blocks stay equal, and it does not authenticate"),
        }
    }

    /// Length of what is keyed beside the cipher: salt (RFC 9227 §4), or the key of the MAC.
    pub(super) const fn behind_key_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm => 12,
            Self::MagmaMgm => 4,
            Self::MagmaCbcOmac => Self::KEY_BYTES,
            Self::MagmaCtr | Self::MagmaEcb => 0,
        }
    }

    pub(super) const fn iv_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm | Self::MagmaMgm | Self::MagmaCbcOmac => 8,
            Self::MagmaCtr | Self::MagmaEcb => 0,
        }
    }

    /// Of MGM: RFC 9227 §4. Of OMAC: all of it.
    pub(super) const fn icv_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm => 12,
            Self::MagmaMgm | Self::MagmaCbcOmac => 8,
            Self::MagmaCtr | Self::MagmaEcb => 0,
        }
    }

    pub(super) const fn pad_to_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm | Self::MagmaMgm | Self::MagmaCtr => 4,
            Self::MagmaCbcOmac | Self::MagmaEcb => 8,
        }
    }

    /// In how many packets a sender in MGM uses one key of the tree, as a power of two. The receiver follows what is sent.
    ///
    /// RFC 9227 allows 2^24, and leaves it to the sender to stop sooner. With Kuznyechik there is no need: in packets of 1500
    /// bytes these are 2^31 blocks of 128 bits. With Magma's 64 bits it would be as many blocks as there are before two are
    /// likely to meet; in 2^10 such packets there are 2^18, which meet with a chance of 2^-29.
    #[must_use]
    pub const fn packets_per_key_log2(self) -> u32 {
        match self {
            Self::KuznyechikMgm => 24,
            _ => 10,
        }
    }
}
