//! The interface of an engine.

use crate::transform::EspAead;
use crate::{Aead, SequenceNumbers, Transform};
use wire::{Cipher, Hmac, Suite};

/// An implementation of suites.
pub(crate) trait Engine: Sync {
    /// Returns its name in campaigns, configuration and reports.
    fn name(&self) -> &'static str;

    /// Returns its version; or the reason why it is unavailable on this host, with a remedy.
    fn probe(&self) -> Result<String, String>;

    /// Whether it has the suite.
    fn serves(&self, suite: Suite) -> bool {
        catalog::serves(self.name(), suite)
    }

    /// Whether other engines are much faster with the suite on this processor:
    /// [`CpuChoice::Auto`](catalog::CpuChoice::Auto) tries it last.
    fn is_outrun(&self, _suite: Suite) -> bool {
        false
    }

    /// Prepares an AEAD's key. Called only after `probe` has succeeded, for an AEAD that the engine
    /// has, with a key of the suite's length.
    fn aead(&self, suite: Suite, key: &[u8]) -> Box<dyn Aead>;

    /// Prepares the keying material of an SA. Called like [`aead`](Self::aead), with keys of the
    /// suite's lengths, for suites that the engine has.
    fn encrypt_then_mac(
        &self,
        cipher: Cipher,
        hmac: Hmac,
        _cipher_key: &[u8],
        _hmac_key: &[u8],
        _numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        unreachable!("{} is not served", Suite::EncryptThenMac(cipher, hmac))
    }

    /// Prepares the keying material of an SA. Called like [`aead`](Self::aead), for any suite that
    /// the engine has, with [`Suite::keymat_bytes`].
    fn transform(
        &self,
        suite: Suite,
        keymat: &[u8],
        numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        // In the order in which IKE takes them from its key material: cipher key, then salt or HMAC
        // key (RFC 7296 §2.17, RFC 4106 §8.1).
        let (key, rest) = keymat.split_at(suite.key_bytes());
        if let Suite::EncryptThenMac(cipher, hmac) = suite {
            return self.encrypt_then_mac(cipher, hmac, key, rest, numbers);
        }
        let salt = rest
            .try_into()
            .expect("an AEAD's keying material ends in its salt");
        Box::new(EspAead::new(self.aead(suite, key), salt, numbers))
    }
}
