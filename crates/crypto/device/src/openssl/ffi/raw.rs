//! libcrypto's functions, by their names in its headers, and the load of the library.
//!
//! It is loaded at run time, on first use: so the program starts, and measures all else, where it
//! is not installed. [`load`] fills one table of pointers; each function below calls through its
//! pointer, as a linked program does through its global offset table.
//!
//! Every `unsafe fn` here has two requirements: those of the function in libcrypto's manual, and
//! that [`load`] has succeeded; for those of [`EngineFunctions`], that it returned
//! [`Engines::Has`].

#![allow(
    clippy::upper_case_acronyms,
    non_camel_case_types,
    non_snake_case,
    reason = "the names of libcrypto's headers"
)]

use crate::DeviceError;
use libloading::os::unix::Library;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_long, c_uchar, c_uint, c_ulong, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Names of the library, the one that most systems have first. The last is whatever a system calls
/// its default.
const NAMES: [&str; 3] = ["libcrypto.so.3", "libcrypto.so.4", "libcrypto.so"];
/// The first version with providers: 3.0.0.
const VERSION_MIN: c_ulong = 0x3000_0000;

/// Whether the loaded library has engines: version 3, unless they were left out of its build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engines {
    Has,
    HasNot,
}

/// Loads libcrypto, unless it is loaded already.
///
/// # Errors
/// [`DeviceError::Unusable`]: no usable version is installed.
pub(super) fn load() -> Result<Engines, DeviceError> {
    static LOADED: OnceLock<Result<Engines, String>> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            let (library, functions, engines) = open(&NAMES)?;
            let has = match engines {
                Some(_) => Engines::Has,
                None => Engines::HasNot,
            };
            // SAFETY: the only writes, in one thread, before `load` returns anywhere.
            unsafe {
                (*FUNCTIONS.0.get()).write(functions);
                if let Some(engines) = engines {
                    (*ENGINE_FUNCTIONS.0.get()).write(engines);
                }
            }
            // Never unloaded: the tables point into it.
            std::mem::forget(library);
            Ok(has)
        })
        .clone()
        .map_err(DeviceError::Unusable)
}

/// Opens the first usable library of these names.
fn open(names: &[&str]) -> Result<(Library, Functions, Option<EngineFunctions>), String> {
    let mut reasons = Vec::new();
    for name in names {
        match open_one(name) {
            Ok(opened) => return Ok(opened),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(format!(
        "OpenSSL's libcrypto is needed here, in version 3.0 or newer, and cannot be loaded: {}; \
         install it, on Debian and Ubuntu: sudo apt install libssl3; on Fedora: openssl-libs",
        reasons.join("; ")
    ))
}

fn open_one(name: &str) -> Result<(Library, Functions, Option<EngineFunctions>), String> {
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL;
    // SAFETY: the initialisation of libcrypto has no requirements.
    let library = unsafe { Library::open(Some(name), flags) }.map_err(|error| error.to_string())?;
    let lacks = |error: libloading::Error| format!("{name} lacks a function: {error}");
    // SAFETY: its type since version 1.1.
    let version =
        unsafe { library.get::<unsafe extern "C" fn() -> c_ulong>(b"OpenSSL_version_num") }
            .map_err(lacks)?;
    // SAFETY: no arguments.
    let version = unsafe { version() };
    if version < VERSION_MIN {
        let (major, minor) = (version >> 28, version >> 20 & 0xff);
        return Err(format!("{name} has version {major}.{minor}"));
    }
    // SAFETY: declared as in the headers of versions 3 and 4.
    let functions = unsafe { Functions::resolve(&library) }.map_err(lacks)?;
    // SAFETY: declared as in the headers of version 3; version 4 lacks them.
    let engines = unsafe { EngineFunctions::resolve(&library) }.ok();
    Ok((library, functions, engines))
}

/// Lets modules that are loaded later find libcrypto's functions without naming the library.
///
/// Not done by [`load`]: a PKCS#11 module that brings a version of its own along would find these
/// functions instead.
pub(super) fn publish() {
    for name in NAMES {
        let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL | libc::RTLD_NOLOAD;
        // SAFETY: the call loads nothing.
        if let Ok(library) = unsafe { Library::open(Some(name), flags) } {
            std::mem::forget(library);
            return;
        }
    }
}

/// A table that [`load`] writes.
struct Table<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: written once, before any read (see `load`).
unsafe impl<T: Sync> Sync for Table<T> {}

static FUNCTIONS: Table<Functions> = Table(UnsafeCell::new(MaybeUninit::uninit()));
static ENGINE_FUNCTIONS: Table<EngineFunctions> = Table(UnsafeCell::new(MaybeUninit::uninit()));

/// Declares opaque types.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(#[repr(C)]
        pub(super) struct $name([u8; 0]);)*
    };
}

/// Declares functions: a table of their pointers, how it is filled, and a function for each.
macro_rules! functions {
    ($(#[$meta:meta])* $table:ident in $static:ident:
     $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        $(#[$meta])*
        struct $table {
            $($name: unsafe extern "C" fn($($type),*) $(-> $result)?,)*
        }

        impl $table {
            #[cfg(test)]
            const NAMES: &[&str] = &[$(stringify!($name)),*];

            /// # Safety
            /// The library's functions have the declared types.
            unsafe fn resolve(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: by the caller.
                unsafe {
                    Ok(Self { $($name: *library.get(stringify!($name).as_bytes())?,)* })
                }
            }
        }

        $(#[inline(always)]
        pub(super) unsafe fn $name($($argument: $type),*) $(-> $result)? {
            // SAFETY: by the caller: the table is written, and libcrypto's requirements are met.
            unsafe { ((*$static.0.get()).assume_init_ref().$name)($($argument),*) }
        })*
    };
}

opaque! {
    EC_KEY ENGINE EVP_CIPHER EVP_CIPHER_CTX EVP_MAC EVP_MAC_CTX EVP_MD EVP_MD_CTX EVP_PKEY
    EVP_PKEY_CTX HMAC_CTX OSSL_LIB_CTX OSSL_PROVIDER RSA
}

/// A parameter (OSSL_PARAM(3)).
#[repr(C)]
pub(super) struct OSSL_PARAM {
    key: *const c_char,
    data_type: c_uint,
    data: *mut c_void,
    data_size: usize,
    return_size: usize,
}

/// An error's data are text.
pub(super) const ERR_TXT_STRING: c_int = 2;
pub(super) const EVP_CTRL_GCM_GET_TAG: c_int = 0x10;
pub(super) const EVP_CTRL_GCM_SET_TAG: c_int = 0x11;
pub(super) const EVP_PKEY_EC: c_int = 408;
pub(super) const EVP_PKEY_RSA: c_int = 6;
pub(super) const OPENSSL_VERSION: c_int = 0;
pub(super) const RSA_PKCS1_OAEP_PADDING: c_int = 4;
pub(super) const RSA_PKCS1_PADDING: c_int = 1;
pub(super) const RSA_PKCS1_PSS_PADDING: c_int = 6;
/// RSA_PSS_SALTLEN_DIGEST: a salt of the hash's length.
pub(super) const RSA_PSS_SALTLEN_DIGEST: c_int = -1;
/// For [`OPENSSL_info`]: the directory of engines (OPENSSL_INFO_ENGINES_DIR).
pub(super) const ENGINES_FOLDER: c_int = 1002;
/// For [`OPENSSL_info`]: the directory of providers (OPENSSL_INFO_MODULES_DIR).
pub(super) const PROVIDERS_FOLDER: c_int = 1003;

functions! {
    /// Functions of versions 3 and 4.
    Functions in FUNCTIONS:
    // openssl/crypto.h
    fn OPENSSL_info(what: c_int) -> *const c_char;
    fn OpenSSL_version(what: c_int) -> *const c_char;
    fn OSSL_LIB_CTX_free(library: *mut OSSL_LIB_CTX);
    fn OSSL_LIB_CTX_new() -> *mut OSSL_LIB_CTX;

    // openssl/err.h
    fn ERR_clear_error();
    fn ERR_error_string_n(code: c_ulong, text: *mut c_char, length: usize);
    fn ERR_get_error_all(
        file: *mut *const c_char,
        line: *mut c_int,
        function: *mut *const c_char,
        data: *mut *const c_char,
        flags: *mut c_int,
    ) -> c_ulong;

    // openssl/provider.h
    fn OSSL_PROVIDER_get_params(
        provider: *const OSSL_PROVIDER,
        params: *mut OSSL_PARAM,
    ) -> c_int;
    fn OSSL_PROVIDER_load(library: *mut OSSL_LIB_CTX, name: *const c_char) -> *mut OSSL_PROVIDER;
    fn OSSL_PROVIDER_self_test(provider: *const OSSL_PROVIDER) -> c_int;
    fn OSSL_PROVIDER_set_default_search_path(
        library: *mut OSSL_LIB_CTX,
        path: *const c_char,
    ) -> c_int;
    fn OSSL_PROVIDER_unload(provider: *mut OSSL_PROVIDER) -> c_int;

    // openssl/params.h
    fn OSSL_PARAM_construct_end() -> OSSL_PARAM;
    fn OSSL_PARAM_construct_utf8_ptr(
        key: *const c_char,
        value: *mut *mut c_char,
        size: usize,
    ) -> OSSL_PARAM;
    fn OSSL_PARAM_construct_utf8_string(
        key: *const c_char,
        value: *mut c_char,
        size: usize,
    ) -> OSSL_PARAM;

    // openssl/evp.h: ciphers
    fn EVP_CIPHER_CTX_ctrl(
        ctx: *mut EVP_CIPHER_CTX,
        command: c_int,
        number: c_int,
        pointer: *mut c_void,
    ) -> c_int;
    fn EVP_CIPHER_CTX_free(ctx: *mut EVP_CIPHER_CTX);
    fn EVP_CIPHER_CTX_new() -> *mut EVP_CIPHER_CTX;
    fn EVP_CIPHER_CTX_reset(ctx: *mut EVP_CIPHER_CTX) -> c_int;
    fn EVP_CIPHER_CTX_set_padding(ctx: *mut EVP_CIPHER_CTX, padding: c_int) -> c_int;
    fn EVP_CIPHER_fetch(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_CIPHER;
    fn EVP_CIPHER_free(cipher: *mut EVP_CIPHER);
    fn EVP_CIPHER_get_block_size(cipher: *const EVP_CIPHER) -> c_int;
    fn EVP_CIPHER_get_iv_length(cipher: *const EVP_CIPHER) -> c_int;
    fn EVP_CIPHER_get_key_length(cipher: *const EVP_CIPHER) -> c_int;
    fn EVP_CipherFinal(ctx: *mut EVP_CIPHER_CTX, output: *mut c_uchar, made: *mut c_int) -> c_int;
    fn EVP_CipherInit_ex(
        ctx: *mut EVP_CIPHER_CTX,
        cipher: *const EVP_CIPHER,
        engine: *mut ENGINE,
        key: *const c_uchar,
        iv: *const c_uchar,
        encrypts: c_int,
    ) -> c_int;
    fn EVP_CipherUpdate(
        ctx: *mut EVP_CIPHER_CTX,
        output: *mut c_uchar,
        made: *mut c_int,
        input: *const c_uchar,
        length: c_int,
    ) -> c_int;
    fn EVP_DecryptUpdate(
        ctx: *mut EVP_CIPHER_CTX,
        output: *mut c_uchar,
        made: *mut c_int,
        input: *const c_uchar,
        length: c_int,
    ) -> c_int;
    fn EVP_EncryptFinal_ex(
        ctx: *mut EVP_CIPHER_CTX,
        output: *mut c_uchar,
        made: *mut c_int,
    ) -> c_int;
    fn EVP_EncryptUpdate(
        ctx: *mut EVP_CIPHER_CTX,
        output: *mut c_uchar,
        made: *mut c_int,
        input: *const c_uchar,
        length: c_int,
    ) -> c_int;

    // openssl/evp.h: hashes and MACs
    fn EVP_DigestFinal_ex(ctx: *mut EVP_MD_CTX, output: *mut c_uchar, made: *mut c_uint) -> c_int;
    fn EVP_DigestInit_ex(
        ctx: *mut EVP_MD_CTX,
        digest: *const EVP_MD,
        engine: *mut ENGINE,
    ) -> c_int;
    fn EVP_DigestUpdate(ctx: *mut EVP_MD_CTX, data: *const c_void, length: usize) -> c_int;
    fn EVP_get_digestbyname(name: *const c_char) -> *const EVP_MD;
    fn EVP_MAC_CTX_free(ctx: *mut EVP_MAC_CTX);
    fn EVP_MAC_CTX_new(mac: *mut EVP_MAC) -> *mut EVP_MAC_CTX;
    fn EVP_MAC_fetch(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_MAC;
    fn EVP_MAC_final(
        ctx: *mut EVP_MAC_CTX,
        output: *mut c_uchar,
        made: *mut usize,
        room: usize,
    ) -> c_int;
    fn EVP_MAC_free(mac: *mut EVP_MAC);
    fn EVP_MAC_init(
        ctx: *mut EVP_MAC_CTX,
        key: *const c_uchar,
        length: usize,
        params: *const OSSL_PARAM,
    ) -> c_int;
    fn EVP_MAC_update(ctx: *mut EVP_MAC_CTX, data: *const c_uchar, length: usize) -> c_int;
    fn EVP_MD_CTX_copy_ex(to: *mut EVP_MD_CTX, from: *const EVP_MD_CTX) -> c_int;
    fn EVP_MD_CTX_free(ctx: *mut EVP_MD_CTX);
    fn EVP_MD_CTX_new() -> *mut EVP_MD_CTX;
    fn EVP_MD_fetch(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_MD;
    fn EVP_MD_free(digest: *mut EVP_MD);

    // openssl/evp.h: signatures of whole messages
    fn EVP_DigestSign(
        ctx: *mut EVP_MD_CTX,
        signature: *mut c_uchar,
        signature_length: *mut usize,
        data: *const c_uchar,
        length: usize,
    ) -> c_int;
    fn EVP_DigestSignInit_ex(
        ctx: *mut EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        digest: *const c_char,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
        key: *mut EVP_PKEY,
        params: *const OSSL_PARAM,
    ) -> c_int;
    fn EVP_DigestVerify(
        ctx: *mut EVP_MD_CTX,
        signature: *const c_uchar,
        signature_length: usize,
        data: *const c_uchar,
        length: usize,
    ) -> c_int;
    fn EVP_DigestVerifyInit_ex(
        ctx: *mut EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        digest: *const c_char,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
        key: *mut EVP_PKEY,
        params: *const OSSL_PARAM,
    ) -> c_int;

    // openssl/evp.h: keys
    fn EVP_PKEY_CTX_free(ctx: *mut EVP_PKEY_CTX);
    fn EVP_PKEY_CTX_new_from_pkey(
        library: *mut OSSL_LIB_CTX,
        key: *mut EVP_PKEY,
        properties: *const c_char,
    ) -> *mut EVP_PKEY_CTX;
    fn EVP_PKEY_CTX_set_signature_md(ctx: *mut EVP_PKEY_CTX, digest: *const EVP_MD) -> c_int;
    fn EVP_PKEY_decapsulate(
        ctx: *mut EVP_PKEY_CTX,
        secret: *mut c_uchar,
        secret_length: *mut usize,
        input: *const c_uchar,
        length: usize,
    ) -> c_int;
    fn EVP_PKEY_decapsulate_init(ctx: *mut EVP_PKEY_CTX, params: *const OSSL_PARAM) -> c_int;
    fn EVP_PKEY_decrypt(
        ctx: *mut EVP_PKEY_CTX,
        output: *mut c_uchar,
        made: *mut usize,
        input: *const c_uchar,
        length: usize,
    ) -> c_int;
    fn EVP_PKEY_decrypt_init(ctx: *mut EVP_PKEY_CTX) -> c_int;
    fn EVP_PKEY_encapsulate(
        ctx: *mut EVP_PKEY_CTX,
        output: *mut c_uchar,
        made: *mut usize,
        secret: *mut c_uchar,
        secret_length: *mut usize,
    ) -> c_int;
    fn EVP_PKEY_encapsulate_init(ctx: *mut EVP_PKEY_CTX, params: *const OSSL_PARAM) -> c_int;
    fn EVP_PKEY_encrypt(
        ctx: *mut EVP_PKEY_CTX,
        output: *mut c_uchar,
        made: *mut usize,
        input: *const c_uchar,
        length: usize,
    ) -> c_int;
    fn EVP_PKEY_encrypt_init(ctx: *mut EVP_PKEY_CTX) -> c_int;
    fn EVP_PKEY_free(key: *mut EVP_PKEY);
    fn EVP_PKEY_get_size(key: *const EVP_PKEY) -> c_int;
    fn EVP_PKEY_new_raw_private_key_ex(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        properties: *const c_char,
        key: *const c_uchar,
        length: usize,
    ) -> *mut EVP_PKEY;
    fn EVP_PKEY_new_raw_public_key_ex(
        library: *mut OSSL_LIB_CTX,
        name: *const c_char,
        properties: *const c_char,
        key: *const c_uchar,
        length: usize,
    ) -> *mut EVP_PKEY;
    fn EVP_PKEY_sign(
        ctx: *mut EVP_PKEY_CTX,
        signature: *mut c_uchar,
        made: *mut usize,
        digest: *const c_uchar,
        length: usize,
    ) -> c_int;
    fn EVP_PKEY_sign_init(ctx: *mut EVP_PKEY_CTX) -> c_int;
    fn EVP_PKEY_verify(
        ctx: *mut EVP_PKEY_CTX,
        signature: *const c_uchar,
        signature_length: usize,
        digest: *const c_uchar,
        length: usize,
    ) -> c_int;
    fn EVP_PKEY_verify_init(ctx: *mut EVP_PKEY_CTX) -> c_int;

    // openssl/rsa.h
    fn EVP_PKEY_CTX_set_rsa_mgf1_md(ctx: *mut EVP_PKEY_CTX, digest: *const EVP_MD) -> c_int;
    fn EVP_PKEY_CTX_set_rsa_oaep_md(ctx: *mut EVP_PKEY_CTX, digest: *const EVP_MD) -> c_int;
    fn EVP_PKEY_CTX_set_rsa_padding(ctx: *mut EVP_PKEY_CTX, padding: c_int) -> c_int;
    fn EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx: *mut EVP_PKEY_CTX, length: c_int) -> c_int;

    // openssl/x509.h
    fn d2i_AutoPrivateKey_ex(
        key: *mut *mut EVP_PKEY,
        bytes: *mut *const c_uchar,
        length: c_long,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
    ) -> *mut EVP_PKEY;
    fn d2i_PUBKEY_ex(
        key: *mut *mut EVP_PKEY,
        bytes: *mut *const c_uchar,
        length: c_long,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
    ) -> *mut EVP_PKEY;
}

functions! {
    /// Functions that only engines need. Version 4 lacks those of openssl/engine.h.
    EngineFunctions in ENGINE_FUNCTIONS:
    // openssl/engine.h
    fn ENGINE_by_id(id: *const c_char) -> *mut ENGINE;
    fn ENGINE_ctrl_cmd_string(
        engine: *mut ENGINE,
        command: *const c_char,
        argument: *const c_char,
        optional: c_int,
    ) -> c_int;
    fn ENGINE_finish(engine: *mut ENGINE) -> c_int;
    fn ENGINE_free(engine: *mut ENGINE) -> c_int;
    fn ENGINE_get_cipher(engine: *mut ENGINE, nid: c_int) -> *const EVP_CIPHER;
    fn ENGINE_get_digest(engine: *mut ENGINE, nid: c_int) -> *const EVP_MD;
    fn ENGINE_get_EC(engine: *const ENGINE) -> *const c_void;
    fn ENGINE_get_name(engine: *const ENGINE) -> *const c_char;
    fn ENGINE_get_pkey_meth(engine: *mut ENGINE, nid: c_int) -> *const c_void;
    fn ENGINE_get_RSA(engine: *const ENGINE) -> *const c_void;
    fn ENGINE_init(engine: *mut ENGINE) -> c_int;
    fn ENGINE_register_pkey_asn1_meths(engine: *mut ENGINE) -> c_int;

    // openssl/ec.h, openssl/rsa.h, openssl/objects.h
    fn EC_KEY_free(key: *mut EC_KEY);
    fn EC_KEY_set_method(key: *mut EC_KEY, method: *const c_void) -> c_int;
    fn RSA_free(key: *mut RSA);
    fn RSA_set_method(key: *mut RSA, method: *const c_void) -> c_int;
    fn OBJ_txt2nid(text: *const c_char) -> c_int;

    // openssl/hmac.h
    fn HMAC_CTX_free(ctx: *mut HMAC_CTX);
    fn HMAC_CTX_new() -> *mut HMAC_CTX;
    fn HMAC_Final(ctx: *mut HMAC_CTX, output: *mut c_uchar, made: *mut c_uint) -> c_int;
    fn HMAC_Init_ex(
        ctx: *mut HMAC_CTX,
        key: *const c_void,
        length: c_int,
        digest: *const EVP_MD,
        engine: *mut ENGINE,
    ) -> c_int;
    fn HMAC_Update(ctx: *mut HMAC_CTX, data: *const c_uchar, length: usize) -> c_int;

    // openssl/evp.h
    fn EVP_DigestSignFinal(
        ctx: *mut EVP_MD_CTX,
        signature: *mut c_uchar,
        made: *mut usize,
    ) -> c_int;
    fn EVP_DigestSignInit(
        ctx: *mut EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        digest: *const EVP_MD,
        engine: *mut ENGINE,
        key: *mut EVP_PKEY,
    ) -> c_int;
    fn EVP_DigestVerifyInit(
        ctx: *mut EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        digest: *const EVP_MD,
        engine: *mut ENGINE,
        key: *mut EVP_PKEY,
    ) -> c_int;
    fn EVP_PKEY_CTX_new(key: *mut EVP_PKEY, engine: *mut ENGINE) -> *mut EVP_PKEY_CTX;
    fn EVP_PKEY_get1_EC_KEY(key: *mut EVP_PKEY) -> *mut EC_KEY;
    fn EVP_PKEY_get1_RSA(key: *mut EVP_PKEY) -> *mut RSA;
    fn EVP_PKEY_get_id(key: *const EVP_PKEY) -> c_int;
    fn EVP_PKEY_new() -> *mut EVP_PKEY;
    fn EVP_PKEY_new_mac_key(
        nid: c_int,
        engine: *mut ENGINE,
        key: *const c_uchar,
        length: c_int,
    ) -> *mut EVP_PKEY;
    fn EVP_PKEY_set1_EC_KEY(key: *mut EVP_PKEY, inner: *mut EC_KEY) -> c_int;
    fn EVP_PKEY_set1_RSA(key: *mut EVP_PKEY, inner: *mut RSA) -> c_int;
}

#[cfg(test)]
mod tests;
