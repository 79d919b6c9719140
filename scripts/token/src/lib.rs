//! The entry points of a PKCS#11 module, which lead to the token.

use kryoptic_lib::fns::general::{fn_get_function_list, fn_get_interface, fn_get_interface_list};
use kryoptic_lib::pkcs11::{
    CK_FLAGS, CK_FUNCTION_LIST_PTR_PTR, CK_INTERFACE_PTR, CK_INTERFACE_PTR_PTR, CK_RV,
    CK_ULONG_PTR, CK_UTF8CHAR_PTR, CK_VERSION_PTR,
};

/// Of PKCS #11 v2.40 (§5.4).
#[unsafe(no_mangle)]
pub extern "C" fn C_GetFunctionList(list: CK_FUNCTION_LIST_PTR_PTR) -> CK_RV {
    fn_get_function_list(list)
}

/// From v3.0 on (§5.4.6).
#[unsafe(no_mangle)]
pub extern "C" fn C_GetInterface(
    name: CK_UTF8CHAR_PTR,
    version: CK_VERSION_PTR,
    interface: CK_INTERFACE_PTR_PTR,
    flags: CK_FLAGS,
) -> CK_RV {
    fn_get_interface(name, version, interface, flags)
}

/// From v3.0 on (§5.4.5).
#[unsafe(no_mangle)]
pub extern "C" fn C_GetInterfaceList(list: CK_INTERFACE_PTR, count: CK_ULONG_PTR) -> CK_RV {
    fn_get_interface_list(list, count)
}
