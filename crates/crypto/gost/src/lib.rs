//! GOST block ciphers at the speed of the CPU, and their modes over batches of messages.
//!
//! ```text
//! mode (ECB, CTR, CBC, OMAC, CTR-ACPKM, MGM)  ─► blocks of many messages ─► BlockCipher ─► Kernel
//! ```
//!
//! A [`BlockCipher`] does independent blocks, as many at once as there are; that is all that is
//! written for SIMD. Modes collect the blocks of all messages of a batch for it, so that many short
//! messages cost what a long one does. One key, many messages.
//!
//! Nothing here looks up a table at an address that depends on a secret, in any kernel.
//!
//! The other crate with SIMD `unsafe`, beside `engine`. It knows nothing of packets.

mod cipher;
mod kernel;
pub mod kuznyechik;
pub mod magma;
pub mod mode;

pub use cipher::BlockCipher;
pub use kernel::Kernel;

/// Length of the key of all three ciphers.
pub const KEY_BYTES: usize = 32;
