//! Suites of the ciphers of GOST R 34.12-2015.

/// A suite of Magma (RFC 8891) or Kuznyechik (RFC 7801).
///
/// Those in MGM are RFC 9227's. The others are the subject of a published measurement of a GOST
/// gateway, in the simplest form that ESP permits; no other implementation is known to have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Gost {
    /// Kuznyechik in MGM with keys of a tree (`ENCR_KUZNYECHIK_MGM_KTREE`).
    KuznyechikMgm,
    /// Magma in MGM with keys of a tree (`ENCR_MAGMA_MGM_KTREE`).
    MagmaMgm,
    /// Kuznyechik in MGM with keys of a tree, for integrity alone
    /// (`ENCR_KUZNYECHIK_MGM_MAC_KTREE`): packets are not encrypted.
    KuznyechikMgmMac,
    /// Magma in MGM with keys of a tree, for integrity alone (`ENCR_MAGMA_MGM_MAC_KTREE`): packets
    /// are not encrypted.
    MagmaMgmMac,
    /// Magma in CBC, then OMAC under another key over header, IV, ciphertext and the high half of
    /// the sequence number.
    MagmaCbcOmac,
    /// Magma in CTR, without integrity. Its IV is the low half of the sequence number, which is in
    /// the header.
    MagmaCtr,
    /// Magma in ECB, without integrity.
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
            Self::KuznyechikMgmMac => "kuznyechik-mgm-mac",
            Self::MagmaMgmMac => "magma-mgm-mac",
            Self::MagmaCbcOmac => "magma-cbc-omac",
            Self::MagmaCtr => "magma-ctr",
            Self::MagmaEcb => "magma-ecb",
        }
    }

    pub(super) const fn insecure(self) -> Option<&'static str> {
        match self {
            Self::KuznyechikMgm | Self::MagmaMgm => None,
            Self::KuznyechikMgmMac | Self::MagmaMgmMac => Some("it does not encrypt"),
            Self::MagmaCbcOmac => {
                Some("one key for many blocks of 64 bits gives plaintext away (CVE-2016-2183)")
            }
            Self::MagmaCtr => Some("it does not authenticate"),
            Self::MagmaEcb => Some("equal blocks stay equal, and it does not authenticate"),
        }
    }

    pub(super) const fn encrypts(self) -> bool {
        !matches!(self, Self::KuznyechikMgmMac | Self::MagmaMgmMac)
    }

    /// Whether its keys are leaves of a tree (RFC 9227 §4), selected by the first 5 bytes of an IV.
    #[must_use]
    pub const fn has_key_tree(self) -> bool {
        matches!(
            self,
            Self::KuznyechikMgm | Self::MagmaMgm | Self::KuznyechikMgmMac | Self::MagmaMgmMac
        )
    }

    /// Length of the keying material besides the cipher key: salt (RFC 9227 §4), or the key of the
    /// MAC.
    pub(super) const fn behind_key_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm | Self::KuznyechikMgmMac => 12,
            Self::MagmaMgm | Self::MagmaMgmMac => 4,
            Self::MagmaCbcOmac => Self::KEY_BYTES,
            Self::MagmaCtr | Self::MagmaEcb => 0,
        }
    }

    pub(super) const fn iv_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm
            | Self::MagmaMgm
            | Self::KuznyechikMgmMac
            | Self::MagmaMgmMac
            | Self::MagmaCbcOmac => 8,
            Self::MagmaCtr | Self::MagmaEcb => 0,
        }
    }

    /// Of MGM: RFC 9227 §4. Of OMAC: the whole block.
    pub(super) const fn icv_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm | Self::KuznyechikMgmMac => 12,
            Self::MagmaMgm | Self::MagmaMgmMac | Self::MagmaCbcOmac => 8,
            Self::MagmaCtr | Self::MagmaEcb => 0,
        }
    }

    pub(super) const fn pad_to_bytes(self) -> usize {
        match self {
            Self::KuznyechikMgm
            | Self::MagmaMgm
            | Self::KuznyechikMgmMac
            | Self::MagmaMgmMac
            | Self::MagmaCtr => 4,
            Self::MagmaCbcOmac | Self::MagmaEcb => 8,
        }
    }

    /// Number of packets for which a sender in MGM uses one key of the tree, as a power of two. The
    /// receiver follows the transmitted key number.
    ///
    /// RFC 9227 allows 2^24, and lets the sender stop sooner. A packet of 1500 bytes takes a cipher
    /// call for each block of keystream, one for each factor, and some more. With Kuznyechik 2^24
    /// such packets are fewer than 2^32 calls on blocks of 128 bits, which is safe for one key of
    /// the tree. With Magma they would be more than 2^32 on blocks of 64 bits, after which a
    /// collision of two is likely; 2^10 such packets take 2^18.6 calls, which give an observer an
    /// advantage of 2^-28. That is for one key: over all keys of a tree it adds up, which is why an
    /// SA has a limit as well.
    #[must_use]
    pub const fn packets_per_key_log2(self) -> u32 {
        match self {
            Self::KuznyechikMgm | Self::KuznyechikMgmMac => 24,
            _ => 10,
        }
    }
}
