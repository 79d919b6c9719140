//! An engine (ENGINE(3)): what OpenSSL had before providers, and drops in version 4.

use crate::DeviceError;
use openssl_sys as ssl;
use std::ffi::CStr;
use std::path::Path;

/// An engine that works.
#[cfg(engines)]
pub(super) struct Engine(std::ptr::NonNull<ssl::ENGINE>);

/// Where OpenSSL has no engines there are none.
#[cfg(not(engines))]
pub(super) enum Engine {}

#[cfg(engines)]
mod there {
    use super::super::{c_string, forget_errors, last_error, pin, raw};
    use super::*;
    use std::ptr::NonNull;

    impl Engine {
        /// Finds it by its name, loads it and makes it work.
        pub(in super::super) fn load(
            name: &str,
            module: Option<&Path>,
        ) -> Result<Self, DeviceError> {
            let unusable = |doing: &str| {
                let why = last_error().unwrap_or_else(|| "no reason is given".to_owned());
                DeviceError::Unusable(format!(
                    "OpenSSL does not {doing} the engine {name:?}: {why}; check its name and the path of its module"
                ))
            };
            let id = c_string(name)?;
            pin(name, module, raw::ENGINES_FOLDER);
            let found = match module {
                // SAFETY: a string.
                None => unsafe { raw::ENGINE_by_id(id.as_ptr()) },
                Some(module) => {
                    let path = c_string(&module.to_string_lossy())?;
                    // SAFETY: a string.
                    let dynamic = unsafe { raw::ENGINE_by_id(c"dynamic".as_ptr()) };
                    let Some(dynamic) = NonNull::new(dynamic) else {
                        return Err(unusable("find what loads"));
                    };
                    let commands = [
                        (c"SO_PATH", Some(path.as_c_str())),
                        (c"ID", Some(id.as_c_str())),
                        (c"LOAD", None),
                    ];
                    for (command, argument) in commands {
                        let argument = argument.map_or(std::ptr::null(), CStr::as_ptr);
                        // SAFETY: a live engine, and strings that the call copies.
                        let done = unsafe {
                            raw::ENGINE_ctrl_cmd_string(
                                dynamic.as_ptr(),
                                command.as_ptr(),
                                argument,
                                0,
                            )
                        };
                        if done != 1 {
                            let error = unusable("load");
                            // SAFETY: found above, and not used any more.
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
                // SAFETY: found above, and not used any more.
                unsafe { raw::ENGINE_free(engine.as_ptr()) };
                return Err(error);
            }
            // Without this no key of a MAC can be made, which is a kind of key that only the engine
            // knows. SAFETY: a live engine.
            unsafe { raw::ENGINE_register_pkey_asn1_meths(engine.as_ptr()) };
            forget_errors();
            Ok(Self(engine))
        }

        pub(in super::super) fn name(&self) -> String {
            // SAFETY: a live engine; the string is its own.
            let name = unsafe { raw::ENGINE_get_name(self.0.as_ptr()) };
            if name.is_null() {
                return String::new();
            }
            // SAFETY: not null, ends with a zero, lives as long as the engine.
            unsafe { CStr::from_ptr(name) }
                .to_string_lossy()
                .into_owned()
        }

        pub(in super::super) const fn as_ptr(&self) -> *mut ssl::ENGINE {
            self.0.as_ptr()
        }

        /// Its cipher of that name; null if it has none.
        pub(in super::super) fn cipher(&self, name: &CStr) -> *const ssl::EVP_CIPHER {
            // SAFETY: a string, and a live engine.
            unsafe { raw::ENGINE_get_cipher(self.0.as_ptr(), raw::OBJ_txt2nid(name.as_ptr())) }
        }

        /// Its hash of that name; null if it has none.
        pub(in super::super) fn digest(&self, name: &CStr) -> *const ssl::EVP_MD {
            // SAFETY: a string, and a live engine.
            unsafe { raw::ENGINE_get_digest(self.0.as_ptr(), raw::OBJ_txt2nid(name.as_ptr())) }
        }

        /// Its number for a MAC of that name, 0 if it has none.
        pub(in super::super) fn mac(&self, name: &CStr) -> i32 {
            // SAFETY: a string, and a live engine.
            unsafe {
                let nid = raw::OBJ_txt2nid(name.as_ptr());
                if nid == 0 || raw::ENGINE_get_pkey_meth(self.0.as_ptr(), nid).is_null() {
                    return 0;
                }
                nid
            }
        }

        /// Hands a key to the engine. `None`: it does nothing with keys of this kind.
        ///
        /// Engines take a key in one of two ways: by a method for keys of its kind, which is chosen
        /// where the key is used, or, as the older ones, by a method in the key itself.
        pub(in super::super) fn adopt(
            &self,
            key: NonNull<ssl::EVP_PKEY>,
        ) -> Option<(NonNull<ssl::EVP_PKEY>, Place)> {
            // SAFETY: a live key and a live engine; each function that takes hold of a key is met
            // by one that lets go.
            unsafe {
                let kind = ssl::EVP_PKEY_id(key.as_ptr());
                if !raw::ENGINE_get_pkey_meth(self.0.as_ptr(), kind).is_null() {
                    return Some((key, Place::Use));
                }
                let fresh = || NonNull::new(ssl::EVP_PKEY_new());
                let adopted = match kind {
                    ssl::EVP_PKEY_RSA => {
                        let method = raw::ENGINE_get_RSA(self.0.as_ptr());
                        let rsa = ssl::EVP_PKEY_get1_RSA(key.as_ptr());
                        if method.is_null() || rsa.is_null() {
                            ssl::RSA_free(rsa);
                            return None;
                        }
                        let Some(fresh) = fresh() else {
                            ssl::RSA_free(rsa);
                            return None;
                        };
                        let done = raw::RSA_set_method(rsa, method) == 1
                            && ssl::EVP_PKEY_set1_RSA(fresh.as_ptr(), rsa) == 1;
                        ssl::RSA_free(rsa);
                        (fresh, done)
                    }
                    ssl::EVP_PKEY_EC => {
                        let method = raw::ENGINE_get_EC(self.0.as_ptr());
                        let ec = ssl::EVP_PKEY_get1_EC_KEY(key.as_ptr());
                        if method.is_null() || ec.is_null() {
                            ssl::EC_KEY_free(ec);
                            return None;
                        }
                        let Some(fresh) = fresh() else {
                            ssl::EC_KEY_free(ec);
                            return None;
                        };
                        let done = raw::EC_KEY_set_method(ec, method) == 1
                            && ssl::EVP_PKEY_set1_EC_KEY(fresh.as_ptr(), ec) == 1;
                        ssl::EC_KEY_free(ec);
                        (fresh, done)
                    }
                    _ => return None,
                };
                let (fresh, done) = adopted;
                if !done {
                    ssl::EVP_PKEY_free(fresh.as_ptr());
                    return None;
                }
                ssl::EVP_PKEY_free(key.as_ptr());
                Some((fresh, Place::Key))
            }
        }
    }

    impl Drop for Engine {
        fn drop(&mut self) {
            // SAFETY: started and found by us, and all that was made of it borrowed its library.
            unsafe {
                raw::ENGINE_finish(self.0.as_ptr());
                raw::ENGINE_free(self.0.as_ptr());
            }
        }
    }
}

/// Where an engine has its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is named where the key is used.
    Use,
    /// It is in the key.
    Key,
}

#[cfg(not(engines))]
impl Engine {
    pub(super) fn load(name: &str, _: Option<&Path>) -> Result<Self, DeviceError> {
        Err(DeviceError::Unusable(format!(
            "the engine {name:?} cannot be used: this OpenSSL has no engines; use the device's provider"
        )))
    }

    pub(super) fn name(&self) -> String {
        match *self {}
    }

    pub(super) const fn as_ptr(&self) -> *mut ssl::ENGINE {
        match *self {}
    }

    pub(super) fn cipher(&self, _: &CStr) -> *const ssl::EVP_CIPHER {
        match *self {}
    }

    pub(super) fn digest(&self, _: &CStr) -> *const ssl::EVP_MD {
        match *self {}
    }

    pub(super) fn mac(&self, _: &CStr) -> i32 {
        match *self {}
    }

    pub(super) fn adopt(
        &self,
        _: std::ptr::NonNull<ssl::EVP_PKEY>,
    ) -> Option<(std::ptr::NonNull<ssl::EVP_PKEY>, Place)> {
        match *self {}
    }
}
