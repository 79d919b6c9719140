//! The real service between network namespaces.
//!
//! ```text
//!   ns A: cb0 ~ gw1 ~ w0 192.0.2.1 ==== 192.0.2.2 w1 ~ gw2 ~ cb0 :ns B
//! ```
//!
//! This executable is also the service, `encrypt FILE`, with its `hold`, and one that violates its
//! confinement, `confined FILE`, or with some connections permitted, `connecting FILE`, or tries to
//! escape from it, `escaping USER`. Needs root on this machine or in a user namespace
//! (`unshare -r`); prints a note where it has neither.

mod attack;
mod flood;
mod gateway;
mod ikev2;
mod kernel;
mod lifetime;
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
        [role] if role == "hold" => return gateway::hold(),
        [role, key_file] if role == "confined" => return gateway::confined(key_file),
        [role, user] if role == "escaping" => return gateway::escaping(user),
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
            "attack::no_packet_leaves_in_clear_when_a_gateway_dies",
            attack::no_packet_leaves_in_clear_when_a_gateway_dies,
        ),
        (
            "attack::a_host_does_not_forward_what_a_dead_bump_in_the_wire_left",
            attack::a_host_does_not_forward_what_a_dead_bump_in_the_wire_left,
        ),
        (
            "attack::no_spoofed_packet_passes_as_if_from_the_tunnel",
            attack::no_spoofed_packet_passes_as_if_from_the_tunnel,
        ),
        (
            "attack::what_holds_packets_back_is_renewed_and_removed_on_request_only",
            attack::what_holds_packets_back_is_renewed_and_removed_on_request_only,
        ),
        (
            "attack::firewall::what_a_reload_of_the_firewall_removes_is_back_at_once",
            attack::firewall::what_a_reload_of_the_firewall_removes_is_back_at_once,
        ),
        (
            "attack::firewall::a_bump_in_the_wire_is_closed_again_after_a_reload",
            attack::firewall::a_bump_in_the_wire_is_closed_again_after_a_reload,
        ),
        (
            "attack::firewall::protection_on_request_restores_what_a_running_gateway_has",
            attack::firewall::protection_on_request_restores_what_a_running_gateway_has,
        ),
        (
            "attack::firewall::no_spoofed_packet_passes_by_a_translated_destination",
            attack::firewall::no_spoofed_packet_passes_by_a_translated_destination,
        ),
        (
            "attack::firewall::what_dnat_sends_into_a_tunnel_meets_the_inbound_policy_of_the_peer",
            attack::firewall::what_dnat_sends_into_a_tunnel_meets_the_inbound_policy_of_the_peer,
        ),
        (
            "attack::icmp::forged_icmp_changes_nothing_for_the_next_start",
            attack::icmp::forged_icmp_changes_nothing_for_the_next_start,
        ),
        (
            "attack::no_privilege_is_left_and_none_can_be_regained",
            attack::no_privilege_is_left_and_none_can_be_regained,
        ),
        (
            "a_service_keeps_only_the_privileges_it_needs",
            tests::a_service_keeps_only_the_privileges_it_needs,
        ),
        (
            "packets_pass_with_any_lane_settings",
            tests::packets_pass_with_any_lane_settings,
        ),
        (
            "privileges_are_kept_if_configured",
            tests::privileges_are_kept_if_configured,
        ),
        (
            "a_thousand_tunnels_share_a_key_file_and_an_address",
            tests::a_thousand_tunnels_share_a_key_file_and_an_address,
        ),
        (
            "selectors_determine_the_tunnel_of_a_packet",
            tests::selectors_determine_the_tunnel_of_a_packet,
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
            "keys_of_another_user_are_refused_with_advice",
            tests::keys_of_another_user_are_refused_with_advice,
        ),
        (
            "a_service_runs_as_its_user",
            tests::a_service_runs_as_its_user,
        ),
        (
            "a_user_who_does_not_exist_or_may_not_write_is_reported",
            tests::a_user_who_does_not_exist_or_may_not_write_is_reported,
        ),
        (
            "the_packaged_user_can_be_created",
            tests::the_packaged_user_can_be_created,
        ),
        (
            "dropped_privileges_cannot_be_regained",
            tests::dropped_privileges_cannot_be_regained,
        ),
        (
            "a_service_that_may_connect_is_otherwise_confined",
            tests::a_service_that_may_connect_is_otherwise_confined,
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
            "a_missing_cpu_is_refused",
            tests::a_missing_cpu_is_refused,
        ),
        (
            "two_services_agree_on_keys_and_packets_pass",
            negotiated::two_services_agree_on_keys_and_packets_pass,
        ),
        (
            "the_first_answer_of_a_new_tunnel_is_not_lost",
            lifetime::the_first_answer_of_a_new_tunnel_is_not_lost,
        ),
        (
            "rollovers_under_traffic_lose_no_packet",
            negotiated::rollovers_under_traffic_lose_no_packet,
        ),
        (
            "a_tunnel_recovers_soon_after_a_restart_of_either_side",
            negotiated::a_tunnel_recovers_soon_after_a_restart_of_either_side,
        ),
        (
            "a_peer_without_a_valid_certificate_gets_no_keys_and_no_packet_leaves_in_clear",
            negotiated::a_peer_without_a_valid_certificate_gets_no_keys_and_no_packet_leaves_in_clear,
        ),
        (
            "both_sides_report_what_they_disagree_on",
            negotiated::both_sides_report_what_they_disagree_on,
        ),
        (
            "different_keys_are_detected_repaired_and_counted",
            negotiated::different_keys_are_detected_repaired_and_counted,
        ),
        (
            "a_service_that_crashes_leaves_no_core_file",
            negotiated::a_service_that_crashes_leaves_no_core_file,
        ),
        (
            "no_output_of_a_service_contains_a_key",
            negotiated::no_output_of_a_service_contains_a_key,
        ),
        (
            "static_and_negotiated_keys_coexist",
            negotiated::static_and_negotiated_keys_coexist,
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
            "without_a_control_channel_a_tunnel_ends_at_its_hard_lifetime",
            lifetime::without_a_control_channel_a_tunnel_ends_at_its_hard_lifetime,
        ),
        (
            "a_tunnel_ends_with_a_certificate_and_a_new_one_brings_it_up",
            lifetime::a_tunnel_ends_with_a_certificate_and_a_new_one_brings_it_up,
        ),
        (
            "a_service_with_certificates_runs_as_its_user",
            lifetime::a_service_with_certificates_runs_as_its_user,
        ),
        (
            "a_thousand_strange_connections_a_second_cost_no_packet_and_no_rollover",
            flood::a_thousand_strange_connections_a_second_cost_no_packet_and_no_rollover,
        ),
        (
            "forged_packets_cost_few_epochs_at_any_rate",
            flood::forged_packets_cost_few_epochs_at_any_rate,
        ),
        (
            "a_control_port_in_use_is_reported",
            negotiated::a_control_port_in_use_is_reported,
        ),
        (
            "ikev2::two_services_negotiate_by_ike_and_packets_pass",
            ikev2::two_services_negotiate_by_ike_and_packets_pass,
        ),
        (
            "ikev2::rekeys_by_ike_under_traffic_lose_no_packet",
            ikev2::rekeys_by_ike_under_traffic_lose_no_packet,
        ),
        (
            "ikev2::a_tunnel_with_ike_recovers_after_a_restart_of_either_side",
            ikev2::a_tunnel_with_ike_recovers_after_a_restart_of_either_side,
        ),
        (
            "ikev2::disagreements_in_ike_are_reported_with_what_to_change",
            ikev2::disagreements_in_ike_are_reported_with_what_to_change,
        ),
        (
            "ikev2::certificates_authenticate_both_services",
            ikev2::certificates_authenticate_both_services,
        ),
        (
            "ikev2::a_certificate_that_ike_cannot_use_is_reported",
            ikev2::a_certificate_that_ike_cannot_use_is_reported,
        ),
        (
            "ikev2::an_ike_port_in_use_is_reported",
            ikev2::an_ike_port_in_use_is_reported,
        ),
        (
            "ikev2::a_tunnel_with_strongswan_carries_packets_in_both_roles",
            ikev2::a_tunnel_with_strongswan_carries_packets_in_both_roles,
        ),
        (
            "ikev2::strongswan_is_authenticated_by_certificates_in_both_roles",
            ikev2::strongswan_is_authenticated_by_certificates_in_both_roles,
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
