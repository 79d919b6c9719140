//! Functions of libcrypto 3 that `openssl-sys` does not declare, as in libcrypto's headers.

use openssl_sys::{
    ENGINE, EVP_CIPHER, EVP_CIPHER_CTX, EVP_MD, EVP_PKEY, EVP_PKEY_CTX, OSSL_LIB_CTX, OSSL_PARAM,
    OSSL_PROVIDER,
};
use std::ffi::{c_char, c_int, c_long, c_uchar, c_ulong};

/// An error's data are text.
pub(super) const ERR_TXT_STRING: c_int = 2;

unsafe extern "C" {
    // openssl/err.h
    pub(super) fn ERR_error_string_n(code: c_ulong, text: *mut c_char, length: usize);
    pub(super) fn ERR_get_error_all(
        file: *mut *const c_char,
        line: *mut c_int,
        function: *mut *const c_char,
        data: *mut *const c_char,
        flags: *mut c_int,
    ) -> c_ulong;

    // openssl/provider.h
    pub(super) fn OSSL_PROVIDER_get_params(
        provider: *const OSSL_PROVIDER,
        params: *mut OSSL_PARAM,
    ) -> c_int;
    pub(super) fn OSSL_PROVIDER_self_test(provider: *const OSSL_PROVIDER) -> c_int;

    // openssl/params.h
    pub(super) fn OSSL_PARAM_construct_utf8_ptr(
        key: *const c_char,
        value: *mut *mut c_char,
        size: usize,
    ) -> OSSL_PARAM;
    pub(super) fn OSSL_PARAM_construct_utf8_string(
        key: *const c_char,
        value: *mut c_char,
        size: usize,
    ) -> OSSL_PARAM;

    // openssl/crypto.h
    pub(super) fn OPENSSL_info(what: c_int) -> *const c_char;

    // openssl/evp.h
    pub(super) fn EVP_CIPHER_CTX_reset(ctx: *mut EVP_CIPHER_CTX) -> c_int;
    pub(super) fn EVP_DigestSignInit_ex(
        ctx: *mut openssl_sys::EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        digest: *const c_char,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
        key: *mut EVP_PKEY,
        params: *const OSSL_PARAM,
    ) -> c_int;
    pub(super) fn EVP_DigestVerifyInit_ex(
        ctx: *mut openssl_sys::EVP_MD_CTX,
        pctx: *mut *mut EVP_PKEY_CTX,
        digest: *const c_char,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
        key: *mut EVP_PKEY,
        params: *const OSSL_PARAM,
    ) -> c_int;
    pub(super) fn EVP_PKEY_CTX_new_from_pkey(
        library: *mut OSSL_LIB_CTX,
        key: *mut EVP_PKEY,
        properties: *const c_char,
    ) -> *mut EVP_PKEY_CTX;
    pub(super) fn d2i_AutoPrivateKey_ex(
        key: *mut *mut EVP_PKEY,
        bytes: *mut *const c_uchar,
        length: c_long,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
    ) -> *mut EVP_PKEY;
    pub(super) fn d2i_PUBKEY_ex(
        key: *mut *mut EVP_PKEY,
        bytes: *mut *const c_uchar,
        length: c_long,
        library: *mut OSSL_LIB_CTX,
        properties: *const c_char,
    ) -> *mut EVP_PKEY;
}

// openssl/engine.h; removed in OpenSSL 4.
#[cfg(engines)]
unsafe extern "C" {
    pub(super) fn ENGINE_by_id(id: *const c_char) -> *mut ENGINE;
    pub(super) fn ENGINE_ctrl_cmd_string(
        engine: *mut ENGINE,
        command: *const c_char,
        argument: *const c_char,
        optional: c_int,
    ) -> c_int;
    pub(super) fn ENGINE_init(engine: *mut ENGINE) -> c_int;
    pub(super) fn ENGINE_finish(engine: *mut ENGINE) -> c_int;
    pub(super) fn ENGINE_free(engine: *mut ENGINE) -> c_int;
    pub(super) fn ENGINE_get_name(engine: *const ENGINE) -> *const c_char;
    pub(super) fn ENGINE_register_pkey_asn1_meths(engine: *mut ENGINE) -> c_int;
    pub(super) fn ENGINE_get_cipher(engine: *mut ENGINE, nid: c_int) -> *const EVP_CIPHER;
    pub(super) fn ENGINE_get_digest(engine: *mut ENGINE, nid: c_int) -> *const EVP_MD;
    pub(super) fn ENGINE_get_pkey_meth(engine: *mut ENGINE, nid: c_int) -> *const std::ffi::c_void;
    pub(super) fn ENGINE_get_RSA(engine: *const ENGINE) -> *const std::ffi::c_void;
    pub(super) fn ENGINE_get_EC(engine: *const ENGINE) -> *const std::ffi::c_void;
    pub(super) fn RSA_set_method(
        key: *mut openssl_sys::RSA,
        method: *const std::ffi::c_void,
    ) -> c_int;
    pub(super) fn EC_KEY_set_method(
        key: *mut openssl_sys::EC_KEY,
        method: *const std::ffi::c_void,
    ) -> c_int;
    pub(super) fn OBJ_txt2nid(text: *const c_char) -> c_int;
}

/// For [`OPENSSL_info`]: the directory of engines (OPENSSL_INFO_ENGINES_DIR).
#[cfg(engines)]
pub(super) const ENGINES_FOLDER: c_int = 1002;
/// For [`OPENSSL_info`]: the directory of providers (OPENSSL_INFO_MODULES_DIR).
pub(super) const PROVIDERS_FOLDER: c_int = 1003;
