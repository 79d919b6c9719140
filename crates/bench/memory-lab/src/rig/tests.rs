use super::*;
use crate::path;
use plan::{
    Adapter, Cell, Direction, Dut, Encryptor, FrameTest, IpVersion, Load, Measurement, Ports,
    Procedure, Traffic,
};
use port::memory_frame_pair;
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

const MS: u64 = 1_000_000;
/// More than there are flows, and so few that the link in memory, of 256 batches, has room for all:
/// a machine that gives the gateway no core for a while must not lose any.
const FRAMES: u64 = 250;

fn cell(direction: Direction) -> Cell {
    let traffic = Traffic {
        frames: TestFrames {
            mix: FrameMix::fixed(64),
            flows: 4,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        ip: IpVersion::V4,
        direction,
        duplex: false,
        ports: Ports::default(),
    };
    let procedure = Procedure::Load(Load {
        frames_per_s: None,
        duration_ns: MS,
    });
    Cell {
        id: "cell".to_owned(),
        group: "group".to_owned(),
        coordinates: Vec::new(),
        dut: Dut::new("straight", Adapter::STRAIGHT),
        stations: Some(plan::Stations {
            mtu: 1500,
            cores: 1,
            offloads: false,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement: Measurement::Frames(FrameTest { traffic, procedure }),
        tune: false,
        estimate_ns: 0,
        impair: None,
        calibration: true,
    }
}

fn rig(cell: &Cell) -> MemoryRig<'_> {
    let Measurement::Frames(test) = &cell.measurement else {
        unreachable!("the cell has a frame test")
    };
    let gateways = Gateways::start(
        &cell.dut,
        test.traffic.direction,
        cell.stations.unwrap().mtu,
    )
    .unwrap();
    let way = FrameStream {
        cell,
        traffic: &test.traffic,
        path: path(&gateways),
    };
    MemoryRig::new(gateways, way)
}

fn run(cell: &Cell, load: &RigLoad) -> FrameRun {
    rig(cell).run(load, &Interrupt::new()).unwrap()
}

#[test]
fn at_full_speed_without_a_device_every_frame_generated_is_checked() {
    for direction in [Direction::Both, Direction::Encrypt] {
        let run = run(&cell(direction), &RigLoad::new(None, 30 * MS, 100 * MS));
        let trial = &run.trial;
        assert!(trial.sent > 0, "{trial:?}");
        assert_eq!(trial.received, trial.sent, "{trial:?}");
        assert_eq!((trial.receiver_dropped, trial.corrupted), (0, 0));
        assert_eq!(run.strays.foreign, 0);
    }
}

/// An encryptor in memory, with 200 flows over its lanes and tunnels.
fn check_encryptor(direction: Direction, ip: IpVersion, encryptor: Encryptor) {
    let mut cell = cell(direction);
    let what = format!("{direction:?} {ip:?} {encryptor:?}");
    let tunnels = encryptor.tunnels;
    cell.dut.adapter = Adapter::Cipherbench(encryptor);
    let Measurement::Frames(test) = &mut cell.measurement else {
        unreachable!("the cell has a frame test")
    };
    let traffic = &mut test.traffic;
    (traffic.frames.mix, traffic.ip) = (FrameMix::fixed(128), ip);
    (traffic.frames.flows, traffic.frames.tunnels) = (200, tunnels.into());
    let mut rig = rig(&cell);
    let mut run = || {
        let load = RigLoad::new(Some(20_000), FRAMES * 50_000, 5000 * MS);
        rig.run(&load, &Interrupt::new()).unwrap()
    };
    // The first begins each tunnel, and the second finds it begun.
    for _ in 0..2 {
        let run = run();
        assert_eq!(run.trial.sent, FRAMES, "{what}");
        assert_eq!(run.trial.received, FRAMES, "{what}: {:?}", run.trial);
        assert_eq!((run.trial.reordered, run.strays.foreign), (0, 0), "{what}");
        assert!(run.strays.refused.is_empty(), "{what}");
    }
}

#[test]
fn random_contents_pass_an_encryptor_unchanged() {
    for direction in Direction::ALL {
        let mut cell = cell(direction);
        cell.dut.adapter = Adapter::Cipherbench(lanes_and_tunnels(1, 1));
        let Measurement::Frames(test) = &mut cell.measurement else {
            unreachable!("the cell has a frame test")
        };
        test.traffic.frames.mix = FrameMix::fixed(256);
        test.traffic.frames.contents = Contents::Random;
        let load = RigLoad::new(Some(20_000), FRAMES * 50_000, 5000 * MS);
        let run = run(&cell, &load);
        assert_eq!(run.trial.received, FRAMES, "{direction:?} {:?}", run.trial);
        assert_eq!((run.trial.corrupted, run.strays.foreign), (0, 0));
    }
}

fn lanes_and_tunnels(workers: u16, tunnels: u16) -> Encryptor {
    Encryptor {
        workers,
        tunnels,
        ..Encryptor::new(Suite::Aes256Gcm)
    }
}

#[test]
fn every_lane_of_every_tunnel_carries_its_flows() {
    for ip in [IpVersion::V4, IpVersion::V6] {
        for direction in Direction::ALL {
            check_encryptor(direction, ip, lanes_and_tunnels(1, 100));
            check_encryptor(direction, ip, lanes_and_tunnels(3, 50));
        }
    }
}

#[test]
fn engines_suites_aggregation_and_polling_carry_frames() {
    let suite = |name| Encryptor::new(Suite::from_name(name).unwrap());
    let gcm = || Encryptor::new(Suite::Aes256Gcm);
    let engine = |engine: &str| Encryptor {
        engine: engine.parse().unwrap(),
        ..gcm()
    };
    let aggregating = Encryptor {
        aggregate: true,
        ..gcm()
    };
    let polling = Encryptor {
        busy_poll: true,
        ..gcm()
    };
    for encryptor in [
        suite("aes-128-cbc-hmac-sha1"),
        suite("null-hmac-sha256"),
        engine("null"),
        engine("{ below: 100 B, use: aws-lc, else: rustcrypto }"),
        aggregating,
        polling,
    ] {
        check_encryptor(Direction::Both, IpVersion::V4, encryptor);
    }
}

#[test]
fn a_load_that_cannot_be_checked_in_time_is_a_load_that_was_not_offered() {
    let load = RigLoad::new(Some(1_000_000_000), 20 * MS, 100 * MS);
    let trial = run(&cell(Direction::Both), &load).trial;
    assert_eq!(trial.received, trial.sent, "{trial:?}");
    assert!(!trial::frames::was_offered(&trial), "{trial:?}");
}

#[test]
fn a_receiver_is_ready_when_it_looks_for_frames() {
    let (_near, far) = memory_frame_pair(4);
    let mut exit = Exit::Frames(vec![far]);
    let (ready, is_ready) = mpsc::channel();
    let mut signal = ReadySignal {
        port: &mut exit,
        ready: Some(ready),
    };
    assert_eq!(is_ready.try_recv(), Err(mpsc::TryRecvError::Empty));
    assert!(signal.recv(|_| ()).is_err());
    assert_eq!(is_ready.try_recv(), Ok(()));
    // A receiver that fails earlier does not block the sender.
    drop(signal);
    assert!(is_ready.recv().is_err());
}

#[test]
fn others_took_the_user_time_that_is_not_ours() {
    let time = |user_ns, steal_ns, idle_ns| CpuTime {
        user_ns,
        steal_ns,
        idle_ns,
        ..CpuTime::default()
    };
    let before = Some((time(1_000, 10, 500), time(100, 0, 0)));
    let after = Some((time(4_000, 30, 900), time(1_600, 0, 0)));
    let found = taken(before, after);
    assert_eq!(
        (found.foreign_ns, found.steal_ns, found.idle_ns),
        (1_500, 20, Some(400))
    );
    assert_eq!(taken(None, after), Cpu::default());
}
