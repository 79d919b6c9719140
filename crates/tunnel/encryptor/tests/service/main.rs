//! The real service between network namespaces.
//!
//! ```text
//!   ns A: cb0 ~ gw1 ~ w0 192.0.2.1 ==== 192.0.2.2 w1 ~ gw2 ~ cb0 :ns B
//! ```
//!
//! This executable is also the service, `encrypt FILE`, and one that violates its confinement,
//! `confined FILE`, or with some connections permitted, `connecting FILE`. Needs root on this
//! machine or in a user namespace (`unshare -r`); prints a note where it has neither.

mod gateway;
mod kernel;
mod namespace;
mod negotiated;
mod stations;
mod tests;

use libtest_mimic::{Arguments, Completion, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [role, file] if role == "encrypt" => return gateway::encrypt(file),
        [role, key_file] if role == "confined" => return gateway::confined(key_file),
        [role, ppk_file] if role == "connecting" => return gateway::connecting(ppk_file),
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
            "packets_pass_with_any_lane_settings",
            tests::packets_pass_with_any_lane_settings,
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
            "what_may_connect_may_do_nothing_else",
            tests::what_may_connect_may_do_nothing_else,
        ),
        (
            "an_engine_that_fails_is_replaced_logged_and_counted",
            tests::an_engine_that_fails_is_replaced_logged_and_counted,
        ),
        (
            "the_kernel_opens_what_we_seal_and_we_open_what_it_seals",
            kernel::the_kernel_opens_what_we_seal_and_we_open_what_it_seals,
        ),
        (
            "a_cpu_that_is_not_there_is_refused",
            tests::a_cpu_that_is_not_there_is_refused,
        ),
        (
            "two_services_agree_on_keys_and_packets_pass",
            negotiated::two_services_agree_on_keys_and_packets_pass,
        ),
        (
            "rollovers_under_traffic_lose_nothing",
            negotiated::rollovers_under_traffic_lose_nothing,
        ),
        (
            "a_tunnel_is_back_soon_when_either_side_was_restarted",
            negotiated::a_tunnel_is_back_soon_when_either_side_was_restarted,
        ),
        (
            "who_has_no_right_certificate_gets_no_keys_and_nothing_leaves_in_clear",
            negotiated::who_has_no_right_certificate_gets_no_keys_and_nothing_leaves_in_clear,
        ),
        (
            "both_sides_report_what_they_disagree_on",
            negotiated::both_sides_report_what_they_disagree_on,
        ),
        (
            "keys_that_differ_are_noticed_mended_and_counted",
            negotiated::keys_that_differ_are_noticed_mended_and_counted,
        ),
        (
            "a_service_that_crashes_leaves_no_core_file",
            negotiated::a_service_that_crashes_leaves_no_core_file,
        ),
        (
            "nothing_that_a_service_shows_has_a_key_in_it",
            negotiated::nothing_that_a_service_shows_has_a_key_in_it,
        ),
        (
            "static_and_negotiated_keys_stand_side_by_side",
            negotiated::static_and_negotiated_keys_stand_side_by_side,
        ),
        (
            "keys_of_a_qkd_network_are_mixed_in",
            negotiated::keys_of_a_qkd_network_are_mixed_in,
        ),
        (
            "a_thousand_tunnels_agree_on_keys",
            negotiated::a_thousand_tunnels_agree_on_keys,
        ),
        (
            "a_control_port_in_use_is_reported",
            negotiated::a_control_port_in_use_is_reported,
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
