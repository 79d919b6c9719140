//! The real service between network namespaces.
//!
//! ```text
//!   ns A: cb0 ~ gw1 ~ w0 192.0.2.1 ==== 192.0.2.2 w1 ~ gw2 ~ cb0 :ns B
//! ```
//!
//! This executable is also the service, `encrypt FILE`, and one that oversteps, `confined FILE`. Needs root on this machine or in a user namespace
//! (`unshare -r`); says so loudly where it has neither.

mod gateway;
mod kernel;
mod namespace;
mod tests;

use libtest_mimic::{Arguments, Completion, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [role, file] if role == "encrypt" => return gateway::encrypt(file),
        [role, key_file] if role == "confined" => return gateway::confined(key_file),
        _ => {}
    }
    let skipped = namespace::Namespace::new().err();
    if let Some(error) = &skipped {
        eprintln!("SKIPPED: no network namespace here ({error}): run as root");
    }
    let skipped = skipped.is_some();
    let trials: [(&str, fn()); _] = [
        (
            "a_service_keeps_what_it_needs_and_nothing_else",
            tests::a_service_keeps_what_it_needs_and_nothing_else,
        ),
        (
            "packets_pass_whatever_lanes_are_told",
            tests::packets_pass_whatever_lanes_are_told,
        ),
        (
            "a_service_that_is_to_keep_its_privileges_keeps_them",
            tests::a_service_that_is_to_keep_its_privileges_keeps_them,
        ),
        (
            "a_thousand_tunnels_share_a_key_file_and_an_address",
            tests::a_thousand_tunnels_share_a_key_file_and_an_address,
        ),
        (
            "selectors_decide_which_tunnel_carries_what",
            tests::selectors_decide_which_tunnel_carries_what,
        ),
        (
            "frames_pass_between_interfaces",
            tests::frames_pass_between_interfaces,
        ),
        (
            "frames_pass_in_a_pseudowire",
            tests::frames_pass_in_a_pseudowire,
        ),
        (
            "keys_of_another_user_are_refused_with_what_to_do",
            tests::keys_of_another_user_are_refused_with_what_to_do,
        ),
        (
            "nothing_that_was_given_up_comes_back",
            tests::nothing_that_was_given_up_comes_back,
        ),
        (
            "an_engine_that_fails_is_replaced_told_and_counted",
            tests::an_engine_that_fails_is_replaced_told_and_counted,
        ),
        (
            "the_kernel_opens_what_we_seal_and_we_open_what_it_seals",
            kernel::the_kernel_opens_what_we_seal_and_we_open_what_it_seals,
        ),
        (
            "a_cpu_that_is_not_there_is_refused",
            tests::a_cpu_that_is_not_there_is_refused,
        ),
    ];
    let trials = trials.map(|(name, test)| {
        Trial::ignorable_test(name, move || {
            if skipped {
                return Ok(Completion::ignored_with("no network namespace here"));
            }
            test();
            Ok(Completion::Completed)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}
