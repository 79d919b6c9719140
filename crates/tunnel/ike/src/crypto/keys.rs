//! Keys of IKE SAs and child SAs (RFC 7296 sections 2.14, 2.17 and 2.18), with additional key
//! exchanges (RFC 9370), pre-shared post-quantum keys (RFC 8784, RFC 9867) and the authentication
//! of IKE_INTERMEDIATE (RFC 9242).

use super::{Cipher, Prf, Secret};
use crate::message::{Message, Payload, TooLong};
use std::fmt;
use zeroize::Zeroizing;

/// Size of the proof that a peer has a PPK (RFC 9867).
pub const PPK_CONFIRMATION_BYTES: usize = 8;
/// Of these functions' keys only 8 bytes of each nonce are used (RFC 7296 section 2.14).
const SHORT_NONCE_BYTES: usize = 8;

/// Nonces and SPIs of an IKE SA, which enter each derivation of its keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transcript {
    /// The initiator's nonce.
    pub initiator_nonce: Vec<u8>,
    /// The responder's nonce.
    pub responder_nonce: Vec<u8>,
    /// The initiator's SPI.
    pub initiator_spi: u64,
    /// The responder's SPI.
    pub responder_spi: u64,
}

/// Keys of an IKE SA.
#[derive(Clone, PartialEq, Eq)]
pub struct IkeKeys {
    /// `SK_d`: derives further keys.
    pub derivation: Secret,
    /// `SK_ai`, `SK_ar`: integrity of the initiator's and the responder's messages; empty for
    /// AEADs.
    pub integrity: [Secret; 2],
    /// `SK_ei`, `SK_er`: encryption of the initiator's and the responder's messages, with salts.
    pub encryption: [Secret; 2],
    /// `SK_pi`, `SK_pr`: for the AUTH payloads of initiator and responder.
    pub auth: [Secret; 2],
}

/// Shows no key.
impl fmt::Debug for IkeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IkeKeys").finish_non_exhaustive()
    }
}

impl IkeKeys {
    /// Keys of a new IKE SA, from the secret of its key exchange.
    #[must_use]
    pub fn initial(prf: Prf, cipher: Cipher, transcript: &Transcript, shared: &[u8]) -> Self {
        let (ni, nr) = (&transcript.initiator_nonce, &transcript.responder_nonce);
        let key = Zeroizing::new(match prf {
            Prf::AesCmac => [
                &ni[..SHORT_NONCE_BYTES.min(ni.len())],
                &nr[..SHORT_NONCE_BYTES.min(nr.len())],
            ]
            .concat(),
            _ => [ni.as_slice(), nr].concat(),
        });
        Self::expand(prf, cipher, transcript, &prf.compute(&key, &[shared]))
    }

    /// Keys of the IKE SA that replaces the one with these keys. `old_prf` is the function of that
    /// SA; `secrets` are of the key exchanges, the additional ones (RFC 9370 section 2.2.4) last.
    #[must_use]
    pub fn rekeyed(
        &self,
        old_prf: Prf,
        (prf, cipher): (Prf, Cipher),
        transcript: &Transcript,
        secrets: &[Secret],
    ) -> Self {
        let (first, additional) = secrets.split_first().expect("a rekey has a key exchange");
        let mut parts: Vec<&[u8]> = vec![
            first,
            &transcript.initiator_nonce,
            &transcript.responder_nonce,
        ];
        parts.extend(additional.iter().map(|secret| secret.as_slice()));
        let seed = old_prf.compute(&self.derivation, &parts);
        Self::expand(prf, cipher, transcript, &seed)
    }

    /// Keys after an additional key exchange in IKE_INTERMEDIATE (RFC 9370 section 2.2.2).
    #[must_use]
    pub fn after_exchange(
        &self,
        prf: Prf,
        cipher: Cipher,
        transcript: &Transcript,
        shared: &[u8],
    ) -> Self {
        let (ni, nr) = (&transcript.initiator_nonce, &transcript.responder_nonce);
        let seed = prf.compute(&self.derivation, &[shared, ni, nr]);
        Self::expand(prf, cipher, transcript, &seed)
    }

    /// Keys after a PPK in IKE_INTERMEDIATE (RFC 9867): new ones for all purposes.
    #[must_use]
    pub fn after_ppk(&self, prf: Prf, cipher: Cipher, transcript: &Transcript, ppk: &[u8]) -> Self {
        let seed = prf.plus(ppk, &[&self.derivation], prf.bytes());
        Self::expand(prf, cipher, transcript, &seed)
    }

    /// Keys with a PPK that IKE_AUTH names (RFC 8784 section 3): for later keys and AUTH payloads,
    /// not for the encryption of this IKE SA.
    #[must_use]
    pub fn with_ppk(&self, prf: Prf, ppk: &[u8]) -> Self {
        let mix = |key: &Secret| prf.plus(ppk, &[key], key.len());
        Self {
            derivation: mix(&self.derivation),
            auth: [mix(&self.auth[0]), mix(&self.auth[1])],
            ..self.clone()
        }
    }

    fn expand(prf: Prf, cipher: Cipher, transcript: &Transcript, seed: &[u8]) -> Self {
        let integrity = cipher.integrity_key_bytes();
        let encryption = cipher.encryption_key_bytes();
        let sizes = [
            prf.bytes(),
            integrity,
            integrity,
            encryption,
            encryption,
            prf.bytes(),
            prf.bytes(),
        ];
        let material = prf.plus(
            seed,
            &[
                &transcript.initiator_nonce,
                &transcript.responder_nonce,
                &transcript.initiator_spi.to_be_bytes(),
                &transcript.responder_spi.to_be_bytes(),
            ],
            sizes.iter().sum(),
        );
        let mut rest = material.as_slice();
        let [d, ai, ar, ei, er, pi, pr] = sizes.map(|size| {
            let (key, behind) = rest.split_at(size);
            rest = behind;
            Zeroizing::new(key.to_vec())
        });
        Self {
            derivation: d,
            integrity: [ai, ar],
            encryption: [ei, er],
            auth: [pi, pr],
        }
    }
}

/// Keying material of a child SA: `prf+(SK_d, [secret] | Ni | Nr | [additional secrets])`. The
/// nonces are of the exchange that creates it.
#[must_use]
pub fn child_keymat(
    prf: Prf,
    derivation: &[u8],
    secrets: &[Secret],
    (initiator_nonce, responder_nonce): (&[u8], &[u8]),
    bytes: usize,
) -> Secret {
    let mut seed: Vec<&[u8]> = Vec::new();
    seed.extend(secrets.first().map(|it| it.as_slice()));
    seed.extend([initiator_nonce, responder_nonce]);
    seed.extend(secrets.iter().skip(1).map(|it| it.as_slice()));
    prf.plus(derivation, &seed, bytes)
}

/// Proof that the sender has the PPK that it names (RFC 9867).
#[must_use]
pub fn ppk_confirmation(
    prf: Prf,
    ppk: &[u8],
    transcript: &Transcript,
) -> [u8; PPK_CONFIRMATION_BYTES] {
    let code = prf.compute(
        ppk,
        &[
            &transcript.initiator_nonce,
            &transcript.responder_nonce,
            &transcript.initiator_spi.to_be_bytes(),
            &transcript.responder_spi.to_be_bytes(),
        ],
    );
    *code.first_chunk().expect("outputs are longer")
}

/// The next `IntAuth` of one direction (RFC 9242 section 3.3.2). `message` is the one that was
/// sent or received, reassembled if it had fragments; `inner` are its decrypted payloads, `auth` is
/// the direction's `SK_p` that was in force, `last` the former `IntAuth` or empty.
///
/// # Errors
/// When the payloads exceed the length of an unfragmented message.
pub fn intermediate_auth(
    prf: Prf,
    auth: &[u8],
    last: &[u8],
    message: &Message,
    inner: &[u8],
) -> Result<Secret, TooLong> {
    // Lengths count neither IV nor padding and ICV, as if the payload contained plain text.
    let mut message = message.clone();
    for payload in &mut message.payloads {
        if let Payload::Encrypted { body, .. } = payload {
            *body = inner.to_vec();
        }
    }
    let mut bytes = Zeroizing::new(Vec::new());
    message.emit(&mut bytes)?;
    Ok(prf.compute(auth, &[last, &bytes]))
}
