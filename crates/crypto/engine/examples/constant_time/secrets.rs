//! The method of ctgrind (A. Langley, 2010): secrets are marked as undefined for memcheck, which
//! reports each branch and each address that depends on them.

use super::Outcome;
use super::subjects::{self, Expected, Noise, TAG_BYTES, comparison, control};
use super::valgrind::{errors, mark, unmark};
use engine::{Packet, Selection};
use gost::kuznyechik::Kuznyechik;
use gost::magma::Magma;
use gost::{BlockCipher, KEY_BYTES, Kernel};
use std::hint::black_box;
use wire::overhead::ESP_HEADER_BYTES;

/// Texts of packets, in bytes, by which a batch has short and long ones.
const TEXTS: [usize; 3] = [48, 96, 1440];
/// Blocks of a cipher in bytes: enough for every kernel's widest step, with a rest.
const BLOCKS_BYTES: usize = 1040;

pub(crate) fn run(is_meant: &dyn Fn(&str) -> bool) -> Outcome {
    let found = errors_in(|| of_values(control));
    println!("{found:>4} errors  the control, a comparison that ends at the first difference");
    if found == 0 {
        eprintln!("error: the control was not found: is this memcheck, without suppressions?");
        return Outcome::Blind;
    }
    let mut outcome = Outcome::AsExpected;
    let mut judge = |name: &str, expected: Expected, test: &mut dyn FnMut()| {
        if !is_meant(name) {
            return;
        }
        let found = errors_in(test);
        let verdict = match (found, expected) {
            (0, Expected::Nothing) => String::new(),
            (0, Expected::Leak(_)) => {
                "  NO LONGER a leak: it can be required not to be one".to_owned()
            }
            (_, Expected::Nothing) => "  LEAK".to_owned(),
            (_, Expected::Leak(reason)) => format!("  known: {reason}"),
        };
        println!("{found:>4} errors  {name}{verdict}");
        if (found == 0) != (expected == Expected::Nothing) {
            outcome = Outcome::Different;
        }
    };
    let constant = |left: &_, right: &_| comparison(left, right) != 0;
    judge("comparison of tags", Expected::Nothing, &mut || {
        of_values(constant)
    });
    for kernel in Kernel::all() {
        for (name, test) in [
            (Magma::NAME, of_cipher::<Magma> as fn(Kernel)),
            (Kuznyechik::NAME, of_cipher::<Kuznyechik>),
        ] {
            judge(&format!("{name}, {kernel}"), Expected::Nothing, &mut || {
                test(kernel)
            });
        }
    }
    if Kernel::avx512().is_none() {
        println!("SKIPPED: kernels with AVX-512, whose instructions valgrind does not know");
    }
    for selection in subjects::selections() {
        let name = format!("{} by {}", selection.suite(), selection.engine());
        judge(&name, subjects::expected(&selection), &mut || {
            of_sealing(&selection)
        });
    }
    outcome
}

fn errors_in(test: impl FnOnce()) -> usize {
    let before = errors();
    test();
    errors() - before
}

/// Both values are secret, what the comparison returns is not.
fn of_values(compare: fn(&[u8; TAG_BYTES], &[u8; TAG_BYTES]) -> bool) {
    let left: [u8; TAG_BYTES] = Noise::new(7).array();
    let mut right = left;
    right[TAG_BYTES - 1] ^= 1;
    mark(&left);
    mark(&right);
    let equal = [u8::from(compare(black_box(&left), black_box(&right)))];
    unmark(&equal);
    assert_eq!(equal, [0]);
}

/// Key and text are secret in the expansion of the key and in both directions.
fn of_cipher<C: BlockCipher>(kernel: Kernel) {
    let mut noise = Noise::new(11);
    let key: [u8; KEY_BYTES] = noise.array();
    let mut blocks: [u8; BLOCKS_BYTES] = noise.array();
    let before = blocks;
    mark(&key);
    mark(&blocks);
    let cipher = C::new(&key, kernel);
    cipher.encrypt_blocks(&mut blocks);
    cipher.decrypt_blocks(&mut blocks);
    drop(cipher);
    unmark(&blocks);
    assert!(blocks == before, "the cipher inverts itself");
}

/// Keys and texts of a batch are secret, what is sealed is not.
fn of_sealing(selection: &Selection) {
    let suite = selection.suite();
    let mut noise = Noise::new(13);
    let mut keymat = vec![0; suite.keymat_bytes()];
    noise.fill(&mut keymat);
    let prefix = ESP_HEADER_BYTES + suite.iv_bytes();
    let mut buffer = Vec::new();
    let places = TEXTS.map(|text| {
        let (at, bytes) = (buffer.len(), prefix + text + suite.icv_bytes());
        buffer.resize(at + bytes, 0);
        noise.fill(&mut buffer[at + prefix..][..text]);
        Packet {
            at,
            bytes,
            sequence_high: 0,
        }
    });
    mark(&keymat);
    for (place, text) in places.iter().zip(TEXTS) {
        mark(&buffer[place.at + prefix..][..text]);
    }
    let mut transform = selection.transform(&keymat);
    let sealed = transform.seal(&mut buffer, &places);
    drop(transform);
    unmark(&keymat);
    unmark(&buffer);
    sealed.expect("the engine works");
}
