//! GOST block ciphers at the speed of the CPU, and their modes over batches of messages.
//!
//! ```text
//! mode (ECB, CTR, CBC, OMAC, CTR-ACPKM, MGM)  ─► blocks of many messages ─► BlockCipher ─► Kernel
//! ```
//!
//! A [`BlockCipher`] processes independent blocks, any number per call; only that uses SIMD. Modes
//! collect the blocks of all messages of a batch for it, so that many short messages cost the same
//! as a long one. One key, many messages.
//!
//! No kernel looks up a table at an address that depends on a secret.
//!
//! With `engine`, the only crate with SIMD `unsafe`. It does not process packets.

/// The example in `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod cipher;
mod kernel;
pub mod kuznyechik;
pub mod magma;
pub mod mode;

pub use cipher::BlockCipher;
pub use kernel::Kernel;

/// Length of the key of all three ciphers.
pub const KEY_BYTES: usize = 32;
