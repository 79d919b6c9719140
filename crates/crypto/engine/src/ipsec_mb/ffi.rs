//! Declarations of the shim, which documents the requirements on callers.

use crate::Packet;
use std::ffi::c_char;

/// `struct cb_manager`, an opaque type.
#[repr(C)]
pub(super) struct Manager {
    _opaque: [u8; 0],
}

/// `struct cb_sa`, an opaque type.
#[repr(C)]
pub(super) struct Sa {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    pub(super) fn cb_imb_load(threads: usize, version: *mut *const c_char) -> *const c_char;
    pub(super) fn cb_imb_manager_new(why: *mut *const c_char) -> *mut Manager;
    pub(super) fn cb_imb_manager_free(manager: *mut Manager);

    pub(super) fn cb_imb_gcm_new(
        manager: *mut Manager,
        key: *const u8,
        key_bytes: usize,
        salt: *const u8,
        extended: bool,
    ) -> *mut Sa;
    pub(super) fn cb_imb_chacha_new(key: *const u8, salt: *const u8, extended: bool) -> *mut Sa;
    pub(super) fn cb_imb_encrypt_then_mac_new(
        manager: *mut Manager,
        cipher: u32,
        hmac: u32,
        cipher_key: *const u8,
        hmac_key: *const u8,
        extended: bool,
    ) -> *mut Sa;
    pub(super) fn cb_imb_sa_free(sa: *mut Sa);

    pub(super) fn cb_imb_seal(
        manager: *mut Manager,
        sa: *mut Sa,
        buffer: *mut u8,
        packets: *const Packet,
        count: usize,
    ) -> bool;
    pub(super) fn cb_imb_open(
        manager: *mut Manager,
        sa: *mut Sa,
        buffer: *mut u8,
        packets: *const Packet,
        count: usize,
        authentic: *mut bool,
    ) -> bool;
    pub(super) fn cb_imb_seal_from(
        manager: *mut Manager,
        sa: *mut Sa,
        sequence_high: u32,
        text: *const u8,
        packet: *mut u8,
        bytes: usize,
    ) -> bool;

    pub(super) fn cb_imb_aead_seal(
        manager: *mut Manager,
        sa: *mut Sa,
        nonce: *const u8,
        aad: *const u8,
        aad_len: usize,
        src: *const u8,
        len: usize,
        dst: *mut u8,
    ) -> bool;
    pub(super) fn cb_imb_aead_open(
        manager: *mut Manager,
        sa: *mut Sa,
        nonce: *const u8,
        aad: *const u8,
        aad_len: usize,
        buf: *mut u8,
        len: usize,
    ) -> bool;
}
