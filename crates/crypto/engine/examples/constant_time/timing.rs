//! The test of dudect (O. Reparaz, J. Balasch, I. Verbauwhede, *Dude, is my code constant time?*,
//! DATE 2017): cycles of two classes of input, drawn at random, compared by Welch's t-test after
//! the slowest are cropped.

use super::Outcome;
use super::subjects::{self, Noise, TAG_BYTES, comparison, control};
use engine::{Packet, Selection};
use gost::kuznyechik::Kuznyechik;
use gost::magma::Magma;
use gost::{BlockCipher, KEY_BYTES, Kernel};
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::hint::black_box;
use wire::overhead::ESP_HEADER_BYTES;

/// Measurements of one round; those that warm up come before them.
const MEASUREMENTS: usize = 20_000;
const WARM_UP: usize = 500;
/// Rounds that must agree: a busy machine disturbs one, a leak shows in all.
const ROUNDS: usize = 3;
/// |t| from which on two classes differ; dudect's bound for "definitely not constant time".
const T_MAX: f64 = 10.0;
/// Shares of the measurements, the fastest, that are compared: other programs make some slower.
const CROPS: [f64; 5] = [0.5, 0.7, 0.9, 0.99, 1.0];
/// Text of one packet; a multiple of every block.
const TEXT_BYTES: usize = 96;
/// Blocks of one measurement of a cipher, in bytes.
const BLOCKS_BYTES: usize = 512;

pub(crate) fn run(is_meant: &dyn Fn(&str) -> bool) -> Outcome {
    let t = of_values(control);
    println!("t = {t:>8.1}  the control, a comparison that ends at the first difference");
    if t.abs() <= T_MAX {
        eprintln!(
            "error: the control was not found: the machine is too busy, or the test is broken"
        );
        return Outcome::Blind;
    }
    let mut outcome = Outcome::AsExpected;
    let mut judge = |name: &str, test: &mut dyn FnMut() -> f64| {
        if !is_meant(name) {
            return;
        }
        let t = test();
        let leaks = t.abs() > T_MAX;
        println!("t = {t:>8.1}  {name}{}", if leaks { "  LEAK" } else { "" });
        if leaks {
            outcome = Outcome::Different;
        }
    };
    judge("comparison of tags", &mut || {
        of_values(|left, right| comparison(left, right) != 0)
    });
    for kernel in Kernel::all() {
        of_cipher::<Magma>(kernel, &mut judge);
        of_cipher::<Kuznyechik>(kernel, &mut judge);
    }
    let authenticates = |selection: &Selection| selection.suite().icv_bytes() > 0;
    for selection in subjects::selections().into_iter().filter(authenticates) {
        let name = format!("{} by {}", selection.suite(), selection.engine());
        judge(&format!("wrong ICV, {name}"), &mut || {
            let icv = selection.suite().icv_bytes();
            of_refusal(&selection, |packet, class| {
                let at = packet.len() - if class { icv } else { 1 };
                packet[at] ^= 1;
            })
        });
        // Where the cipher does not authenticate, the text is decrypted to the same padding or to
        // another.
        judge(&format!("padding behind a wrong ICV, {name}"), &mut || {
            let icv = selection.suite().icv_bytes();
            of_refusal(&selection, |packet, class| {
                let end = packet.len() - icv;
                packet[end] ^= 1;
                // In CBC the trailer changes by the bits of the block before it.
                packet[end - 17] ^= u8::from(class) * 0xff;
            })
        });
    }
    outcome
}

/// Values that differ in the first byte, and in the last.
fn of_values(compare: fn(&[u8; TAG_BYTES], &[u8; TAG_BYTES]) -> bool) -> f64 {
    let left: [u8; TAG_BYTES] = Noise::new(7).array();
    t_of(
        &mut [0; TAG_BYTES],
        |right, class| {
            *right = left;
            right[if class { 0 } else { TAG_BYTES - 1 }] ^= 1;
        },
        |right| black_box(compare(black_box(&left), black_box(right))),
    )
}

/// A fixed key or text, and random ones.
fn of_cipher<C: BlockCipher>(kernel: Kernel, judge: &mut dyn FnMut(&str, &mut dyn FnMut() -> f64)) {
    struct State<C> {
        key: [u8; KEY_BYTES],
        cipher: C,
        blocks: [u8; BLOCKS_BYTES],
    }
    let state = || {
        let (mut noise, key) = (Noise::new(11), [0; KEY_BYTES]);
        let cipher = C::new(&key, kernel);
        let blocks = [0; BLOCKS_BYTES];
        // Both classes draw, so that they differ in nothing else.
        let mut draw = move |fixed: bool, bytes: &mut [u8]| {
            noise.fill(bytes);
            let mask = if fixed { 0 } else { 0xff };
            bytes.iter_mut().for_each(|byte| *byte &= mask);
        };
        let state = State {
            key,
            cipher,
            blocks,
        };
        (state, move |fixed: bool, bytes: &mut [u8]| {
            draw(fixed, bytes)
        })
    };
    let of = |what: &str| format!("{} of {}, {kernel}", what, C::NAME);
    judge(&of("text"), &mut || {
        let (mut state, mut draw) = state();
        t_of(
            &mut state,
            |state, class| draw(class, &mut state.blocks),
            |state| state.cipher.encrypt_blocks(black_box(&mut state.blocks)),
        )
    });
    judge(&of("decrypted text"), &mut || {
        let (mut state, mut draw) = state();
        t_of(
            &mut state,
            |state, class| draw(class, &mut state.blocks),
            |state| state.cipher.decrypt_blocks(black_box(&mut state.blocks)),
        )
    });
    judge(&of("key"), &mut || {
        let (mut state, mut draw) = state();
        t_of(
            &mut state,
            |state, class| {
                draw(class, &mut state.key);
                state.cipher = C::new(&state.key, kernel);
            },
            |state| state.cipher.encrypt_blocks(black_box(&mut state.blocks)),
        )
    });
    judge(&of("expansion of the key"), &mut || {
        let (mut state, mut draw) = state();
        t_of(
            &mut state,
            |state, class| draw(class, &mut state.key),
            |state| state.cipher = C::new(black_box(&state.key), kernel),
        )
    });
}

/// Two ways to garble a packet; both must be refused.
fn of_refusal(selection: &Selection, garble: impl Fn(&mut [u8], bool)) -> f64 {
    let suite = selection.suite();
    let mut noise = Noise::new(13);
    let mut keymat = vec![0; suite.keymat_bytes()];
    noise.fill(&mut keymat);
    let mut transform = selection.transform(&keymat);
    let bytes = ESP_HEADER_BYTES + suite.iv_bytes() + TEXT_BYTES + suite.icv_bytes();
    let mut sealed = vec![0; bytes];
    let places = [Packet {
        at: 0,
        bytes,
        sequence_high: 0,
    }];
    // The tree of keys takes the packet's key from its IV, which must not be a far one.
    let text = ESP_HEADER_BYTES + suite.iv_bytes()..bytes - suite.icv_bytes();
    noise.fill(&mut sealed[text]);
    transform
        .seal(&mut sealed, &places)
        .expect("the engine works");
    let garbled = [false, true].map(|class| {
        let mut packet = sealed.clone();
        garble(&mut packet, class);
        packet
    });
    let mut authentic = [false];
    let mut any = false;
    let t = t_of(
        &mut sealed,
        |packet, class| {
            // Of both, so that both are in the cache.
            let [no, yes] = &garbled;
            let pairs = packet.iter_mut().zip(no.iter().zip(yes));
            let mask = u8::from(class).wrapping_neg();
            pairs.for_each(|(byte, (no, yes))| *byte = no ^ (no ^ yes) & mask);
        },
        |packet| {
            let opened = transform.open(black_box(packet), &places, &mut authentic);
            opened.expect("the engine works");
            any |= authentic[0];
        },
    );
    assert!(!any, "a garbled packet was opened");
    t
}

/// The t value of the smallest of all rounds; 0 if they contradict each other.
fn t_of<S, R>(
    state: &mut S,
    mut prepare: impl FnMut(&mut S, bool),
    mut compute: impl FnMut(&mut S) -> R,
) -> f64 {
    let mut classes = Noise::new(17);
    let rounds = [(); ROUNDS].map(|()| {
        let mut measured = Vec::with_capacity(MEASUREMENTS);
        for number in 0..WARM_UP + MEASUREMENTS {
            let class = classes.byte() & 1 == 1;
            prepare(state, class);
            let start = cycles();
            black_box(compute(state));
            let took = cycles().wrapping_sub(start);
            if number >= WARM_UP {
                measured.push((took, class));
            }
        }
        largest_t(&mut measured)
    });
    let lowest = rounds.into_iter().fold(f64::INFINITY, f64::min);
    let highest = rounds.into_iter().fold(f64::NEG_INFINITY, f64::max);
    // Both are 0 if the rounds have different signs.
    lowest.max(0.0) + highest.min(0.0)
}

/// The t value that is furthest from 0 of all crops.
fn largest_t(measured: &mut [(u64, bool)]) -> f64 {
    measured.sort_unstable_by_key(|(took, _)| *took);
    let cropped = CROPS.map(|share| {
        // Of a share of the measurements, so it fits. Equal times are kept or cropped together.
        let mut count = (measured.len() as f64 * share) as usize;
        while count < measured.len() && measured[count].0 == measured[count - 1].0 {
            count += 1;
        }
        welch(&measured[..count])
    });
    cropped.into_iter().fold(
        0.0,
        |largest: f64, t| if t.abs() > largest.abs() { t } else { largest },
    )
}

/// Welch's t of the times of the two classes; 0 if there is no difference to see.
fn welch(measured: &[(u64, bool)]) -> f64 {
    let moments = |class: bool| {
        let times = || {
            let of_class = measured.iter().filter(move |(_, its)| *its == class);
            of_class.map(|(took, _)| *took as f64)
        };
        let count = times().count() as f64;
        let mean = times().sum::<f64>() / count;
        let variance = times().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (count, mean, variance)
    };
    let ((count_0, mean_0, variance_0), (count_1, mean_1, variance_1)) =
        (moments(false), moments(true));
    let error = (variance_0 / count_0 + variance_1 / count_1).sqrt();
    let t = (mean_0 - mean_1) / error;
    if t.is_finite() { t } else { 0.0 }
}

/// The time-stamp counter, read after all instructions before it and before all behind it.
fn cycles() -> u64 {
    // SAFETY: every processor of x86-64 has both instructions, and neither touches memory.
    unsafe {
        _mm_lfence();
        let cycles = _rdtsc();
        _mm_lfence();
        cycles
    }
}
