//! Every engine that this host can run, against official vectors, the other engines and its contract.

mod agreement;
mod guard_pages;
mod wycheproof;

use engine::{Choice, Selection, engines, select};
use wire::Suite;

/// Every engine that this host can run, for `suite`. AWS-LC is always among them.
fn selections(suite: Suite) -> Vec<Selection> {
    let mut selections = Vec::new();
    for info in engines() {
        match &info.version {
            Ok(_) => {
                let choice = Choice::Named(info.name.to_owned());
                selections.push(select(&choice, suite).unwrap());
            }
            Err(reason) => eprintln!("SKIPPED: engine {}: {reason}", info.name),
        }
    }
    assert!(!selections.is_empty());
    selections
}

/// Bytes that look random and are the same in every run.
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
