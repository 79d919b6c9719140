//! The state of a run by its journal. `screens` tests how it is drawn.

mod screens;

use super::in_seconds;
use super::state::{Phase, State};
use campaign::HostFacts;
use journal::Journal;
use journal::record::{
    Environment, FORMAT_VERSION, Figures, Header, Measured, Outcome, Record, Transfer, TrialRecord,
};
use plan::{Plan, TrialRef};
use std::path::Path;
use std::time::{Duration, Instant};

const CAMPAIGN: &str = "\
campaign: branch-office
repeats: 3
duts: [direct, cipherbench]
trials:
  - tcp: { mtu: [1500 B, 9000 B], streams: 4, duration: 10 s }
";

fn plan() -> Plan {
    let campaign = campaign::from_text("campaign.yaml", CAMPAIGN).unwrap();
    let host = HostFacts { cores: 4 };
    campaign.plan(&campaign.usual_lab(), &host).unwrap()
}

fn journal(plan: Plan) -> Journal {
    Journal::new(Header {
        format: FORMAT_VERSION,
        started_unix_ns: 1_000_000_000,
        command: Vec::new(),
        program: "0".to_owned(),
        environment: Environment::default(),
        plan,
    })
}

fn measured(mbytes: u64) -> Outcome {
    let transfer = Transfer {
        duration_ns: 10_000_000_000,
        received_bytes: mbytes * 1_000_000,
        ..Transfer::default()
    };
    Outcome::Measured(Box::new(Measured {
        figures: Figures::Transfer(transfer),
        ..Measured::default()
    }))
}

fn trial(cell: &str, repeat: u32, outcome: Outcome) -> TrialRecord {
    TrialRecord {
        cell: cell.to_owned(),
        repeat,
        started_unix_ns: 2_000_000_000,
        duration_ns: 10_000_000_000,
        clock_step_ns: 0,
        commands: Vec::new(),
        outcome,
    }
}

#[test]
fn results_before_a_resume_are_in_the_table() {
    let plan = plan();
    let mut journal = journal(plan.clone());
    let first = plan.trials().next().unwrap();
    let record = trial(&first.cell.id, 1, measured(1000));
    journal.accept(Record::Trial(Box::new(record))).unwrap();
    let state = State::of(&journal, Path::new("runs/one"));
    assert_eq!((state.made(), state.run.as_str()), (1, "one"));
    let row = state.rows.iter().find(|row| row.cell == first.cell.id);
    assert_eq!(row.unwrap().last().unwrap().text, "800 Mbit/s");
}

#[test]
fn a_run_of_another_process_is_known_by_its_journal() {
    let plan = plan();
    let mut journal = journal(plan.clone());
    let trials: Vec<TrialRef<'_>> = plan.trials().collect();
    let second = Duration::from_secs(1).as_nanos() as u64;
    for at in [0, 1] {
        let TrialRef { cell, repeat } = trials[at];
        let mut record = trial(&cell.id, repeat, measured(1000));
        // Twice as long as estimated.
        record.duration_ns = 2 * cell.estimate_ns;
        record.started_unix_ns = (2 + at as u64) * second;
        journal.accept(Record::Trial(Box::new(record))).unwrap();
    }
    let ended = journal.trials[1].started_unix_ns + journal.trials[1].duration_ns;
    let now = Instant::now();
    let observed = |journal: &Journal| {
        State::observed(journal, Path::new("runs/one"), ended + 5 * second, now)
    };
    let state = observed(&journal);
    let current = state.now.as_ref().unwrap();
    assert_eq!(current.cell, trials[2].cell.id);
    assert!(current.time(now).starts_with("for 5 s of about "));
    let estimates = trials[2..].iter().map(|trial| trial.cell.estimate_ns);
    let left_ns = 2 * estimates.sum::<u64>() - 5 * second;
    assert_eq!(state.left(now), Some(Duration::from_nanos(left_ns)));
    journal
        .accept(Record::End(journal::record::End { at_unix_ns: 1 }))
        .unwrap();
    assert_eq!(
        observed(&journal).phase,
        Phase::Ended("finished".to_owned())
    );
}

#[test]
fn the_time_left_is_in_whole_seconds() {
    let times = [0, 59_600, 125_000, 3_599_000, 5_460_000];
    let shown = times.map(|ms| in_seconds(Duration::from_millis(ms)));
    assert_eq!(
        shown,
        ["0 s", "60 s", "2 min 5 s", "59 min 59 s", "1 h 31 min"]
    );
}
