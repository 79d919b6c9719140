//! The messages with which two WireGuard peers agree on the keys of a session (whitepaper §5.4.2 to
//! §5.4.4): Noise IKpsk2, each message with an index in front and two MACs behind.
//!
//! ```text
//! initiation  |1, 0, 0, 0|own index|ephemeral 32|static 48|timestamp 28|mac1 16|mac2 16|
//! response    |2, 0, 0, 0|own index|peer's index|ephemeral 32|empty 16 |mac1 16|mac2 16|
//! ```
//!
//! `snow` does the Noise part. A peer under load may send a cookie instead (§5.4.7); the handshake
//! is repeated then.

use blake2::digest::consts::U16;
use blake2::digest::{KeyInit, Mac};
use blake2::{Blake2s256, Blake2sMac, Digest};
use snow::{Builder, HandshakeState};
use std::time::{SystemTime, UNIX_EPOCH};
use zeroize::{Zeroize, Zeroizing};

/// Name of the protocol, in the terms of Noise (§5.4).
const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// The beginning of every transcript (§5.4).
const IDENTIFIER: &[u8] = b"WireGuard v1 zx2c4 Jason@zx2c4.com";
/// The first MAC's key is the hash of this label and the receiver's public key (§5.4.4).
const LABEL_MAC1: &[u8] = b"mac1----";

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const HEADER_BYTES: usize = 4;
const INDEX_BYTES: usize = 4;
const MAC_BYTES: usize = 16;
/// Length of the response.
const RESPONSE_BYTES: usize = HEADER_BYTES + 2 * INDEX_BYTES + 32 + 16 + 2 * MAC_BYTES;
/// Room for the longest part that Noise writes.
const NOISE_BYTES_MAX: usize = 128;

pub(super) type Key = Zeroizing<[u8; 32]>;

/// The keys of both peers that do not change.
pub(super) struct Identity {
    pub(super) private: Key,
    pub(super) peer_public: [u8; 32],
    /// Zeroes if there is no PSK.
    pub(super) psk: Key,
}

/// A session with keys known to both peers.
pub(super) struct Session {
    /// Index with which the peer addresses this side.
    pub(super) own_index: u32,
    pub(super) peer_index: u32,
    pub(super) sealing: Key,
    pub(super) opening: Key,
    /// Whether a generator seals in it: no other may, or counters would repeat.
    pub(super) is_taken: bool,
}

/// An initiation that waits for its response.
pub(super) struct Initiation {
    noise: HandshakeState,
    own_index: u32,
    mac_key: [u8; 32],
}

impl Initiation {
    /// Begins a handshake; returns it with its first message.
    pub(super) fn new(identity: &Identity, own_index: u32) -> Result<(Self, Vec<u8>), snow::Error> {
        let mut noise = Builder::new(PATTERN.parse()?)
            .local_private_key(&*identity.private)?
            .remote_public_key(&identity.peer_public)?
            .psk(2, &identity.psk)?
            .prologue(IDENTIFIER)?
            .build_initiator()?;
        let mut message = vec![INITIATION, 0, 0, 0];
        message.extend(own_index.to_le_bytes());
        let mut part = [0; NOISE_BYTES_MAX];
        let written = noise.write_message(&timestamp(), &mut part)?;
        message.extend(&part[..written]);
        put_macs(&mut message, &mac_key(&identity.peer_public));
        let this = Self {
            noise,
            own_index,
            // For messages that arrive here.
            mac_key: mac_key(&public(&identity.private)),
        };
        Ok((this, message))
    }

    /// Ends the handshake, if that is its response.
    pub(super) fn finish(&mut self, message: &[u8]) -> Option<Session> {
        let message: &[u8; RESPONSE_BYTES] = message.try_into().ok()?;
        let index = |at: usize| {
            let bytes = message[at..].first_chunk::<INDEX_BYTES>()?;
            Some(u32::from_le_bytes(*bytes))
        };
        let (peer_index, own_index) = (index(HEADER_BYTES)?, index(HEADER_BYTES + INDEX_BYTES)?);
        let (body, macs) = message.split_at(RESPONSE_BYTES - 2 * MAC_BYTES);
        // The cheap checks first; Noise then proves that the peer answered.
        let is_ours = message[..HEADER_BYTES] == [RESPONSE, 0, 0, 0]
            && own_index == self.own_index
            && macs[..MAC_BYTES] == mac(&self.mac_key, body);
        if !is_ours {
            return None;
        }
        let noise = &body[HEADER_BYTES + 2 * INDEX_BYTES..];
        // An empty payload: anything else is not WireGuard's response.
        let read = self.noise.read_message(noise, &mut []);
        if read.ok()? != 0 || !self.noise.is_handshake_finished() {
            return None;
        }
        let (mut sealing, mut opening) = self.noise.dangerously_get_raw_split();
        // Into memory that is wiped when dropped; the arrays of the library are wiped below.
        let keys = [sealing, opening].map(Key::from);
        sealing.zeroize();
        opening.zeroize();
        let [sealing, opening] = keys;
        Some(Session {
            own_index,
            peer_index,
            sealing,
            opening,
            is_taken: false,
        })
    }
}

/// Now as TAI64N, which grows from one handshake to the next (§5.1).
fn timestamp() -> [u8; 12] {
    const TAI64_AT_UNIX_EPOCH: u64 = (1 << 62) + 10;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut stamp = [0; 12];
    stamp[..8].copy_from_slice(&(TAI64_AT_UNIX_EPOCH + now.as_secs()).to_be_bytes());
    stamp[8..].copy_from_slice(&now.subsec_nanos().to_be_bytes());
    stamp
}

/// The first MAC, then zeroes: no cookie has been received.
fn put_macs(message: &mut Vec<u8>, key: &[u8; 32]) {
    let first = mac(key, message);
    message.extend(first);
    message.extend([0; MAC_BYTES]);
}

fn mac_key(receiver_public: &[u8; 32]) -> [u8; 32] {
    Blake2s256::new()
        .chain_update(LABEL_MAC1)
        .chain_update(receiver_public)
        .finalize()
        .into()
}

fn mac(key: &[u8; 32], message: &[u8]) -> [u8; MAC_BYTES] {
    let mut mac =
        <Blake2sMac<U16> as KeyInit>::new_from_slice(key).expect("32 bytes are a key of BLAKE2s");
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The public key of a private one.
pub(super) fn public(private: &Key) -> [u8; 32] {
    curve25519_dalek::MontgomeryPoint::mul_base_clamped(**private).to_bytes()
}

#[cfg(test)]
mod tests;
