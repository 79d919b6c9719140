//! Engines (ENGINE(3)), which preceded providers and are removed in OpenSSL 4.

use super::{c_string, forget_errors, pin, raw, reasons, remedy, text};
use crate::DeviceError;
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

/// A loaded and initialised engine. libcrypto has engines then.
pub(super) struct Engine(NonNull<raw::ENGINE>);

impl Engine {
    /// Finds an engine by its name, loads and initialises it.
    pub(super) fn load(name: &str, module: Option<&Path>) -> Result<Self, DeviceError> {
        let unusable = |doing: &str| {
            let why = reasons().unwrap_or_else(|| "no reason given".to_owned());
            DeviceError::Unusable(format!(
                "OpenSSL does not {doing} the engine {name:?}: {why}; {}",
                remedy(&why)
            ))
        };
        let id = c_string(name)?;
        if raw::load()? == raw::Engines::HasNot {
            return Err(DeviceError::Unusable(format!(
                "the engine {name:?} cannot be used: this OpenSSL has no engines; use the device's provider"
            )));
        }
        pin(name, module, raw::ENGINES_FOLDER);
        forget_errors();
        let found = match module {
            // SAFETY: a C string.
            None => unsafe { raw::ENGINE_by_id(id.as_ptr()) },
            Some(module) => {
                let path = c_string(&module.to_string_lossy())?;
                // SAFETY: a C string.
                let dynamic = unsafe { raw::ENGINE_by_id(c"dynamic".as_ptr()) };
                let Some(dynamic) = NonNull::new(dynamic) else {
                    return Err(unusable("find the loader of"));
                };
                let commands = [
                    (c"SO_PATH", Some(path.as_c_str())),
                    (c"ID", Some(id.as_c_str())),
                    (c"LOAD", None),
                ];
                for (command, argument) in commands {
                    let argument = argument.map_or(std::ptr::null(), CStr::as_ptr);
                    // SAFETY: a live engine and C strings that the call copies.
                    let done = unsafe {
                        raw::ENGINE_ctrl_cmd_string(dynamic.as_ptr(), command.as_ptr(), argument, 0)
                    };
                    if done != 1 {
                        let error = unusable("load");
                        // SAFETY: found above and not used again.
                        unsafe { raw::ENGINE_free(dynamic.as_ptr()) };
                        return Err(error);
                    }
                }
                dynamic.as_ptr()
            }
        };
        let Some(engine) = NonNull::new(found) else {
            return Err(unusable("find"));
        };
        // SAFETY: a live engine.
        if unsafe { raw::ENGINE_init(engine.as_ptr()) } != 1 {
            let error = unusable("start");
            // SAFETY: found above and not used again.
            unsafe { raw::ENGINE_free(engine.as_ptr()) };
            return Err(error);
        }
        // Required for MAC keys: only the engine defines their type. SAFETY: a live engine.
        unsafe { raw::ENGINE_register_pkey_asn1_meths(engine.as_ptr()) };
        forget_errors();
        Ok(Self(engine))
    }

    pub(super) fn name(&self) -> String {
        // SAFETY: a live engine, which owns the string.
        unsafe { text(raw::ENGINE_get_name(self.0.as_ptr())) }.unwrap_or_default()
    }

    pub(super) const fn as_ptr(&self) -> *mut raw::ENGINE {
        self.0.as_ptr()
    }

    /// Returns its cipher of that name, or null.
    pub(super) fn cipher(&self, name: &CStr) -> *const raw::EVP_CIPHER {
        // SAFETY: a C string and a live engine.
        unsafe { raw::ENGINE_get_cipher(self.0.as_ptr(), raw::OBJ_txt2nid(name.as_ptr())) }
    }

    /// Returns its hash of that name, or null.
    pub(super) fn digest(&self, name: &CStr) -> *const raw::EVP_MD {
        // SAFETY: a C string and a live engine.
        unsafe { raw::ENGINE_get_digest(self.0.as_ptr(), raw::OBJ_txt2nid(name.as_ptr())) }
    }

    /// Returns its NID for a MAC of that name, or 0.
    pub(super) fn mac(&self, name: &CStr) -> i32 {
        // SAFETY: a C string and a live engine.
        unsafe {
            let nid = raw::OBJ_txt2nid(name.as_ptr());
            if nid == 0 || raw::ENGINE_get_pkey_meth(self.0.as_ptr(), nid).is_null() {
                return 0;
            }
            nid
        }
    }

    /// Passes a key to the engine. `None`: it does not support keys of this type.
    ///
    /// Engines accept a key in one of two ways: by a method for keys of its type, which is
    /// selected when the key is used, or, in older ones, by a method in the key itself.
    pub(super) fn adopt(
        &self,
        key: NonNull<raw::EVP_PKEY>,
    ) -> Option<(NonNull<raw::EVP_PKEY>, MethodPlace)> {
        // SAFETY: a live key and a live engine; every reference that is taken is released.
        unsafe {
            let kind = raw::EVP_PKEY_get_id(key.as_ptr());
            if !raw::ENGINE_get_pkey_meth(self.0.as_ptr(), kind).is_null() {
                return Some((key, MethodPlace::Use));
            }
            let adopted = match kind {
                raw::EVP_PKEY_RSA => with_method(
                    raw::EVP_PKEY_get1_RSA(key.as_ptr()),
                    raw::ENGINE_get_RSA(self.0.as_ptr()),
                    raw::RSA_set_method,
                    raw::EVP_PKEY_set1_RSA,
                    raw::RSA_free,
                )?,
                raw::EVP_PKEY_EC => with_method(
                    raw::EVP_PKEY_get1_EC_KEY(key.as_ptr()),
                    raw::ENGINE_get_EC(self.0.as_ptr()),
                    raw::EC_KEY_set_method,
                    raw::EVP_PKEY_set1_EC_KEY,
                    raw::EC_KEY_free,
                )?,
                _ => return None,
            };
            raw::EVP_PKEY_free(key.as_ptr());
            Some((adopted, MethodPlace::Key))
        }
    }
}

/// Makes a key of an RSA or EC key with the engine's method in it, and releases the latter.
/// `None`: one of them is null, or a call fails.
///
/// # Safety
/// `inner` is null or a reference that is taken over, and `method` null or of its type.
unsafe fn with_method<K>(
    inner: *mut K,
    method: *const c_void,
    set_method: unsafe fn(*mut K, *const c_void) -> c_int,
    set: unsafe fn(*mut raw::EVP_PKEY, *mut K) -> c_int,
    free: unsafe fn(*mut K),
) -> Option<NonNull<raw::EVP_PKEY>> {
    // SAFETY: null is refused before it is used, except by `free` functions, which accept it;
    // the new key takes a reference to `inner`.
    unsafe {
        let whole = if inner.is_null() || method.is_null() {
            None
        } else {
            NonNull::new(raw::EVP_PKEY_new())
        };
        let done = whole
            .is_some_and(|whole| set_method(inner, method) == 1 && set(whole.as_ptr(), inner) == 1);
        free(inner);
        if done {
            return whole;
        }
        raw::EVP_PKEY_free(whole.map_or(std::ptr::null_mut(), NonNull::as_ptr));
        None
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: initialised and found by `load`, and everything made from it borrowed its
        // library.
        unsafe {
            raw::ENGINE_finish(self.0.as_ptr());
            raw::ENGINE_free(self.0.as_ptr());
        }
    }
}

/// The place of an engine's method for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MethodPlace {
    /// The call that uses the key names the engine.
    Use,
    /// The key contains the method.
    Key,
}
