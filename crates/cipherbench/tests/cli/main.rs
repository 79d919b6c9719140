//! The program end to end: real campaigns in real labs, real faults, and nothing left behind.
//!
//! Tests that need a lab are skipped, with the reason, where none can be built. `UPDATE_GOLDEN=1
//! cargo test -p cipherbench` rewrites the expected texts in `golden/`.

mod attack;
mod bisect;
mod browse;
mod checks;
mod compare;
mod devices;
mod encrypt;
mod faults;
mod fleet;
mod frames;
mod generate;
mod hosts;
mod ike_peers;
mod init;
mod interrupts;
mod kme;
mod limits;
mod lists;
mod live;
mod offloads;
mod places;
mod programs;
mod runs;
mod sabotage;
mod signing;
mod soak;
mod speed;
mod support;
mod texts;
mod trust;
mod tunnel_check;
mod version_settings;
mod versions;

use fleet::attack as fleet_attack;
use libtest_mimic::{Arguments, Completion, Trial};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use testing::busy;

/// The time of a slower test is printed: together they take most of CI's time.
const SLOW: Duration = Duration::from_secs(10);

/// The named functions of a module as tests; `$skipped` is the reason why they cannot run here, if
/// any.
macro_rules! tests {
    // Without a lab nothing depends on how much of the machine the hypervisor takes.
    (None, $module:ident: $($name:ident),+ $(,)?) => {
        tests!(busy::skipped, None, $module: $($name),+)
    };
    ($skipped:expr, $module:ident: $($name:ident),+ $(,)?) => {
        tests!(busy::skipped_in_lab, $skipped, $module: $($name),+)
    };
    ($run:path, $skipped:expr, $module:ident: $($name:ident),+) => {
        vec![$({
            let skipped: Option<String> = $skipped.clone();
            let name = concat!(stringify!($module), "::", stringify!($name));
            Trial::ignorable_test(name, move || {
                let began = Instant::now();
                let conclusion = match skipped {
                    Some(reason) => Completion::ignored_with(reason),
                    None => match $run(busy::REPEATS, $module::$name) {
                        Some(_) => Completion::ignored_with("the machine is too busy"),
                        None => Completion::Completed,
                    },
                };
                if began.elapsed() > SLOW {
                    eprintln!("{name} took {:.0?}", began.elapsed());
                }
                Ok(conclusion)
            })
        }),+]
    };
}

fn main() -> ExitCode {
    let no_lab = support::missing_lab();
    let no_user = support::missing_user_namespaces();
    let no_fleet = fleet::missing();
    for (what, reason) in [
        ("a lab", &no_lab),
        ("a user namespace", &no_user),
        ("a fleet", &no_fleet),
    ] {
        if let Some(reason) = reason {
            testing::skip(format_args!("tests that need {what}"), reason);
        }
    }
    let no_hosts = no_lab.clone().or_else(hosts::missing);
    // What is refused, killed or answered, whatever its figures are worth.
    let beside = [
        tests!(None, checks:
            many_files_have_a_line_each_and_share_their_warnings,
            many_files_with_mistakes_show_the_first_of_each,
            a_plan_names_the_cells_that_this_host_skips_and_gives_them_no_time,
        ),
        tests!(None, texts:
            help_is_as_recorded,
            version_shows_revision_and_engines,
            a_wrong_command_line_exits_2,
            lint_ends_with_1_on_an_error_and_with_2_on_a_file_that_it_cannot_read,
            check_reports_all_mistakes_of_a_file,
            check_says_ok_for_the_shipped_files_on_hosts_that_have_their_cores,
            check_shows_one_mistake_in_many_places_and_labs_once,
            a_length_may_have_its_unit,
            check_refuses_what_this_host_or_a_named_lab_lacks,
            check_recognises_configurations_and_says_what_it_took_a_file_for,
            cores_that_this_host_lacks_are_reported_with_the_other_mistakes,
            plan_shows_every_cell_with_its_commands,
            plan_as_json_is_one_document,
            unwritable_output_is_an_error_but_a_closed_reader_is_not,
            doctor_reports_what_this_host_can_measure,
            keys_are_created_once_and_never_overwritten,
            certificates_are_created_once_and_for_valid_names_only,
            a_ppk_is_the_same_in_both_files,
        ),
        tests!(None, lists:
            runs_are_listed_in_every_width,
            old_runs_are_deleted_and_nothing_else,
            a_report_is_opened_or_its_address_printed,
            five_hundred_runs_are_listed_within_seconds,
            examples_are_listed_printed_and_written,
            shipped_names_are_files_everywhere,
            a_mistyped_word_suggests_the_nearest,
        ),
        tests!(None, places:
            names_with_spaces_other_scripts_and_no_utf8_are_names,
            runs_of_older_formats_are_listed_reported_and_compared,
            folders_that_cannot_be_written_to_are_named_with_a_way_out,
        ),
        tests!(None, live:
            a_port_in_use_is_one_error_before_anything_is_made,
            pages_of_recorded_runs_are_read_and_compared,
            requests_that_are_no_reading_of_a_page_are_refused,
            a_log_that_cannot_be_written_costs_no_run,
        ),
        tests!(None, signing:
            a_signed_run_is_verified_by_this_program_and_by_others,
            a_changed_figure_is_found_with_its_place,
            a_forger_who_computes_everything_anew_lacks_the_key,
            signatures_of_other_keys_lists_and_runs_are_refused,
            mistakes_with_keys_and_runs_are_explained,
        ),
        tests!(None, generate:
            every_command_has_a_manual_page_without_mistakes,
            a_manual_page_that_cannot_be_written_is_reported,
            bash_completes_commands_campaigns_labs_devices_and_runs,
            zsh_and_fish_complete_too,
            a_service_without_its_files_says_what_is_missing_and_how_to_make_it,
            systemd_is_told_when_a_service_is_ready,
        ),
        tests!(None, init:
            campaigns_of_every_kind_pass_check_and_are_as_recorded,
            labs_of_every_kind_pass_check,
            both_ends_of_a_tunnel_pass_check_and_their_keys_are_not_printed,
            existing_files_are_refused_before_anything_is_written,
            without_a_terminal_the_flags_are_named,
            a_dialogue_on_a_terminal_asks_until_the_answer_is_one,
            an_interrupted_dialogue_leaves_nothing,
        ),
        tests!(None, attack:
            inputs_without_an_end_are_refused_at_once,
            a_journal_of_others_gives_a_terminal_no_orders,
            a_file_of_others_gives_a_terminal_no_orders,
            root_runs_no_program_of_another_user,
        ),
        tests!(None, programs:
            check_and_plan_warn_of_missing_programs,
            a_lab_demands_only_programs_that_its_cells_need,
            a_run_without_its_programs_is_refused_before_anything_is_made,
            a_device_without_its_programs_is_refused,
            what_make_peers_installs_is_found_without_a_variable,
        ),
        tests!(None, fleet:
            check_names_each_command_that_is_not_allowed,
            without_a_server_each_command_says_what_to_do,
            a_server_beyond_this_machine_wants_tls_or_a_word,
        ),
        tests!(None, kme:
            two_kmes_serve_until_a_termination_signal,
            mistakes_of_a_kme_are_reported_before_it_serves,
        ),
        tests!(None, compare:
            old_cut_and_repeated_runs_are_compared_or_refused_with_their_place,
        ),
        tests!(None, bisect:
            mistakes_of_a_bisection_are_reported_before_anything_is_made,
        ),
        tests!(no_lab, version_settings:
            a_setting_that_the_namespace_refuses_fails_its_cell_in_words,
            an_unknown_parameter_is_named_by_check_and_refused_by_run,
        ),
        tests!(no_fleet, fleet_attack:
            a_default_server_accepts_only_the_users_that_its_first_start_made,
            no_command_and_no_page_writes_where_a_list_in_the_archive_leads,
            pages_of_other_sites_read_nothing_and_make_serve_write_nothing,
        ),
        tests!(no_fleet, fleet:
            users_do_what_they_may_and_a_campaign_loads_what_the_agent_allows,
        ),
        tests!(None, devices:
            unknown_and_unusable_devices_are_reported,
            a_functional_trial_ends_in_a_table,
            nobody_else_may_write_to_a_run_whatever_the_umask_is,
            a_device_with_wrong_results_exits_1,
        ),
        tests!(None, ike_peers:
            peers_are_set_up_at_a_rate_and_the_answer_comes_first,
            each_load_has_its_answer,
            ctrl_c_prints_the_counts_and_deletes_the_sas,
            failures_name_the_notify_and_a_remedy,
            impossible_peers_are_refused_before_anything_is_sent,
            a_strongswan_is_loaded_from_its_network,
        ),
        tests!(None, speed:
            impossible_measurements_are_refused,
            every_engine_has_a_rate_for_every_size_and_direction,
            threads_are_measured_alone_and_together,
            curves_are_charted_and_kept_in_the_cache,
            insecure_suites_and_engines_are_marked_everywhere,
        ),
        tests!(None, limits:
            limits_decide_the_exit_code,
            undecided_limits_get_repeats_until_they_are_decided,
            options_about_limits_need_a_campaign_with_limits,
        ),
        tests!(None, frames: an_invalid_spec_is_an_error),
        tests!(None, offloads: a_lab_without_interfaces_is_refused),
        tests!(None, trust:
            an_own_journal_is_resumed_without_a_question,
            a_journal_from_elsewhere_needs_trust_or_an_agreement,
            a_changed_journal_runs_none_of_its_commands,
        ),
        tests!(no_lab, interrupts:
            a_run_that_was_killed_is_resumed_without_losing_a_trial,
            ctrl_c_takes_the_lab_down_and_exits_4_even_when_pressed_again,
            a_station_left_by_a_killed_run_is_removed_by_the_next,
            a_station_that_dies_ends_the_run_and_it_can_be_resumed,
            a_truncated_last_line_is_dropped_with_a_warning,
        ),
        tests!(no_hosts, hosts:
            what_two_hosts_with_boxes_cannot_do_is_refused_in_words,
            ctrl_c_gives_back_both_hosts_and_takes_the_boxes_down,
            a_killed_run_gives_back_both_hosts_and_takes_the_boxes_down,
            doctor_looks_at_both_hosts,
            pods_are_reached_by_kubectl,
            a_killed_ssh_session_frees_the_host,
            a_host_that_is_cut_off_frees_itself,
            a_run_waits_for_a_host_that_reboots_and_goes_on,
            a_tester_that_sleeps_frees_its_hosts,
            a_host_that_cannot_be_used_is_refused_in_words,
            an_interface_under_that_of_the_session_is_refused,
            an_examination_over_the_interface_of_the_session_is_refused,
            an_ended_examination_restores_every_offload,
            a_stopped_or_killed_station_loses_no_interface,
            a_host_of_another_kind_or_version_is_refused_in_words,
            a_host_whose_disk_is_full_is_refused_and_keeps_nothing,
            a_program_that_arrives_damaged_is_refused_and_keeps_nothing,
            a_sudo_that_asks_is_refused_in_words,
            more_cores_than_a_host_has_fail_the_cell_with_its_name,
            a_program_that_a_host_lacks_is_named_before_anything_is_measured,
            two_runs_of_one_lab_exclude_each_other_on_its_hosts,
            a_tunnel_is_checked_over_ssh_and_nothing_is_left,
        ),
        tests!(no_user, faults: a_missing_privilege_is_reported_with_the_responsible_setting),
        tests!(no_user, runs: an_ordinary_user_runs_in_a_user_namespace),
        tests!(no_lab, runs: a_report_is_rebuilt_byte_for_byte),
        tests!(no_lab, faults:
            an_unreadable_journal_is_reported_with_its_line,
            an_unwritable_folder_is_refused_before_measuring,
            a_disk_that_is_full_from_the_start_is_reported_before_anything_is_measured,
            a_lab_name_in_use_is_refused,
        ),
        tests!(no_lab, encrypt:
            networks_are_closed_and_opened_without_an_encryptor,
            two_gateways_carry_a_ping_count_it_and_stop_cleanly,
            two_hosts_in_five_lines_reach_each_other_as_documented,
            two_gateways_of_init_reach_each_other,
            a_wrong_key_file_is_refused,
            an_address_in_use_is_refused,
        ),
        tests!(None, tunnel_check:
            a_check_that_cannot_be_made_is_one_clear_error,
            ctrl_c_ends_both_ends,
        ),
        tests!(no_lab, tunnel_check:
            our_tunnel_is_encrypted_and_the_path_beneath_it_is_not,
            without_the_right_to_look_encryption_is_unknown,
            vxlan_is_not_encrypted,
            a_black_hole_of_the_mtu_is_named,
            an_ended_search_restores_every_offload_at_both_ends,
            an_offload_that_hurts_is_named,
            ipv6_is_checked_as_ipv4_is,
        ),
        tests!(no_lab, soak: a_short_soak_gives_every_frame_one_end),
        tests!(no_lab, versions:
            a_build_that_makes_no_program_is_one_clear_error,
            an_interrupted_build_ends_with_all_that_it_started,
            a_missing_program_is_named_by_check_plan_and_run,
        ),
    ];
    // What must be found or carried whatever the machine does meanwhile; what a trial's record
    // blames on the machine is repeated.
    let paired = [
        tests!(no_hosts, hosts:
            two_hosts_measure_as_one_machine_does,
            boxes_between_two_hosts_are_measured_by_tools_and_frames,
            one_gateway_alone_is_measured_between_two_hosts_of_two_clocks,
            a_tap_on_one_of_the_hosts_proves_encryption,
            the_tester_may_be_one_of_the_two_hosts,
            a_report_between_two_clocks_says_that_its_latency_is_of_round_trips,
            a_host_is_sent_the_program_and_keeps_nothing,
            what_a_login_shell_prints_is_ignored,
            each_host_is_read_for_itself,
        ),
        tests!(None, live:
            a_run_is_followed_in_a_browser_to_its_end,
            a_run_of_another_process_is_followed_by_its_journal,
            viewers_that_do_not_read_hold_up_no_run,
            a_terminal_has_one_screen_and_the_log_has_the_lines,
        ),
        tests!(no_lab, programs: cells_without_their_programs_are_left_out_on_request_and_measured_later),
        tests!(no_fleet, fleet:
            a_campaign_goes_through_a_fleet_and_comes_back_whole,
            a_job_goes_to_the_lab_that_its_campaign_names_and_submit_says_if_none_is_there,
            a_server_has_tls_and_follows_its_users_and_its_certificate,
            a_fleet_is_seen_in_a_browser_and_a_run_is_followed_line_by_line,
        ),
        tests!(None, devices:
            an_interrupted_fatigue_trial_is_resumed,
            invalid_trials_are_repeated_only_on_request,
        ),
        tests!(no_lab, versions:
            versions_are_built_once_and_measured_side_by_side,
            two_versions_of_wireguard_go_are_built_from_their_module_and_compared,
            a_program_that_changes_ends_the_run_it_belongs_to,
            versions_that_do_not_interoperate_are_measured_with_themselves,
        ),
        tests!(no_lab, runs:
            a_run_ends_in_a_table_and_every_document,
            reference_campaigns_print_their_published_figures_beside_measured_ones,
            a_published_table_stands_beside_what_was_measured,
        ),
        tests!(no_lab, faults:
            a_full_disk_ends_the_run_and_it_can_be_resumed,
            a_device_that_dies_during_a_trial_fails_its_cell_with_the_reason,
        ),
        tests!(None, frames: ctrl_c_ends_a_long_frame_trial_within_a_second),
        tests!(no_lab, frames:
            each_direction_is_measured_separately_on_stations,
            a_reset_is_timed_by_both_methods_and_proven,
        ),
        tests!(no_lab, sabotage:
            loss_on_the_link_of_station_a,
            loss_on_the_cipher_link,
            loss_on_the_link_of_station_b,
            copies_in_clear_on_the_cipher_link,
            a_route_past_the_tunnel,
            frames_in_clear_past_the_queue,
            offloads_switched,
            the_sender_stands_still,
            the_receiver_stands_still,
            a_broadcast_storm_on_the_cipher_link,
            a_broadcast_storm_on_the_link_of_station_b,
            the_device_is_restarted,
        ),
    ];
    // Another test's work is what spoils a figure, and settings are the whole machine's.
    let alone = [
        tests!(None, compare: a_device_of_half_the_speed_violates_a_gate),
        tests!(no_hosts, hosts:
            clocks_are_compared_through_the_boxes,
            latency_between_two_clocks_has_a_bound_that_holds,
            an_unequal_way_widens_the_bound_and_leads_to_round_trips,
            doctor_tunes_both_hosts_and_restores_them_exactly,
            what_a_host_does_not_let_be_tuned_is_reported,
            cpus_of_a_host_are_used_recorded_and_checked,
        ),
        tests!(None, devices: speeds_of_devices_are_a_run),
        tests!(no_lab, bisect:
            the_program_that_slows_a_tunnel_is_named,
            the_commit_of_32_that_slows_a_tunnel_is_named,
            the_set_with_a_small_window_is_named,
        ),
        // About an hour: `make bisect-lab`.
        tests!(no_lab, bisect: a_delay_of_2_percent_at_one_of_32_commits_accuses_no_other)
            .into_iter()
            .map(|test| test.with_ignored_flag(true))
            .collect(),
        tests!(no_lab, version_settings: a_smaller_window_is_applied_compared_and_restored),
        tests!(no_lab, runs: json_output_is_pure_and_quiet_prints_nothing_else),
        tests!(no_lab, faults: doctor_applies_settings_and_reverts_them_exactly),
        tests!(no_lab, offloads: no_combination_damages_packets_through_our_encryptor),
        tests!(None, frames:
            the_lab_in_memory_measures_without_any_privilege,
            calibrate_measures_the_tester_alone,
        ),
        tests!(no_lab, sabotage:
            without_harm_the_figures_stand,
            every_core_is_taken_by_another_program,
            the_clock_is_set_and_set_back,
        ),
    ];
    let arguments = Arguments::from_args();
    let run = |tests: Vec<Vec<Trial>>, at_once| {
        let mut arguments = arguments.clone();
        arguments.test_threads = arguments.test_threads.or(Some(at_once));
        libtest_mimic::run(&arguments, tests.into_iter().flatten().collect())
    };
    let conclusions = [
        run(beside.into(), 3),
        run(paired.into(), 2),
        run(alone.into(), 1),
    ];
    if conclusions
        .iter()
        .any(libtest_mimic::Conclusion::has_failed)
    {
        ExitCode::from(101)
    } else {
        ExitCode::SUCCESS
    }
}
