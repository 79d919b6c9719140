//! Cryptography of IKE: pseudo-random functions, key derivation, key exchange, the encrypted
//! payload and authentication. AWS-LC computes; here are the inputs that the specifications
//! prescribe.
//!
//! Keys are wiped when they are dropped, and codes are compared in constant time.

mod auth;
mod cipher;
mod exchange;
mod keys;
mod prf;
#[cfg(test)]
mod tests;

pub use auth::{
    SignatureScheme, SignedOctets, Signer, shared_key_code, verify_shared_key, verify_signature,
};
pub use cipher::{Cipher, CipherKeys, Integrity, OpenError, open, seal};
pub use exchange::{ExchangeError, KeMethodKind, PrivateValue, respond};
pub use keys::{
    IkeKeys, PPK_CONFIRMATION_BYTES, Transcript, child_keymat, intermediate_auth, ppk_confirmation,
};
pub use prf::Prf;

/// Secret bytes, wiped when dropped.
pub type Secret = zeroize::Zeroizing<Vec<u8>>;
