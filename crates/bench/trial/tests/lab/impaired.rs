//! Trials over an impaired path: the frames find what the profile says, and what the path counts.
//!
//! ```text
//!  A ---- gw1 ==== impair1 ==== gw2 ---- B
//! ```

use crate::frames::{frames, load, passes, short};
use crate::trials::{TestLab, cell, child, encrypting, lab_plan, ping};
use impair::{Distribution, Impairment, Jitter, Loss, Profile, Queue, Rate, Reorder};
use journal::record::{FrameTrial, Impaired, LatencyBucket, Measured, Outcome};
use plan::{Adapter, Cell, Direction, Element, LabPlan};
use std::time::{Duration, Instant};
use testbed::{Bench, NodeId};
use testing::busy;

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 9] = [
    (
        "a_path_without_impairments_changes_nothing",
        a_path_without_impairments_changes_nothing,
    ),
    (
        "as_many_frames_are_missing_as_the_path_lost",
        as_many_frames_are_missing_as_the_path_lost,
    ),
    (
        "a_delay_is_found_one_way_and_in_round_trips",
        a_delay_is_found_one_way_and_in_round_trips,
    ),
    (
        "each_direction_has_its_own_counts_and_latency",
        each_direction_has_its_own_counts_and_latency,
    ),
    (
        "overtaken_doubled_and_damaged_frames_are_found",
        overtaken_doubled_and_damaged_frames_are_found,
    ),
    ("a_rate_limits_what_arrives", a_rate_limits_what_arrives),
    (
        "one_seed_gives_one_sequence_of_fates",
        one_seed_gives_one_sequence_of_fates,
    ),
    (
        "a_path_that_lets_nothing_through_gives_no_figure",
        a_path_that_lets_nothing_through_gives_no_figure,
    ),
    (
        "a_path_that_is_killed_in_mid_trial_fails_the_trial",
        a_path_that_is_killed_in_mid_trial_fails_the_trial,
    ),
];

pub(crate) fn impaired_lab() -> TestLab {
    TestLab::on(&LabPlan {
        path: vec![Element::Impair],
        ..lab_plan()
    })
}

/// A cell whose frames from A to B are impaired.
pub(crate) fn impaired(cell: Cell, a_to_b: Impairment) -> Cell {
    let profile = Profile {
        name: "test".to_owned(),
        a_to_b,
        ..Profile::none()
    };
    Cell {
        impair: Some(profile),
        ..cell
    }
}

fn frames_over(adapter: Adapter, ms: u64, a_to_b: Impairment) -> Cell {
    impaired(frames(adapter, short(Direction::Both), load(ms)), a_to_b)
}

/// Makes a trial whose counts hold however busy the machine is: only what depends on time suffers.
pub(crate) fn counted(lab: &mut TestLab, cell: &Cell) -> Measured {
    match lab.record(cell).outcome {
        Outcome::Measured(measured) => *measured,
        Outcome::Invalid { reasons, measured }
            if busy::is_the_cause(reasons.iter().map(String::as_str)) =>
        {
            *measured
        }
        outcome => panic!("{outcome:#?}"),
    }
}

pub(crate) fn counts(measured: &Measured) -> Impaired {
    assert!(passes(measured, "impaired-path-passes"));
    measured.evidence.impaired.unwrap()
}

fn sum(measured: &Measured, of: fn(&FrameTrial) -> u64) -> u64 {
    measured.frames().unwrap().trials.iter().map(of).sum()
}

/// Asserts that a count of independent events is within five standard deviations of its mean.
fn assert_share(found: u64, of: u64, share: f64) {
    let (mean, deviation) = (
        of as f64 * share,
        (of as f64 * share * (1.0 - share)).sqrt(),
    );
    let off = (found as f64 - mean).abs();
    assert!(off < 5.0 * deviation, "{found} of {of}, expected {mean}");
}

fn a_path_without_impairments_changes_nothing() {
    let mut lab = impaired_lab();
    for adapter in [Adapter::Direct, encrypting()] {
        let measured = counted(&mut lab, &frames_over(adapter, 500, Impairment::default()));
        let found = counts(&measured);
        assert_eq!(sum(&measured, FrameTrial::lost), 0);
        // More if ARP crosses the path too.
        assert!(found.a_to_b.sent >= sum(&measured, |trial| trial.sent));
        assert_eq!(found.a_to_b.sent, found.a_to_b.received);
    }
    // Super-packets are cut before they reach the path.
    let streams = cell(encrypting(), 1, true, crate::trials::tcp(1));
    let measured = counted(&mut lab, &impaired(streams, Impairment::default()));
    assert!(passes(&measured, "offloads-as-asked"));
    assert!(counts(&measured).a_to_b.received > 1000);
}

fn as_many_frames_are_missing_as_the_path_lost() {
    let impairment = Impairment {
        loss: Some(Loss::Random { ppm: 100_000 }),
        ..Impairment::default()
    };
    let mut lab = impaired_lab();
    let measured = counted(&mut lab, &frames_over(Adapter::Direct, 2000, impairment));
    let found = counts(&measured).a_to_b;
    let (sent, lost) = (
        sum(&measured, |it| it.sent),
        sum(&measured, FrameTrial::lost),
    );
    assert_share(lost, sent, 0.1);
    // What else the path carried, such as neighbour discovery, may have been lost too.
    let others = found.received - sent;
    assert!(others < 64, "{found:?}");
    assert!(
        (lost..=lost + others).contains(&found.lost_by_model),
        "{lost} lost, {found:?}"
    );
}

fn a_delay_is_found_one_way_and_in_round_trips() {
    let impairment = Impairment {
        delay_ns: 20 * MS,
        jitter: Some(Jitter {
            time_ns: 2 * MS,
            distribution: Distribution::Uniform,
        }),
        ..Impairment::default()
    };
    let mut lab = impaired_lab();
    let measured = counted(
        &mut lab,
        &frames_over(encrypting(), 1000, impairment.clone()),
    );
    let latency = &measured.frames().unwrap().latency[0];
    let least = latency.histogram[0].upto_ns;
    // The delay less the whole jitter.
    assert!(least >= 18 * MS, "{least}");
    let half = latency.frames / 2;
    let mut seen = 0;
    let median = latency.histogram.iter().find(|bucket| {
        seen += bucket.frames;
        seen >= half
    });
    // In order, most frames wait for one that was delayed by nearly 22 ms.
    let median = median.unwrap().upto_ns;
    assert!(median >= 20 * MS, "{median}");
    let kept_up = passes(&measured, "impair-kept-up") && passes(&measured, "machine-was-ours");
    assert!(median < 24 * MS || !kept_up, "{median}");
    let pinged = counted(
        &mut lab,
        &impaired(cell(encrypting(), 1, false, ping()), impairment),
    );
    let round_trips = &pinged.latency().unwrap().round_trips_ns;
    assert!(round_trips.iter().all(|time_ns| *time_ns >= 18 * MS));
}

/// Both ways at once, over a path that loses and delays in one direction more than in the other.
fn each_direction_has_its_own_counts_and_latency() {
    let away = Impairment {
        delay_ns: 20 * MS,
        loss: Some(Loss::Random { ppm: 100_000 }),
        ..Impairment::default()
    };
    let mut lab = impaired_lab();
    for adapter in [Adapter::Direct, encrypting()] {
        let mut traffic = short(Direction::Both);
        traffic.duplex = true;
        let mut cell = impaired(frames(adapter, traffic, load(1000)), away.clone());
        let profile = cell.impair.as_mut().unwrap();
        profile.b_to_a.delay_ns = 5 * MS;
        let measured = counted(&mut lab, &cell);
        let path = counts(&measured);
        let result = measured.frames().unwrap();
        let of = |way: usize, count: fn(&FrameTrial) -> u64| -> u64 {
            let trials = result.trials.iter();
            trials.map(|trial| count(&trial.directions[way])).sum()
        };
        for (way, path) in [path.a_to_b, path.b_to_a].into_iter().enumerate() {
            let (sent, received) = (of(way, |it| it.sent), of(way, |it| it.received));
            // A busy machine offers less.
            assert!(sent > 0 && sent <= of(way, |it| it.intended), "{way}");
            let lost = sent - received;
            assert_eq!(lost, of(way, FrameTrial::lost), "{way}");
            let others = path.received - sent;
            assert!(others < 64, "{way}: {path:?}");
            let possible = lost..=lost + others;
            assert!(
                possible.contains(&path.lost_by_model),
                "{way}: {lost} lost, {path:?}"
            );
        }
        assert_share(of(0, FrameTrial::lost), of(0, |it| it.sent), 0.1);
        assert_eq!(of(1, FrameTrial::lost), 0);
        // The sum is that of both.
        for trial in &result.trials {
            let both = trial.directions.iter();
            let received: u64 = both.map(|own| own.received).sum();
            assert_eq!(trial.received, received);
        }
        let [there, back] = &result.latency[0].directions[..] else {
            panic!("{:?}", result.latency)
        };
        let frames = |way: &[LatencyBucket]| way.iter().map(|it| it.frames).sum::<u64>();
        let first = &result.trials[0].directions;
        assert_eq!(
            [frames(there), frames(back)],
            [first[0].received, first[1].received]
        );
        let least = |way: &[LatencyBucket]| way.iter().map(|it| it.upto_ns).min().unwrap();
        assert!(least(there) >= 20 * MS, "{}", least(there));
        assert!((5 * MS..20 * MS).contains(&least(back)), "{}", least(back));
    }
}

fn overtaken_doubled_and_damaged_frames_are_found() {
    let impairment = Impairment {
        reorder: Some(Reorder {
            ppm: 50_000,
            // Frames of one of the eight flows are 4 ms apart.
            by_ns: 20 * MS,
        }),
        duplicate_ppm: 30_000,
        corrupt_ppm: 20_000,
        ..Impairment::default()
    };
    let mut lab = impaired_lab();
    let measured = counted(
        &mut lab,
        &frames_over(Adapter::Direct, 2000, impairment.clone()),
    );
    let found = counts(&measured).a_to_b;
    let sent = sum(&measured, |trial| trial.sent);
    assert_share(found.duplicated, sent, 0.03);
    assert_share(found.corrupted, sent, 0.02);
    assert_share(found.reordered, sent, 0.05);
    let doubled = sum(&measured, |trial| trial.duplicated);
    // The copy of a damaged frame is damaged too, and counts as that.
    assert!(doubled <= found.duplicated && doubled >= found.duplicated * 9 / 10);
    let overtaken = sum(&measured, |trial| trial.reordered);
    assert!(
        overtaken >= found.reordered * 8 / 10,
        "{overtaken}, {found:?}"
    );
    assert!(sum(&measured, |trial| trial.corrupted) > 0);
    // An encryptor drops what is damaged, and what it has received already.
    let measured = counted(&mut lab, &frames_over(encrypting(), 2000, impairment));
    let found = counts(&measured).a_to_b;
    assert_eq!(sum(&measured, |trial| trial.corrupted), 0);
    assert_eq!(sum(&measured, |trial| trial.duplicated), 0);
    let lost = sum(&measured, FrameTrial::lost);
    assert!((1..=found.corrupted).contains(&lost), "{lost}, {found:?}");
}

fn a_rate_limits_what_arrives() {
    // A frame of 64 B takes 672 bits: half of 2000 frames/s fit.
    let impairment = Impairment {
        rate: Some(Rate {
            bps: 672_000,
            queue: Queue::Packets(10),
        }),
        ..Impairment::default()
    };
    let mut lab = impaired_lab();
    let measured = counted(&mut lab, &frames_over(Adapter::Direct, 2000, impairment));
    let found = counts(&measured).a_to_b;
    // A millisecond for each frame, and a queue of ten; a sender that is late sends for longer.
    for trial in &measured.frames().unwrap().trials {
        let most = trial.elapsed_ns / MS + 10;
        assert!(trial.received <= most + most / 50, "{trial:?}");
        assert!(trial.received >= trial.sent * 2 / 5, "{trial:?}");
    }
    let lost = sum(&measured, FrameTrial::lost);
    assert!(
        found.lost_by_model == 0 && found.lost_by_queue >= lost,
        "{lost}, {found:?}"
    );
}

fn one_seed_gives_one_sequence_of_fates() {
    let impairment = Impairment {
        loss: Some(Loss::Bursts {
            to_bad_ppm: 20_000,
            to_good_ppm: 300_000,
            bad_ppm: 900_000,
            good_ppm: 1_000,
        }),
        ..Impairment::default()
    };
    let mut lab = impaired_lab();
    let cell = frames_over(Adapter::Direct, 1000, impairment);
    let trials = |measured: &Measured| {
        let trials = measured.frames().unwrap().trials.iter();
        let counts = trials.map(|trial| (trial.sent, trial.received));
        counts.collect::<Vec<_>>()
    };
    let once = counted(&mut lab, &cell);
    let again = counted(&mut lab, &cell);
    // The seed decides the fate of the n-th frame. One frame of ARP more shifts the fates of all
    // behind it.
    let [one, other] = [&once, &again].map(|measured| counts(measured).a_to_b);
    // Equal frames came if nothing else crossed the path.
    if one.received == other.received {
        assert_eq!(one.lost_by_model, other.lost_by_model);
        assert_eq!(trials(&once), trials(&again));
    } else {
        busy::too_busy(format!("other frames crossed the path: {one:?}, {other:?}"));
    }
}

fn a_path_that_lets_nothing_through_gives_no_figure() {
    let impairment = Impairment {
        loss: Some(Loss::Random { ppm: 1_000_000 }),
        ..Impairment::default()
    };
    let mut lab = impaired_lab();
    let record = lab.record(&frames_over(encrypting(), 500, impairment.clone()));
    let Outcome::Invalid { reasons, .. } = record.outcome else {
        panic!("{:#?}", record.outcome)
    };
    let is_it = |reason: &String| reason.starts_with("impaired-path-passes");
    assert!(reasons.iter().any(is_it), "{reasons:?}");
    let record = lab.record(&impaired(
        cell(Adapter::Direct, 1, false, ping()),
        impairment,
    ));
    let Outcome::Failed { reason } = record.outcome else {
        panic!("{:#?}", record.outcome)
    };
    assert!(
        reason.contains("`test` let no frame through from A to B"),
        "{reason}"
    );
}

fn a_path_that_is_killed_in_mid_trial_fails_the_trial() {
    let mut lab = impaired_lab();
    let element = lab.lab.elements()[0];
    assert!(matches!(element, NodeId::Element(_)));
    let station = lab.lab.station_pid(element);
    let killer = std::thread::spawn(move || {
        let deadline = Instant::now() + PATIENCE;
        let pid = loop {
            assert!(Instant::now() < deadline, "no path is impaired");
            // An argument of its own: any command of this station may have the node's name in it.
            match child(station, "\0impair\0") {
                Some(pid) => break pid.to_string(),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let kill = std::process::Command::new("kill")
            .args(["-9", &pid])
            .status();
        assert!(kill.unwrap().success());
    });
    let cell = frames_over(Adapter::Direct, 5000, Impairment::default());
    let record = lab.record(&cell);
    killer.join().unwrap();
    let Outcome::Failed { reason } = record.outcome else {
        panic!("{:#?}", record.outcome)
    };
    assert!(
        reason.contains("impair1") && reason.contains("SIGKILL"),
        "{reason}"
    );
    // The lab is as good as new.
    counted(
        &mut lab,
        &frames_over(Adapter::Direct, 200, Impairment::default()),
    );
}
