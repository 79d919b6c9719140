//! Hashes and MACs: each has one context, reused for every message.

use super::{Library, append, c_length, c_string, check, failed, not_offered, raw};
use crate::{DeviceError, Job};
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use zeroize::Zeroizing;

/// Longest output of a hash or a MAC.
const DIGEST_BYTES_MAX: usize = 64;

/// A hash.
pub(in super::super) struct DigestContext<'a> {
    context: NonNull<raw::EVP_MD_CTX>,
    _library: PhantomData<&'a Library>,
    /// Makes the type `!Send` and `!Sync`.
    _here: PhantomData<*mut ()>,
}

impl<'a> DigestContext<'a> {
    /// Prepares the hash that libcrypto calls `name`.
    pub(in super::super) fn new(library: &'a Library, name: &str) -> Result<Self, DeviceError> {
        let name_c = c_string(name)?;
        let (digest, engine) = match library.as_engine() {
            Some(engine) => (engine.digest(&name_c), engine.as_ptr()),
            // SAFETY: a live context and a C string.
            None => unsafe {
                let fetched =
                    raw::EVP_MD_fetch(library.context(), name_c.as_ptr(), ptr::null::<c_char>());
                (fetched.cast_const(), ptr::null_mut())
            },
        };
        if digest.is_null() {
            return Err(not_offered(library, name));
        }
        // SAFETY: a live digest, and the context holds a reference to it. A fetched digest is
        // freed; an engine owns its digests.
        unsafe {
            let context = raw::EVP_MD_CTX_new();
            let done = !context.is_null() && raw::EVP_DigestInit_ex(context, digest, engine) == 1;
            if engine.is_null() {
                raw::EVP_MD_free(digest.cast_mut());
            }
            match NonNull::new(context) {
                Some(context) => {
                    let this = Self {
                        context,
                        _library: PhantomData,
                        _here: PhantomData,
                    };
                    check(done, name).map(|()| this)
                }
                None => Err(failed(name)),
            }
        }
    }
}

impl Job for DigestContext<'_> {
    #[inline]
    fn run(&mut self, message: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        output.clear();
        let context = self.context.as_ptr();
        // SAFETY: a live context with a digest; there is room for the longest digest
        // (EVP_MAX_MD_SIZE).
        let done = unsafe {
            append(output, DIGEST_BYTES_MAX, |rest, made| {
                let mut length = 0;
                let done = raw::EVP_DigestInit_ex(context, ptr::null(), ptr::null_mut()) == 1
                    && raw::EVP_DigestUpdate(context, message.as_ptr().cast(), message.len()) == 1
                    && raw::EVP_DigestFinal_ex(context, rest, &raw mut length) == 1;
                *made = c_int::try_from(length).unwrap_or(c_int::MAX);
                c_int::from(done)
            })
        };
        check(done?, "the hash").map(|()| true)
    }
}

impl Drop for DigestContext<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { raw::EVP_MD_CTX_free(self.context.as_ptr()) };
    }
}

/// A MAC with its key.
pub(in super::super) struct MacContext<'a> {
    kind: MacKind,
    _library: PhantomData<&'a Library>,
    _here: PhantomData<*mut ()>,
}

enum MacKind {
    /// A provider's MAC, with the key if it must be set for each message.
    Mac(NonNull<raw::EVP_MAC_CTX>, Option<Zeroizing<Vec<u8>>>),
    /// HMAC by libcrypto over an engine's hash.
    Hmac(NonNull<raw::HMAC_CTX>),
    /// An engine's MAC, with the interface of a signature: a keyed context and its copy for each
    /// message.
    Signature(NonNull<raw::EVP_MD_CTX>, NonNull<raw::EVP_MD_CTX>),
}

impl<'a> MacContext<'a> {
    const fn of(kind: MacKind) -> Self {
        Self {
            kind,
            _library: PhantomData,
            _here: PhantomData,
        }
    }

    /// Prepares HMAC over the hash that libcrypto calls `digest`.
    pub(in super::super) fn hmac(
        library: &'a Library,
        digest: &str,
        key: &[u8],
    ) -> Result<Self, DeviceError> {
        let Some(engine) = library.as_engine() else {
            return Self::mac(library, "HMAC", Some((c"digest", digest)), key);
        };
        let method = engine.digest(&c_string(digest)?);
        if method.is_null() {
            return Err(not_offered(library, digest));
        }
        // SAFETY: the length is the key's length; the engine owns the hash.
        unsafe {
            let Some(context) = NonNull::new(raw::HMAC_CTX_new()) else {
                return Err(failed("HMAC"));
            };
            let this = Self::of(MacKind::Hmac(context));
            let length = c_length(key.len())?;
            let key = key.as_ptr().cast();
            check(
                raw::HMAC_Init_ex(context.as_ptr(), key, length, method, engine.as_ptr()) == 1,
                "HMAC",
            )
            .map(|()| this)
        }
    }

    /// Prepares CMAC with the cipher that libcrypto calls `cipher`.
    pub(in super::super) fn cmac(
        library: &'a Library,
        cipher: &str,
        key: &[u8],
    ) -> Result<Self, DeviceError> {
        if library.as_engine().is_some() {
            return Err(not_offered(library, "CMAC"));
        }
        Self::mac(library, "CMAC", Some((c"cipher", cipher)), key)
    }

    /// Prepares the MAC that libcrypto calls `name`.
    pub(in super::super) fn named(
        library: &'a Library,
        name: &str,
        key: &[u8],
    ) -> Result<Self, DeviceError> {
        let Some(engine) = library.as_engine() else {
            return Self::mac(library, name, None, key);
        };
        let name_c = c_string(name)?;
        let nid = engine.mac(&name_c);
        if nid == 0 {
            return Err(not_offered(library, name));
        }
        let length = c_length(key.len())?;
        // SAFETY: a live engine with this MAC; the length is the key's length; the context holds a
        // reference to the key, and the engine owns the hash.
        unsafe {
            let mac_key = raw::EVP_PKEY_new_mac_key(nid, engine.as_ptr(), key.as_ptr(), length);
            if mac_key.is_null() {
                return Err(failed(name));
            }
            let contexts = (raw::EVP_MD_CTX_new(), raw::EVP_MD_CTX_new());
            let (Some(keyed), Some(copy)) = (NonNull::new(contexts.0), NonNull::new(contexts.1))
            else {
                raw::EVP_MD_CTX_free(contexts.0);
                raw::EVP_MD_CTX_free(contexts.1);
                raw::EVP_PKEY_free(mac_key);
                return Err(failed(name));
            };
            let this = Self::of(MacKind::Signature(keyed, copy));
            let digest = engine.digest(&name_c);
            let done = raw::EVP_DigestSignInit(
                keyed.as_ptr(),
                ptr::null_mut(),
                digest,
                engine.as_ptr(),
                mac_key,
            );
            raw::EVP_PKEY_free(mac_key);
            check(done == 1, name).map(|()| this)
        }
    }

    /// Prepares a provider's MAC, with the parameter that names its hash or cipher.
    fn mac(
        library: &'a Library,
        name: &str,
        setting: Option<(&std::ffi::CStr, &str)>,
        key: &[u8],
    ) -> Result<Self, DeviceError> {
        let what = setting.map_or_else(|| name.to_owned(), |(_, of)| format!("{name} of {of}"));
        let name = c_string(name)?;
        // SAFETY: a live context and C strings. The new context holds a reference to the MAC.
        let context = unsafe {
            let mac = raw::EVP_MAC_fetch(library.context(), name.as_ptr(), ptr::null());
            if mac.is_null() {
                return Err(not_offered(library, &what));
            }
            let context = raw::EVP_MAC_CTX_new(mac);
            raw::EVP_MAC_free(mac);
            NonNull::new(context).ok_or_else(|| failed(&what))?
        };
        // MACs of the GOST provider lose their keys after each message.
        let again = setting.is_none().then(|| Zeroizing::new(key.to_vec()));
        let this = Self::of(MacKind::Mac(context, again));
        let value = c_string(setting.map_or("", |(_, value)| value))?;
        // SAFETY: the list of parameters is terminated, its string outlives the call and is only
        // read, and the length is the key's length.
        let done = unsafe {
            let end = raw::OSSL_PARAM_construct_end();
            let parameters = match setting {
                Some((key, _)) => [
                    raw::OSSL_PARAM_construct_utf8_string(
                        key.as_ptr(),
                        value.as_ptr().cast_mut(),
                        0,
                    ),
                    end,
                ],
                None => [raw::OSSL_PARAM_construct_end(), end],
            };
            raw::EVP_MAC_init(
                context.as_ptr(),
                key.as_ptr(),
                key.len(),
                parameters.as_ptr(),
            )
        };
        if done == 1 {
            Ok(this)
        } else {
            // The provider has the MAC, but not its hash or cipher.
            Err(not_offered(library, &what))
        }
    }
}

impl Job for MacContext<'_> {
    #[inline]
    fn run(&mut self, message: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        output.clear();
        let (data, size) = (message.as_ptr(), message.len());
        // SAFETY: live contexts with keys; there is room for the longest MAC (EVP_MAX_MD_SIZE).
        let done = unsafe {
            append(output, DIGEST_BYTES_MAX, |rest, made| {
                let mut length = DIGEST_BYTES_MAX;
                let done = match &self.kind {
                    MacKind::Mac(context, again) => {
                        let context = context.as_ptr();
                        let (key, key_bytes) = again
                            .as_ref()
                            .map_or((ptr::null(), 0), |key| (key.as_ptr(), key.len()));
                        raw::EVP_MAC_init(context, key, key_bytes, ptr::null()) == 1
                            && raw::EVP_MAC_update(context, data, size) == 1
                            && raw::EVP_MAC_final(context, rest, &raw mut length, length) == 1
                    }
                    MacKind::Hmac(context) => {
                        let context = context.as_ptr();
                        let (none, mut made) = (ptr::null(), 0);
                        let done =
                            raw::HMAC_Init_ex(context, none, 0, ptr::null(), ptr::null_mut()) == 1
                                && raw::HMAC_Update(context, data, size) == 1
                                && raw::HMAC_Final(context, rest, &raw mut made) == 1;
                        length = made as usize;
                        done
                    }
                    MacKind::Signature(keyed, copy) => {
                        let copy = copy.as_ptr();
                        raw::EVP_MD_CTX_copy_ex(copy, keyed.as_ptr()) == 1
                            && raw::EVP_DigestUpdate(copy, data.cast(), size) == 1
                            && raw::EVP_DigestSignFinal(copy, rest, &raw mut length) == 1
                    }
                };
                *made = c_int::try_from(length).unwrap_or(c_int::MAX);
                c_int::from(done)
            })
        };
        check(done?, "the MAC").map(|()| true)
    }
}

impl Drop for MacContext<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe {
            match &self.kind {
                MacKind::Mac(context, _) => raw::EVP_MAC_CTX_free(context.as_ptr()),
                MacKind::Hmac(context) => raw::HMAC_CTX_free(context.as_ptr()),
                MacKind::Signature(keyed, copy) => {
                    raw::EVP_MD_CTX_free(keyed.as_ptr());
                    raw::EVP_MD_CTX_free(copy.as_ptr());
                }
            }
        }
    }
}
