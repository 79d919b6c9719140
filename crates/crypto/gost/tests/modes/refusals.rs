//! Mistakes of a caller panic.

use crate::support::key;
use gost::kuznyechik::Kuznyechik;
use gost::magma::{Gost89, Magma};
use gost::mode::{AeadMessage, Cbc, Cnt, Ctr, CtrAcpkm, Ecb, Imito, MacMessage, Mgm, Omac};
use gost::{BlockCipher, Kernel};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn cipher<C: BlockCipher>() -> C {
    C::new(&key(1), Kernel::PORTABLE)
}

#[track_caller]
fn refused(call: impl FnOnce(), reason: &str) {
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("it is refused");
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or(panic.downcast_ref::<&str>().copied());
    assert!(
        message.is_some_and(|message| message.contains(reason)),
        "{message:?}"
    );
}

#[test]
fn refuses_texts_that_are_not_whole_blocks() {
    refused(
        || Ecb::new(cipher::<Magma>()).encrypt(&mut [0; 7]),
        "whole blocks",
    );
    refused(
        || Ecb::new(cipher::<Magma>()).encrypt_all([&mut [0; 9][..]]),
        "whole blocks",
    );
    refused(
        || Cbc::new(cipher::<Kuznyechik>()).encrypt(&[0; 16], &mut [0; 24]),
        "whole blocks",
    );
    refused(
        || Cbc::new(cipher::<Kuznyechik>()).decrypt(&[0; 16], &mut [0; 24]),
        "whole blocks",
    );
    let section = || drop(CtrAcpkm::<Magma>::new(&key(1), Kernel::PORTABLE, 12));
    refused(section, "whole blocks");
    let section = || drop(CtrAcpkm::<Magma>::new(&key(1), Kernel::PORTABLE, 0));
    refused(section, "whole blocks");
}

#[test]
fn refuses_ivs_and_nonces_of_other_lengths() {
    refused(
        || Ctr::new(cipher::<Magma>()).apply(&[0; 8], &mut [0; 8]),
        "half a block",
    );
    refused(
        || Ctr::new(cipher::<Kuznyechik>()).apply(&[0; 4], &mut []),
        "half a block",
    );
    refused(
        || Cbc::new(cipher::<Magma>()).encrypt(&[], &mut [0; 8]),
        "1 to 4 blocks",
    );
    refused(
        || Cbc::new(cipher::<Magma>()).decrypt(&[0; 12], &mut [0; 8]),
        "1 to 4 blocks",
    );
    refused(
        || Cbc::new(cipher::<Magma>()).decrypt(&[0; 40], &mut [0; 8]),
        "1 to 4 blocks",
    );
    refused(
        || Cnt::new(cipher::<Gost89>()).apply(&[0; 4], &mut [0; 8]),
        "one block",
    );
    let mgm = || Mgm::new(cipher::<Magma>()).seal(&[0; 16], &[], &mut [], &mut [0; 8]);
    refused(mgm, "one block");
}

#[test]
fn refuses_a_nonce_with_the_highest_bit_set() {
    let mut nonce = [0; 16];
    nonce[0] = 0x80;
    let mgm = || Mgm::new(cipher::<Kuznyechik>()).seal(&nonce, &[], &mut [], &mut [0; 16]);
    refused(mgm, "highest bit is zero");
}

#[test]
fn refuses_macs_that_are_too_short_or_longer_than_a_block() {
    refused(
        || Omac::new(cipher::<Magma>()).mac(&[], &mut []),
        "1 to 8 B",
    );
    refused(
        || Omac::new(cipher::<Magma>()).mac(&[], &mut [0; 9]),
        "1 to 8 B",
    );
    refused(
        || Imito::new(cipher::<Gost89>()).mac(&[], &mut []),
        "1 to 8 B",
    );
    for bytes in [0, 1, 3, 9] {
        let mgm = || Mgm::new(cipher::<Magma>()).seal(&[0; 8], &[1], &mut [], &mut vec![0; bytes]);
        refused(mgm, "4 to 8 B");
    }
    // An empty or very short tag is never accepted.
    for bytes in [0, 3] {
        let tag = vec![0; bytes];
        let mgm = || assert!(!Mgm::new(cipher::<Magma>()).open(&[0; 8], &[1], &mut [], &tag));
        refused(mgm, "4 to 8 B");
    }
}

/// RFC 9058 §4.1: the tag of nothing is the same under every nonce.
#[test]
fn refuses_an_empty_message_without_additional_data() {
    let seal = || Mgm::new(cipher::<Magma>()).seal(&[0; 8], &[], &mut [], &mut [0; 8]);
    refused(seal, "0 B of additional data and 0 B of text");
    let open = || assert!(!Mgm::new(cipher::<Kuznyechik>()).open(&[0; 16], &[], &mut [], &[0; 16]));
    refused(open, "0 B of additional data and 0 B of text");
    let mut tag = [0; 8];
    Mgm::new(cipher::<Magma>()).seal(&[0; 8], &[1], &mut [], &mut tag);
    Mgm::new(cipher::<Magma>()).seal(&[0; 8], &[], &mut [1], &mut tag);
}

#[test]
fn refuses_a_wrong_number_of_answers() {
    let open = |authentic: &mut [bool]| {
        let message = AeadMessage {
            nonce: [0; 8],
            aad: [1],
            text: &mut [],
            tag: &mut [0; 8],
        };
        Mgm::new(cipher::<Magma>()).open_all([message], authentic);
    };
    refused(|| open(&mut []), "one answer");
    refused(|| open(&mut [true; 2]), "one answer");
    let none = || None::<MacMessage<'_, [u8; 0]>>;
    refused(
        || Omac::new(cipher::<Magma>()).verify_all(none(), &mut [true]),
        "one answer",
    );
}

#[test]
fn accepts_an_empty_batch() {
    Ecb::new(cipher::<Magma>()).encrypt_all([]);
    let none = || None::<gost::mode::Message<'_, [u8; 0]>>;
    Ctr::new(cipher::<Magma>()).apply_all(none());
    Cbc::new(cipher::<Magma>()).encrypt_all(none());
    Cbc::new(cipher::<Magma>()).decrypt_all(none());
    Cnt::new(cipher::<Gost89>()).apply_all(none());
    CtrAcpkm::<Magma>::new(&key(1), Kernel::PORTABLE, 8).apply_all(none());
    Mgm::new(cipher::<Magma>()).seal_all(None::<AeadMessage<'_, [u8; 8], [u8; 0]>>);
}
