//! Each warning appears where it applies, and only there.

use crate::fixture::*;
use journal::Journal;
use journal::record::{Environment, Outcome, Resumed};
use plan::{Adapter, Encryptor, ImpairProfile};
use stats::{Results, Warning, WarningKind};
use wire::Suite;

fn kinds(journal: &Journal) -> Vec<WarningKind> {
    Results::of(journal)
        .warnings
        .iter()
        .map(|found| found.kind)
        .collect()
}

fn only(journal: &Journal) -> Warning {
    let mut found = Results::of(journal).warnings;
    assert_eq!(found.len(), 1, "{found:#?}");
    let found = found.remove(0);
    assert!(
        found.text.ends_with('.') && found.advice.ends_with('.'),
        "{found:?}"
    );
    found
}

/// Direct and a DUT at half its rate, three steady repeats, on a machine with cores enough.
fn healthy() -> Journal {
    let mut journal = journal(vec![tcp("direct"), tcp("box")], 3, 8);
    for repeat in 1..=3 {
        record(
            &mut journal,
            "tcp/direct",
            repeat,
            measured(transfer(1_000)),
        );
        record(&mut journal, "tcp/box", repeat, measured(transfer(500)));
    }
    journal
}

#[test]
fn a_healthy_run_has_no_warning() {
    assert_eq!(kinds(&healthy()), []);
}

#[test]
fn an_interrupted_run_reports_its_progress() {
    let mut journal = healthy();
    journal.end = None;
    assert!(only(&journal).text.contains("all 6 trials were made"));
    let mut journal = healthy();
    journal.trials.pop();
    assert!(only(&journal).text.contains("5 of 6 trials"));
}

#[test]
fn an_unfinished_line_of_the_journal_is_reported() {
    let mut journal = healthy();
    journal
        .warnings
        .push(journal::Warning::UnfinishedLine { line: 9, bytes: 12 });
    let found = only(&journal);
    assert_eq!(found.kind, WarningKind::UnfinishedLine);
    assert!(
        found
            .text
            .starts_with("Line 9 of the journal is unfinished (12 B)"),
        "{}",
        found.text
    );
}

#[test]
fn a_run_resumed_on_another_kernel_is_reported() {
    let resumed = |kernel: &str| {
        let environment = Environment {
            kernel: kernel.into(),
            cpus: 8,
            ..Environment::default()
        };
        Resumed {
            at_unix_ns: 0,
            program: "0.1.0".into(),
            environment,
        }
    };
    let mut journal = healthy();
    journal.resumed = vec![resumed("")];
    assert_eq!(kinds(&journal), []);
    journal.resumed = vec![resumed("6.19")];
    assert_eq!(only(&journal).kind, WarningKind::EnvironmentChanged);
}

#[test]
fn repeated_invalid_trials_are_reported() {
    let invalid = || Outcome::Invalid {
        reasons: vec!["offered-as-intended: no".into()],
        measured: Box::default(),
    };
    let mut journal = healthy();
    // An invalid trial that is the last is reported in its cell, and one that failed has no figure
    // to choose.
    record(&mut journal, "tcp/box", 3, invalid());
    assert_eq!(kinds(&journal), []);
    record(&mut journal, "tcp/box", 3, invalid());
    record(&mut journal, "tcp/box", 3, measured(transfer(500)));
    let found = only(&journal);
    assert_eq!(
        (found.kind, found.cells),
        (WarningKind::Repeated, vec!["tcp/box".to_owned()])
    );
    assert!(
        found
            .text
            .starts_with("2 trials were invalid (`offered-as-intended`) and repeated"),
        "{}",
        found.text
    );
}

#[test]
fn two_repeats_are_few() {
    let mut journal = journal(vec![tcp("direct")], 2, 8);
    record(&mut journal, "tcp/direct", 1, measured(transfer(100)));
    record(&mut journal, "tcp/direct", 2, measured(transfer(100)));
    let found = only(&journal);
    assert_eq!(found.kind, WarningKind::FewRepeats);
    assert!(found.text.contains("twice"));
}

#[test]
fn a_spread_above_ten_per_cent_is_large() {
    let mut journal = healthy();
    record(&mut journal, "tcp/box", 3, measured(transfer(540)));
    assert_eq!(kinds(&journal), []);
    record(&mut journal, "tcp/box", 3, measured(transfer(900)));
    let found = only(&journal);
    assert_eq!(
        (found.kind, found.cells),
        (WarningKind::LargeSpread, vec!["tcp/box".to_owned()])
    );
    assert!(found.text.contains("tcp/box, 42 %"), "{}", found.text);
}

#[test]
fn a_lost_ping_is_counted() {
    let mut journal = journal(vec![ping("direct")], 3, 8);
    for (repeat, lost) in [(1, 0), (2, 1), (3, 1)] {
        record(
            &mut journal,
            "ping/direct",
            repeat,
            measured(round_trips(lost, &[5, 5])),
        );
    }
    let found = only(&journal);
    assert_eq!(found.kind, WarningKind::LostPing);
    assert!(
        found.text.starts_with("2 echo requests were not answered"),
        "{}",
        found.text
    );
}

#[test]
fn a_group_without_a_baseline_is_reported() {
    let mut journal = healthy();
    journal.header.plan.cells.remove(0);
    journal.trials.retain(|trial| trial.cell != "tcp/direct");
    assert_eq!(only(&journal).kind, WarningKind::NoBaseline);
}

#[test]
fn a_device_as_fast_as_the_path_without_it_was_not_the_limit() {
    let mut journal = healthy();
    for repeat in 1..=3 {
        record(&mut journal, "tcp/box", repeat, measured(transfer(950)));
    }
    let found = only(&journal);
    assert_eq!(
        (found.kind, found.cells),
        (WarningKind::TesterLimited, vec!["tcp/box".to_owned()])
    );
    let impaired = |name: &str| {
        let name = name.to_owned();
        let profile = ImpairProfile::none();
        Some(ImpairProfile { name, ..profile })
    };
    journal.header.plan.cells[1].impair = impaired(ImpairProfile::NONE);
    assert_eq!(kinds(&journal), [WarningKind::TesterLimited]);
    // On a bad line both are as fast as the line: that is the question, not a doubt.
    journal.header.plan.cells[1].impair = impaired("bad-line");
    assert_eq!(kinds(&journal), []);
}

#[test]
fn a_device_that_loses_datagrams_is_its_own_limit() {
    let of = |lost: u64| {
        let box_cell = plan::Cell {
            id: "udp/64/box".to_owned(),
            dut: tcp("box").dut,
            ..udp(64, None)
        };
        let mut journal = journal(vec![udp(64, None), box_cell], 3, 8);
        for repeat in 1..=3 {
            let sent = 100_000;
            let base = measured(datagrams(64, sent, 0));
            record(&mut journal, "udp/64/direct", repeat, base);
            let own = measured(datagrams(64, sent + lost, lost));
            record(&mut journal, "udp/64/box", repeat, own);
        }
        kinds(&journal)
    };
    assert!(of(0).contains(&WarningKind::TesterLimited));
    assert!(!of(8_000).contains(&WarningKind::TesterLimited));
}

/// Two datagram sizes by the baseline, with the datagrams sent in two seconds.
fn two_sizes(small: u64, large: u64) -> Journal {
    let mut journal = journal(vec![udp(64, None), udp(1400, None)], 3, 8);
    for repeat in 1..=3 {
        record(
            &mut journal,
            "udp/64/direct",
            repeat,
            with_size(datagrams(64, small, 0), 64),
        );
        record(
            &mut journal,
            "udp/1400/direct",
            repeat,
            with_size(datagrams(1400, large, 0), 1400),
        );
    }
    journal
}

fn with_size(mut trial: journal::record::Measured, bytes: u32) -> Outcome {
    if let journal::record::Figures::Transfer(transfer) = &mut trial.figures {
        transfer.parameters.datagram_bytes = Some(bytes);
    }
    measured(trial)
}

#[test]
fn a_datagram_rate_that_ignores_the_size_is_the_generators() {
    let found = only(&two_sizes(200_000, 190_000));
    assert_eq!(
        (found.kind, found.cells.len()),
        (WarningKind::GeneratorLimited, 2)
    );
    assert_eq!(kinds(&two_sizes(200_000, 100_000)), []);
}

#[test]
fn an_offered_load_below_the_intended_one_is_reported() {
    // 1000 datagrams of 1000 bytes in two seconds are 4 Mbit/s.
    for (intended, expected) in [
        (4_000_000, None),
        (5_000_000, Some(WarningKind::OfferedShortfall)),
    ] {
        let mut journal = journal(vec![udp(1000, Some(intended))], 3, 8);
        for repeat in 1..=3 {
            record(
                &mut journal,
                "udp/1000/direct",
                repeat,
                measured(datagrams(1000, 1_000, 0)),
            );
        }
        assert_eq!(kinds(&journal), Vec::from_iter(expected));
    }
}

#[test]
fn cores_that_stations_and_gateways_must_share_are_reported() {
    let mut journal = healthy();
    journal.header.environment.cpus = 2;
    let found = only(&journal);
    assert_eq!(
        (found.kind, found.cells),
        (WarningKind::SharedCores, vec!["tcp/box".to_owned()])
    );
    assert!(
        found
            .text
            .contains("this machine's 2 cores: 1 cell would need up to 4"),
        "{}",
        found.text
    );
    journal.header.environment.cpus = 0; // could not be read
    assert_eq!(kinds(&journal), []);
}

#[test]
fn super_packets_are_reported_with_offloads_on() {
    let mut journal = healthy();
    let stations = journal.header.plan.cells[1].stations.as_mut();
    stations.unwrap().offloads = true;
    let found = only(&journal);
    assert_eq!(
        (found.kind, found.cells),
        (WarningKind::SuperPackets, vec!["tcp/box".to_owned()])
    );
}

#[test]
fn a_virtual_machine_and_a_power_saving_governor_are_reported() {
    let mut journal = healthy();
    journal.header.environment.hypervisor = "KVM".into();
    assert!(only(&journal).text.contains("(KVM)"));
    journal.header.environment.hypervisor.clear();
    journal.header.environment.governor = "powersave".into();
    assert!(only(&journal).text.contains("`powersave`"));
    journal.header.environment.governor = "performance".into();
    assert_eq!(kinds(&journal), []);
}

#[test]
fn a_tool_that_uses_one_of_many_tunnels_is_reported() {
    let mut journal = healthy();
    let with_tunnels = |tunnels| {
        Adapter::Cipherbench(Encryptor {
            tunnels,
            ..Encryptor::new(Suite::Aes256Gcm)
        })
    };
    journal.header.plan.cells[1].dut.adapter = with_tunnels(1);
    assert_eq!(kinds(&journal), []);
    journal.header.plan.cells[1].dut.adapter = with_tunnels(1000);
    let found = only(&journal);
    assert_eq!(found.kind, WarningKind::OneTunnel);
    assert_eq!(found.cells, ["tcp/box"]);
}

/// A run is reported while it repeats invalid trials, and before it has measured anything.
#[test]
fn an_unfinished_run_claims_neither_an_end_nor_repeats() {
    let mut run = journal(vec![tcp("direct")], 2, 8);
    run.end = None;
    let text = |run: &Journal, kind: WarningKind| {
        let warnings = Results::of(run).warnings;
        let found = warnings.into_iter().find(|found| found.kind == kind);
        found.unwrap().text
    };
    assert_eq!(
        text(&run, WarningKind::FewRepeats),
        "Each cell is to be measured twice: the spread says little."
    );
    assert_eq!(
        text(&run, WarningKind::NotEnded),
        "The run did not come to its end: 0 of 2 trials were made."
    );
    for repeat in [1, 2] {
        record(&mut run, "tcp/direct", repeat, measured(transfer(250)));
    }
    assert_eq!(
        text(&run, WarningKind::NotEnded),
        "The run did not come to its end: all 2 trials were made, but it may have been repeating \
         some."
    );
    assert_eq!(
        text(&run, WarningKind::FewRepeats),
        "Each cell was measured twice: the spread says little."
    );
}
