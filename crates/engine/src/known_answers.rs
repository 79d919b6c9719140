//! Proves an engine by official known answers before it touches traffic.

use crate::selection::Engine;
use crate::vectors::{self, VectorError};
use crate::{Aead, NONCE_BYTES, TAG_BYTES};
use wire::Suite;

/// A known answer that an engine does not give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// What was sealed is not what the origin says.
    #[error("seals {vector} differently")]
    Sealed {
        /// Name of the vector.
        vector: String,
    },
    /// What ought to open does not, or to something else.
    #[error("does not open {vector}")]
    Opened {
        /// Name of the vector.
        vector: String,
    },
    /// A forgery opened, or left plaintext behind.
    #[error("accepts a forgery of {vector}, or leaves plaintext of it behind")]
    Forged {
        /// Name of the vector.
        vector: String,
    },
    /// There is nothing to hold the suite to: a mistake in this program.
    #[error("has no known answer of {suite} to give: {why}")]
    NoVector {
        /// The suite.
        suite: Suite,
        /// Why.
        why: String,
    },
}

/// Holds `engine` to every shipped vector of `suite`.
pub(crate) fn check(engine: &dyn Engine, suite: Suite) -> Result<(), Failure> {
    let unusable = |why: String| Failure::NoVector { suite, why };
    let mut checked = 0;
    for (file, text) in vectors::SHIPPED {
        let records = vectors::parse(text).map_err(|error| unusable(format!("{file}: {error}")))?;
        for record in records
            .iter()
            .filter(|record| record.text("suite") == Ok(suite.name()))
        {
            let answer = Answer::read(record).map_err(|error| unusable(error.to_string()))?;
            answer.check(&mut *engine.aead(suite, &answer.key))?;
            checked += 1;
        }
    }
    if checked == 0 {
        Err(unusable("none ships".to_owned()))
    } else {
        Ok(())
    }
}

struct Answer {
    name: String,
    key: Vec<u8>,
    nonce: [u8; NONCE_BYTES],
    aad: Vec<u8>,
    plaintext: Vec<u8>,
    sealed: Vec<u8>,
}

impl Answer {
    fn read(record: &vectors::Vector) -> Result<Self, VectorError> {
        let nonce = record.bytes("nonce")?;
        Ok(Self {
            name: record.name().to_owned(),
            key: record.bytes("key")?,
            nonce: nonce.try_into().map_err(|_| VectorError::NotHex {
                record: record.name().to_owned(),
                field: "nonce",
            })?,
            aad: record.bytes("aad")?,
            plaintext: record.bytes("plaintext")?,
            sealed: record.bytes("sealed")?,
        })
    }

    fn check(&self, aead: &mut dyn Aead) -> Result<(), Failure> {
        let vector = || self.name.clone();
        let mut sealed = vec![0; self.plaintext.len() + TAG_BYTES];
        aead.seal(&self.nonce, &self.aad, &self.plaintext, &mut sealed);
        if sealed != self.sealed {
            return Err(Failure::Sealed { vector: vector() });
        }

        let opened = aead.open(&self.nonce, &self.aad, &mut sealed);
        if opened.is_err() || sealed[..self.plaintext.len()] != self.plaintext {
            return Err(Failure::Opened { vector: vector() });
        }

        // One flipped bit in the tag, then one in the ciphertext or, where that is empty, the tag's start.
        for at in [self.sealed.len() - 1, 0] {
            let mut forged = self.sealed.clone();
            forged[at] ^= 1;
            let accepted = aead.open(&self.nonce, &self.aad, &mut forged).is_ok();
            if accepted || forged.iter().any(|&byte| byte != 0) {
                return Err(Failure::Forged { vector: vector() });
            }
        }
        Ok(())
    }
}
