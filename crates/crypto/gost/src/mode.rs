//! Modes of operation over batches of messages.
//!
//! A mode has a cipher, keyed, and does any number of messages under it: one, or a batch of them,
//! which comes as an iterator, so that nobody needs a list. Messages are changed where they lie.
//! What the cipher sees is blocks of many messages at once:
//!
//! - Where blocks do not depend on one another ([`Ecb`], [`Ctr`], [`CtrAcpkm`], [`Cnt`], [`Mgm`],
//!   decryption in [`Cbc`]), they are collected in a scratch of 4 KiB, message after message; a
//!   short message costs its share.
//! - Where each depends on the one before it ([`Cbc`] encryption, [`Omac`], [`Imito`]), 64 messages
//!   go side by side.
//!
//! Nothing is allocated per call. Scratch, which has seen keystream and text, is wiped when the
//! mode is dropped, as its cipher is.
//!
//! No mode pads but where its standard has it pad ([`Omac`], [`Imito`], [`Mgm`]), none keeps count
//! of nonces, and none takes a message in parts.

mod acpkm;
mod batch;
mod cbc;
mod counter;
mod ctr;
mod ecb;
mod field;
mod gost89;
mod mgm;
mod omac;

pub use acpkm::CtrAcpkm;
pub use cbc::{Cbc, IV_BLOCKS_MAX};
pub use ctr::Ctr;
pub use ecb::Ecb;
pub use gost89::{Cnt, Imito};
pub use mgm::{AeadMessage, Mgm};
pub use omac::{MacMessage, Omac};

/// A text and what it is encrypted or decrypted under beside the key.
#[derive(Debug)]
pub struct Message<'a, V> {
    /// The IV; the mode says how long.
    pub iv: V,
    /// The text, which is changed where it lies.
    pub text: &'a mut [u8],
}
