//! What happens to a device under a load, on the real path, with every check passing.

use crate::frames::{frames, passes, short, traffic};
use crate::past::unprotect;
use crate::trials::{TestLab, encrypting};
use journal::record::{Disturbance, DutEvent, FrameResult, Outcome, SoakPoint};
use plan::{
    Adapter, Attack, BaseLoad, Direction, Disturbed, DriftBounds, Encryptor, Event, Failure,
    IpVersion, OpenVpn, Procedure, Reset, Soak, Traffic,
};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testbed::NodeId;
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

const MS: u64 = 1_000_000;
/// So low that a machine which compiles at the same time carries it too.
const LOAD: u64 = 2000;
/// Long enough that a sender that stalls for a tenth of a second does not miss it.
const DOWN_NS: u64 = 600 * MS;
/// How late a sender on a busy machine may be: what it ought to have sent before the link came
/// back then passes.
const LATE_NS: u64 = 100 * MS;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 8] = [
    (
        "a_link_that_fails_and_comes_back",
        a_link_that_fails_and_comes_back,
    ),
    (
        "an_encryptor_that_crashes_and_starts_again",
        an_encryptor_that_crashes_and_starts_again,
    ),
    (
        "an_encryptor_that_fails_open_is_told_by_what_takes_the_way_past_it",
        an_encryptor_that_fails_open_is_told_by_what_takes_the_way_past_it,
    ),
    (
        "openvpn_is_found_to_fail_open",
        openvpn_is_found_to_fail_open,
    ),
    (
        "an_encryptor_that_is_reset_is_another_process_then",
        an_encryptor_that_is_reset_is_another_process_then,
    ),
    (
        "keys_renewed_and_tunnels_set_up_under_a_load",
        keys_renewed_and_tunnels_set_up_under_a_load,
    ),
    ("nothing_hostile_comes_out", nothing_hostile_comes_out),
    (
        "a_soak_has_points_with_the_devices_resources",
        a_soak_has_points_with_the_devices_resources,
    ),
];

/// Makes the trials; each frame of them is in the timelines where it belongs.
fn measured(lab: &mut TestLab, adapter: Adapter, traffic: Traffic, event: Event) -> FrameResult {
    let load = BaseLoad::Given { frames_per_s: LOAD };
    let procedure = Procedure::Disturbed(Disturbed { load, event });
    let measured = lab.measured(&frames(adapter, traffic, procedure));
    assert!(passes(&measured, "carries-afterwards"));
    let result = measured.frames().cloned().unwrap();
    for found in result.disturbances() {
        let (trial, bins) = (&result.trials[found.trial], &found.timeline.bins);
        let intended: u64 = bins.iter().map(|bin| bin.intended).sum();
        let received: u64 = bins.iter().map(|bin| bin.received).sum();
        // No frame is in two bins or in none.
        assert_eq!((intended, received), (trial.intended, trial.received));
        let timed: u64 = found.histogram.iter().map(|bucket| bucket.frames).sum();
        assert_eq!(timed, trial.received);
    }
    result
}

fn names(disturbance: &Disturbance) -> Vec<&str> {
    let events = disturbance.events.iter();
    events.map(|event| event.name.as_str()).collect()
}

fn failover(failure: Failure) -> Event {
    Event::Failover {
        failure,
        times: 2,
        down_ns: DOWN_NS,
        watch_ns: 700 * MS,
    }
}

/// Nothing passed between the two of each pair, and something after the second.
fn assert_outages(events: &[DutEvent]) {
    for pair in events.chunks(2) {
        let (broken, mended) = (&pair[0], &pair[1]);
        assert!(
            mended.at_ns - broken.at_ns >= DOWN_NS,
            "{broken:?} {mended:?}"
        );
        // It takes a while to break.
        let dark_until = |outage: u64| broken.at_ns + outage + LATE_NS >= mended.at_ns;
        assert!(
            broken.lost >= LOAD / 10 && broken.outage_ns.is_none_or(dark_until),
            "{broken:?} {mended:?}"
        );
        assert!(mended.first_ns.is_some(), "{mended:?}");
        assert!(mended.outage_ns.is_some(), "{events:?}");
    }
}

fn a_link_that_fails_and_comes_back() {
    let mut lab = TestLab::build();
    for adapter in [Adapter::Direct, encrypting()] {
        for (duplex, ip) in [
            (false, IpVersion::V4),
            (true, IpVersion::V4),
            (false, IpVersion::V6),
        ] {
            let traffic = Traffic {
                frames: TestFrames {
                    mix: FrameMix::fixed(128),
                    flows: 8,
                    tunnels: 1,
                    contents: Contents::Fixed,
                },
                ip,
                duplex,
                ..short(Direction::Both)
            };
            let result = measured(&mut lab, adapter.clone(), traffic, failover(Failure::Link));
            let [found] = result.disturbances() else {
                panic!("{result:?}")
            };
            assert_eq!(
                names(found),
                ["link-down", "link-up", "link-down", "link-up"]
            );
            assert_outages(&found.events);
        }
    }
}

/// Frames of the stations in clear while the encryptor on gw1 was dead and a default route led past
/// it.
fn leaked(lab: &mut TestLab, adapter: Adapter, ip: IpVersion) -> u64 {
    let traffic = Traffic {
        frames: TestFrames {
            mix: FrameMix::fixed(128),
            flows: 8,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        ip,
        ..short(Direction::Both)
    };
    let result = measured(lab, adapter, traffic, failover(Failure::Bypass));
    let [found] = result.disturbances() else {
        panic!("{result:?}")
    };
    assert_eq!(names(found), ["crash", "restart", "crash", "restart"]);
    // The way leads to no station.
    assert_outages(&found.events);
    let readings = result.trials[found.trial].readings.as_ref();
    let watch = readings.and_then(|readings| readings.watch.as_ref());
    let watch = watch.expect("the filter sees every frame");
    let is_stations = watch.marker_frames > 0;
    assert_eq!(watch.foreign_frames > 0, is_stations, "{watch:?}");
    watch.foreign_frames
}

/// Takes from our encryptor on a gateway what it leaves behind, again and again.
fn keep_open(gateway: u32, ended: &AtomicBool) {
    let target = gateway.to_string();
    // The encryptor sets up its barrier at each start, so it must be removed again and again.
    while !ended.load(Ordering::Relaxed) {
        unprotect(gateway);
        for family in ["-4", "-6"] {
            let flush = [
                "ip",
                family,
                "route",
                "flush",
                "type",
                "unreachable",
                "proto",
                "203",
            ];
            let mut command = Command::new("nsenter");
            command.args(["--target", &target, "--net"]).args(flush);
            command.output().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn an_encryptor_that_fails_open_is_told_by_what_takes_the_way_past_it() {
    let mut lab = TestLab::build();
    for ip in [IpVersion::V4, IpVersion::V6] {
        let leaked = leaked(&mut lab, encrypting(), ip);
        testing::attack(
            "frames in clear past our killed encryptor in a lab",
            leaked,
            0,
        );
    }
    let gateway = lab.lab.station_pid(NodeId::Gw1);
    let ended = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&ended);
    let opened = std::thread::spawn(move || keep_open(gateway, &until));
    let count = leaked(&mut lab, encrypting(), IpVersion::V4);
    ended.store(true, Ordering::Relaxed);
    opened.join().unwrap();
    assert!(count > LOAD / 10, "{count}");
}

/// OpenVPN holds nothing back when it is dead, whether it recovers in time or not.
fn openvpn_is_found_to_fail_open() {
    if Command::new("openvpn").arg("--version").output().is_err() {
        return testing::lacks("a DUT that fails open", "openvpn", "make peers");
    }
    let mut lab = TestLab::build();
    let adapter = Adapter::OpenVpn(OpenVpn {
        suite: Suite::Aes256Gcm,
    });
    let procedure = Procedure::Disturbed(Disturbed {
        load: BaseLoad::Given { frames_per_s: LOAD },
        event: failover(Failure::Bypass),
    });
    let record = lab.record(&frames(adapter, short(Direction::Both), procedure));
    // It may not have recovered in time, which makes the trial invalid and changes nothing here.
    let (Outcome::Measured(measured) | Outcome::Invalid { measured, .. }) = &record.outcome else {
        panic!("{record:#?}")
    };
    let result = measured.frames().unwrap();
    let [found] = result.disturbances() else {
        panic!("{result:?}")
    };
    let readings = result.trials[found.trial].readings.as_ref().unwrap();
    let watch = readings.watch.as_ref().unwrap();
    assert!(watch.marker_frames > 0, "{watch:?}");
    assert!(watch.foreign_frames > LOAD / 10, "{watch:?}");
    // It is the figure, and no fault of the trial.
    for check in ["trials-watched", "no-foreign-frames"] {
        assert!(passes(measured, check), "{check}: {record:#?}");
    }
}

fn an_encryptor_that_crashes_and_starts_again() {
    let mut lab = TestLab::build();
    let event = failover(Failure::Crash);
    let result = measured(&mut lab, encrypting(), short(Direction::Both), event);
    let [found] = result.disturbances() else {
        panic!("{result:?}")
    };
    assert_eq!(names(found), ["crash", "restart", "crash", "restart"]);
    assert_outages(&found.events);
}

/// Both ways, so that a gw2 that forwards in clear while it has no tunnel would be caught.
fn an_encryptor_that_is_reset_is_another_process_then() {
    let mut lab = TestLab::build();
    for kind in [Reset::Process, Reset::Orderly] {
        let event = Event::Reset {
            kind,
            times: 2,
            watch_ns: 1500 * MS,
        };
        let traffic = Traffic {
            duplex: true,
            ..short(Direction::Both)
        };
        let result = measured(&mut lab, encrypting(), traffic, event);
        let [found] = result.disturbances() else {
            panic!("{result:?}")
        };
        assert_eq!(names(found), ["reset"; 2]);
        let resets: Vec<_> = found
            .events
            .iter()
            .map(|event| event.reset.as_ref().unwrap())
            .collect();
        // What the first has left is what the second ends.
        assert_eq!(resets[0].after, resets[1].before, "{resets:?}");
        assert!(resets.iter().all(|reset| reset.is_proven()), "{resets:?}");
        for event in &found.events {
            // No process starts at once, and it is up before frames pass.
            assert!(event.lost > 0 && event.outage_ns > Some(0), "{event:?}");
            let silent_ns = event.reset.as_ref().unwrap().silent_ns;
            assert!(
                silent_ns.is_some_and(|silent| silent < 1500 * MS),
                "{event:?}"
            );
        }
    }
}

fn keys_renewed_and_tunnels_set_up_under_a_load() {
    let mut lab = TestLab::build();
    let adapter = Adapter::Cipherbench(Encryptor {
        tunnels: 10,
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    let traffic = Traffic {
        frames: TestFrames {
            mix: FrameMix::fixed(64),
            flows: 20,
            tunnels: 10,
            contents: Contents::Fixed,
        },
        ..traffic(Direction::Both, FrameMix::fixed(64), IpVersion::V4)
    };
    let rekey = Event::Rekey {
        every_ns: 300 * MS,
        duration_ns: 1000 * MS,
        throughput: false,
    };
    let result = measured(&mut lab, adapter.clone(), traffic.clone(), rekey);
    let [control, found] = result.disturbances() else {
        panic!("{result:?}")
    };
    assert!(control.events.is_empty());
    assert_eq!(names(found), ["rekey"; 3]);
    assert!(found.events.iter().all(|event| event.first_ns.is_some()));

    let set_up = Event::Setup {
        times: 2,
        watch_ns: 500 * MS,
    };
    let result = measured(&mut lab, adapter, traffic, set_up);
    let [found] = result.disturbances() else {
        panic!("{result:?}")
    };
    assert_eq!(names(found), ["take-down", "set-up", "take-down", "set-up"]);
    for set_up in found.events.iter().skip(1).step_by(2) {
        assert!(set_up.first_ns.is_some(), "{set_up:?}");
    }
}

fn nothing_hostile_comes_out() {
    let mut lab = TestLab::build();
    for attack in Attack::ALL {
        let event = Event::Hostile {
            attack,
            percents: vec![10, 100],
            trial_ns: 500 * MS,
        };
        let result = measured(&mut lab, encrypting(), short(Direction::Both), event);
        let sent = result
            .disturbances()
            .iter()
            .map(|found| found.attack.map(|attack| attack.sent));
        let sent: Vec<_> = sent.collect();
        // 10 % and 100 % of 2000 frames/s, for half a second.
        assert_eq!(sent, [None, Some(100), Some(1000)]);
        for trial in &result.trials {
            let through = (trial.duplicated, trial.corrupted, trial.too_late);
            assert_eq!(through, (0, 0, 0), "{attack:?}");
        }
    }
}

fn a_soak_has_points_with_the_devices_resources() {
    let mut lab = TestLab::build();
    for (adapter, duplex) in [(encrypting(), true), (Adapter::Direct, false)] {
        let traffic = Traffic {
            duplex,
            ..short(Direction::Both)
        };
        let has_processes = adapter != Adapter::Direct;
        let procedure = Procedure::Soak(Soak {
            load: BaseLoad::Given { frames_per_s: LOAD },
            duration_ns: 3000 * MS,
            point_ns: 250 * MS,
            segment_ns: 1500 * MS,
            probe_ns: None,
            loss_ppm: 0,
            drift: DriftBounds {
                rate_ppm: 10_000,
                latency_ppm: 500_000,
                memory_ppm: 100_000,
                cpu_ppm: None,
                capacity_ppm: None,
            },
        });
        let measured = lab.measured(&frames(adapter, traffic, procedure));
        let result = measured.frames().cloned().unwrap();
        assert_eq!(result.soak().len(), 2, "{result:?}");
        let mut ends = Vec::new();
        for segment in result.soak() {
            let trial = &result.trials[segment.trial];
            let sum = |of: fn(&SoakPoint) -> u64| segment.points.iter().map(of).sum::<u64>();
            assert_eq!(sum(|point| point.intended), trial.intended);
            assert_eq!(sum(|point| point.received), trial.received);
            // On a grid, so that one more may be cut off.
            assert!((6..=8).contains(&segment.points.len()), "{segment:?}");
            assert!(
                segment
                    .points
                    .iter()
                    .all(|point| point.p50_ns <= Some(point.max_ns + point.max_ns / 16))
            );
            let timed: u64 = segment.histogram.iter().map(|bucket| bucket.frames).sum();
            assert_eq!(timed, trial.received);
            let devices = segment.points.iter().filter_map(|point| point.device);
            let counted = devices
                .clone()
                .filter(|one| one.resident_bytes > Some(1 << 20));
            if has_processes {
                assert!(counted.count() >= 4, "{segment:?}")
            } else {
                assert!(devices.clone().all(|one| one.resident_bytes.is_none()))
            }
            ends.push((segment.started_unix_ns, trial.duration_ns));
        }
        // Segments do not overlap: the drain of one is over before the next one begins.
        assert!(ends[1].0 >= ends[0].0 + ends[0].1, "{ends:?}");
    }
}
