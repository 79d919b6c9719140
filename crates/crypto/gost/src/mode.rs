//! Modes of operation over batches of messages.
//!
//! A mode owns a keyed cipher and processes one message or a batch, which is an iterator, so that
//! callers need no list. Messages are changed in place. The cipher gets blocks of many messages per
//! call:
//!
//! - Independent blocks ([`Ecb`], [`Ctr`], [`CtrAcpkm`], [`Cnt`], [`Mgm`], decryption in [`Cbc`])
//!   are collected in a scratch of 4 KiB, message after message; a short message costs its share.
//! - If each block depends on the previous one ([`Cbc`] encryption, [`Omac`], [`Imito`]), 64
//!   messages are interleaved.
//!
//! Nothing is allocated per call. Scratch, which held keystream and text, is wiped when the mode is
//! dropped, like its cipher.
//!
//! No mode pads unless its standard requires it ([`Omac`], [`Imito`], [`Mgm`]), none tracks nonces,
//! and none takes a message in parts.

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

/// A text and its IV.
#[derive(Debug)]
pub struct Message<'a, V> {
    /// The IV; the mode defines its length.
    pub iv: V,
    /// The text, changed in place.
    pub text: &'a mut [u8],
}
