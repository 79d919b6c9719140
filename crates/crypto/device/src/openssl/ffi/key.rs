//! Public-key operations.

use super::engine::MethodPlace;
use super::{
    Library, c_length, c_string, check, cut, failed, forget_errors, not_offered_because, raw,
};
use crate::DeviceError;
use crate::device::overlong;
use std::ffi::c_long;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// A key in the provider, or adopted by the engine.
pub(in super::super) struct Key<'a> {
    key: NonNull<raw::EVP_PKEY>,
    library: &'a Library,
    /// The engine, if calls must name it; otherwise null.
    engine: *mut raw::ENGINE,
}

/// The use of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum KeyUse {
    Sign,
    Verify,
    Encrypt,
    Decrypt,
    Encapsulate,
    Decapsulate,
}

/// Padding of RSA, with libcrypto's names of hashes.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum RsaPadding {
    /// With the hash of the signed message; `None` for encryption.
    Pkcs1(Option<&'static str>),
    Oaep(&'static str),
    /// With a salt of the hash's length.
    Pss(&'static str),
}

impl<'a> Key<'a> {
    /// Imports a public key as SubjectPublicKeyInfo in DER, or a private one in PKCS#8 DER.
    pub(in super::super) fn in_der(
        library: &'a Library,
        der: &[u8],
        is_public: bool,
    ) -> Result<Self, DeviceError> {
        let read = if is_public {
            raw::d2i_PUBKEY_ex
        } else {
            raw::d2i_AutoPrivateKey_ex
        };
        let (mut bytes, length) = (der.as_ptr(), c_long::from(c_length(der.len())?));
        // SAFETY: pointer and length describe `der`; the result is a new key or null.
        let key = unsafe {
            read(
                ptr::null_mut(),
                &raw mut bytes,
                length,
                library.context(),
                ptr::null(),
            )
        };
        Self::new(library, key)
    }

    /// Imports a raw key of the type that libcrypto calls `name`.
    pub(in super::super) fn raw(
        library: &'a Library,
        name: &str,
        bytes: &[u8],
        is_public: bool,
    ) -> Result<Self, DeviceError> {
        let make = if is_public {
            raw::EVP_PKEY_new_raw_public_key_ex
        } else {
            raw::EVP_PKEY_new_raw_private_key_ex
        };
        let (context, name) = (library.context(), c_string(name)?);
        // SAFETY: pointer and length describe `bytes`; the result is a new key or null.
        let key = unsafe {
            make(
                context,
                name.as_ptr(),
                ptr::null(),
                bytes.as_ptr(),
                bytes.len(),
            )
        };
        Self::new(library, key)
    }

    fn new(library: &'a Library, key: *mut raw::EVP_PKEY) -> Result<Self, DeviceError> {
        let Some(key) = NonNull::new(key) else {
            let what = format!("{} does not accept the key", library.name());
            return Err(not_offered_because(&what));
        };
        let mut this = Self {
            key,
            library,
            engine: ptr::null_mut(),
        };
        // libcrypto has made the key with its software methods, which would compute if the engine
        // did not adopt it.
        if let Some(engine) = library.as_engine() {
            let Some((key, method)) = engine.adopt(key) else {
                forget_errors();
                let name = library.name();
                return Err(DeviceError::NotOffered(format!(
                    "{name} does not support keys of this type"
                )));
            };
            this.key = key;
            if method == MethodPlace::Use {
                this.engine = engine.as_ptr();
            }
        }
        Ok(this)
    }

    fn context(&self) -> Result<NonNull<raw::EVP_PKEY_CTX>, DeviceError> {
        // SAFETY: a live key; the context holds a reference to it.
        let context = unsafe {
            if self.library.as_engine().is_some() {
                raw::EVP_PKEY_CTX_new(self.key.as_ptr(), self.engine)
            } else {
                raw::EVP_PKEY_CTX_new_from_pkey(
                    self.library.context(),
                    self.key.as_ptr(),
                    ptr::null(),
                )
            }
        };
        NonNull::new(context).ok_or_else(|| {
            not_offered_because(&format!(
                "{} does not support keys of this type",
                self.library.name()
            ))
        })
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { raw::EVP_PKEY_free(self.key.as_ptr()) };
    }
}

/// A key prepared for one use, which can be repeated.
pub(in super::super) struct KeyContext<'a> {
    context: NonNull<raw::EVP_PKEY_CTX>,
    /// Maximum length of a result.
    result_bytes_max: usize,
    _library: PhantomData<&'a Library>,
}

impl<'a> KeyContext<'a> {
    /// Prepares a key. `rsa` is RSA's padding; `None` for other keys.
    pub(in super::super) fn new(
        key: &Key<'a>,
        what: KeyUse,
        rsa: Option<RsaPadding>,
    ) -> Result<Self, DeviceError> {
        let result_bytes_max = key.result_bytes_max()?;
        let context = key.context()?;
        let this = Self {
            context,
            result_bytes_max,
            _library: PhantomData,
        };
        let context = context.as_ptr();
        // SAFETY: a live context with a key.
        let ready = unsafe {
            match what {
                KeyUse::Sign => raw::EVP_PKEY_sign_init(context),
                KeyUse::Verify => raw::EVP_PKEY_verify_init(context),
                KeyUse::Encrypt => raw::EVP_PKEY_encrypt_init(context),
                KeyUse::Decrypt => raw::EVP_PKEY_decrypt_init(context),
                KeyUse::Encapsulate => raw::EVP_PKEY_encapsulate_init(context, ptr::null()),
                KeyUse::Decapsulate => raw::EVP_PKEY_decapsulate_init(context, ptr::null()),
            }
        };
        if ready != 1 {
            return Err(not_offered_because(&format!(
                "it does not support {what:?} with this key"
            )));
        }
        if let Some(padding) = rsa {
            this.pad(padding)?;
        }
        Ok(this)
    }

    fn pad(&self, padding: RsaPadding) -> Result<(), DeviceError> {
        let context = self.context.as_ptr();
        let (number, hash) = match padding {
            RsaPadding::Pkcs1(hash) => (raw::RSA_PKCS1_PADDING, hash),
            RsaPadding::Oaep(hash) => (raw::RSA_PKCS1_OAEP_PADDING, Some(hash)),
            RsaPadding::Pss(hash) => (raw::RSA_PKCS1_PSS_PADDING, Some(hash)),
        };
        // These hashes only identify the algorithm to the key: the provider computes them itself.
        let hash = match hash {
            None => ptr::null(),
            Some(hash) => {
                let name = c_string(hash)?;
                // SAFETY: a C string; the result is static.
                unsafe { raw::EVP_get_digestbyname(name.as_ptr()) }
            }
        };
        // SAFETY: a live, prepared context; the hashes are static.
        let done = unsafe {
            raw::EVP_PKEY_CTX_set_rsa_padding(context, number) > 0
                && match padding {
                    RsaPadding::Pkcs1(None) => true,
                    RsaPadding::Pkcs1(Some(_)) => {
                        raw::EVP_PKEY_CTX_set_signature_md(context, hash) > 0
                    }
                    RsaPadding::Oaep(_) => {
                        raw::EVP_PKEY_CTX_set_rsa_oaep_md(context, hash) > 0
                            && raw::EVP_PKEY_CTX_set_rsa_mgf1_md(context, hash) > 0
                    }
                    RsaPadding::Pss(_) => {
                        raw::EVP_PKEY_CTX_set_signature_md(context, hash) > 0
                            && raw::EVP_PKEY_CTX_set_rsa_pss_saltlen(
                                context,
                                raw::RSA_PSS_SALTLEN_DIGEST,
                            ) > 0
                            && raw::EVP_PKEY_CTX_set_rsa_mgf1_md(context, hash) > 0
                    }
                }
        };
        if done {
            return Ok(());
        }
        Err(not_offered_because("it does not support this padding"))
    }

    /// Signs, encrypts or decrypts `input`, according to the prepared use. `false`: the ciphertext
    /// is not well-formed. Engines may return an error instead.
    pub(in super::super) fn run(
        &mut self,
        what: KeyUse,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<bool, DeviceError> {
        output.resize(self.result_bytes_max, 0);
        let mut length = output.len();
        let function = match what {
            KeyUse::Sign => raw::EVP_PKEY_sign,
            KeyUse::Encrypt => raw::EVP_PKEY_encrypt,
            _ => raw::EVP_PKEY_decrypt,
        };
        // SAFETY: a live context; the lengths match the output and the input.
        let done = unsafe {
            function(
                self.context.as_ptr(),
                output.as_mut_ptr(),
                &raw mut length,
                input.as_ptr(),
                input.len(),
            )
        };
        if done == 1 {
            return cut(output, length).map(|()| true);
        }
        output.clear();
        // 0 means bad padding; negative values are failures.
        if what == KeyUse::Decrypt && done == 0 {
            forget_errors();
            return Ok(false);
        }
        Err(failed("the operation with the key"))
    }

    /// Returns whether `signature` is valid for `digest`.
    pub(in super::super) fn verify(
        &mut self,
        signature: &[u8],
        digest: &[u8],
    ) -> Result<bool, DeviceError> {
        // SAFETY: a live context; the lengths match both inputs.
        let done = unsafe {
            raw::EVP_PKEY_verify(
                self.context.as_ptr(),
                signature.as_ptr(),
                signature.len(),
                digest.as_ptr(),
                digest.len(),
            )
        };
        answer(done, "verifying")
    }

    /// Generates a secret and its ciphertext: `output` is the ciphertext, then the secret.
    pub(in super::super) fn encapsulate(
        &mut self,
        output: &mut Vec<u8>,
    ) -> Result<(), DeviceError> {
        // Longer than the secret of any KEM here (32 bytes), so that a wrong length is seen and not
        // cut.
        let mut secret = [0_u8; 64];
        let (mut secret_bytes, mut length) = (secret.len(), self.result_bytes_max);
        output.resize(length, 0);
        // SAFETY: a live context; the lengths match both outputs.
        let done = unsafe {
            raw::EVP_PKEY_encapsulate(
                self.context.as_ptr(),
                output.as_mut_ptr(),
                &raw mut length,
                secret.as_mut_ptr(),
                &raw mut secret_bytes,
            )
        };
        check(done == 1, "encapsulation")?;
        cut(output, length)?;
        let room = secret.len();
        let secret = secret
            .get(..secret_bytes)
            .ok_or_else(|| overlong(secret_bytes, room))?;
        output.extend_from_slice(secret);
        Ok(())
    }

    /// Returns the secret of a ciphertext. `false`: it is refused.
    pub(in super::super) fn decapsulate(
        &mut self,
        ciphertext: &[u8],
        secret: &mut Vec<u8>,
    ) -> Result<bool, DeviceError> {
        secret.resize(64, 0);
        let mut length = secret.len();
        // SAFETY: a live context; the lengths match the output and the input.
        let done = unsafe {
            raw::EVP_PKEY_decapsulate(
                self.context.as_ptr(),
                secret.as_mut_ptr(),
                &raw mut length,
                ciphertext.as_ptr(),
                ciphertext.len(),
            )
        };
        cut(secret, if done == 1 { length } else { 0 })?;
        answer(done, "decapsulation")
    }
}

impl Key<'_> {
    /// Maximum length of the results of any use, in bytes; at least one.
    fn result_bytes_max(&self) -> Result<usize, DeviceError> {
        // SAFETY: a live key.
        let size = unsafe { raw::EVP_PKEY_get_size(self.key.as_ptr()) };
        match usize::try_from(size) {
            // With an empty output a function would write out of bounds, or only report the length
            // it needs.
            Ok(0) | Err(_) => {
                forget_errors();
                let name = self.library.name();
                Err(DeviceError::NotOffered(format!(
                    "{name} does not report the length of results with this key"
                )))
            }
            Ok(size) => Ok(size),
        }
    }
}

/// Converts libcrypto's verdict: 1 is valid, 0 is invalid, and below 0 is an error.
fn answer(done: i32, what: &str) -> Result<bool, DeviceError> {
    if done < 0 {
        return Err(failed(what));
    }
    forget_errors();
    Ok(done == 1)
}

impl Drop for KeyContext<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { raw::EVP_PKEY_CTX_free(self.context.as_ptr()) };
    }
}

/// Signatures that take a whole message and no hash: Ed25519, ML-DSA.
pub(in super::super) struct SignContext<'a> {
    context: NonNull<raw::EVP_MD_CTX>,
    key: Key<'a>,
    signature_bytes_max: usize,
}

impl<'a> SignContext<'a> {
    pub(in super::super) fn new(key: Key<'a>) -> Result<Self, DeviceError> {
        let signature_bytes_max = key.result_bytes_max()?;
        // SAFETY: takes nothing.
        let context = NonNull::new(unsafe { raw::EVP_MD_CTX_new() });
        Ok(Self {
            context: context.ok_or_else(|| failed("signing"))?,
            key,
            signature_bytes_max,
        })
    }

    pub(in super::super) fn sign(
        &mut self,
        message: &[u8],
        signature: &mut Vec<u8>,
    ) -> Result<(), DeviceError> {
        signature.resize(self.signature_bytes_max, 0);
        let mut length = signature.len();
        // SAFETY: a live context; the lengths match the output and the input.
        let done = self.begin(true)
            && unsafe {
                raw::EVP_DigestSign(
                    self.context.as_ptr(),
                    signature.as_mut_ptr(),
                    &raw mut length,
                    message.as_ptr(),
                    message.len(),
                ) == 1
            };
        cut(signature, if done { length } else { 0 })?;
        check(done, "signing")
    }

    pub(in super::super) fn verify(
        &mut self,
        signature: &[u8],
        message: &[u8],
    ) -> Result<bool, DeviceError> {
        check(self.begin(false), "verifying")?;
        // SAFETY: a live context; the lengths match both inputs.
        let right = unsafe {
            raw::EVP_DigestVerify(
                self.context.as_ptr(),
                signature.as_ptr(),
                signature.len(),
                message.as_ptr(),
                message.len(),
            )
        };
        answer(right, "verifying")
    }

    /// Begins a message to sign or verify, with the engine if there is one: otherwise libcrypto
    /// itself would compute.
    fn begin(&mut self, signs: bool) -> bool {
        let (context, key) = (self.context.as_ptr(), self.key.key.as_ptr());
        let (pctx, engine) = (ptr::null_mut(), self.key.engine);
        let (library, none) = (self.key.library.context(), ptr::null());
        let params = ptr::null();
        // SAFETY: a live context, a live key, and the engine that adopted it.
        let done = unsafe {
            match (signs, engine.is_null()) {
                (true, true) => {
                    raw::EVP_DigestSignInit_ex(context, pctx, none, library, none, key, params)
                }
                (false, true) => {
                    raw::EVP_DigestVerifyInit_ex(context, pctx, none, library, none, key, params)
                }
                (true, false) => raw::EVP_DigestSignInit(context, pctx, ptr::null(), engine, key),
                (false, false) => {
                    raw::EVP_DigestVerifyInit(context, pctx, ptr::null(), engine, key)
                }
            }
        };
        done == 1
    }
}

impl Drop for SignContext<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { raw::EVP_MD_CTX_free(self.context.as_ptr()) };
    }
}
