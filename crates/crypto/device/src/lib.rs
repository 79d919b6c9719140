//! Crypto devices and their trials: functional, speed and fatigue.
//!
//! ```text
//! Spec (JSON) ─► Device ─► sessions, one per thread ─► jobs ─► report lines (JSON)
//! ```
//!
//! A [`Device`] is our engines, a provider or engine of OpenSSL, a PKCS#11 token, or a model of a
//! coprocessor. It runs in a separate process (`cipherbench device`), so that a crash of its driver
//! is a counted failure and does not end the run.

mod case;
mod count;
mod cpu;
mod device;
mod fatigue;
#[cfg(test)]
mod faulty;
mod kat;
mod keys;
mod ml_dsa;
mod model;
mod open;
mod openssl;
mod orders;
mod pkcs11;
mod serve;
mod speed;
mod textbook;
mod threads;
mod vectors;

pub use case::{Case, Wrong};
pub use count::{Count, Inputs};
pub use device::{Device, DeviceError, Job, Queue, Session};
pub use keys::{KeyPair, Keys, RsaNumbers, Secret};
pub use open::open;
pub use openssl::libcrypto_version;
pub use pkcs11::SoftHsm;
pub use serve::serve;
