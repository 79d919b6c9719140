//! Engine `ipsec-mb`: Intel's multi-buffer library, through `shim/`.
//!
//! Whole batches are passed to the library: AES-GCM processes packet after packet by the library's
//! direct functions, ChaCha20-Poly1305 a burst of jobs, and a cipher with an HMAC 16 packets in
//! parallel. The shim documents which of the library's interfaces is fastest for each, and why.

mod aead;
mod batch;
mod ffi;
mod manager;
mod transform;

#[cfg(test)]
mod tests;

use crate::engine::Engine;
use crate::{Aead, SequenceNumbers, Transform};
use aead::AeadKey;
use transform::Sa;
use wire::{Cipher, Suite};

pub(crate) struct IpsecMb;

impl Engine for IpsecMb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn probe(&self) -> Result<String, String> {
        manager::load()
    }

    fn is_outrun(&self, suite: Suite) -> bool {
        // Without AVX-512 the library reads whole DES tables for each look-up: a twentieth of
        // RustCrypto's speed (`cipherbench speed --suite 3des-cbc-hmac-sha256`).
        let is_des = matches!(
            suite,
            Suite::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _)
        );
        is_des && !is_x86_feature_detected!("avx512f")
    }

    fn aead(&self, suite: Suite, key: &[u8]) -> Box<dyn Aead> {
        Box::new(AeadKey::new(suite, key))
    }

    fn transform(
        &self,
        suite: Suite,
        keymat: &[u8],
        numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        Box::new(Sa::new(suite, keymat, numbers))
    }
}

const NAME: &str = "ipsec-mb";
