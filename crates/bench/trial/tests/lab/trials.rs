//! One trial of each kind, with every check passing, and faults.

use journal::record::{CountsByRole, Measured, Outcome, Transfer, TrialRecord};
use lab::{NamespaceLab, Setup};
use plan::{
    Adapter, Cell, Coordinate, Dut, Encryptor, LabPlan, Measurement, Plan, Stations, Tool,
    TransferDirection,
};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::{Interrupt, Links, NodeId};
use testing::busy;
use trial::{Trial, links, measure};
use wire::Suite;

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);
/// Transfers whose ends a busy machine may move, before one that is whole.
const HELD_UP_MOST: usize = 10;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 9] = [
    (
        "only_what_the_machine_spoilt_is_repeated",
        only_what_the_machine_spoilt_is_repeated,
    ),
    ("tcp_in_clear_on_one_core", tcp_in_clear_on_one_core),
    (
        "tcp_in_clear_without_offloads_on_two_cores",
        tcp_in_clear_without_offloads_on_two_cores,
    ),
    (
        "udp_in_clear_at_a_set_rate_loses_nothing",
        udp_in_clear_at_a_set_rate_loses_nothing,
    ),
    (
        "iperf2_in_clear_and_through_the_encryptor",
        iperf2_in_clear_and_through_the_encryptor,
    ),
    ("ping_in_clear", ping_in_clear),
    (
        "everything_through_the_encryptor",
        everything_through_the_encryptor,
    ),
    (
        "a_dut_that_is_killed_in_mid_trial",
        a_dut_that_is_killed_in_mid_trial,
    ),
    ("an_interrupt_in_mid_trial", an_interrupt_in_mid_trial),
];

fn only_what_the_machine_spoilt_is_repeated() {
    let is_the_cause = |reasons: &[&str]| busy::is_the_cause(reasons.iter().copied());
    assert!(is_the_cause(&[
        "tools-kept-time: 3 s of 1 s",
        "machine-was-ours: 92 %"
    ]));
    assert!(!is_the_cause(&[]));
    assert!(!is_the_cause(&["gw1: ended before its time"]));
    assert!(!is_the_cause(&[
        "machine-was-ours: 92 %",
        "no-clear-text: 7 of 300 frames"
    ]));
    let attempts = |spoilt: usize| {
        let mut made = 0;
        let found = busy::repeated(busy::REPEATS, || {
            made += 1;
            if made <= spoilt {
                busy::too_busy(format!("attempt {made}"));
            }
        });
        (made, found)
    };
    assert_eq!(attempts(0), (1, Ok(())));
    // The last permitted repeat may still succeed.
    assert_eq!(attempts(3), (4, Ok(())));
    let (made, found) = attempts(9);
    assert_eq!(made, 4);
    assert!(found.unwrap_err().ends_with("again: attempt 4"));
    // Any other panic passes through, and is no reason to repeat.
    let other = std::panic::catch_unwind(|| {
        busy::repeated(busy::REPEATS, || {
            std::panic::resume_unwind(Box::new("a bug"))
        })
    });
    let other: Result<Result<(), String>, _> = other;
    assert!(other.is_err());
}

pub(crate) struct TestLab {
    // Dropped first.
    pub(crate) lab: NamespaceLab,
    pub(crate) interrupt: Interrupt,
    plan: LabPlan,
    _folder: TempDir,
}

impl TestLab {
    pub(crate) fn build() -> Self {
        Self::on(&lab_plan())
    }

    pub(crate) fn on(plan: &LabPlan) -> Self {
        let folder = testing::folder().unwrap();
        let interrupt = Interrupt::new();
        let setup = Setup {
            state_folder: folder.path().to_owned(),
            interrupt: interrupt.clone(),
        };
        let lab = NamespaceLab::build(plan, &setup).unwrap();
        Self {
            lab,
            interrupt,
            plan: plan.clone(),
            _folder: folder,
        }
    }

    /// The lab alone; its folder for state is removed.
    pub(crate) fn into_lab(self) -> NamespaceLab {
        self.lab
    }

    pub(crate) fn record(&mut self, cell: &Cell) -> TrialRecord {
        self.record_on(cell, self.links(cell))
    }

    /// The links of a cell, as the lab's plan has them.
    fn links(&self, cell: &Cell) -> Links {
        let lab = self.plan.clone();
        links(&Plan { lab, ..plan(cell) }, cell)
    }

    fn record_on(&mut self, cell: &Cell, links: Links) -> TrialRecord {
        let trial = Trial::of(cell, 1, links);
        measure(&mut self.lab, &trial, &self.interrupt).unwrap()
    }

    /// Makes a trial that must pass every check. A machine that compiles at the same time may
    /// starve a paced sender or delay the start of processes; checks detect that, which is not
    /// tested here: such a trial is repeated, and then the test is skipped.
    pub(crate) fn measured(&mut self, cell: &Cell) -> Measured {
        self.measured_on(cell, self.links(cell))
    }

    /// As [`measured`](Self::measured), on links of another kind.
    pub(crate) fn measured_on(&mut self, cell: &Cell, links: Links) -> Measured {
        let attempt = || match self.record_on(cell, links).outcome {
            Outcome::Measured(measured) => *measured,
            Outcome::Invalid {
                reasons,
                mut measured,
            } if reasons.iter().all(|reason| is_other_test(reason)) => {
                let checks = &mut measured.evidence.checks;
                checks.retain(|check| !is_other_test(&check.name));
                *measured
            }
            Outcome::Invalid { reasons, .. }
                if busy::is_the_cause(reasons.iter().map(String::as_str)) =>
            {
                busy::too_busy(format!("{}: {}", cell.id, reasons.join("; ")))
            }
            other => panic!("{}: {other:#?}", cell.id),
        };
        busy::repeated(busy::REPEATS, attempt).unwrap_or_else(|why| busy::too_busy(why))
    }
}

/// The test that runs beside this one, or a box that plays a device on this machine, is to the
/// tester another program: whether others are noticed has a test of its own.
pub(crate) fn is_other_test(reason: &str) -> bool {
    reason.starts_with("machine-was-ours")
}

pub(crate) fn lab_plan() -> LabPlan {
    LabPlan::named("trial-test")
}

pub(crate) fn plan(cell: &Cell) -> Plan {
    Plan {
        name: "test".to_owned(),
        title: String::new(),
        lab: lab_plan(),
        repeats: 1,
        cells: vec![cell.clone()],
        order: plan::Order::File,
        claims: Vec::new(),
        published: Vec::new(),
        capture: None,
        expect: plan::Expectations::default(),
        reports: Vec::new(),
    }
}

pub(crate) fn cell(adapter: Adapter, cores: u16, offloads: bool, measurement: Measurement) -> Cell {
    let group = format!("{}/cores={cores}/offloads={offloads}", measurement.name());
    Cell {
        id: group.clone(),
        coordinates: Coordinate::all_in(&group),
        group,
        dut: Dut::new("dut", adapter),
        stations: Some(Stations {
            mtu: 1500,
            cores,
            offloads,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement,
        impair: None,
        tune: false,
        estimate_ns: 0,
        calibration: false,
    }
}

pub(crate) fn encrypting() -> Adapter {
    Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm))
}

pub(crate) fn tcp(streams: u16) -> Measurement {
    let (duration_ns, warmup_ns) = (800 * MS, 200 * MS);
    Measurement::Tcp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        congestion: None,
        streams,
        window_bytes: None,
        duration_ns,
        warmup_ns,
    }
}

pub(crate) fn udp(datagram_bytes: Option<u32>, rate_bps: Option<u64>) -> Measurement {
    let (duration_ns, warmup_ns) = (800 * MS, 200 * MS);
    Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes,
        rate_bps,
        streams: 1,
        duration_ns,
        warmup_ns,
    }
}

pub(crate) fn ping() -> Measurement {
    Measurement::Ping {
        count: 300,
        interval_ns: 2 * MS,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    }
}

/// A fact of the CPU figures, whatever the machine is.
fn assert_cpu(measured: &Measured) {
    let cpu = measured.cpu;
    assert!(cpu.wall_ns >= 500 * MS, "{cpu:?}");
    assert!(
        cpu.stations_ns > 0 && cpu.stations_ns == cpu.station_a_ns + cpu.station_b_ns,
        "{cpu:?}"
    );
    assert!(cpu.kernel_ns <= cpu.busy_ns, "{cpu:?}");
    // A machine may have no counters.
    if let Some(counted) = cpu.counted {
        let CountsByRole {
            station_a, machine, ..
        } = counted.cycles;
        assert!(0 < station_a && station_a < machine, "{counted:?}");
    }
}

fn tcp_in_clear_on_one_core() {
    let mut lab = TestLab::build();
    let cell = cell(Adapter::Direct, 1, true, tcp(2));
    // 800 ms in tenths; a machine that has other things to do moves either end.
    let is_whole = |transfer: &Transfer| {
        (780 * MS..1500 * MS).contains(&transfer.duration_ns) && transfer.intervals.len() >= 6
    };
    let mut held_up = Vec::new();
    let measured = loop {
        let measured = lab.measured(&cell);
        let transfer = measured.transfer().cloned().unwrap();
        if is_whole(&transfer) {
            break measured;
        }
        held_up.push(transfer);
        assert!(held_up.len() < HELD_UP_MOST, "{held_up:#?}");
    };
    let transfer = measured.transfer().unwrap();
    assert!(transfer.received_bytes > 0 && transfer.sent_bytes > 0);
    assert!(transfer.retransmits.is_some());
    assert_cpu(&measured);
    // The kernel forwards in clear: there is no process of a device.
    assert_eq!(measured.cpu.dut_ns, Some(0));
    assert!(measured.evidence.cipher_link.marker_frames > 0);
}

fn tcp_in_clear_without_offloads_on_two_cores() {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() < 2) {
        println!("SKIPPED: this machine has one core");
        return;
    }
    let mut lab = TestLab::build();
    let cell = cell(Adapter::Direct, 2, false, tcp(4));
    assert_eq!(
        lab.record(&cell).commands.len(),
        5,
        "two processes on each station, after the baseline's ping"
    );
    let measured = lab.measured(&cell);
    let offloads = &measured.evidence.offloads["a/a0"];
    assert_eq!(offloads["tcp-segmentation-offload"], "off");
    assert_cpu(&measured);
}

fn udp_in_clear_at_a_set_rate_loses_nothing() {
    let mut lab = TestLab::build();
    for datagram_bytes in [None, Some(64)] {
        let cell = cell(
            Adapter::Direct,
            1,
            true,
            udp(datagram_bytes, Some(10_000_000)),
        );
        // On a busy machine a socket may overflow: three losses in a row are the path's.
        let mut transfers =
            (0..3).map(|_| lab.measured(&cell).transfer().cloned().expect("a transfer"));
        let is_whole = |transfer: &Transfer| {
            transfer
                .datagrams
                .as_ref()
                .is_some_and(|datagrams| datagrams.lost == 0)
        };
        let transfer = transfers.find(is_whole).expect("a transfer without loss");
        let datagrams = transfer.datagrams.unwrap();
        let bytes = u64::from(datagram_bytes.unwrap_or(1472));
        assert_eq!(transfer.received_bytes, datagrams.sent * bytes);
    }
}

fn iperf2_in_clear_and_through_the_encryptor() {
    let by_iperf2 = |mut measurement: Measurement| {
        match &mut measurement {
            Measurement::Tcp { tool, .. } | Measurement::Udp { tool, .. } => *tool = Tool::Iperf2,
            other => panic!("{other:?} has no tool"),
        }
        measurement
    };
    let mut lab = TestLab::build();
    for adapter in [Adapter::Direct, encrypting()] {
        let is_clear = adapter == Adapter::Direct;
        for offloads in [true, false] {
            let tcp = by_iperf2(tcp(2));
            let measured = lab.measured(&cell(adapter.clone(), 1, offloads, tcp));
            let transfer = measured.transfer().unwrap();
            assert!(transfer.received_bytes > 0 && transfer.sent_bytes > 0);
            assert_eq!((transfer.retransmits, transfer.datagrams), (None, None));
            assert!(
                (780 * MS..1500 * MS).contains(&transfer.duration_ns),
                "{}",
                transfer.duration_ns
            );
            assert_cpu(&measured);
            let link = measured.evidence.cipher_link;
            assert_eq!(link.marker_frames > 0, is_clear, "{link:?}");
        }
        // The shortest in which clear text is detected, one as long as the MTU, and full speed.
        for (datagram_bytes, rate_bps) in [
            (Some(192), Some(10_000_000)),
            (None, Some(10_000_000)),
            (None, None),
        ] {
            let udp = by_iperf2(udp(datagram_bytes, rate_bps));
            let measured = lab.measured(&cell(adapter.clone(), 1, true, udp));
            let transfer = measured.transfer().cloned().unwrap();
            let datagrams = transfer.datagrams.unwrap();
            assert!(datagrams.sent > datagrams.lost, "{datagrams:?}");
            if rate_bps.is_some() {
                assert_eq!(datagrams.lost, 0, "{datagrams:?}");
                let bytes = u64::from(datagram_bytes.unwrap_or(1472));
                assert_eq!(transfer.received_bytes, datagrams.sent * bytes);
            }
            let link = measured.evidence.cipher_link;
            assert_eq!(link.marker_frames > 0, is_clear, "{link:?}");
        }
    }
}

fn ping_in_clear() {
    let measured = TestLab::build().measured(&cell(Adapter::Direct, 1, true, ping()));
    let latency = measured.latency().cloned().unwrap();
    assert_eq!((latency.sent, latency.received), (300, 300));
    assert_eq!(latency.round_trips_ns.len(), 300);
}

fn everything_through_the_encryptor() {
    let mut lab = TestLab::build();
    for offloads in [true, false] {
        for measurement in [
            tcp(2),
            udp(None, None),
            udp(Some(64), Some(5_000_000)),
            ping(),
        ] {
            let measured = lab.measured(&cell(encrypting(), 1, offloads, measurement.clone()));
            assert!(measured.evidence.cipher_link.esp_frames > 0);
            assert_eq!(measured.evidence.cipher_link.marker_frames, 0);
            if matches!(measurement, Measurement::Tcp { .. }) {
                assert_cpu(&measured);
                assert!(measured.cpu.dut_ns > Some(0));
            }
        }
    }
}

fn a_dut_that_is_killed_in_mid_trial() {
    let mut lab = TestLab::build();
    let mut measurement = tcp(1);
    if let Measurement::Tcp { duration_ns, .. } = &mut measurement {
        // Only the end of the device can end this.
        *duration_ns = 600_000 * MS;
    }
    let gateway = lab.lab.station_pid(NodeId::Gw2);
    // As soon as traffic has run for a little: the trial itself would take ten minutes.
    let killer = std::thread::spawn(move || kill_encryptor_below(gateway));
    let record = lab.record(&cell(encrypting(), 1, true, measurement));
    killer.join().unwrap();
    let Outcome::Failed { reason } = record.outcome else {
        panic!("{:#?}", record.outcome)
    };
    assert!(reason.contains("SIGKILL"), "{reason}");
    // The lab is as good as new.
    lab.measured(&cell(encrypting(), 1, true, ping()));
}

/// Kills the `encrypt` among a station's children once that has used 50 ms of CPU time.
pub(crate) fn kill_encryptor_below(station: u32) {
    kill_once_it_worked(station, "encrypt");
}

/// Kills a station's child, or a child of one, with that word in its command line, once that has
/// used 50 ms of CPU time.
pub(crate) fn kill_once_it_worked(station: u32, word: &str) {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some((name, parent, ticks)) = process(&entry.path()) else {
                continue;
            };
            let is_below = || parent == station || is_child(parent, station);
            if name.contains(word) && ticks >= 5 && is_below() {
                let pid = entry.file_name().into_string().unwrap();
                let kill = std::process::Command::new("kill")
                    .args(["-9", &pid])
                    .status();
                assert!(kill.unwrap().success());
                return;
            }
        }
    }
    panic!("{word} never got to work");
}

fn is_child(pid: u32, station: u32) -> bool {
    let found = process(&Path::new("/proc").join(pid.to_string()));
    found.is_some_and(|(_, parent, _)| parent == station)
}

/// A station's child whose command line contains that word.
pub(crate) fn child(station: u32, word: &str) -> Option<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let is_it = |entry: &std::fs::DirEntry| {
        process(&entry.path())
            .is_some_and(|(name, parent, _)| parent == station && name.contains(word))
    };
    let mut found = entries.filter(is_it);
    found.find_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Command line, parent and CPU ticks of a process, if it is one.
fn process(folder: &Path) -> Option<(String, u32, u64)> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    let command = std::fs::read_to_string(folder.join("cmdline")).ok()?;
    // Behind the name, which may contain spaces: `fields[0]` is field 3 of proc(5).
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
    Some((command, fields[1].parse().ok()?, ticks))
}

fn an_interrupt_in_mid_trial() {
    let mut lab = TestLab::build();
    let cell = cell(Adapter::Direct, 1, true, {
        Measurement::Ping {
            count: 600,
            interval_ns: 1000 * MS,
            payload_bytes: 56,
            loaded: false,
            route: false,
            load_dscp: Vec::new(),
        }
    });
    let trial = Trial::of(&cell, 1, links(&plan(&cell), &cell));
    let interrupt = lab.interrupt.clone();
    let setter = std::thread::spawn(move || {
        // The trial would take ten minutes, so any time early in it will do.
        std::thread::sleep(Duration::from_millis(300));
        interrupt.set();
    });
    let result = measure(&mut lab.lab, &trial, &lab.interrupt);
    setter.join().unwrap();
    assert!(
        matches!(result, Err(testbed::LabError::Interrupted)),
        "{result:?}"
    );
}
