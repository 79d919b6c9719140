//! Labs of real namespaces, as root or in a user namespace; skipped, with the reason, where neither
//! is allowed.
//!
//! This executable is also the program that the labs start: `station` and `encrypt` are the real
//! things (the latter also a stand-in that dies on request), `hold` is a run that a test can kill.

mod acts;
mod devices;
mod elements;
mod faults;
mod frames;
mod kernel;
mod keys;
mod links;
mod machine;
mod nat;
mod openvpn;
mod peer;
mod programs;
mod roles;
mod shaping;
mod strongswan;
mod support;
mod wireguard;

use lab::privilege;
use libtest_mimic::{Arguments, Completion, Trial};
use std::process::ExitCode;
use std::sync::Arc;

/// The named functions of a module as trials.
macro_rules! trials {
    ($skipped:ident, $module:ident: $($name:ident),+ $(,)?) => {
        vec![$({
            let skipped = Arc::clone(&$skipped);
            Trial::ignorable_test(concat!(stringify!($module), "::", stringify!($name)), move || {
                if let Some(reason) = &*skipped {
                    return Ok(Completion::ignored_with(reason));
                }
                $module::$name();
                Ok(Completion::Completed)
            })
        }),+]
    };
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if peer::play(&words).is_some() {
        return ExitCode::SUCCESS;
    }
    if let Some(exit_code) = roles::play(&words) {
        return exit_code;
    }
    // First of all: the process has one thread still.
    let privilege = privilege::acquire();
    if let Err(error) = &privilege {
        eprintln!("SKIPPED: no lab can be built here: {error}");
    }
    let skipped = Arc::new(privilege.err().map(|error| error.to_string()));
    // A station alone needs no privilege.
    let never = Arc::new(None::<String>);
    let no_openvpn = Arc::new((*skipped).clone().or_else(openvpn::missing));
    let no_strongswan = Arc::new((*skipped).clone().or_else(strongswan::missing));
    let trials = [
        trials!(never, programs:
            a_request_that_is_not_understood_is_answered_and_the_next_one_too,
            an_unknown_process_is_an_error,
            a_line_is_had_as_soon_as_it_is_printed,
            a_stopped_program_is_resumed_to_end_by_sigterm,
            a_missing_program_is_named_with_the_package_that_brings_it,
            endless_output_neither_blocks_nor_grows,
            a_daemon_that_holds_the_output_open_does_not_hold_up_its_parents_end,
            input_is_written_and_closed_even_when_nobody_reads_it,
            a_program_that_ignores_sigterm_is_killed,
            a_program_whose_time_is_up_is_killed,
            cores_are_counted_from_zero_and_held_to,
            cpu_time_is_counted_while_a_program_runs_and_after,
            cycles_are_counted_where_there_are_counters_and_nowhere_invented,
            a_program_is_ready_when_it_prints_its_line,
            a_program_that_ends_before_it_is_ready_reports_why,
            at_end_of_input_nothing_is_left_not_even_daemons,
            files_are_private_and_plain_names_only,
        ),
        trials!(skipped, links:
            a_ping_crosses_the_path_and_every_counter_moves_by_just_that,
            mtu_and_offloads_are_as_configured,
            a_sample_of_the_cipher_link_shows_the_marker_in_clear,
            a_watch_counts_every_frame_in_clear_and_looks_at_the_first_only,
            a_station_reports_buffer_limits_and_datagrams_that_found_no_room,
            a_program_is_ready_when_its_port_listens,
            a_program_is_ready_when_its_port_is_bound,
            a_program_on_a_gateway_keeps_to_its_cores_and_its_output_is_returned_at_its_stop,
            the_namespace_is_closed_off_from_the_machine,
        ),
        trials!(skipped, devices:
            our_encryptor_carries_the_path_and_the_watch_sees_esp_only,
            a_watch_over_our_encryptor_sees_nothing_but_the_one_ping_in_clear,
            the_control_that_protects_nothing_carries_the_path_too,
            one_comes_up_reports_facts_and_counters_and_leaves_nothing,
            a_run_stays_with_its_program_when_another_one_takes_its_place,
            one_that_does_not_start_reports_why_and_leaves_nothing,
            one_that_dies_is_reported_by_its_counters_and_its_stop,
            one_that_forwards_nothing_is_taken_down_again,
        ),
        trials!(skipped, wireguard:
            traffic_passes_in_wireguard_only_and_nothing_is_left,
            a_lone_gateway_and_the_stations_keys_leave_nothing,
            frames_of_both_ip_versions_cross,
            one_that_is_killed_is_named_and_leaves_nothing,
            one_that_comes_up_on_one_gateway_only_is_taken_down_there,
            the_kernels_carries_traffic_or_reports_what_is_missing,
        ),
        trials!(skipped, acts:
            our_encryptor_goes_through_all,
            our_encryptor_loses_nothing_when_its_keys_are_renewed,
            our_encryptor_leaves_nothing_midway,
            wireguard_go_goes_through_all_and_leaves_nothing_midway,
            boringtun_goes_through_all_and_leaves_nothing_midway,
            gotatun_goes_through_all_and_leaves_nothing_midway,
            a_gateway_that_is_dead_cannot_be_killed_and_one_that_is_no_dut_cannot_start,
            a_device_that_was_dead_before_it_was_killed_is_reported,
        ),
        trials!(skipped, keys:
            every_source_comes_up_is_renewed_beside_sealed_traffic_and_leaves_nothing,
            a_sample_counts_what_gateways_agree_on_apart,
            a_gateway_that_is_started_again_agrees_on_keys_anew_by_itself,
            kmes_that_fail_leave_the_old_keys_in_force_until_they_deliver_again,
            without_the_keys_that_the_policy_requires_nothing_passes,
            a_hundred_tunnels_come_up_and_are_renewed,
            keys_out_of_step_are_found_out_and_mended,
            kmes_that_die_are_reported,
        ),
        trials!(no_openvpn, acts:
            openvpn_goes_through_all_and_leaves_nothing_midway,
        ),
        trials!(no_strongswan, acts:
            strongswan_goes_through_all_and_leaves_nothing_midway,
            strongswan_with_several_tunnels_goes_through_all,
        ),
        trials!(no_openvpn, openvpn:
            it_carries_the_path_sealed_with_the_suite_asked_for_and_leaves_nothing,
            a_suite_that_it_does_not_have_is_refused_in_words,
            one_that_is_killed_is_reported_by_its_counters_and_its_stop_and_leaves_nothing,
            one_that_comes_up_on_one_gateway_only_is_taken_down_there,
        ),
        trials!(no_strongswan, strongswan:
            a_lone_gateway_and_the_station_beside_it_leave_nothing,
            it_carries_the_path_with_a_pre_shared_key_and_leaves_nothing,
            it_carries_the_path_with_certificates_and_a_ppk_in_its_keys,
            suites_are_as_asked_for,
            ml_kem_is_refused_before_strongswan_6,
            the_kernels_esp_carries_the_path_or_is_reported_missing,
            one_that_is_killed_is_reported_by_its_counters_and_its_stop_and_leaves_nothing,
            one_that_comes_up_on_one_gateway_only_is_taken_down_there,
        ),
        trials!(skipped, kernel:
            the_kernels_xfrm_carries_the_path_with_every_algorithm_or_is_reported_missing,
            the_kernels_xfrm_refuses_what_was_changed_on_the_way,
            the_kernels_l2tpv3_joins_the_stations_or_is_reported_missing,
            the_kernels_l2tpv3_that_comes_up_on_one_gateway_only_is_taken_down_there,
        ),
        trials!(skipped, frames:
            frames_cross_what_does_not_encrypt_unanswered_and_nothing_is_left,
            a_router_with_nat_translates_the_source_and_tracks_the_flow,
            one_encryptor_alone_seals_what_the_station_opens_and_the_other_way_round,
            a_pair_of_encryptors_carries_frames_of_both_ip_versions,
            stations_joined_straight_seal_and_open_each_others_packets,
            what_a_dut_cannot_do_is_refused_in_words,
            ipv6_is_back_after_an_mtu_that_was_too_small_for_it,
        ),
        trials!(skipped, elements:
            a_reaches_b_past_bridges_and_routers,
            frames_cross_bridges_and_routers_both_ways_and_nothing_is_left,
            one_gateway_alone_is_loaded_past_bridges_and_routers,
            a_box_of_the_kernel_is_loaded_past_bridges_and_routers,
            mtu_offloads_and_rate_are_set_at_every_end_of_the_cipher_link,
            a_bridge_is_a_switch_and_no_more,
            a_dut_that_fails_leaves_no_route_on_a_router,
            an_element_that_cannot_be_made_is_explained,
            a_stopped_element_of_a_killed_run_is_removed_by_the_next_run,
        ),
        trials!(skipped, nat:
            tunnels_cross_it_and_every_packet_has_its_address,
            sealed_frames_cross_it_both_ways_and_to_one_gateway_alone,
            in_clear_b_sees_a_at_its_address,
            gateways_that_cannot_agree_on_who_connects_are_refused,
        ),
        trials!(skipped, shaping:
            the_rate_of_the_line_holds_for_long_and_short_frames,
            a_full_queue_is_counted_and_a_shaper_goes_as_it_came,
        ),
        trials!(skipped, machine:
            the_environment_of_a_journal_is_filled,
            the_doctor_tries_what_a_lab_needs,
            a_real_parameter_is_raised_and_put_back,
        ),
        trials!(skipped, faults:
            a_lab_name_is_held_by_one_run_at_a_time,
            an_interrupt_ends_a_pending_call_at_once,
            an_interrupt_ends_a_call_that_a_stopped_station_does_not_take,
            a_killed_run_leaves_no_process_and_no_namespace,
            a_stopped_station_of_a_killed_run_is_removed_by_the_next_run,
            an_orphan_of_a_killed_run_and_a_killed_station_is_removed_by_the_next_run,
            a_recorded_process_is_removed_only_when_it_is_still_the_same,
            a_station_that_dies_is_reported_by_the_next_call,
            an_ordinary_user_builds_a_lab,
            an_orphan_of_an_ordinary_users_killed_run_is_removed_by_the_next_run,
        ),
    ];
    let mut arguments = Arguments::from_args();
    // They wait for daemons and kernels far more than they compute, and no figure depends on them.
    arguments.test_threads = arguments.test_threads.or(Some(4));
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
}
