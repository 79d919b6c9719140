//! Sealed packets that do not look random.

use super::*;
use journal::record::SealedContents;

fn with(change: impl FnOnce(&mut SealedContents)) -> Fixture {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    change(fixture.cipher_link.contents.as_mut().unwrap());
    fixture
}

#[test]
fn blocks_that_repeat_and_unequal_bytes_are_objections() {
    assert_eq!(
        Fixture::tcp(encrypting(), 1).detail("sealed-looks-random"),
        "of 140 sealed packets sampled whole 190000 B behind their headers were read: 0 blocks of 16 B were there \
         before; chi-square of the values of bytes 262.1, of 415 or less expected"
    );
    let ecb = with(|contents| contents.repeated_blocks = 1);
    assert_eq!(ecb.failing(), ["sealed-looks-random"]);
    let hidden = with(|contents| contents.chi_square_milli = 415_001);
    assert_eq!(hidden.failing(), ["sealed-looks-random"]);
    let fine = with(|contents| contents.chi_square_milli = 415_000);
    assert_eq!(fine.failing(), Vec::<String>::new());
}

/// It has the figure that was asked for, and says what is wrong with the mode.
#[test]
fn a_mode_in_which_equal_blocks_stay_equal_may_repeat_them() {
    let ecb = Adapter::Cipherbench(Encryptor::new(Suite::Gost(wire::Gost::MagmaEcb)));
    let mut ecb = Fixture::tcp(ecb, 1);
    ecb.cipher_link.contents.as_mut().unwrap().repeated_blocks = 8035;
    let failing = ecb.failing();
    assert!(
        !failing.contains(&"sealed-looks-random".to_owned()),
        "{failing:?}"
    );
}

#[test]
fn too_few_bytes_are_not_judged_and_none_are_an_objection() {
    let few = with(|contents| {
        contents.bytes = 16_383;
        contents.chi_square_milli = 1_000_000;
    });
    assert_eq!(few.failing(), Vec::<String>::new());
    assert!(
        few.detail("sealed-looks-random")
            .contains("too few to judge")
    );
    let none = with(|contents| *contents = SealedContents::default());
    assert_eq!(none.failing(), ["sealed-looks-random"]);
    // A kernel that does not describe super-packets.
    let undescribed = with(|contents| {
        *contents = SealedContents {
            not_whole: 12,
            ..SealedContents::default()
        };
    });
    assert_eq!(undescribed.failing(), Vec::<String>::new());
}

#[test]
fn a_device_that_is_not_to_hide_its_payload_is_not_asked() {
    let mut null = Encryptor::new(Suite::Aes256Gcm);
    null.engine = "null".parse().unwrap();
    let fixture = Fixture::tcp(Adapter::Cipherbench(null), 1);
    let mut checks = fixture.checks().into_iter();
    assert!(checks.all(|check| check.name != "sealed-looks-random"));
}
