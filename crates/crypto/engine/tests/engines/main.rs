//! Every engine that this host can run, checked by official vectors, the other engines and its
//! contract.

mod aead;
mod batches;
mod foreign;
mod guard_pages;
mod served;
mod wycheproof;

use engine::{CpuChoice, EngineError, Selection, Transform, engines, select};
use wire::Suite;

/// Returns every engine that has `suite` and that this host can run. At least one of those that run
/// everywhere is among them.
fn selections(suite: Suite) -> Vec<Selection> {
    let mut selections = Vec::new();
    for info in engines() {
        if let Err(reason) = &info.version {
            eprintln!("SKIPPED: engine {}: {reason}", info.name);
            continue;
        }
        match select(&CpuChoice::Named(info.name.to_owned()), suite) {
            Ok(selection) => selections.push(selection),
            Err(EngineError::NotServed { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        selections
            .iter()
            .any(|selection| ["rustcrypto", "gost-portable"].contains(&selection.engine())),
        "{suite}"
    );
    selections
}

/// Returns the keying material of one SA on every engine, with the same secret.
fn transforms(suite: Suite) -> Vec<(&'static str, Box<dyn Transform>)> {
    let keymat = noise(suite.keymat_bytes(), 1);
    let transform = |selection: Selection| (selection.engine(), selection.transform(&keymat));
    selections(suite).into_iter().map(transform).collect()
}

/// Returns pseudo-random bytes that are the same in every run.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}
