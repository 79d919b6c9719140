//! Crypto devices, and what is done to them: functional, speed and fatigue trials.
//!
//! ```text
//! Spec (JSON) ─► Device ─► sessions, one a thread ─► jobs ─► Report (JSON)
//! ```
//!
//! A [`Device`] is our engines, a provider or engine of OpenSSL, a PKCS#11 token, or a model of a
//! coprocessor. It runs in a process of its own (`cipherbench device`), so that a driver that
//! crashes is a counted failure and not the end of a run.

mod case;
mod count;
mod cpu;
mod device;
mod fatigue;
mod kat;
mod keys;
#[cfg(test)]
mod meddled;
mod ml_dsa;
mod model;
mod open;
mod openssl;
mod orders;
mod pkcs11;
pub mod report;
mod serve;
pub mod spec;
mod speed;
mod textbook;
mod threads;
mod vectors;

pub use case::{Case, Wrong};
pub use count::Count;
pub use device::{Device, DeviceError, Job, Queue, Session};
pub use keys::{KeyPair, Keys, RsaNumbers, Secret};
pub use open::open;
pub use pkcs11::SoftHsm;
pub use serve::serve;
// Names are a crate of their own, so that campaigns can be read without anything that a device
// needs.
pub use ::operation;
pub use ::operation::device::Facts;
pub use ::operation::{
    ALGORITHMS, Action, Algorithm, Cipher, Curve, Family, Hash, MlDsa, MlKem, Mode, Operation,
    Padding, UnknownName,
};
