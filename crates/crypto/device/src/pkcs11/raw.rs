//! Module calls with results of a length that the module announces. The binding silently cuts a
//! result to its buffer, and allocates any announced length; here both are faults of the token.
//!
//! The functions come from the module that the binding has loaded and initialised.

#![allow(unsafe_code, reason = "modules are C")]

use std::path::Path;

use cryptoki::context::Function;
use cryptoki::error::{Error, Rv, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, ObjectHandle};
use cryptoki::session::Session as Connection;
use cryptoki_sys::{
    CK_ATTRIBUTE, CK_BYTE, CK_BYTE_PTR, CK_FUNCTION_LIST, CK_FUNCTION_LIST_3_2, CK_INTERFACE,
    CK_MECHANISM, CK_OBJECT_HANDLE, CK_RV, CK_SESSION_HANDLE, CK_ULONG, CK_ULONG_PTR, CKA_VALUE,
    Pkcs11,
};

use crate::DeviceError;
use crate::device::overlong;

/// A result may have this many bytes more than its input: signatures, tags, padding.
const EXTRA_MAX: usize = 1 << 16;
/// Bytes behind the buffer, which the token must not write.
const GUARD_BYTES: usize = 64;
const GUARD: u8 = 0xa7;

/// Why a call has no result.
pub(super) enum CallError {
    /// The token reports an error.
    Reported(Error),
    /// Its result cannot be right.
    Wrong(DeviceError),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Reported(error)
    }
}

/// An operation with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyed {
    Encrypt,
    Decrypt,
    Sign,
}

/// `C_Encrypt`, `C_Decrypt`, `C_Sign` and `C_Digest`.
type SinglePart = unsafe extern "C" fn(
    CK_SESSION_HANDLE,
    CK_BYTE_PTR,
    CK_ULONG,
    CK_BYTE_PTR,
    CK_ULONG_PTR,
) -> CK_RV;

/// `C_EncryptInit`, `C_DecryptInit` and `C_SignInit`.
type KeyedInit =
    unsafe extern "C" fn(CK_SESSION_HANDLE, *mut CK_MECHANISM, CK_OBJECT_HANDLE) -> CK_RV;

/// A module's functions.
pub(super) struct Functions {
    list: CK_FUNCTION_LIST,
    /// The functions of PKCS #11 v3.2, if the module has them.
    newer: Option<Box<CK_FUNCTION_LIST_3_2>>,
}

// SAFETY: pointers to functions of a module that is never unloaded. The module was initialised for
// use by several threads.
unsafe impl Send for Functions {}
// SAFETY: as above.
unsafe impl Sync for Functions {}

impl Functions {
    /// Finds the functions of a module, which stays in memory until the process ends.
    ///
    /// # Errors
    /// The binding's error: no module, or one without a list of functions.
    pub(super) fn of(module: &Path) -> Result<Self, Error> {
        // SAFETY: the binding has loaded the same module before, so that nothing is initialised.
        let library = unsafe { Pkcs11::new(module) }.map_err(Error::LibraryLoading)?;
        if library.C_GetFunctionList.is_err() {
            return Err(Error::MissingSymbol("C_GetFunctionList"));
        }
        let mut list = std::ptr::null_mut();
        // SAFETY: the call stores a pointer to the module's static list.
        let returned = unsafe { library.C_GetFunctionList(&raw mut list) };
        Rv::from(returned).into_result(Function::GetFunctionList)?;
        if list.is_null() {
            return Err(Error::NullFunctionPointer);
        }
        // SAFETY: not null; a list of version 2 is the beginning of every later one.
        let list = unsafe { *list };
        let newer = newer(&library);
        // Never unloaded: its functions are called, and its exit handlers run, until the process
        // ends.
        std::mem::forget(library);
        Ok(Self { list, newer })
    }

    /// Hashes `input`.
    pub(super) fn digest(
        &self,
        connection: &Connection,
        mechanism: &Mechanism<'_>,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), CallError> {
        let init = self.list.C_DigestInit.ok_or(Error::NullFunctionPointer)?;
        let call = self.list.C_Digest.ok_or(Error::NullFunctionPointer)?;
        let mut mechanism: CK_MECHANISM = mechanism.into();
        // SAFETY: a live session, and a mechanism with parameters that outlive the call.
        let returned = unsafe { init(connection.handle(), &raw mut mechanism) };
        Rv::from(returned).into_result(Function::DigestInit)?;
        single_part(call, Function::Digest, connection, input, output)
    }

    /// Encrypts, decrypts or signs `input`. The token may change the parameters of `mechanism`.
    pub(super) fn keyed(
        &self,
        what: Keyed,
        connection: &Connection,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), CallError> {
        let list = &self.list;
        let (init, call): (Option<KeyedInit>, Option<SinglePart>) = match what {
            Keyed::Encrypt => (list.C_EncryptInit, list.C_Encrypt),
            Keyed::Decrypt => (list.C_DecryptInit, list.C_Decrypt),
            Keyed::Sign => (list.C_SignInit, list.C_Sign),
        };
        let (of_init, of_call) = match what {
            Keyed::Encrypt => (Function::EncryptInit, Function::Encrypt),
            Keyed::Decrypt => (Function::DecryptInit, Function::Decrypt),
            Keyed::Sign => (Function::SignInit, Function::Sign),
        };
        let (init, call) = init.zip(call).ok_or(Error::NullFunctionPointer)?;
        let mut mechanism: CK_MECHANISM = mechanism.into();
        // SAFETY: a live session, and a mechanism with parameters that outlive the call.
        let returned = unsafe { init(connection.handle(), &raw mut mechanism, key.handle()) };
        Rv::from(returned).into_result(of_init)?;
        single_part(call, of_call, connection, input, output)
    }

    /// Makes a KEM's ciphertext and the secret, which is a key with the attributes of `template`.
    pub(super) fn encapsulate(
        &self,
        connection: &Connection,
        mechanism: &Mechanism<'_>,
        key: ObjectHandle,
        template: &[Attribute],
        output: &mut Vec<u8>,
    ) -> Result<ObjectHandle, CallError> {
        let newer = self.newer.as_ref().ok_or(Error::NullFunctionPointer)?;
        let call = newer.C_EncapsulateKey.ok_or(Error::NullFunctionPointer)?;
        let mut mechanism: CK_MECHANISM = mechanism.into();
        let mut template: Vec<CK_ATTRIBUTE> = template.iter().map(Into::into).collect();
        let mut secret = 0;
        announced_then_written(Function::EncapsulateKey, 0, output, |at, bytes| {
            // SAFETY: a live session; a mechanism and attributes that outlive the call; `at` is
            // null or has room for `bytes`.
            unsafe {
                call(
                    connection.handle(),
                    &raw mut mechanism,
                    key.handle(),
                    template.as_mut_ptr(),
                    template.len() as CK_ULONG,
                    at,
                    bytes,
                    &raw mut secret,
                )
            }
        })?;
        // SAFETY: the token has made this object.
        Ok(unsafe { ObjectHandle::new_from_raw(secret) })
    }

    /// Appends the value of a key that may be read to `output`.
    pub(super) fn value(
        &self,
        connection: &Connection,
        key: ObjectHandle,
        output: &mut Vec<u8>,
    ) -> Result<(), CallError> {
        let call = self
            .list
            .C_GetAttributeValue
            .ok_or(Error::NullFunctionPointer)?;
        let mut value = Vec::new();
        announced_then_written(Function::GetAttributeValue, 0, &mut value, |at, bytes| {
            let mut attribute = CK_ATTRIBUTE {
                type_: CKA_VALUE,
                pValue: at.cast(),
                // SAFETY: `bytes` is the address of a number.
                ulValueLen: unsafe { *bytes },
            };
            // SAFETY: a live session, and an attribute with a null value or a value of that room.
            let returned =
                unsafe { call(connection.handle(), key.handle(), &raw mut attribute, 1) };
            // SAFETY: as above.
            unsafe { *bytes = attribute.ulValueLen };
            returned
        })?;
        output.append(&mut value);
        Ok(())
    }
}

/// Returns the functions of PKCS #11 v3.2, if the module has them.
fn newer(library: &Pkcs11) -> Option<Box<CK_FUNCTION_LIST_3_2>> {
    library.C_GetInterface.as_ref().ok()?;
    let mut interface: *mut CK_INTERFACE = std::ptr::null_mut();
    let any = std::ptr::null_mut();
    // SAFETY: no name and no version: the call stores a pointer to its default interface.
    let returned =
        unsafe { library.C_GetInterface(any, std::ptr::null_mut(), &raw mut interface, 0) };
    if returned != 0 || interface.is_null() {
        return None;
    }
    // SAFETY: not null; every list of functions begins with its version.
    let list = unsafe { (*interface).pFunctionList };
    if list.is_null() {
        return None;
    }
    // SAFETY: as above.
    let version = unsafe { (*list.cast::<CK_FUNCTION_LIST>()).version };
    if (version.major, version.minor) < (3, 2) {
        return None;
    }
    // SAFETY: a list of this version has all functions of 3.2.
    Some(Box::new(unsafe { *list.cast::<CK_FUNCTION_LIST_3_2>() }))
}

fn single_part(
    call: SinglePart,
    function: Function,
    connection: &Connection,
    input: &[u8],
    output: &mut Vec<u8>,
) -> Result<(), CallError> {
    let session = connection.handle();
    announced_then_written(function, input.len(), output, |at, bytes| {
        // SAFETY: a live session; the call reads its input only; `at` is null or has room for
        // `bytes`.
        unsafe {
            call(
                session,
                input.as_ptr().cast_mut(),
                input.len() as CK_ULONG,
                at,
                bytes,
            )
        }
    })
}

/// Calls a function without a buffer, which announces the length of its result, then with one.
///
/// # Errors
/// [`CallError::Wrong`] if the token announces more than any result has or more than the buffer
/// holds, or writes behind it.
fn announced_then_written(
    function: Function,
    input_bytes: usize,
    output: &mut Vec<u8>,
    mut call: impl FnMut(*mut CK_BYTE, *mut CK_ULONG) -> CK_RV,
) -> Result<(), CallError> {
    output.clear();
    let mut announced: CK_ULONG = 0;
    Rv::from(call(std::ptr::null_mut(), &raw mut announced)).into_result(function)?;
    let asked = announced as usize;
    let most = input_bytes + EXTRA_MAX;
    // The call below ends the operation, without which the session accepts no other.
    let room = asked.min(most);
    announced = room as CK_ULONG;
    output.resize(room, 0);
    // Bytes behind the buffer with a known value: a token that writes a little beyond it is found,
    // without harm to other memory.
    output.resize(room + GUARD_BYTES, GUARD);
    let returned = call(output.as_mut_ptr(), &raw mut announced);
    let is_whole = output[room..].iter().all(|&byte| byte == GUARD);
    if !is_whole {
        output.clear();
        return Err(CallError::Wrong(DeviceError::Wrong(format!(
            "it wrote behind its buffer of {room} B"
        ))));
    }
    if let Err(error) = Rv::from(returned).into_result(function) {
        output.clear();
        return Err(error.into());
    }
    if asked > most {
        output.clear();
        return Err(CallError::Wrong(DeviceError::Wrong(format!(
            "it asked for a buffer of {asked} B for a result of an input of {input_bytes} B"
        ))));
    }
    let announced = announced as usize;
    if announced > room {
        output.clear();
        return Err(CallError::Wrong(overlong(announced, room)));
    }
    output.truncate(announced);
    Ok(())
}

impl CallError {
    /// The token's code, if it reported an error.
    pub(super) fn code(&self) -> Option<&RvError> {
        match self {
            Self::Reported(error) => super::code(error),
            Self::Wrong(_) => None,
        }
    }
}
