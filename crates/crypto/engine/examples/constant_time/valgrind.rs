//! Client requests to valgrind's memcheck (valgrind.h, memcheck.h): nothing happens outside of it.

use std::arch::asm;

/// Requests by their numbers.
const RUNNING_ON_VALGRIND: usize = 0x1001;
const COUNT_ERRORS: usize = 0x1201;
const MAKE_MEM_UNDEFINED: usize = 0x4d43_0001;
const MAKE_MEM_DEFINED: usize = 0x4d43_0002;

/// Whether the program runs under valgrind.
pub(crate) fn is_running() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0) != 0
}

/// Errors reported so far; with `--error-limit=no`.
pub(crate) fn errors() -> usize {
    request(COUNT_ERRORS, 0, 0)
}

/// Marks bytes as secret: memcheck reports a branch or an address that depends on them.
pub(crate) fn mark(secret: &[u8]) {
    request(MAKE_MEM_UNDEFINED, secret.as_ptr() as usize, secret.len());
}

/// Takes the mark away: of ciphertexts, and before a result is used.
pub(crate) fn unmark(public: &[u8]) {
    request(MAKE_MEM_DEFINED, public.as_ptr() as usize, public.len());
}

fn request(number: usize, first: usize, second: usize) -> usize {
    let arguments = [number, first, second, 0, 0, 0];
    let mut result = 0;
    // SAFETY: on a processor the rotations of `rdi` by 128 in all and the exchange of `rbx` with
    // itself change nothing. Valgrind recognises them, reads the six words at `rax` and sets `rdx`;
    // it changes only the state that it keeps itself for the named bytes.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") result,
            inout("rdi") 0_usize => _,
        );
    }
    result
}
