//! Ciphers: each has one context, reused for every message.

use super::{Library, append, c_length, c_string, check, failed, forget_errors, not_offered, raw};
use crate::DeviceError;
use crate::device::overlong;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Longest block of any cipher here.
const BLOCK_BYTES_MAX: usize = 32;
/// Longest IV that libcrypto accepts.
const IV_BYTES_MAX: usize = 16;

/// An IV in libcrypto's format, made once for all messages.
pub(in super::super) struct Iv([u8; IV_BYTES_MAX]);

/// A cipher with its key, in one direction.
pub(in super::super) struct CipherContext<'a> {
    context: NonNull<raw::EVP_CIPHER_CTX>,
    cipher: *const raw::EVP_CIPHER,
    /// Null for a provider's cipher, which was fetched.
    engine: *mut raw::ENGINE,
    encrypts: bool,
    /// Bytes that the cipher reads of an IV; at most [`IV_BYTES_MAX`].
    iv_bytes: usize,
    _library: PhantomData<&'a Library>,
    _here: PhantomData<*mut ()>,
}

impl<'a> CipherContext<'a> {
    /// Prepares the cipher that libcrypto calls `name`.
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
            // SAFETY: a live context and a C string.
            None => unsafe {
                let fetched =
                    raw::EVP_CIPHER_fetch(library.context(), name_c.as_ptr(), ptr::null());
                (fetched.cast_const(), ptr::null_mut())
            },
        };
        if cipher.is_null() {
            return Err(not_offered(library, name));
        }
        // SAFETY: no arguments.
        let Some(context) = NonNull::new(unsafe { raw::EVP_CIPHER_CTX_new() }) else {
            if engine.is_null() {
                // SAFETY: fetched above.
                unsafe { raw::EVP_CIPHER_free(cipher.cast_mut()) };
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
            iv_bytes: usize::try_from(unsafe { raw::EVP_CIPHER_get_iv_length(cipher) })
                .unwrap_or(IV_BYTES_MAX + 1),
            _library,
            _here,
        };
        this.key(key, None)?;
        if !padding {
            this.do_not_pad();
        }
        Ok(this)
    }

    /// Makes an IV for [`Self::begin`]. It must have the length that the cipher reads: a longer one
    /// would be truncated, a shorter one extended.
    pub(in super::super) fn iv(&self, iv: &[u8]) -> Result<Iv, DeviceError> {
        if iv.len() < self.iv_bytes {
            return Err(self.other_iv(iv));
        }
        self.filled_iv(iv)
    }

    /// Makes an IV that is extended with zeros if shorter. Callers must ensure that this is
    /// intended.
    pub(in super::super) fn filled_iv(&self, iv: &[u8]) -> Result<Iv, DeviceError> {
        let mut whole = [0; IV_BYTES_MAX];
        match whole.get_mut(..iv.len()) {
            Some(start) if iv.len() <= self.iv_bytes => start.copy_from_slice(iv),
            _ => return Err(self.other_iv(iv)),
        }
        Ok(Iv(whole))
    }

    fn other_iv(&self, iv: &[u8]) -> DeviceError {
        let (wanted, given) = (self.iv_bytes, iv.len());
        DeviceError::NotOffered(format!("it takes IVs of {wanted} B, not of {given} B"))
    }

    /// Sets the key, and the IV if given, in a context that has neither.
    fn key(&mut self, key: &[u8], iv: Option<&Iv>) -> Result<(), DeviceError> {
        let context = self.context.as_ptr();
        let iv = iv.map_or(ptr::null(), |iv| iv.0.as_ptr());
        let (none, encrypts) = (ptr::null(), i32::from(self.encrypts));
        // SAFETY: a live context and a live cipher; the key has the cipher's length, and the IV has
        // the maximum length.
        let done = unsafe {
            usize::try_from(raw::EVP_CIPHER_get_key_length(self.cipher)) == Ok(key.len())
                && self.iv_bytes <= IV_BYTES_MAX
                && raw::EVP_CipherInit_ex(context, self.cipher, self.engine, none, none, encrypts)
                    == 1
                && raw::EVP_CipherInit_ex(
                    context,
                    ptr::null(),
                    ptr::null_mut(),
                    key.as_ptr(),
                    iv,
                    encrypts,
                ) == 1
        };
        check(done, "setting the key")
    }

    /// Begins a message with its IV.
    #[inline]
    pub(in super::super) fn begin(&mut self, iv: &Iv) -> Result<(), DeviceError> {
        let (none, engine) = (ptr::null(), ptr::null_mut());
        // SAFETY: a live context with a cipher; the IV has the maximum length.
        let done = unsafe {
            let context = self.context.as_ptr();
            raw::EVP_CipherInit_ex(context, none, engine, ptr::null(), iv.0.as_ptr(), -1)
        };
        check(done == 1, "setting the IV")
    }

    /// As [`Self::begin`], but resets the context first, for ciphers that cannot start a second
    /// message. Padding is off.
    pub(in super::super) fn restart(&mut self, key: &[u8], iv: &Iv) -> Result<(), DeviceError> {
        // SAFETY: a live context.
        unsafe { raw::EVP_CIPHER_CTX_reset(self.context.as_ptr()) };
        self.key(key, Some(iv))?;
        self.do_not_pad();
        Ok(())
    }

    /// Turns padding off in a block mode.
    ///
    /// Other modes would accept the setting and repeat it for each message: a quarter of the time
    /// of 64 B of AES-CTR in OpenSSL 3.0.
    fn do_not_pad(&mut self) {
        // SAFETY: a live context with a cipher, and that cipher.
        unsafe {
            if raw::EVP_CIPHER_get_block_size(self.cipher) > 1 {
                raw::EVP_CIPHER_CTX_set_padding(self.context.as_ptr(), 0);
            }
        }
    }

    /// Processes additional data of an AEAD.
    pub(in super::super) fn additional(&mut self, data: &[u8]) -> Result<(), DeviceError> {
        let (length, mut done) = (c_length(data.len())?, 0);
        // SAFETY: a live context; nothing is written if the output is null.
        let right = unsafe {
            let (context, none) = (self.context.as_ptr(), ptr::null_mut());
            raw::EVP_CipherUpdate(context, none, &raw mut done, data.as_ptr(), length)
        };
        check(right == 1, "additional data")
    }

    /// Processes a whole text in one call. `output` gets the length of the result.
    #[inline]
    pub(in super::super) fn update(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), DeviceError> {
        let length = c_length(input.len())?;
        let context = self.context.as_ptr();
        let (encrypts, data) = (self.encrypts, input.as_ptr());
        output.clear();
        // Not EVP_CipherUpdate, which only dispatches to one of these: 1 % of 64 B of AES-CTR.
        //
        // SAFETY: a live context of that direction; there is room for one block more than the
        // input, the longest possible result.
        let done = unsafe {
            append(output, input.len() + BLOCK_BYTES_MAX, |rest, made| {
                if encrypts {
                    raw::EVP_EncryptUpdate(context, rest, made, data, length)
                } else {
                    raw::EVP_DecryptUpdate(context, rest, made, data, length)
                }
            })
        };
        check(done?, "the cipher")
    }

    /// Ends a message and appends its last bytes. `false`: padding, length or tag are wrong.
    #[inline]
    pub(in super::super) fn finish(&mut self, output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        let context = self.context.as_ptr();
        // SAFETY: a live context; there is room for a block, the longest possible result.
        let done = unsafe {
            append(output, BLOCK_BYTES_MAX, |rest, made| {
                raw::EVP_CipherFinal(context, rest, made)
            })
        }?;
        if !done {
            forget_errors();
        }
        Ok(done)
    }

    /// Seals a whole message in one call and appends its tag of `tag_bytes`, in a context that
    /// encrypts with an AEAD.
    ///
    /// The same calls as in `update` and `finish`, with one reservation of room: their checks
    /// between the calls are 3 % of 64 B of AES-GCM.
    #[inline]
    pub(in super::super) fn seal(
        &mut self,
        iv: &Iv,
        additional: &[u8],
        input: &[u8],
        tag_bytes: usize,
        output: &mut Vec<u8>,
    ) -> Result<(), DeviceError> {
        let (length, tag_length) = (c_length(input.len())?, c_length(tag_bytes)?);
        let context = self.context.as_ptr();
        output.clear();
        self.begin(iv)?;
        if !additional.is_empty() {
            self.additional(additional)?;
        }
        let text_room = input.len() + BLOCK_BYTES_MAX;
        let fits = |made: c_int| usize::try_from(made).is_ok_and(|made| made <= text_room);
        let mut announced = 0;
        // SAFETY: a live context that encrypts; there is room for the text, one block more and the
        // tag, the longest possible result. Each part is written behind the length that libcrypto
        // reported, if that fits.
        let done = unsafe {
            append(output, text_room + tag_bytes, |rest, made| {
                // Each reported length is checked before it becomes an offset.
                if raw::EVP_EncryptUpdate(context, rest, made, input.as_ptr(), length) != 1 {
                    return 0;
                }
                if !fits(*made) {
                    announced = *made;
                    return 0;
                }
                let mut last = 0;
                let end = rest.add(*made as usize);
                if raw::EVP_EncryptFinal_ex(context, end, &raw mut last) != 1 {
                    return 0;
                }
                if last < 0 || !fits(made.saturating_add(last)) {
                    announced = made.saturating_add(last);
                    return 0;
                }
                *made += last;
                let tag = rest.add(*made as usize).cast();
                *made += tag_length;
                raw::EVP_CIPHER_CTX_ctrl(context, raw::EVP_CTRL_GCM_GET_TAG, tag_length, tag)
            })
        };
        if announced != 0 {
            let announced = usize::try_from(announced).unwrap_or(usize::MAX);
            return Err(overlong(announced, text_room));
        }
        check(done?, "sealing")
    }

    /// Sets the tag against which the message is verified.
    pub(in super::super) fn expect_tag(&mut self, tag: &[u8]) -> Result<(), DeviceError> {
        let length = c_length(tag.len())?;
        // SAFETY: the length is the tag's length, and the tag is only read.
        let done = unsafe {
            let tag = tag.as_ptr().cast_mut().cast();
            let context = self.context.as_ptr();
            raw::EVP_CIPHER_CTX_ctrl(context, raw::EVP_CTRL_GCM_SET_TAG, length, tag)
        };
        check(done == 1, "the tag")
    }
}

impl Drop for CipherContext<'_> {
    fn drop(&mut self) {
        // SAFETY: this value owns the context, and a cipher that was fetched.
        unsafe {
            raw::EVP_CIPHER_CTX_free(self.context.as_ptr());
            if self.engine.is_null() {
                raw::EVP_CIPHER_free(self.cipher.cast_mut());
            }
        }
    }
}
