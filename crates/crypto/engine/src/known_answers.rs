//! Tests of an engine by official known answers before its use.
//!
//! An AEAD is tested with the nonces and additional data of its standard, and every suite as an ESP
//! transform: by packets of standards and of another implementation, ciphertexts of CBC's standards
//! and MACs of HMAC's. Forgeries of each must be refused.

mod aead;
mod packet;

use crate::SequenceNumbers;
use crate::engine::Engine;
use crate::vectors::{self, Vector, VectorError};
use std::sync::OnceLock;
use wire::Suite;

/// A known answer that an engine fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The sealed packet differs from the vector.
    #[error("seals {vector} differently")]
    Sealed {
        /// Name of the vector.
        vector: String,
    },
    /// A genuine packet does not open, or has another text.
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
    /// It wrote outside the packet's text and ICV.
    #[error("writes beside the text of {vector}")]
    Beside {
        /// Name of the vector.
        vector: String,
    },
    /// It returned an error.
    #[error("fails at {vector}: {reason}")]
    GaveUp {
        /// Name of the vector.
        vector: String,
        /// The reason, as text.
        reason: String,
    },
    /// There is no vector for the suite: a mistake in this program.
    #[error("has no known answer for {suite}: {why}")]
    NoVector {
        /// The suite.
        suite: Suite,
        /// The reason.
        why: String,
    },
}

/// Tests `engine` with every shipped vector of `suite`.
pub(crate) fn check(engine: &dyn Engine, suite: Suite) -> Result<(), Failure> {
    let unusable = |why: String| Failure::NoVector { suite, why };
    // Counted apart: an AEAD must pass in both forms.
    let (mut aead_answers, mut packets) = (0, 0);
    for vector in shipped().map_err(|why| unusable(why.clone()))? {
        let unreadable = |error: VectorError| unusable(error.to_string());
        if let Some(answer) = aead::Answer::of(suite, vector).map_err(unreadable)? {
            answer.check(&mut *engine.aead(suite, &answer.key))?;
            aead_answers += 1;
        }
        if let Some(answer) = packet::Answer::of(suite, vector).map_err(unreadable)? {
            let numbers = SequenceNumbers::Extended;
            answer.check(&mut *engine.transform(suite, &answer.keymat, numbers))?;
            packets += 1;
        }
    }
    // An engine without a test must not pass because nothing failed.
    if packets == 0 || (aead_answers == 0 && Suite::AEADS.contains(&suite)) {
        Err(unusable("none ships".to_owned()))
    } else {
        Ok(())
    }
}

/// Returns every shipped record, or which file cannot be read.
fn shipped() -> Result<&'static [Vector], &'static String> {
    static RECORDS: OnceLock<Result<Vec<Vector>, String>> = OnceLock::new();
    let read = || {
        let mut records = Vec::new();
        for (file, text) in vectors::SHIPPED {
            let error = |error| format!("{file}: {error}");
            records.append(&mut vectors::parse(text).map_err(error)?);
        }
        Ok(records)
    };
    RECORDS.get_or_init(read).as_deref()
}
