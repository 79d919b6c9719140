//! Trials of crypto devices by real worker processes: this test program is also the worker, and one
//! that dies.

mod ends;
mod lazy;
mod trials;
mod worker;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// The named functions of a module as tests.
macro_rules! tests {
    ($module:ident: $($name:ident),+ $(,)?) => {
        vec![$(Trial::test(stringify!($name), || {
            $module::$name();
            Ok(())
        })),+]
    };
}

fn main() -> ExitCode {
    // Tests start workers by this program with the kind of worker as its argument.
    if let Some(kind) = std::env::args().nth(1)
        && worker::is_one(&kind)
    {
        return worker::work(&kind);
    }
    let mut tests = tests!(trials:
        our_own_engines_pass_the_functional_trial,
        a_device_that_dies_is_blamed_and_the_others_are_tried,
        a_model_counts_what_it_does,
        a_counter_that_does_not_move_is_no_offload,
        processes_work_at_once,
        two_devices_share_those_that_ask,
        what_is_not_offered_is_no_failure,
        a_device_that_cannot_be_opened_fails_with_what_it_says,
        wrong_results_make_no_figure,
        one_wrong_result_in_a_thousand_makes_no_figure,
        a_token_that_verifies_nothing_makes_no_figure,
        a_device_that_stops_is_restarted_and_its_lives_are_recorded,
        a_device_whose_process_dies_is_started_again_and_given_up_at_last,
        a_device_that_is_not_to_be_restarted_is_left,
        loops_end_a_fatigue_trial,
        an_interrupted_fatigue_trial_is_recorded_and_goes_on,
    );
    tests.extend(tests!(ends:
        a_device_without_progress_has_failed_at_its_last_operation,
        a_hanging_device_ends_a_fatigue_trial_in_time,
        a_hanging_device_ends_a_speed_trial_and_a_functional_one,
        a_device_that_crashes_keeps_what_it_reported,
        a_pin_that_is_refused_is_not_tried_again,
        the_last_reported_algorithm_is_blamed_for_a_workers_death,
        a_token_of_softhsm_leaves_nothing,
        a_broken_off_trial_with_softhsm_leaves_nothing,
    ));
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}
