//! Figures that are the machine's, not the device's.

use crate::fixture::{SECOND_NS, datagrams, journal, measured, record, tcp, transfer, udp};
use crate::frame_fixture::*;
use journal::Journal;
use journal::record::{
    CountsByRole, Cpu, CpuCounts, Environment, Figures, MachineCpu, Measured, Resumed,
};
use plan::{Adapter, Bound, Cell, Claim, ClaimUnit, Host, Hosts, LabKind};
use stats::{ClaimVerdict, Limit, Results, WarningKind};

/// The same cell, on a machine that is large enough and on one that is not.
#[test]
fn verdicts_claims_and_scaling_share_one_rule_for_shared_cores() {
    let workers = |workers: u16| {
        let mut cell = throughput("auto", 64);
        cell.dut.name = format!("auto w{workers}");
        cell.id = format!("{}/auto-w{workers}", cell.group);
        let Adapter::Cipherbench(encryptor) = &mut cell.dut.adapter else {
            panic!("another adapter")
        };
        encryptor.workers = workers;
        cell
    };
    let bounds = [(Some(400_000), Some(402_000)); 3];
    let cells = [
        (workers(1), &bounds[..]),
        (workers(2), &bounds[..]),
        (throughput("straight", 64), &RIG),
    ];
    let mut run = searched(&cells);
    run.header.plan.claims = vec![Claim {
        dut: "auto w2".into(),
        trial: "throughput".into(),
        bound: Bound::AtLeast,
        value: 1_000_000,
        unit: ClaimUnit::FramesPerS,
        goal: None,
        load_percent: None,
        percentile: None,
        source: "data sheet".into(),
        conditions: String::new(),
        cells: vec![cells[1].0.id.clone()],
    }];
    let judged = |cpus| {
        let mut run = run.clone();
        run.header.environment.cpus = cpus;
        let results = Results::of(&run);
        let verdict = results.cells[1].verdict().unwrap();
        let point = &results.scalings[0].points[1];
        (
            verdict.limit,
            verdict.reason.clone(),
            results.claims[0].verdict,
            results.claims[0].reason.clone(),
            point.limited_by.clone(),
        )
    };
    // Two stations and two gateways with two workers each.
    let (limit, _, claim, _, scaling) = judged(6);
    assert_eq!((limit, claim), (Limit::DutLimited, ClaimVerdict::NotMet));
    assert_eq!(scaling, None);
    let (limit, reason, claim, why, scaling) = judged(5);
    assert_eq!(
        (limit, claim),
        (Limit::MachineLimited, ClaimVerdict::NotDecided)
    );
    assert_eq!(scaling.as_deref(), Some("machine"));
    for text in [reason, why] {
        assert!(
            text.contains("want 6 cores of a machine that has 5"),
            "{text}"
        );
    }
}

/// Moves a run to two hosts with that many CPUs each, started from a machine with one CPU.
fn on_hosts(run: &mut Journal, cpus: &[(&str, u32)]) {
    let host = Host {
        reach: vec!["ssh".into()],
        interface: Some("eth1".into()),
        cpus: Vec::new(),
        program: None,
    };
    run.header.plan.lab.kind = LabKind::Hosts;
    run.header.plan.lab.hosts = Some(Hosts {
        a: host.clone(),
        b: host,
        reconnect_ns: 0,
    });
    let environment = &mut run.header.environment;
    (environment.cpus, environment.hypervisor) = (1, "kvm".into());
    let described = cpus.iter().map(|(name, cpus)| {
        let host = Environment {
            cpus: *cpus,
            governor: "powersave".into(),
            ..Environment::default()
        };
        ((*name).to_owned(), host)
    });
    environment.hosts = described.collect();
}

#[test]
fn stations_on_two_hosts_are_judged_by_the_hosts_and_not_by_the_machine_of_the_run() {
    let judged = |cpus: &[(&str, u32)]| {
        let cell = throughput("auto", 64);
        let bounds = [(Some(400_000), Some(402_000)); 3];
        let mut run = searched(&[(cell, &bounds[..]), (throughput("straight", 64), &RIG)]);
        on_hosts(&mut run, cpus);
        let results = Results::of(&run);
        let verdict = results.cells[0].verdict().unwrap().clone();
        let texts: Vec<String> = results
            .warnings
            .iter()
            .filter(|warning| {
                matches!(
                    warning.kind,
                    WarningKind::SharedCores | WarningKind::VirtualMachine | WarningKind::Governor
                )
            })
            .map(|warning| warning.text.clone())
            .collect();
        (verdict.limit, verdict.reason, texts.join("\n"))
    };
    // A station and a gateway on each.
    let (limit, _, warnings) = judged(&[("a", 2), ("b", 2)]);
    assert_eq!(limit, Limit::DutLimited);
    assert!(!warnings.contains("share"), "{warnings}");
    assert!(!warnings.contains("virtual"), "{warnings}");
    assert!(warnings.contains("governor of host a is"), "{warnings}");
    assert!(warnings.contains("governor of host b is"), "{warnings}");
    let (limit, reason, warnings) = judged(&[("a", 2), ("b", 1)]);
    assert_eq!(limit, Limit::MachineLimited);
    assert!(
        reason.contains("want 2 cores of host b, which has 1"),
        "{reason}"
    );
    assert!(warnings.contains("share host b's 1 core:"), "{warnings}");
    assert!(!warnings.contains("share host a"), "{warnings}");
    // Of hosts that the journal does not describe, nothing is said.
    let (limit, _, warnings) = judged(&[]);
    assert_eq!((limit, warnings.as_str()), (Limit::DutLimited, ""));
}

#[test]
fn work_of_both_hosts_is_in_the_busy_cores_and_another_starting_machine_is_no_change() {
    let cell = tcp("auto");
    let mut run = journal(vec![cell.clone()], 1, 8);
    let mut found = transfer(1);
    let on_a = found.cpu.busy_ns;
    found.cpu.machine_b = Some(MachineCpu {
        busy_ns: 2 * on_a,
        ..MachineCpu::default()
    });
    record(&mut run, &cell.id, 1, measured(found));
    on_hosts(&mut run, &[("a", 8), ("b", 8)]);
    let changed = |run: &Journal| {
        let results = Results::of(run);
        let warnings = results.warnings.iter();
        let of_change = warnings.filter(|one| one.kind == WarningKind::EnvironmentChanged);
        of_change.count() > 0
    };
    assert_close(
        Results::of(&run).cells[0]
            .cpu
            .as_ref()
            .unwrap()
            .busy_cores
            .mean,
        3.0,
    );
    let mut environment = run.header.environment.clone();
    environment.cpus = 4;
    let resume = |environment: Environment| Resumed {
        at_unix_ns: 0,
        program: run.header.program.clone(),
        environment,
    };
    let mut resumed = run.clone();
    resumed.resumed = vec![resume(environment.clone())];
    assert!(!changed(&resumed));
    environment.hosts.get_mut("b").unwrap().cpus = 4;
    resumed.resumed = vec![resume(environment.clone())];
    assert!(changed(&resumed));
}

#[test]
fn a_generator_without_idle_time_makes_a_figure_the_machines() {
    let limit_with = |busy_ns: u64| {
        let search = throughput("auto", 64);
        let rig = throughput("straight", 64);
        let mut run = journal(vec![search.clone(), rig.clone()], 2, 8);
        for repeat in [1, 2] {
            let busy = Measured {
                figures: Figures::Frames(Box::new(found(Some(400_000), Some(402_000)))),
                cpu: Cpu {
                    wall_ns: 100,
                    station_a_ns: busy_ns,
                    ..Cpu::default()
                },
                ..Measured::default()
            };
            record(&mut run, &search.id, repeat, measured(busy));
            add(
                &mut run,
                &rig,
                repeat,
                found(Some(1_400_000), Some(1_407_000)),
            );
        }
        let results = Results::of(&run);
        let verdict = results.cells[0].verdict().unwrap();
        (verdict.limit, verdict.reason.clone())
    };
    assert_eq!(limit_with(94).0, Limit::DutLimited);
    let (limit, reason) = limit_with(95);
    assert_eq!(limit, Limit::MachineLimited);
    assert!(reason.contains("0.95 of 1 cores busy"), "{reason}");
}

/// Counts of two seconds.
fn counted(dut: Option<u64>) -> Cpu {
    let cycles = CountsByRole {
        station_a: 400_000_000,
        station_b: 80_000_000,
        dut,
        machine: 1_600_000_000,
    };
    Cpu {
        wall_ns: 1,
        counted: Some(CpuCounts {
            wall_ns: 2 * SECOND_NS,
            cycles,
            instructions: CountsByRole {
                machine: 3_200_000_000,
                ..cycles
            },
        }),
        ..Cpu::default()
    }
}

#[test]
fn cycles_per_packet_are_rates_by_the_rate_of_frames_or_datagrams_received() {
    let cost_of = |cpu: Cpu, figures: Figures, cell: Cell| {
        let mut run = journal(vec![cell.clone()], 1, 8);
        let found = Measured {
            figures,
            cpu,
            ..Measured::default()
        };
        record(&mut run, &cell.id, 1, measured(found));
        Results::of(&run).cells[0].packet_cost.clone()
    };
    // 400 000 frames in the second of the trial with evidence.
    let frames = || Figures::Frames(Box::new(found(Some(400_000), Some(402_000))));
    let of_frames = |cpu| cost_of(cpu, frames(), throughput("auto", 64));
    let cost = of_frames(counted(Some(200_000_000))).unwrap();
    assert_close(cost.cycles.machine.mean, 2000.0);
    assert_close(cost.cycles.beside_stations.mean, 1400.0);
    assert_close(cost.cycles.dut.unwrap().mean, 250.0);
    assert_close(cost.instructions.machine.mean, 4000.0);
    // A DUT in the kernel has no processes; that of one elsewhere is unknown.
    let kernel = of_frames(counted(Some(0))).unwrap();
    assert_eq!(kernel.cycles.dut, None);
    assert_close(kernel.cycles.beside_stations.mean, 1400.0);
    assert_eq!(of_frames(counted(None)), None);
    // No counters, no figure.
    assert_eq!(of_frames(Cpu::default()), None);

    // 1 000 000 datagrams in two seconds, of which a fifth was lost.
    let sent = datagrams(64, 1_000_000, 200_000).figures;
    let cost = cost_of(counted(Some(0)), sent, udp(64, None)).unwrap();
    assert_close(cost.cycles.machine.mean, 2000.0);
    // Segments of TCP are not counted one by one.
    let bytes = transfer(1).figures;
    assert_eq!(cost_of(counted(Some(0)), bytes, tcp("direct")), None);
}
