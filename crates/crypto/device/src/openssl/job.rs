//! Jobs with a provider or an engine.

use super::ecdsa;
use super::ffi::{
    CipherContext, DigestContext, Iv, Key, KeyContext, KeyUse, Library, MacContext, RsaPadding,
    SignContext,
};
use super::names;
use crate::case::{kem_ciphertext_bytes, signature_bytes};
use crate::ml_dsa;
use crate::{DeviceError, Job, Keys, Secret};
use catalog::Operation;
use catalog::{Action, Cipher, Family, Mode, Padding};

/// The reason why OpenSSL's GOST 28147-89 differs from ours.
const MESHING: &str = "the GOST engine and provider change the key of GOST 28147-89 after each KiB (RFC 4357 section 2.3.2)";

/// Prepares `operation`. `own` computes hashes of signed messages.
pub(super) fn new<'a>(
    library: &'a Library,
    own: &'a Library,
    operation: Operation,
    keys: &Keys,
) -> Result<Box<dyn Job + 'a>, DeviceError> {
    let Operation { algorithm, action } = operation;
    let encrypts = action == Action::Encrypt;
    Ok(match algorithm.family() {
        Family::Digest(hash) => Box::new(DigestContext::new(library, names::hash(hash))?),
        Family::Hmac(hash) => {
            let secret = keys.secret(algorithm);
            Box::new(MacContext::hmac(library, names::hash(hash), &secret.key)?)
        }
        Family::Mac(Cipher::Gost28147) | Family::Cipher(Cipher::Gost28147, _) => {
            return Err(DeviceError::NotOffered(MESHING.to_owned()));
        }
        Family::Mac(cipher) => {
            let secret = keys.secret(algorithm);
            Box::new(match names::mac(cipher) {
                Some(name) => MacContext::named(library, name, &secret.key)?,
                None => {
                    let cipher = names::cipher(cipher, Mode::Cbc).unwrap_or_default();
                    MacContext::cmac(library, cipher, &secret.key)?
                }
            })
        }
        Family::Cipher(cipher, mode) => {
            let secret = keys.secret(algorithm);
            let name = names::cipher(cipher, mode).ok_or_else(|| {
                DeviceError::NotOffered("libcrypto does not have the cipher in this mode".into())
            })?;
            let pads = mode == Mode::CbcPad;
            let context = CipherContext::new(library, name, encrypts, &secret.key, pads)?;
            let is_gost = matches!(
                cipher,
                Cipher::Magma | Cipher::Kuznyechik | Cipher::Gost28147
            );
            // IVs of GOST ciphers in CTR are half a block; the counter in the other half begins
            // at 0.
            let is_short = is_gost && matches!(mode, Mode::Ctr | Mode::CtrAcpkm);
            let (iv, begin) = match mode {
                // A message of whole blocks leaves no state.
                Mode::Ecb => (context.filled_iv(&[])?, Begin::Nothing),
                // The GOST engine and provider would continue with the state and the key of the
                // message before.
                _ if is_short => (context.filled_iv(&secret.nonce)?, Begin::Restart),
                _ => (context.iv(&secret.nonce)?, Begin::WithIv),
            };
            Box::new(CipherJob {
                context,
                secret,
                iv,
                begin,
                pads,
            })
        }
        Family::Gcm(cipher) => aead(library, names::gcm(cipher), encrypts, 16, keys, operation)?,
        Family::ChaCha20Poly1305 => {
            aead(library, "ChaCha20-Poly1305", encrypts, 16, keys, operation)?
        }
        Family::Mgm(cipher) => {
            let tag_bytes = cipher.block_bytes();
            aead(
                library,
                names::mgm(cipher),
                encrypts,
                tag_bytes,
                keys,
                operation,
            )?
        }
        Family::Rsa(..) | Family::Ecdsa(_) => {
            Box::new(RsaOrEcdsa::new(library, own, operation, keys)?)
        }
        Family::Ed25519 | Family::MlDsa(_) => {
            let key = key(library, operation, keys)?;
            let signature_bytes = signature_bytes(operation).unwrap_or_default();
            let mut context = SignContext::new(key)?;
            // Only an attempt shows whether it can sign or verify.
            let attempt = match action {
                Action::Sign => context.sign(b"", &mut Vec::new()),
                _ => context.verify(&vec![0; signature_bytes], b"").map(drop),
            };
            attempt.map_err(|error| match error {
                DeviceError::Wrong(_) => error,
                error => DeviceError::NotOffered(error.to_string()),
            })?;
            Box::new(SignJob {
                context,
                signs: action == Action::Sign,
                signature_bytes,
            })
        }
        Family::MlKem(_) => {
            let key = key(library, operation, keys)?;
            let what = if encrypts {
                KeyUse::Encapsulate
            } else {
                KeyUse::Decapsulate
            };
            let context = KeyContext::new(&key, what, None)?;
            let ciphertext_bytes = kem_ciphertext_bytes(operation).unwrap_or_default();
            Box::new(Kem {
                context,
                encrypts,
                ciphertext_bytes,
            })
        }
    })
}

/// A cipher without authentication.
struct CipherJob<'a> {
    context: CipherContext<'a>,
    secret: Secret,
    iv: Iv,
    begin: Begin,
    /// Whether the last block is padded.
    pads: bool,
}

/// The initialisation of a message.
#[derive(Clone, Copy)]
enum Begin {
    Nothing,
    WithIv,
    Restart,
}

impl Job for CipherJob<'_> {
    // Inlined into `Job::repeat`: the compiler considers it too large for that, but a call would
    // cost 3 % of 64 B of AES-CTR.
    #[inline(always)]
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        match self.begin {
            Begin::Nothing => {}
            Begin::WithIv => self.context.begin(&self.iv)?,
            Begin::Restart => self.context.restart(&self.secret.key, &self.iv)?,
        }
        self.context.update(input, output)?;
        if output.len() == input.len() && !self.pads {
            return Ok(true);
        }
        self.finish(input.len(), output)
    }
}

impl CipherJob<'_> {
    /// Adds or removes padding; or a partial block is left, which is an error and must not affect
    /// the next message.
    #[inline(never)]
    fn finish(&mut self, input_bytes: usize, output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        let whole = self.context.finish(output)?;
        if !whole {
            output.clear();
            if !self.pads {
                self.context.restart(&self.secret.key, &self.iv)?;
            }
        }
        Ok(whole && (self.pads || output.len() == input_bytes))
    }
}

/// An AEAD.
struct Aead<'a> {
    context: CipherContext<'a>,
    secret: Secret,
    iv: Iv,
    encrypts: bool,
    tag_bytes: usize,
}

fn aead<'a>(
    library: &'a Library,
    name: &str,
    encrypts: bool,
    tag_bytes: usize,
    keys: &Keys,
    operation: Operation,
) -> Result<Box<dyn Job + 'a>, DeviceError> {
    let secret = keys.secret(operation.algorithm);
    let context = CipherContext::new(library, name, encrypts, &secret.key, false)?;
    let iv = context.iv(&secret.nonce)?;
    Ok(Box::new(Aead {
        context,
        secret,
        iv,
        encrypts,
        tag_bytes,
    }))
}

impl Job for Aead<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        let (context, aad) = (&mut self.context, &self.secret.aad);
        if self.encrypts {
            return context
                .seal(&self.iv, aad, input, self.tag_bytes, output)
                .map(|()| true);
        }
        let parts = input
            .len()
            .checked_sub(self.tag_bytes)
            .map(|at| input.split_at(at));
        let Some((text, tag)) = parts else {
            output.clear();
            return Ok(false);
        };
        context.begin(&self.iv)?;
        context.expect_tag(tag)?;
        if !aad.is_empty() {
            context.additional(aad)?;
        }
        context.update(text, output)?;
        let authentic = context.finish(output)?;
        if !authentic {
            output.clear();
        }
        Ok(authentic)
    }
}

/// A job of RSA or ECDSA.
struct RsaOrEcdsa<'a> {
    context: KeyContext<'a>,
    what: KeyUse,
    /// Computes the hash of the message.
    hash: Option<DigestContext<'a>>,
    digest: Vec<u8>,
    /// Length of the signature; 0 for other operations.
    signature_bytes: usize,
    /// ECDSA's signature in DER.
    der: Option<Vec<u8>>,
}

impl<'a> RsaOrEcdsa<'a> {
    fn new(
        library: &'a Library,
        own: &'a Library,
        operation: Operation,
        keys: &Keys,
    ) -> Result<Self, DeviceError> {
        let what = match operation.action {
            Action::Sign => KeyUse::Sign,
            Action::Verify => KeyUse::Verify,
            Action::Encrypt => KeyUse::Encrypt,
            Action::Digest | Action::Decrypt => KeyUse::Decrypt,
        };
        let signs = matches!(what, KeyUse::Sign | KeyUse::Verify);
        let (hash, padding) = match operation.algorithm.family() {
            Family::Rsa(_, Padding::Pkcs1) if signs => {
                (Some("SHA256"), Some(RsaPadding::Pkcs1(Some("SHA256"))))
            }
            Family::Rsa(_, Padding::Pkcs1) => (None, Some(RsaPadding::Pkcs1(None))),
            Family::Rsa(_, Padding::Pkcs1Sha1) => {
                (Some("SHA1"), Some(RsaPadding::Pkcs1(Some("SHA1"))))
            }
            Family::Rsa(_, Padding::Oaep) => (None, Some(RsaPadding::Oaep("SHA1"))),
            Family::Rsa(_, Padding::OaepSha256) => (None, Some(RsaPadding::Oaep("SHA256"))),
            Family::Rsa(_, Padding::Pss) => (Some("SHA256"), Some(RsaPadding::Pss("SHA256"))),
            Family::Ecdsa(curve) => (Some(names::curve_hash(curve)), None),
            _ => unreachable!("{operation} is neither RSA nor ECDSA"),
        };
        let key = key(library, operation, keys)?;
        Ok(Self {
            context: KeyContext::new(&key, what, padding)?,
            what,
            hash: hash.map(|hash| DigestContext::new(own, hash)).transpose()?,
            digest: Vec::new(),
            signature_bytes: signature_bytes(operation).unwrap_or_default(),
            der: padding.is_none().then(Vec::new),
        })
    }
}

impl Job for RsaOrEcdsa<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        let Some(hash) = &mut self.hash else {
            return self.context.run(self.what, input, output);
        };
        output.clear();
        if self.what == KeyUse::Sign {
            hash.run(input, &mut self.digest)?;
            let Some(der) = &mut self.der else {
                return self.context.run(self.what, &self.digest, output);
            };
            self.context.run(self.what, &self.digest, der)?;
            output.resize(self.signature_bytes, 0);
            if !ecdsa::to_raw(der, output) {
                return Err(DeviceError::Failed(
                    "its signature is not valid DER".to_owned(),
                ));
            }
            return Ok(true);
        }
        // Shorter than a signature: refused like any other invalid one.
        let Some((signature, message)) = input.split_at_checked(self.signature_bytes) else {
            return Ok(false);
        };
        hash.run(message, &mut self.digest)?;
        match &mut self.der {
            Some(der) => {
                ecdsa::to_der(signature, der);
                self.context.verify(der, &self.digest)
            }
            None => self.context.verify(signature, &self.digest),
        }
    }
}

/// A job of Ed25519 or ML-DSA, which sign whole messages.
struct SignJob<'a> {
    context: SignContext<'a>,
    signs: bool,
    signature_bytes: usize,
}

impl Job for SignJob<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        output.clear();
        if self.signs {
            return self.context.sign(input, output).map(|()| true);
        }
        match input.split_at_checked(self.signature_bytes) {
            Some((signature, message)) => self.context.verify(signature, message),
            None => Ok(false),
        }
    }
}

/// ML-KEM.
struct Kem<'a> {
    context: KeyContext<'a>,
    encrypts: bool,
    ciphertext_bytes: usize,
}

impl Job for Kem<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        output.clear();
        if self.encrypts {
            return self.context.encapsulate(output).map(|()| true);
        }
        if input.len() != self.ciphertext_bytes {
            return Ok(false);
        }
        self.context.decapsulate(input, output)
    }
}

/// Imports the half of the key that the operation needs.
fn key<'a>(
    library: &'a Library,
    operation: Operation,
    keys: &Keys,
) -> Result<Key<'a>, DeviceError> {
    let pair = keys.pair(operation.algorithm);
    let is_public = matches!(operation.action, Action::Encrypt | Action::Verify);
    let raw = match operation.algorithm.family() {
        // libcrypto does not accept a seed as a raw key.
        Family::MlDsa(parameters) if !is_public => {
            let whole = ml_dsa::expanded(parameters, pair.private)?;
            return Key::raw(library, names::ml_dsa(parameters), &whole, false);
        }
        Family::MlDsa(parameters) => Some(names::ml_dsa(parameters)),
        Family::MlKem(parameters) => Some(names::ml_kem(parameters)),
        _ => None,
    };
    let bytes = if is_public { pair.public } else { pair.private };
    match raw {
        None => Key::in_der(library, bytes, is_public),
        Some(name) => Key::raw(library, name, bytes, is_public),
    }
}
