//! Names of what devices do: `sha-256`, `aes-128-cbc encrypt`, `rsa-2048-oaep decrypt`, `ecdsa-p256 sign`.

use std::fmt;

/// An algorithm with everything that decides what its result is, but for key and input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Algorithm {
    name: &'static str,
    family: Family,
}

/// What an algorithm is. (To be extended by whoever needs more than the name.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Family {
    Digest,
    Mac,
    Cipher,
    Aead,
    RsaEncryption,
    Signature,
    Kem,
}

/// What is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Message to digest or MAC.
    Digest,
    /// Plaintext to ciphertext (AEADs: and tag; KEMs: to ciphertext and shared secret).
    Encrypt,
    /// The way back.
    Decrypt,
    /// Message to signature.
    Sign,
    /// Signature and message to whether it is right.
    Verify,
}

/// An algorithm and what is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The action, one that the algorithm has.
    pub action: Action,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            Action::Digest => return f.write_str(self.algorithm.name),
            Action::Encrypt => "encrypt",
            Action::Decrypt => "decrypt",
            Action::Sign => "sign",
            Action::Verify => "verify",
        };
        write!(f, "{} {action}", self.algorithm.name)
    }
}
