//! MGM for integrity only (RFC 9227 §4): there is no plaintext, and the text is authenticated like
//! the header.
//!
//! ```text
//! packet:  |SPI 4|sequence number, low half 4|IV 8|text|ICV 8 or 12|
//! AAD:     |SPI 4|sequence number 8          |IV 8|text|
//! ```
//!
//! MGM takes additional data in one piece, and the high half of the sequence number is not in the
//! packet. So everything behind the SPI is moved towards the ICV to make room for it, and moved
//! back afterwards. That costs little compared with MGM, and no memory.

use super::nonce::Nonce;
use crate::Packet;
use crate::transform::one_by_one;
use ::gost::BlockCipher;
use ::gost::mode::{AeadMessage, Mgm};
use wire::Suite;
use wire::overhead::ESP_HEADER_BYTES;

/// Packets that are moved together: the number that MGM processes in parallel.
const TOGETHER: usize = 32;
const HIGH_BYTES: usize = 4;
const ICV_BYTES_MAX: usize = 12;

/// Storage for ICVs while their places are in use.
type Icvs = [[u8; ICV_BYTES_MAX]; TOGETHER];

/// Writes the ICVs of packets.
pub(super) fn seal<C: BlockCipher>(
    mgm: &mut Mgm<C>,
    suite: Suite,
    nonce: Nonce,
    buffer: &mut [u8],
    packets: &[Packet],
) {
    // Chunks, so that the ICVs fit an array on the stack.
    for packets in packets.chunks(TOGETHER) {
        let mut icvs = widen(suite, buffer, packets);
        mgm.seal_all(messages(suite, nonce, buffer, packets, &mut icvs));
        narrow(suite, buffer, packets, &icvs);
    }
}

/// Sets which packets are authentic, and zeroes the texts of others.
pub(super) fn open<C: BlockCipher>(
    mgm: &mut Mgm<C>,
    suite: Suite,
    nonce: Nonce,
    buffer: &mut [u8],
    packets: &[Packet],
    authentic: &mut [bool],
) {
    let answers = authentic.chunks_mut(TOGETHER);
    for (packets, answers) in packets.chunks(TOGETHER).zip(answers) {
        let mut icvs = widen(suite, buffer, packets);
        mgm.open_all(messages(suite, nonce, buffer, packets, &mut icvs), answers);
        narrow(suite, buffer, packets, &icvs);
        for ((packet, _), authentic) in one_by_one(buffer, packets).zip(answers) {
            // MGM wipes no text here: to it the text was additional data.
            let end = packet.len() - suite.icv_bytes();
            if !*authentic {
                packet[ESP_HEADER_BYTES + suite.iv_bytes()..end].fill(0);
            }
        }
    }
}

/// Inserts the high half of the sequence number behind the SPI. Returns the overwritten ICVs.
fn widen(suite: Suite, buffer: &mut [u8], packets: &[Packet]) -> Icvs {
    const { assert!(ICV_BYTES_MAX >= HIGH_BYTES) };
    let mut icvs = Icvs::default();
    for ((packet, high), icv) in one_by_one(buffer, packets).zip(&mut icvs) {
        let end = packet.len() - suite.icv_bytes();
        icv[..suite.icv_bytes()].copy_from_slice(&packet[end..]);
        // Into the place of the ICV, which is at least as long as the high half.
        packet.copy_within(4..end, 4 + HIGH_BYTES);
        packet[4..4 + HIGH_BYTES].copy_from_slice(&high.to_be_bytes());
    }
    icvs
}

/// Reverts [`widen`], with these ICVs.
fn narrow(suite: Suite, buffer: &mut [u8], packets: &[Packet], icvs: &Icvs) {
    for ((packet, _), icv) in one_by_one(buffer, packets).zip(icvs) {
        let end = packet.len() - suite.icv_bytes();
        packet.copy_within(4 + HIGH_BYTES..end + HIGH_BYTES, 4);
        packet[end..].copy_from_slice(&icv[..suite.icv_bytes()]);
    }
}

/// Widened packets as input of MGM.
fn messages<'a>(
    suite: Suite,
    nonce: Nonce,
    buffer: &'a mut [u8],
    packets: &'a [Packet],
    icvs: &'a mut Icvs,
) -> impl Iterator<Item = AeadMessage<'a, Nonce, &'a [u8]>> {
    one_by_one(buffer, packets)
        .zip(icvs)
        .map(move |((packet, _), icv)| {
            let wide = packet.len() - suite.icv_bytes() + HIGH_BYTES;
            let aad: &'a [u8] = &packet[..wide];
            AeadMessage {
                nonce: nonce.of_packet(&aad[HIGH_BYTES..]),
                aad,
                text: &mut [],
                tag: &mut icv[..suite.icv_bytes()],
            }
        })
}
