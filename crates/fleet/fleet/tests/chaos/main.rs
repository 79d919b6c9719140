//! A fleet with a real nats-server: agents and server are killed, networks cut and disks filled,
//! and every job ends once, with the run that its agent has on its disk; users do what they may,
//! and no more.
//!
//! Agents are processes of this file, so that they can be killed. What they measure with is a
//! script that writes a journal line by line and can be resumed, as the program does: here the
//! queue, the leases and the archive are tested, not the measuring.
//!
//! `CHAOS="SEED AGENTS JOBS EVENTS"` plays another game; `make chaos` a long one.

mod clocks;
mod cluster;
mod cuts;
mod earlier;
mod full;
mod game;
#[path = "../fleet/job.rs"]
mod job;
mod labs;
mod operator;
mod permissions;
mod relay;
mod repeats;
mod site;
mod users;
mod watching;

use fleet::Server;
use libtest_mimic::{Arguments, Failed, Trial};
use nix::sys::stat::Mode;
use std::process::ExitCode;

/// Tests wait for leases, time-outs and restarts most of the time.
const TESTS_AT_ONCE: usize = 3;

fn main() -> ExitCode {
    // Files of users and trusted keys are written as their owner would.
    nix::sys::stat::umask(Mode::S_IWGRP | Mode::S_IWOTH);
    let words: Vec<String> = std::env::args().collect();
    if words.get(1).is_some_and(|word| word == "agent") {
        return site::serve(&words[2..]);
    }
    let tests = [
        (
            "killed_agents_and_servers_and_cut_networks_lose_nothing_and_double_nothing",
            game::chaos as fn(),
        ),
        (
            "a_job_that_ends_its_agent_each_time_is_parked",
            labs::deadly,
        ),
        (
            "what_fits_no_lab_says_why_and_a_wrong_campaign_is_parked",
            labs::misfits,
        ),
        ("a_lab_has_one_agent", labs::one_agent),
        (
            "labs_of_one_machine_take_turns_whichever_agents_have_them",
            labs::turns,
        ),
        (
            "a_job_that_its_agent_took_and_does_not_know_of_is_begun",
            labs::taken_only,
        ),
        (
            "an_agent_that_waits_for_an_earlier_run_renews_its_lease_and_is_cancelled_and_stopped",
            earlier::run,
        ),
        (
            "each_role_does_what_it_may_and_nothing_else",
            permissions::roles,
        ),
        (
            "an_agent_that_trusts_keys_runs_what_they_signed_only",
            permissions::signatures,
        ),
        (
            "a_run_goes_on_when_its_agents_credentials_expire_and_ends_with_new_ones",
            operator::expiry,
        ),
        (
            "a_repeated_job_runs_once_in_each_period_whoever_is_killed",
            repeats::periods,
        ),
        (
            "who_watches_sees_each_change_and_the_end_also_over_a_killed_server",
            watching::changes,
        ),
        (
            "a_run_goes_on_behind_a_cut_that_is_longer_than_a_lease_and_nobody_takes_its_lab",
            cuts::longer_than_a_lease,
        ),
        (
            "an_agent_that_is_stopped_behind_a_cut_ends_and_uploads_at_its_next_start",
            cuts::stopped_behind_a_cut,
        ),
        (
            "a_cluster_goes_on_when_one_server_after_the_other_is_killed",
            cluster::killed_one_by_one,
        ),
        ("a_run_is_kept_until_the_store_has_room", full::limit),
        ("a_run_is_kept_until_its_bucket_has_room", full::bucket),
        (
            "a_server_whose_disk_was_full_is_started_again_once_there_is_room",
            full::server,
        ),
        (
            "an_agent_whose_disk_is_full_takes_nothing_and_resumes_once_there_is_room",
            full::agent,
        ),
        (
            "jobs_run_in_the_order_in_which_the_server_got_them_whatever_the_clocks_say",
            clocks::order,
        ),
        (
            "users_change_while_the_server_runs_and_a_mistake_changes_nothing",
            users::change,
        ),
        (
            "a_fleet_of_the_schema_before_is_brought_to_this_one",
            labs::migration,
        ),
    ];
    let is_missing = Server::program().is_none();
    if is_missing {
        testing::lacks("a fleet in trouble", "nats-server", "scripts/tools.sh nats");
    }
    let tests = tests.map(|(name, test)| {
        let trial = Trial::test(name, move || {
            test();
            Ok::<(), Failed>(())
        });
        trial.with_ignored_flag(is_missing)
    });
    let arguments = Arguments {
        test_threads: Some(TESTS_AT_ONCE),
        ..Arguments::from_args()
    };
    libtest_mimic::run(&arguments, tests.into()).exit_code()
}
