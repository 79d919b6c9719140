//! Whether time, branches and addresses depend on secrets: GOST kernels, sealing by every engine,
//! the comparison of tags, and the refusal of packets.
//!
//! ```text
//! constant_time timing [WORD...]                 two classes of input, compared by Welch's t-test
//! valgrind … constant_time secrets [WORD...]     memcheck, with secrets marked as undefined
//! ```
//!
//! `make hardening` runs both. With words only the subjects that have one in their name are tested.
//! A comparison that ends at the first difference is the positive control of either method: one
//! that does not find it has failed. Exit code 0: nothing was found but what is [expected]; 1: a
//! leak, or an expected one that is no more; 3: the control was not found, so nothing is known.
//!
//! [expected]: subjects::Expected

#[cfg(target_arch = "x86_64")]
mod secrets;
#[cfg(target_arch = "x86_64")]
mod subjects;
#[cfg(target_arch = "x86_64")]
mod timing;
#[cfg(target_arch = "x86_64")]
mod valgrind;

use std::process::ExitCode;

/// The result of all subjects.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    AsExpected,
    Different,
    /// The positive control was not found.
    Blind,
}

#[cfg(not(target_arch = "x86_64"))]
fn main() -> ExitCode {
    eprintln!("SKIPPED: this test reads the counter of x86-64");
    ExitCode::from(3)
}

#[cfg(target_arch = "x86_64")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mode, words) = words
        .split_first()
        .map_or(("", &[][..]), |(mode, words)| (mode, words));
    let is_meant =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let outcome = match mode {
        "timing" => timing::run(&is_meant),
        "secrets" if valgrind::is_running() => secrets::run(&is_meant),
        "secrets" => {
            eprintln!(
                "error: secrets are followed by valgrind alone\nhelp: `make hardening` starts it"
            );
            return ExitCode::from(2);
        }
        _ => {
            eprintln!("usage: constant_time timing|secrets [WORD...]");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Outcome::AsExpected => ExitCode::SUCCESS,
        Outcome::Different => ExitCode::from(1),
        Outcome::Blind => ExitCode::from(3),
    }
}
