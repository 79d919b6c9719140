//! Ciphers: one context each, used again for every message.

use super::{Library, append, c_length, c_string, failed, forget_errors, not_offered, raw};
use crate::DeviceError;
use openssl_sys as ssl;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// The longest block of any cipher here.
const BLOCK_BYTES_MAX: usize = 32;
/// The longest IV that libcrypto takes.
const IV_BYTES_MAX: usize = 16;

/// A cipher with its key, in one direction.
pub(in super::super) struct CipherContext<'a> {
    context: NonNull<ssl::EVP_CIPHER_CTX>,
    cipher: *const ssl::EVP_CIPHER,
    /// Null: the cipher is a provider's, and was fetched.
    engine: *mut ssl::ENGINE,
    encrypts: bool,
    /// What the cipher reads of an IV; at most [`IV_BYTES_MAX`].
    iv_bytes: usize,
    _library: PhantomData<&'a Library>,
    _here: PhantomData<*mut ()>,
}

impl<'a> CipherContext<'a> {
    /// The cipher that libcrypto calls `name`.
    pub(in super::super) fn new(
        library: &'a Library,
        name: &str,
        encrypts: bool,
        key: &[u8],
        padding: bool,
    ) -> Result<Self, DeviceError> {
        let name_c = c_string(name)?;
        let (cipher, engine) = match library.as_engine() {
            Some(engine) => (engine.cipher(&name_c), engine.as_ptr()),
            // SAFETY: a live context, and a string.
            None => unsafe {
                let fetched =
                    ssl::EVP_CIPHER_fetch(library.context(), name_c.as_ptr(), ptr::null());
                (fetched.cast_const(), ptr::null_mut())
            },
        };
        if cipher.is_null() {
            return Err(not_offered(library, name));
        }
        // SAFETY: takes nothing.
        let Some(context) = NonNull::new(unsafe { ssl::EVP_CIPHER_CTX_new() }) else {
            if engine.is_null() {
                // SAFETY: fetched above.
                unsafe { ssl::EVP_CIPHER_free(cipher.cast_mut()) };
            }
            return Err(failed(name));
        };
        let (_library, _here) = (PhantomData, PhantomData);
        let mut this = Self {
            context,
            cipher,
            engine,
            encrypts,
            // SAFETY: a live cipher.
            iv_bytes: usize::try_from(unsafe { ssl::EVP_CIPHER_get_iv_length(cipher) })
                .unwrap_or(IV_BYTES_MAX + 1),
            _library,
            _here,
        };
        this.key(key, None)?;
        // SAFETY: a live context with a cipher.
        unsafe { ssl::EVP_CIPHER_CTX_set_padding(context.as_ptr(), i32::from(padding)) };
        Ok(this)
    }

    /// What the cipher reads of an IV.
    pub(in super::super) const fn iv_bytes(&self) -> usize {
        self.iv_bytes
    }

    /// Sets the key, and the IV if there is one, in a context that has neither.
    fn key(&mut self, key: &[u8], iv: Option<&[u8; IV_BYTES_MAX]>) -> Result<(), DeviceError> {
        let context = self.context.as_ptr();
        let iv = iv.map_or(ptr::null(), |iv| iv.as_ptr());
        let (none, encrypts) = (ptr::null(), i32::from(self.encrypts));
        // SAFETY: a live context and a live cipher; the key has the length that the cipher wants, and the IV is as long as any.
        let done = unsafe {
            usize::try_from(ssl::EVP_CIPHER_get_key_length(self.cipher)) == Ok(key.len())
                && ssl::EVP_CIPHER_get_iv_length(self.cipher) <= 16
                && ssl::EVP_CipherInit_ex(context, self.cipher, self.engine, none, none, encrypts)
                    == 1
                && ssl::EVP_CipherInit_ex(
                    context,
                    ptr::null(),
                    ptr::null_mut(),
                    key.as_ptr(),
                    iv,
                    encrypts,
                ) == 1
        };
        if done {
            Ok(())
        } else {
            Err(failed("setting the key"))
        }
    }

    /// Begins a message with its IV, which is filled up with zeros where the cipher wants a longer one: callers see to it that
    /// this is meant ([`Self::iv_bytes`]). One that would be cut is refused.
    #[inline]
    pub(in super::super) fn begin(&mut self, iv: &[u8]) -> Result<(), DeviceError> {
        let filled;
        let iv = match iv.len().cmp(&self.iv_bytes) {
            Ordering::Equal => iv,
            Ordering::Less => {
                filled = whole(iv)?;
                &filled
            }
            Ordering::Greater => return Err(too_long(iv)),
        };
        let (none, engine) = (ptr::null(), ptr::null_mut());
        // SAFETY: a live context with a cipher, whose IV is at most as long as `iv`.
        let done = unsafe {
            let context = self.context.as_ptr();
            ssl::EVP_CipherInit_ex(context, none, engine, ptr::null(), iv.as_ptr(), -1)
        };
        if done == 1 {
            Ok(())
        } else {
            Err(failed("setting the IV"))
        }
    }

    /// As [`Self::begin`], in a context that knows nothing of messages before, for ciphers that cannot begin again. Padding
    /// is off.
    pub(in super::super) fn begin_anew(
        &mut self,
        key: &[u8],
        iv: &[u8],
    ) -> Result<(), DeviceError> {
        let whole = whole(iv)?;
        // SAFETY: a live context.
        unsafe { raw::EVP_CIPHER_CTX_reset(self.context.as_ptr()) };
        self.key(key, Some(&whole))?;
        // SAFETY: a live context with a cipher.
        unsafe { ssl::EVP_CIPHER_CTX_set_padding(self.context.as_ptr(), 0) };
        Ok(())
    }

    /// Takes additional data of an AEAD.
    pub(in super::super) fn additional(&mut self, data: &[u8]) -> Result<(), DeviceError> {
        let (length, mut done) = (c_length(data.len())?, 0);
        // SAFETY: a live context; nothing is written where the output is null.
        let right = unsafe {
            let context = self.context.as_ptr();
            ssl::EVP_CipherUpdate(
                context,
                ptr::null_mut(),
                &raw mut done,
                data.as_ptr(),
                length,
            )
        };
        if right == 1 {
            Ok(())
        } else {
            Err(failed("additional data"))
        }
    }

    /// Goes through a text, all of it at once. `output` is made as long as what came out.
    #[inline]
    pub(in super::super) fn update(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), DeviceError> {
        let length = c_length(input.len())?;
        let context = self.context.as_ptr();
        output.clear();
        // SAFETY: a live context; there is room for a block more than the input, which is the most that comes out.
        let done = unsafe {
            append(output, input.len() + BLOCK_BYTES_MAX, |rest, made| {
                ssl::EVP_CipherUpdate(context, rest, made, input.as_ptr(), length)
            })
        };
        if done {
            Ok(())
        } else {
            Err(failed("the cipher"))
        }
    }

    /// Ends a message, with what is left of it; `false`: padding, length or tag are wrong.
    #[inline]
    pub(in super::super) fn finish(&mut self, output: &mut Vec<u8>) -> bool {
        let context = self.context.as_ptr();
        // SAFETY: a live context; there is room for a block, the most that comes out.
        let done = unsafe {
            append(output, BLOCK_BYTES_MAX, |rest, made| {
                ssl::EVP_CipherFinal(context, rest, made)
            })
        };
        if !done {
            forget_errors();
        }
        done
    }

    /// The tag of what was sealed, put behind it.
    #[inline]
    pub(in super::super) fn tag(
        &mut self,
        bytes: usize,
        output: &mut Vec<u8>,
    ) -> Result<(), DeviceError> {
        let length = c_length(bytes)?;
        let context = self.context.as_ptr();
        // SAFETY: a live context; there is room for as many bytes as are asked for, and where it succeeds it wrote them all.
        let done = unsafe {
            append(output, bytes, |rest, made| {
                *made = length;
                ssl::EVP_CIPHER_CTX_ctrl(context, ssl::EVP_CTRL_GCM_GET_TAG, length, rest.cast())
            })
        };
        if done { Ok(()) } else { Err(failed("the tag")) }
    }

    /// The tag that what is opened must have.
    pub(in super::super) fn expect_tag(&mut self, tag: &[u8]) -> Result<(), DeviceError> {
        let length = c_length(tag.len())?;
        // SAFETY: the tag is as long as is said, and only read.
        let done = unsafe {
            let tag = tag.as_ptr().cast_mut().cast();
            let context = self.context.as_ptr();
            ssl::EVP_CIPHER_CTX_ctrl(context, ssl::EVP_CTRL_GCM_SET_TAG, length, tag)
        };
        if done == 1 {
            Ok(())
        } else {
            Err(failed("the tag"))
        }
    }
}

impl Drop for CipherContext<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and so is a cipher that was fetched.
        unsafe {
            ssl::EVP_CIPHER_CTX_free(self.context.as_ptr());
            if self.engine.is_null() {
                ssl::EVP_CIPHER_free(self.cipher.cast_mut());
            }
        }
    }
}

/// An IV, filled up with zeros.
fn whole(iv: &[u8]) -> Result<[u8; IV_BYTES_MAX], DeviceError> {
    let mut whole = [0; IV_BYTES_MAX];
    let Some(start) = whole.get_mut(..iv.len()) else {
        return Err(too_long(iv));
    };
    start.copy_from_slice(iv);
    Ok(whole)
}

fn too_long(iv: &[u8]) -> DeviceError {
    DeviceError::NotOffered(format!("an IV of {} B", iv.len()))
}
