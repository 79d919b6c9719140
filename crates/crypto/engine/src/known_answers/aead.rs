//! Known answers of an AEAD, with nonces and additional data of any form.

use super::Failure;
use crate::vectors::{Vector, VectorError};
use crate::{Aead, NONCE_BYTES, TAG_BYTES};
use wire::Suite;

pub(super) struct Answer {
    name: String,
    pub(super) key: Vec<u8>,
    nonce: [u8; NONCE_BYTES],
    aad: Vec<u8>,
    plaintext: Vec<u8>,
    sealed: Vec<u8>,
}

impl Answer {
    /// Returns the answer of `vector` for the AEAD `suite`, if it has one.
    pub(super) fn of(suite: Suite, vector: &Vector) -> Result<Option<Self>, VectorError> {
        if vector.text("suite") != Ok(suite.name()) || !vector.has("nonce") {
            return Ok(None);
        }
        Ok(Some(Self {
            name: vector.name().to_owned(),
            key: vector.bytes("key")?,
            nonce: vector.array("nonce")?,
            aad: vector.bytes("aad")?,
            plaintext: vector.bytes("plaintext")?,
            sealed: vector.bytes("sealed")?,
        }))
    }

    pub(super) fn check(&self, aead: &mut dyn Aead) -> Result<(), Failure> {
        let vector = || self.name.clone();
        let mut sealed = vec![0; self.plaintext.len() + TAG_BYTES];
        aead.seal(&self.nonce, &self.aad, &self.plaintext, &mut sealed);
        let mut in_place = sealed.clone();
        in_place[..self.plaintext.len()].copy_from_slice(&self.plaintext);
        aead.seal_in_place(&self.nonce, &self.aad, &mut in_place);
        if sealed != self.sealed || in_place != self.sealed {
            return Err(Failure::Sealed { vector: vector() });
        }

        let opened = aead.open(&self.nonce, &self.aad, &mut sealed);
        if opened.is_err() || sealed[..self.plaintext.len()] != self.plaintext {
            return Err(Failure::Opened { vector: vector() });
        }

        // One flipped bit in the tag, then one in the ciphertext or, if that is empty, at the tag's
        // start.
        for at in [self.sealed.len() - 1, 0] {
            let mut forged = self.sealed.clone();
            forged[at] ^= 1;
            let accepted = aead.open(&self.nonce, &self.aad, &mut forged).is_ok();
            // Plaintext of a forgery must not stay behind, since a caller may forget the verdict.
            if accepted || forged.iter().any(|&byte| byte != 0) {
                return Err(Failure::Forged { vector: vector() });
            }
        }
        Ok(())
    }
}
