//! What was read of the machine, the sender and the path reaches the warnings.

use crate::fixture::*;
use crate::frame_fixture::{self, add, found, throughput, trial};
use journal::Journal;
use journal::record::*;
use plan::{Adapter, Encryptor, Load, Mode, Procedure};
use stats::{Results, Warning, WarningKind};
use wire::Suite;

fn of(journal: &Journal, kind: WarningKind) -> Option<Warning> {
    let warnings = Results::of(journal).warnings;
    warnings.into_iter().find(|found| found.kind == kind)
}

/// A transfer while others took that share of a core, in per cent.
fn beside(percent: u64) -> Measured {
    let mut measured = transfer(1_000);
    measured.cpu.foreign_ns = measured.cpu.wall_ns * percent / 100;
    measured.cpu.idle_ns = Some(SECOND_NS);
    measured
}

fn transferred(trials: [Outcome; 3]) -> Journal {
    let mut run = journal(vec![tcp("direct")], 3, 8);
    for (repeat, outcome) in (1..).zip(trials) {
        record(&mut run, "tcp/direct", repeat, outcome);
    }
    run
}

#[test]
fn another_program_on_a_core_is_a_warning() {
    let quiet = [beside(0), beside(10), beside(3)].map(measured);
    assert_eq!(of(&transferred(quiet), WarningKind::MachineTaken), None);
    let disturbed = [beside(0), beside(92), beside(11)].map(measured);
    let found = of(&transferred(disturbed), WarningKind::MachineTaken).unwrap();
    assert_eq!(found.cells, ["tcp/direct"]);
    assert!(
        found.text.contains(
            "`tcp/direct`, repeat 2: 92 % of one core, of which the hypervisor 0 %, with 0.2 cores idle"
        ),
        "{}",
        found.text
    );
}

#[test]
fn a_clock_that_was_set_is_a_warning_that_names_the_largest_step() {
    let mut run = transferred([0; 3].map(beside).map(measured));
    assert_eq!(of(&run, WarningKind::ClockStepped), None);
    run.trials[0].clock_step_ns = 200_000_000;
    run.trials[2].clock_step_ns = -3_600_000_000_000;
    let found = of(&run, WarningKind::ClockStepped).unwrap();
    assert_eq!(found.cells, ["tcp/direct"]);
    let words =
        "In 1 cell the system's clock was set during a trial: `tcp/direct`, repeat 3: 1 h back.";
    assert_eq!(found.text, words);
    // The trial was repeated with a clock that was left alone.
    record(&mut run, "tcp/direct", 3, measured(beside(0)));
    let found = of(&run, WarningKind::ClockStepped).unwrap();
    assert!(
        found.text.contains("repeat 1: 200 ms forward"),
        "{}",
        found.text
    );
}

#[test]
fn an_invalid_trial_is_described_too_but_one_that_was_repeated_is_not() {
    let invalid = Outcome::Invalid {
        reasons: vec!["machine-was-ours: x".into()],
        measured: Box::new(beside(92)),
    };
    let quiet = || measured(beside(0));
    let mut run = transferred([quiet(), invalid, quiet()]);
    assert!(of(&run, WarningKind::MachineTaken).is_some());
    record(&mut run, "tcp/direct", 2, quiet());
    assert_eq!(of(&run, WarningKind::MachineTaken), None);
}

#[test]
fn the_hypervisor_counts_as_others_do() {
    let mut stolen = transfer(1_000);
    stolen.cpu.steal_ns = stolen.cpu.wall_ns / 4;
    let run = transferred([stolen, transfer(1_000), transfer(1_000)].map(measured));
    let found = of(&run, WarningKind::MachineTaken).unwrap();
    assert!(
        found
            .text
            .contains("25 % of one core, of which the hypervisor 25 %."),
        "{}",
        found.text
    );
}

#[test]
fn a_path_that_waited_for_others_is_told_by_idle_time() {
    let mut cpu = beside(92).cpu;
    cpu.idle_ns = Some(0);
    assert!(cpu.was_taken_from_path());
    cpu.idle_ns = Some(cpu.taken_ns());
    assert!(!cpu.was_taken_from_path(), "other cores were free");
    cpu.idle_ns = None;
    assert!(!cpu.was_taken_from_path(), "unknown");
    cpu.idle_ns = Some(0);
    cpu.foreign_ns = cpu.wall_ns / 2;
    assert!(!cpu.was_taken_from_path(), "a half of a core is the bound");
}

fn loaded(trial: FrameTrial) -> Journal {
    loaded_on(None, trial)
}

/// As [`loaded`], on a device.
fn loaded_on(adapter: Option<Adapter>, trial: FrameTrial) -> Journal {
    let load = Procedure::Load(Load {
        frames_per_s: Some(trial.load),
        duration_ns: SECOND_NS,
    });
    let mut cell = frame_fixture::cell("router", 64, load);
    cell.dut.adapter = adapter.unwrap_or(cell.dut.adapter);
    let mut run = journal(vec![cell.clone()], 1, 8);
    let frames = FrameResult {
        trials: vec![trial],
        ..FrameResult::default()
    };
    add(&mut run, &cell, 1, frames);
    run
}

#[test]
fn a_sender_that_stood_still_is_a_warning() {
    let mut stalled = trial(200_000, 200_000);
    assert_eq!(
        of(&loaded(stalled.clone()), WarningKind::SenderStalled),
        None
    );
    (stalled.late_ns_max, stalled.late_frames) = (293_000_000, 57_571);
    let found = of(&loaded(stalled.clone()), WarningKind::SenderStalled).unwrap();
    assert!(
        found
            .text
            .contains("stood still for 293 ms in 1 s at 200 kpps, and 57571 of 200000 frames left"),
        "{}",
        found.text
    );
    assert!(stalled.came_in_bursts());
    // A few late frames are every machine's.
    (stalled.late_ns_max, stalled.late_frames) = (19_999_999, 10_000);
    assert!(!stalled.sender_stalled() && !stalled.came_in_bursts());
    stalled.late_frames += 1;
    assert!(stalled.sender_stalled() && !stalled.came_in_bursts());
}

/// Its duration and load are not those of the procedure, by which a reader would look for it.
#[test]
fn a_stall_in_the_trial_for_the_evidence_names_this_trial() {
    let cell = frame_fixture::cell(
        "router",
        64,
        Procedure::Mrr(plan::Mrr {
            max_load: None,
            trials: 1,
            trial_ns: SECOND_NS / 5,
            drain_ns: 0,
        }),
    );
    let mut stalled = trial(2_230_000, 2_000_000);
    stalled.receiver_stood_ns_max = 293_000_000;
    let mut run = journal(vec![cell.clone()], 1, 8);
    let frames = FrameResult {
        trials: vec![trial(694_000, 299_000), stalled],
        evidence_trial: Some(1),
        ..FrameResult::default()
    };
    add(&mut run, &cell, 1, frames);
    let found = of(&run, WarningKind::ReceiverStalled).unwrap();
    let words = "at 2.23 Mpps (the trial for the evidence)";
    assert!(found.text.contains(words), "{}", found.text);
}

#[test]
fn a_receiver_that_stood_still_is_a_warning() {
    let mut stalled = trial(200_000, 200_000);
    stalled.receiver_stood_ns_max = 19_999_999;
    let kind = WarningKind::ReceiverStalled;
    assert_eq!(of(&loaded(stalled.clone()), kind), None);
    stalled.receiver_stood_ns_max = 293_000_000;
    let found = of(&loaded(stalled.clone()), kind).unwrap();
    let words = "repeat 1: for 293 ms in 1 s at 200 kpps";
    assert!(found.text.contains(words), "{}", found.text);
}

#[test]
fn a_device_that_counts_what_did_not_arrive_is_a_warning() {
    let with = |change: &dyn Fn(&mut FrameTrial, &mut TrialReadings)| {
        let mut lossy = trial(200_000, 100_000);
        lossy.sent_bytes = 200_000 * 64;
        let mut readings = TrialReadings {
            dut: Some(DutWork {
                lost_between_packets: Some(0),
                taken_in_bytes: Some(200_000 * 46),
                put_out_bytes: Some(100_000 * 46),
                unaccounted_packets: 0,
            }),
            ..TrialReadings::default()
        };
        change(&mut lossy, &mut readings);
        lossy.readings = Some(Box::new(readings));
        of(&loaded(lossy), WarningKind::CountersDisagree)
    };
    let counts = |readings: &mut TrialReadings, frames: u64| {
        readings.dut.as_mut().unwrap().put_out_bytes = Some(frames * 46);
    };
    assert_eq!(with(&|_, _| ()), None);
    // 1 % and a few frames may be under way between two readings.
    assert_eq!(with(&|_, it| counts(it, 101_064)), None);
    let found = with(&|_, it| counts(it, 200_000)).unwrap();
    let expected = "9200000 B counted, 4600000 B arrived or found a queue full";
    assert!(found.text.contains(expected), "{}", found.text);
    // What the tester lost itself did arrive.
    let lost_behind = |trial: &mut FrameTrial, it: &mut TrialReadings| {
        counts(it, 200_000);
        trial.receiver_dropped = 50_000;
        (it.drops.station, it.drops.unattributed) = (20_000, 30_000);
    };
    assert_eq!(with(&lost_behind), None);
}

#[test]
fn loss_in_front_of_the_device_and_between_its_gateways_is_a_warning_where_it_bears_on_a_figure() {
    let found = |taken_in: u64, between: u64, put_out: u64, drops: u64| {
        let mut lossy = trial(200_000, 199_000);
        lossy.sent_bytes = 200_000 * 64;
        lossy.received_bytes = 199_000 * 64;
        lossy.readings = Some(Box::new(TrialReadings {
            dut: Some(DutWork {
                taken_in_bytes: Some(taken_in * 46),
                put_out_bytes: Some(put_out * 46),
                lost_between_packets: Some(between),
                unaccounted_packets: 0,
            }),
            drops: QueueDrops {
                device: drops,
                ..QueueDrops::default()
            },
            ..TrialReadings::default()
        }));
        of(&loaded(lossy), WarningKind::LostAt).map(|warning| warning.text)
    };
    let with = |taken_in, between, drops| found(taken_in, between, 199_000, drops);
    let with_put_out = |put_out| found(200_000, 0, put_out, 0);
    assert_eq!(with(200_000 - 216, 216, 0), None);
    let text = with(200_000 - 217, 0, 0).unwrap();
    let words = "between the sending station and the device's input: 217 of 200000 frames";
    assert!(text.contains(words), "{text}");
    let text = with_put_out(199_300).unwrap();
    let words = "between the device's output and the receiving station: 300 of 200000";
    assert!(text.contains(words), "{text}");
    let text = with(200_000, 500, 0).unwrap();
    assert!(
        text.contains("between the gateways: 500 of 200000"),
        "{text}"
    );
    // What queues of the device counted as dropped is its own.
    assert_eq!(with(200_000 - 500, 500, 300), None);
}

#[test]
fn headers_that_a_device_counts_because_it_carries_whole_frames_are_no_lost_frames() {
    let mut encryptor = Encryptor::new(Suite::Aes256Gcm);
    encryptor.mode = Mode::L2;
    for header_bytes in [14, 18] {
        let mut whole = trial(200_000, 200_000);
        (whole.sent_bytes, whole.received_bytes) = (200_000 * 64, 200_000 * 64);
        whole.readings = Some(Box::new(TrialReadings {
            dut: Some(DutWork {
                taken_in_bytes: Some(200_000 * (46 + header_bytes)),
                put_out_bytes: Some(200_000 * (46 + header_bytes)),
                lost_between_packets: Some(0),
                unaccounted_packets: 0,
            }),
            ..TrialReadings::default()
        }));
        let run = loaded_on(Some(Adapter::Cipherbench(encryptor.clone())), whole);
        assert_eq!(of(&run, WarningKind::LostAt), None, "{header_bytes}");
    }
}

#[test]
fn others_that_use_the_machine_in_a_trial_of_the_figure_are_a_warning() {
    let with = |foreign_ns: u64| {
        let mut shared = trial(200_000, 200_000);
        shared.readings = Some(Box::new(TrialReadings {
            wall_ns: SECOND_NS,
            machine: MachineTime {
                foreign_ns: Some(foreign_ns),
                ..MachineTime::default()
            },
            ..TrialReadings::default()
        }));
        of(&loaded(shared), WarningKind::MachineTaken).map(|warning| warning.text)
    };
    assert_eq!(with(SECOND_NS / 10), None);
    let text = with(SECOND_NS / 2).unwrap();
    assert!(
        text.contains("50 % of one core, of which the hypervisor 0 %."),
        "{text}"
    );
}

#[test]
fn of_a_search_the_trials_at_its_bounds_bear_the_figure() {
    let cell = throughput("router", 64);
    let stalled_at = |place: usize| {
        let mut frames = found(Some(100_000), Some(110_000));
        frames.trials[place].late_ns_max = 50_000_000;
        let mut run = journal(vec![cell.clone()], 1, 8);
        add(&mut run, &cell, 1, frames);
        of(&run, WarningKind::SenderStalled).is_some()
    };
    // The last is the search's first step, at another load.
    assert_eq!([0, 1, 2].map(stalled_at), [true, true, false]);
}

#[test]
fn packets_lost_between_the_gateways_are_a_warning() {
    let mut lossy = transfer(1_000);
    let count = |at: &str, packets| PathCount {
        at: at.into(),
        packets,
    };
    lossy.evidence.lost_at = vec![LostAt {
        places: vec![PathPlace::CipherLink],
        before: count("gw1/cipher_tx_packets", 20_000),
        behind: count("gw2/cipher_rx_packets", 19_801),
        dropped: 0,
    }];
    let whole = || measured(transfer(1_000));
    assert_eq!(
        of(
            &transferred([whole(), whole(), whole()]),
            WarningKind::LostAt
        ),
        None
    );
    let found = of(
        &transferred([whole(), whole(), measured(lossy)]),
        WarningKind::LostAt,
    );
    let text = found.unwrap().text;
    assert!(
        text.contains(
            "`tcp/direct`, repeat 3, between gw1 and gw2: 199 of 20000 \
             (20000 by gw1/cipher_tx_packets, 19801 by gw2/cipher_rx_packets)."
        ),
        "{text}"
    );
}

#[test]
fn a_warning_describes_the_worst_cells_only() {
    let cells: Vec<_> = (0..5)
        .map(|number| {
            let mut cell = tcp("direct");
            cell.id = format!("cell{number}");
            cell
        })
        .collect();
    let mut run = journal(cells, 1, 8);
    for number in 0..5 {
        let id = format!("cell{number}");
        record(&mut run, &id, 1, measured(beside(20 + number)));
    }
    let found = of(&run, WarningKind::MachineTaken).unwrap();
    assert_eq!(found.cells.len(), 5);
    let described: Vec<bool> = (0..5)
        .map(|number| found.text.contains(&format!("`cell{number}`")))
        .collect();
    assert_eq!(described, [false, false, true, true, true]);
    assert!(
        found.text.ends_with("; and 2 cells more."),
        "{}",
        found.text
    );
}

#[test]
fn the_program_that_took_the_machine_is_named() {
    let mut taken = beside(92);
    taken.evidence.taken_by = vec![TakenBy {
        name: "rustc".to_owned(),
        process: 4711,
        percent: 90,
    }];
    let run = transferred([taken, beside(0), beside(0)].map(measured));
    let found = of(&run, WarningKind::MachineTaken).unwrap();
    let words = "(most by rustc, 90 % over the whole trial, process 4711)";
    assert!(found.text.contains(words), "{}", found.text);
}
