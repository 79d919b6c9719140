//! Speed of the ciphers in each mode, on one core, with each kernel of the machine, compared with
//! RustCrypto.
//!
//! `make bench-gost`; ARGS="magma ctr" selects rows with all those words. A row measures messages
//! of one batch, or single ones. Figures are Gbit/s of text by CPU time of the thread, the best of
//! several short turns, so that other processes disturb little. Messages have separate buffers and
//! are processed in turn.

use std::hint::black_box;

use ctr::CtrCore;
use ctr::cipher::{InnerIvInit, KeyInit, StreamCipher};
use gost::kuznyechik::Kuznyechik;
use gost::magma::{Gost89, Magma, Sbox};
use gost::mode::{
    AeadMessage, Cbc, Cnt, Ctr, CtrAcpkm, Ecb, Imito, MacMessage, Message, Mgm, Omac,
};
use gost::{BlockCipher, Kernel};
use mgm::aead::{AeadInPlace, NewAead};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Lengths of texts in bytes; 1408 is that of an ESP packet in an Ethernet MTU.
const SIZES: [usize; 11] = [16, 32, 64, 128, 256, 512, 1024, 1408, 2048, 4096, 8192];
/// Messages in a batch, as many as in a lane of the encryptor.
const BATCH: usize = 32;
const TURNS: usize = 5;
/// CPU time of a turn in seconds.
const TURN: f64 = 0.002;
/// Minimum number of bytes between two readings of the clock.
const BYTES_AT_ONCE: usize = 256 << 10;
const KEY: [u8; 32] = [0x5a; 32];
/// Bytes under one key in CTR-ACPKM: as in the examples of R 1323565.1.017-2018 for long messages.
const SECTION_BYTES: usize = 4096;

type Texts<'a> = &'a mut [Vec<u8>];
type Case = (&'static str, Box<dyn FnMut(Texts<'_>)>);

fn main() {
    pin();
    let words: Vec<String> = std::env::args().skip(1).collect();
    print!(
        "{:<11} {:<12} {:<10} {:<6}",
        "cipher", "mode", "kernel", "batch"
    );
    SIZES.iter().for_each(|bytes| print!("{bytes:>7}"));
    println!("   Gbit/s by bytes of text");
    let theirs = "rustcrypto";
    // One message after the other: RustCrypto has no batches.
    rows(&words, Magma::NAME, theirs, &[1], magma_by_rustcrypto());
    rows(
        &words,
        Kuznyechik::NAME,
        theirs,
        &[1],
        kuznyechik_by_rustcrypto(),
    );
    for kernel in Kernel::all() {
        let both = [BATCH, 1];
        let (name, words) = (kernel.name(), &words);
        rows(words, Magma::NAME, name, &both, modes(Magma::new, kernel));
        rows(
            words,
            Kuznyechik::NAME,
            name,
            &both,
            modes(Kuznyechik::new, kernel),
        );
        rows(words, Gost89::NAME, name, &both, of_gost89(kernel));
    }
}

/// Pins the thread to the last core that it may run on.
fn pin() {
    let allowed = sched_getaffinity(Pid::this()).expect("the kernel reports the allowed cores");
    let last = (0..CpuSet::count())
        .rev()
        .find(|cpu| allowed.is_set(*cpu) == Ok(true));
    let mut one = CpuSet::new();
    one.set(last.expect("a process may run somewhere"))
        .expect("it is in the set");
    sched_setaffinity(Pid::this(), &one).expect("a process may keep to one of its cores");
}

fn rows(words: &[String], cipher: &str, kernel: &str, batches: &[usize], cases: Vec<Case>) {
    for (mode, mut run) in cases {
        for &messages in batches {
            let row = format!("{cipher:<11} {mode:<12} {kernel:<10} {messages:<6}");
            if !words
                .iter()
                .all(|word| row.split_whitespace().any(|cell| cell == word))
            {
                continue;
            }
            print!("{row}");
            for bytes in SIZES {
                print!("{:>7.3}", rate(&mut run, messages, bytes));
            }
            println!();
        }
    }
}

/// Gbit/s, the best of all turns.
fn rate(run: &mut dyn FnMut(Texts<'_>), messages: usize, bytes: usize) -> f64 {
    let mut texts = vec![vec![0x33; bytes]; BATCH];
    // Reading the clock costs as much as a batch of short messages.
    let at_once = (BYTES_AT_ONCE / (BATCH * bytes)).max(1) as u32;
    let mut best = f64::MAX;
    for _ in 0..TURNS {
        let (start, mut rounds) = (cpu_seconds(), 0);
        let seconds = loop {
            for _ in 0..at_once {
                for batch in texts.chunks_mut(messages) {
                    run(black_box(batch));
                }
            }
            rounds += at_once;
            let seconds = cpu_seconds() - start;
            if seconds >= TURN {
                break seconds;
            }
        };
        best = best.min(seconds / f64::from(rounds));
    }
    (8 * BATCH * bytes) as f64 / best / 1e9
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
}

fn slices<'a>(texts: Texts<'a>) -> impl Iterator<Item = &'a mut [u8]> {
    texts.iter_mut().map(|text| &mut text[..])
}

fn with_iv<'a>(texts: Texts<'a>, iv: &'a [u8]) -> impl Iterator<Item = Message<'a, &'a [u8]>> {
    slices(texts).map(move |text| Message { iv, text })
}

fn with_tags<'a>(
    texts: Texts<'a>,
    nonce: &'a [u8],
    tags: &'a mut [[u8; 8]; BATCH],
) -> impl Iterator<Item = AeadMessage<'a, &'a [u8], [u8; 12]>> {
    slices(texts).zip(tags).map(move |(text, tag)| AeadMessage {
        nonce,
        aad: [1; 12],
        text,
        tag,
    })
}

fn modes<C: BlockCipher + 'static>(new: fn(&[u8; 32], Kernel) -> C, kernel: Kernel) -> Vec<Case> {
    const IV: [u8; 16] = [0x11; 16];
    let cipher = || new(&KEY, kernel);
    let (block, half) = (&IV[..C::BLOCK_BYTES], &IV[..C::BLOCK_BYTES / 2]);
    let (mut sealing, mut opening) = (Ecb::new(cipher()), Ecb::new(cipher()));
    let mut ctr = Ctr::new(cipher());
    let mut acpkm = CtrAcpkm::<C>::new(&KEY, kernel, SECTION_BYTES);
    let (mut chain, mut unchain) = (Cbc::new(cipher()), Cbc::new(cipher()));
    let mut omac = Omac::new(cipher());
    let (mut seal, mut open) = (Mgm::new(cipher()), Mgm::new(cipher()));
    let mut macs = [[0; 8]; BATCH];
    let mut tags = [[0; 8]; BATCH];
    let mut claimed = [[0; 8]; BATCH];
    vec![
        (
            "ecb",
            Box::new(move |texts| sealing.encrypt_all(slices(texts))),
        ),
        (
            "ecb-decrypt",
            Box::new(move |texts| opening.decrypt_all(slices(texts))),
        ),
        (
            "ctr",
            Box::new(move |texts| ctr.apply_all(with_iv(texts, half))),
        ),
        (
            "ctr-acpkm",
            Box::new(move |texts| acpkm.apply_all(with_iv(texts, half))),
        ),
        (
            "cbc",
            Box::new(move |texts| chain.encrypt_all(with_iv(texts, block))),
        ),
        (
            "cbc-decrypt",
            Box::new(move |texts| unchain.decrypt_all(with_iv(texts, block))),
        ),
        (
            "omac",
            Box::new(move |texts| {
                let macs = macs.iter_mut();
                omac.mac_all(texts.iter().zip(macs).map(|(text, mac)| MacMessage {
                    text,
                    tail: [],
                    mac,
                }));
            }),
        ),
        (
            "mgm",
            Box::new(move |texts| seal.seal_all(with_tags(texts, block, &mut tags))),
        ),
        // None is authentic: a receiver's work for forgeries is no less than for authentic
        // messages.
        (
            "mgm-open",
            Box::new(move |texts| {
                let mut authentic = [false; BATCH];
                let answers = &mut authentic[..texts.len()];
                open.open_all(with_tags(texts, block, &mut claimed), answers);
            }),
        ),
    ]
}

fn of_gost89(kernel: Kernel) -> Vec<Case> {
    let cipher = || Gost89::with_sbox(&KEY, Sbox::Tc26Z, kernel);
    let (mut cnt, mut imito) = (Cnt::new(cipher()), Imito::new(cipher()));
    let mut macs = [[0; 4]; BATCH];
    vec![
        (
            "cnt",
            Box::new(move |texts| cnt.apply_all(with_iv(texts, &[0x11; 8]))),
        ),
        (
            "imito",
            Box::new(move |texts| {
                let macs = macs.iter_mut();
                imito.mac_all(texts.iter().zip(macs).map(|(text, mac)| MacMessage {
                    text,
                    tail: [],
                    mac,
                }));
            }),
        ),
    ]
}

macro_rules! by_rustcrypto {
    ($name:ident, $cipher:ty, $counter:ident, $cipher_of_mgm:ty) => {
        fn $name() -> Vec<Case> {
            let cipher = <$cipher>::new(&KEY.into());
            let mgm = mgm::Mgm::<$cipher_of_mgm>::new(&KEY.into());
            vec![
                (
                    "ctr",
                    Box::new(move |texts| {
                        for text in texts {
                            let first = Default::default();
                            let core = CtrCore::inner_iv_init(cipher.clone(), &first);
                            ctr::$counter::<$cipher>::from_core(core).apply_keystream(text);
                        }
                    }),
                ),
                (
                    "mgm",
                    Box::new(move |texts| {
                        for text in texts {
                            let nonce = Default::default();
                            let tag = mgm.encrypt_in_place_detached(&nonce, &[1; 12], text);
                            black_box(tag.expect("a nonce whose highest bit is zero"));
                        }
                    }),
                ),
            ]
        }
    };
}

by_rustcrypto!(magma_by_rustcrypto, magma::Magma, Ctr32BE, magma_0_7::Magma);
by_rustcrypto!(
    kuznyechik_by_rustcrypto,
    kuznyechik::Kuznyechik,
    Ctr64BE,
    kuznyechik_0_7::Kuznyechik
);
