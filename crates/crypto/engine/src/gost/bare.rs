//! Magma in ECB and CTR, which do not authenticate, and in CBC with OMAC.

use super::packets::{Parts, parts};
use crate::transform::{EngineFailed, Packet, Transform, one_by_one};
use ::gost::magma::Magma;
use ::gost::mode::{Cbc, Ctr, Ecb, MacMessage, Message, Omac};
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Gost, Suite};

/// An operation on the texts of a batch.
pub(super) trait Texts: Send {
    const SUITE: Suite;

    fn seal<'a>(&mut self, packets: impl Iterator<Item = Parts<'a>>);
    fn open<'a>(&mut self, packets: impl Iterator<Item = Parts<'a>>);
}

/// Magma in ECB.
pub(super) struct InEcb(Ecb<Magma>);

impl InEcb {
    pub(super) fn new(cipher: Magma) -> Bare<Self> {
        Bare(Self(Ecb::new(cipher)))
    }
}

impl Texts for InEcb {
    const SUITE: Suite = Suite::Gost(Gost::MagmaEcb);

    fn seal<'a>(&mut self, packets: impl Iterator<Item = Parts<'a>>) {
        self.0.encrypt_all(packets.map(|parts| parts.text));
    }

    fn open<'a>(&mut self, packets: impl Iterator<Item = Parts<'a>>) {
        self.0.decrypt_all(packets.map(|parts| parts.text));
    }
}

/// Magma in CTR. The IV is the low half of the sequence number.
pub(super) struct InCtr(Ctr<Magma>);

impl InCtr {
    pub(super) fn new(cipher: Magma) -> Bare<Self> {
        Bare(Self(Ctr::new(cipher)))
    }
}

impl Texts for InCtr {
    const SUITE: Suite = Suite::Gost(Gost::MagmaCtr);

    fn seal<'a>(&mut self, packets: impl Iterator<Item = Parts<'a>>) {
        self.0.apply_all(packets.map(|parts| Message {
            iv: &parts.prefix[4..ESP_HEADER_BYTES],
            text: parts.text,
        }));
    }

    fn open<'a>(&mut self, packets: impl Iterator<Item = Parts<'a>>) {
        // In CTR the same key stream encrypts and decrypts.
        self.seal(packets);
    }
}

/// A suite without an ICV: every packet counts as authentic.
pub(super) struct Bare<T>(T);

impl<T: Texts> Transform for Bare<T> {
    fn suite(&self) -> Suite {
        T::SUITE
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        // A wrong position is found here, before any packet is changed.
        one_by_one(buffer, packets).for_each(drop);
        self.0.seal(parts(T::SUITE, buffer, packets));
        Ok(())
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        assert_eq!(packets.len(), authentic.len(), "one verdict per packet");
        one_by_one(buffer, packets).for_each(drop);
        self.0.open(parts(T::SUITE, buffer, packets));
        authentic.fill(true);
        Ok(())
    }
}

/// Magma in CBC, then OMAC over header, IV, ciphertext and the high half of the sequence number.
pub(super) struct CbcOmac {
    cbc: Cbc<Magma>,
    omac: Omac<Magma>,
}

impl CbcOmac {
    const SUITE: Suite = Suite::Gost(Gost::MagmaCbcOmac);

    pub(super) fn new(cipher: Magma, mac: Magma) -> Self {
        Self {
            cbc: Cbc::new(cipher),
            omac: Omac::new(mac),
        }
    }
}

/// IV and text of the packets to encrypt or decrypt.
fn messages<'a>(
    packets: impl Iterator<Item = Parts<'a>>,
) -> impl Iterator<Item = Message<'a, &'a [u8]>> {
    packets.map(|parts| Message {
        iv: &parts.prefix[ESP_HEADER_BYTES..],
        text: parts.text,
    })
}

/// The authenticated parts of packets, and their ICVs.
fn authenticated<'a>(
    buffer: &'a mut [u8],
    packets: &'a [Packet],
) -> impl Iterator<Item = MacMessage<'a, [u8; 4]>> {
    one_by_one(buffer, packets).map(|(packet, high)| {
        let (text, mac) = packet.split_at_mut(packet.len() - CbcOmac::SUITE.icv_bytes());
        MacMessage {
            text,
            tail: high.to_be_bytes(),
            mac,
        }
    })
}

impl Transform for CbcOmac {
    fn suite(&self) -> Suite {
        Self::SUITE
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        one_by_one(buffer, packets).for_each(drop);
        self.cbc
            .encrypt_all(messages(parts(Self::SUITE, buffer, packets)));
        // Behind the cipher: the MAC covers the ciphertext.
        self.omac.mac_all(authenticated(buffer, packets));
        Ok(())
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        assert_eq!(packets.len(), authentic.len(), "one verdict per packet");
        parts(Self::SUITE, buffer, packets).for_each(drop);
        // The MAC first: what is not authentic is not decrypted.
        self.omac
            .verify_all(authenticated(buffer, packets), authentic);
        let answers = authentic.iter();
        // Only authentic texts are decrypted; the others are zeroed.
        let good =
            parts(Self::SUITE, buffer, packets)
                .zip(answers)
                .filter_map(|(parts, authentic)| {
                    if !authentic {
                        parts.text.fill(0);
                    }
                    authentic.then_some(parts)
                });
        self.cbc.decrypt_all(messages(good));
        Ok(())
    }
}
