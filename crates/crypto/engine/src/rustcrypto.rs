//! Engine `rustcrypto`: the RustCrypto crates, in safe Rust on every platform, with every suite
//! except those of GOST ciphers.
//!
//! The fallback, and a reference for other engines. Its AEADs run at a half to a seventh of
//! AWS-LC's rate: at each step they detect CPU features, unless they are compiled for the CPU (`-C
//! target-cpu=native` at least doubles their rate), and they wipe the stack after each call, a
//! third of the cost of a 64-byte packet. With HMACs it is up to two thirds faster than AWS-LC on
//! short packets.

use crate::encrypt_then_mac::{Cbc, EncryptThenMac, Mac, Place};
use crate::engine::Engine;
use crate::{Aead, NONCE_BYTES, SequenceNumbers, TAG_BYTES, TagMismatch, Transform, verdict};
use aes::{Aes128, Aes256};
use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::aead::{AeadInOut, consts};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use cbc::cipher::{
    Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt,
    InnerIvInit, KeyInit,
};
use chacha20poly1305::ChaCha20Poly1305;
use des::{Des, TdesEde3};
use hmac::HmacReset;
use hmac::digest::FixedOutputReset;
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use wire::{Cipher, Hmac, Suite};

pub(crate) struct RustCrypto;

impl Engine for RustCrypto {
    fn name(&self) -> &'static str {
        "rustcrypto"
    }

    fn probe(&self) -> Result<String, String> {
        Ok(concat!(
            "aes ",
            env!("AES_VERSION"),
            ", aes-gcm ",
            env!("AES_GCM_VERSION"),
            ", hmac ",
            env!("HMAC_VERSION")
        )
        .to_owned())
    }

    fn aead(&self, suite: Suite, key: &[u8]) -> Box<dyn Aead> {
        match suite {
            Suite::Aes128Gcm => Box::new(AeadKey::<Aes128Gcm>::new(suite, key)),
            Suite::Aes256Gcm => Box::new(AeadKey::<Aes256Gcm>::new(suite, key)),
            Suite::ChaCha20Poly1305 => Box::new(AeadKey::<ChaCha20Poly1305>::new(suite, key)),
            Suite::EncryptThenMac(..) | Suite::Gost(_) => unreachable!("{suite} is no AEAD"),
        }
    }

    fn encrypt_then_mac(
        &self,
        cipher: Cipher,
        hmac: Hmac,
        cipher_key: &[u8],
        hmac_key: &[u8],
        numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        let cbc: Option<Box<dyn Cbc>> = match cipher {
            Cipher::Null => None,
            Cipher::DesCbc => Some(Box::new(CbcKey::<Des>::new(cipher_key))),
            Cipher::TripleDesCbc => Some(Box::new(CbcKey::<TdesEde3>::new(cipher_key))),
            Cipher::Aes128Cbc => Some(Box::new(CbcKey::<Aes128>::new(cipher_key))),
            Cipher::Aes256Cbc => Some(Box::new(CbcKey::<Aes256>::new(cipher_key))),
        };
        let mac: Box<dyn Mac> = match hmac {
            Hmac::Md5 => Box::new(HmacKey::<HmacReset<Md5>>::new(hmac_key)),
            Hmac::Sha1 => Box::new(HmacKey::<HmacReset<Sha1>>::new(hmac_key)),
            Hmac::Sha256 => Box::new(HmacKey::<HmacReset<Sha256>>::new(hmac_key)),
            Hmac::Sha512 => Box::new(HmacKey::<HmacReset<Sha512>>::new(hmac_key)),
        };
        let suite = Suite::EncryptThenMac(cipher, hmac);
        Box::new(EncryptThenMac::new(suite, cbc, mac, numbers))
    }
}

/// An expanded AEAD key; the crates wipe it on drop.
struct AeadKey<A> {
    suite: Suite,
    aead: A,
}

impl<A: KeyInit> AeadKey<A> {
    fn new(suite: Suite, key: &[u8]) -> Self {
        let aead = A::new_from_slice(key)
            .expect("only the length can be wrong, and the caller has checked it");
        Self { suite, aead }
    }
}

impl<A> AeadKey<A>
where
    A: AeadInOut<NonceSize = consts::U12, TagSize = consts::U16>,
{
    #[inline]
    fn seal_buffer(
        &self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        text: InOutBuf<'_, '_, u8>,
        tag: &mut [u8; TAG_BYTES],
    ) {
        // In place and from elsewhere take one path: `InOutBuf` may be both.
        let made = self
            .aead
            .encrypt_inout_detached(nonce.into(), aad, text)
            .expect("no packet is near the 64 GiB that one nonce may seal");
        *tag = made.into();
    }
}

impl<A> Aead for AeadKey<A>
where
    A: AeadInOut<NonceSize = consts::U12, TagSize = consts::U16> + Send,
{
    fn suite(&self) -> Suite {
        self.suite
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        assert_eq!(
            dst.len(),
            src.len() + TAG_BYTES,
            "room for the ciphertext and the tag"
        );
        let (ciphertext, tag) = dst
            .split_last_chunk_mut()
            .expect("as long as a tag, as just asserted");
        let text = InOutBuf::new(src, ciphertext).expect("as long as each other, by the same");
        self.seal_buffer(nonce, aad, text, tag);
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        let (text, tag) = buf.split_last_chunk_mut().expect("room for the tag");
        self.seal_buffer(nonce, aad, text.into(), tag);
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        let opened = buf
            .split_last_chunk_mut::<TAG_BYTES>()
            .is_some_and(|(ciphertext, tag)| {
                let tag = (&*tag).into();
                self.aead
                    .decrypt_inout_detached(nonce.into(), aad, ciphertext.into(), tag)
                    .is_ok()
            });
        verdict(opened, buf)
    }
}

/// A block cipher's key, expanded for both directions; the crates wipe it on drop.
struct CbcKey<C>(C);

impl<C: KeyInit> CbcKey<C> {
    fn new(key: &[u8]) -> Self {
        let key = C::new_from_slice(key);
        Self(key.expect("keying material is divided by the suite's lengths"))
    }
}

impl<C: BlockCipherEncrypt + BlockCipherDecrypt + Send> Cbc for CbcKey<C> {
    fn encrypt(&mut self, iv: &[u8], text: &mut [u8]) {
        let iv = iv.try_into().expect("an IV of one block");
        let (blocks, rest) = Array::slice_as_chunks_mut(text);
        debug_assert!(rest.is_empty(), "text of whole blocks");
        cbc::Encryptor::inner_iv_init(&self.0, iv).encrypt_blocks(blocks);
    }

    fn encrypt_all(&mut self, buffer: &mut [u8], places: &mut dyn Iterator<Item = Place>) {
        encrypt_chains(&self.0, buffer, places);
    }

    fn decrypt(&mut self, iv: &[u8], text: &mut [u8]) {
        let iv = iv.try_into().expect("an IV of one block");
        let (blocks, rest) = Array::slice_as_chunks_mut(text);
        debug_assert!(rest.is_empty(), "text of whole blocks");
        cbc::Decryptor::inner_iv_init(&self.0, iv).decrypt_blocks(blocks);
    }
}

/// Chains of blocks that are encrypted in parallel: the number of blocks that `aes` processes in
/// one step with VAES, which is twice as fast as chain after chain.
const CHAINS: usize = 64;

/// Encrypts texts in place, up to [`CHAINS`] of them in parallel: a block of each, then the next
/// block of each.
fn encrypt_chains<C: BlockCipherEncrypt>(
    cipher: &C,
    buffer: &mut [u8],
    places: &mut dyn Iterator<Item = Place>,
) {
    let mut last: [Block<C>; CHAINS] = std::array::from_fn(|_| Block::<C>::default());
    // The rest of each text.
    let mut left = [const { 0..0 }; CHAINS];
    let mut live = 0;
    loop {
        // Fills up the chains that have ended. In CBC the IV is the block before the first.
        for Place { iv, text } in (&mut *places).take(CHAINS - live) {
            last[live].copy_from_slice(&buffer[iv..text.start]);
            left[live] = text;
            live += 1;
        }
        let Some(shortest) = left[..live].iter().map(ExactSizeIterator::len).min() else {
            return;
        };
        // Until the first chain ends: so the inner loops need no test for that.
        for _ in 0..shortest / C::block_size() {
            for (block, left) in last.iter_mut().zip(&left[..live]) {
                let text = &buffer[left.start..][..C::block_size()];
                block
                    .iter_mut()
                    .zip(text)
                    .for_each(|(to, from)| *to ^= from);
            }
            cipher.encrypt_blocks(&mut last[..live]);
            for (block, left) in last.iter().zip(&mut left[..live]) {
                buffer[left.start..][..C::block_size()].copy_from_slice(block);
                left.start += C::block_size();
            }
        }
        let mut chain = 0;
        while chain < live {
            if left[chain].is_empty() {
                live -= 1;
                // The last live chain takes the place of the ended one, and is looked at next.
                left.swap(chain, live);
                last.swap(chain, live);
            } else {
                chain += 1;
            }
        }
    }
}

/// An HMAC with both keyed states computed; the crates wipe them on drop.
struct HmacKey<M>(M);

impl<M: KeyInit> HmacKey<M> {
    fn new(key: &[u8]) -> Self {
        Self(M::new_from_slice(key).expect("HMAC takes keys of any length"))
    }
}

impl<M: hmac::Mac + FixedOutputReset + Send> Mac for HmacKey<M> {
    fn authenticate(&mut self, parts: [&[u8]; 2], icv: &mut [u8]) {
        for part in parts {
            hmac::Mac::update(&mut self.0, part);
        }
        // Returns to the keyed state, so the key is hashed once per SA.
        let full = self.0.finalize_fixed_reset();
        icv.copy_from_slice(&full[..icv.len()]);
    }
}
