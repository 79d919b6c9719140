//! Runs between hosts of which one goes away and comes back.

use crate::bench::{FakeBench, Script, encrypting, ping, plan};
use journal::Journal;
use journal::record::{Environment, FORMAT_VERSION, Header, Outcome, Record};
use plan::{Adapter, Host, Hosts, Plan};
use std::convert::Infallible;
use testbed::{Interrupt, NodeId};
use trial::{Conclusion, Done, OnBench, run};

const DIRECT: &str = "ping/cores=1/direct";
const CIPHERBENCH: &str = "ping/cores=1/cipherbench";

/// Two repeats of two cells between two hosts, without and with an encryptor.
fn between_hosts() -> Plan {
    let host = || Host {
        reach: Vec::new(),
        interface: None,
        cpus: Vec::new(),
        program: None,
    };
    let mut plan = plan(vec![ping(Adapter::Direct), ping(encrypting())], 2);
    plan.lab.hosts = Some(Hosts {
        a: host(),
        b: host(),
        reconnect_ns: 1,
    });
    plan
}

fn empty_journal(plan: &Plan) -> Journal {
    Journal::new(Header {
        format: FORMAT_VERSION,
        started_unix_ns: 0,
        command: Vec::new(),
        program: String::new(),
        environment: Environment::default(),
        plan: plan.clone(),
    })
}

/// Runs a plan, and adds the records to the journal.
fn round(plan: &Plan, script: Script, done: &Done, journal: &mut Journal) -> Conclusion {
    let mut sink = |record: &Record| {
        journal.accept(record.clone()).unwrap();
        Ok::<_, Infallible>(())
    };
    let mut bench = FakeBench::new(script);
    let on_bench = &mut OnBench {
        bench: &mut bench,
        folder: None,
    };
    let interrupt = Interrupt::new();
    run(plan, on_bench, done, &mut sink, &mut |_| {}, &interrupt).unwrap()
}

/// Cell and repeat of the trials in the journal, and whether each has failed.
fn trials(journal: &Journal) -> Vec<(&str, u32, bool)> {
    let trials = journal.trials.iter();
    let of = trials.map(|trial| {
        let is_failed = matches!(trial.outcome, Outcome::Failed { .. });
        (trial.cell.as_str(), trial.repeat, is_failed)
    });
    of.collect()
}

#[test]
fn a_start_goes_on_with_what_it_was_to_make_and_repeats_only_the_trial_that_the_host_spoilt() {
    let plan = between_hosts();
    let mut journal = empty_journal(&plan);
    // All was made, and the trials of the encryptor are invalid: its link shows clear text.
    let ended = round(&plan, Script::default(), &Done::default(), &mut journal);
    assert!(matches!(ended, Conclusion::Finished { invalid: 2, .. }));
    let made = journal.trials.len();
    // They are to be repeated. The first repetition fails by itself, and the host goes away during
    // the second.
    let mut done = Done::from(&journal);
    done.trials = &done.trials - &journal.invalid_trials();
    let script = Script {
        missing: Some("its program is not here".to_owned()),
        dies_in_trial: Some((NodeId::B, 2)),
        ..Script::default()
    };
    let ended = round(&plan, script, &done, &mut journal);
    let Conclusion::LabLost { made: repeated, .. } = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(repeated, [(CIPHERBENCH.to_owned(), 1)].into());
    let expected = [(CIPHERBENCH, 1, true), (CIPHERBENCH, 2, true)];
    assert_eq!(trials(&journal)[made..], expected);

    let done = done.and_made(repeated, &journal);
    let ended = round(&plan, Script::default(), &done, &mut journal);
    let expected = Conclusion::Finished {
        measured: 0,
        invalid: 1,
        failed: 0,
    };
    assert_eq!(ended, expected);
    assert_eq!(trials(&journal)[made + 2..], [(CIPHERBENCH, 2, false)]);
}

#[test]
fn a_repetition_that_the_host_spoilt_at_once_is_not_forgotten() {
    let plan = between_hosts();
    let mut journal = empty_journal(&plan);
    round(&plan, Script::default(), &Done::default(), &mut journal);
    // All that was measured directly is to be repeated, and the host goes away at once.
    let mut done = Done::from(&journal);
    done.trials.retain(|(cell, _)| cell != DIRECT);
    let script = Script {
        dies_in_trial: Some((NodeId::B, 1)),
        ..Script::default()
    };
    let ended = round(&plan, script, &done, &mut journal);
    let Conclusion::LabLost { made, .. } = ended else {
        panic!("{ended:?}")
    };
    let done = done.and_made(made, &journal);
    assert!(!done.trials.contains(&(DIRECT.to_owned(), 1)));
    assert!(!done.trials.contains(&(DIRECT.to_owned(), 2)));
}
