//! Worker processes, which read a trial from standard input and report on it.
//!
//! This executable is also the worker, so that a crash does not end the tests. Tests that need
//! SoftHSM2 are skipped, with the reason, where it is not installed.

mod model;
mod rules;
mod token;
mod trials;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;

use device::SoftHsm;
use libtest_mimic::{Arguments, Completion, Trial};

type Tests = &'static [(&'static str, fn())];

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("device") {
        return match device::serve(std::io::stdin(), std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let lacking = SoftHsm::make().err().map(|error| error.to_string());
    if let Some(reason) = &lacking {
        testing::skip("trials with a token", reason);
    }
    let lacking = Arc::new(lacking);
    let modules: [(&str, Tests, bool); 4] = [
        ("trials", trials::ALL, false),
        ("model", model::ALL, false),
        ("rules", rules::ALL, true),
        ("token", token::ALL, true),
    ];
    let tests = modules
        .into_iter()
        .flat_map(|(module, tests, needs_softhsm)| {
            let lacking = Arc::clone(&lacking);
            tests.iter().map(move |&(name, test)| {
                let lacking = Arc::clone(&lacking);
                Trial::ignorable_test(format!("{module}::{name}"), move || {
                    if let Some(reason) = lacking.as_ref().as_ref().filter(|_| needs_softhsm) {
                        return Ok(Completion::ignored_with(reason));
                    }
                    test();
                    Ok(Completion::Completed)
                })
            })
        });
    let mut arguments = Arguments::from_args();
    // The tests mostly wait for devices; their assertions hold on a busy machine.
    arguments.test_threads = arguments.test_threads.or(Some(4));
    libtest_mimic::run(&arguments, tests.collect()).exit_code()
}
