//! One trial on a fake bench: what it records, and that it leaves nothing behind whatever fails.

use crate::bench::{FakeBench, Script, encrypting, ping, said, tcp, udp};
use journal::record::{CipherLink, CipherWatch, CountsByRole, Measured, Outcome, TrialRecord};
use plan::{Adapter, Cell, Measurement};
use std::time::{Duration, Instant};
use testbed::protocol::Ended;
use testbed::{Interrupt, LabError, NodeId};
use trial::{Trial, links, measure};

const MS: u64 = crate::bench::MS;
const TCP_BYTES: u64 = 1_259_601_920;

fn run(bench: &mut FakeBench, cell: &Cell) -> Result<TrialRecord, LabError> {
    let links = links(&crate::bench::plan(vec![cell.clone()], 1), cell);
    let result = measure(bench, &Trial::of(cell, 1, links), &Interrupt::new());
    bench.assert_clean();
    result
}

fn outcome(script: Script, cell: &Cell) -> Outcome {
    run(&mut FakeBench::new(script), cell).unwrap().outcome
}

fn measured(outcome: Outcome) -> Measured {
    match outcome {
        Outcome::Measured(measured) => *measured,
        other => panic!("expected a measured trial, got {other:?}"),
    }
}

fn failure(script: Script, cell: &Cell) -> String {
    match outcome(script, cell) {
        Outcome::Failed { reason } => reason,
        other => panic!("expected a failed trial, got {other:?}"),
    }
}

/// Makes a cell too long to wait for its end.
fn last_for_hours(cell: &mut Cell) {
    if let Measurement::Tcp { duration_ns, .. } = &mut cell.measurement {
        *duration_ns = 10_000_000 * MS;
    }
}

fn tcp_script() -> Script {
    Script {
        carried_bytes: TCP_BYTES,
        // Between the bounds of the headers that full and half full segments have.
        header_bytes: TCP_BYTES / 16,
        ..Script::default()
    }
}

fn encrypted(script: Script) -> Script {
    let cipher_link = CipherLink {
        frames: 100,
        esp_frames: 99,
        spis: vec!["c0ffee01".to_owned()],
        ..CipherLink::default()
    };
    Script {
        cipher_link,
        watch: CipherWatch::default(),
        ..script
    }
}

#[test]
fn a_tcp_trial_records_the_receivers_figure_cpu_by_role_and_evidence() {
    let mut bench = FakeBench::new(encrypted(tcp_script()));
    let record = run(&mut bench, &tcp(encrypting(), 1)).unwrap();
    assert_eq!(
        (record.cell.as_str(), record.repeat),
        ("tcp/cores=1/cipherbench", 1)
    );
    assert_eq!(record.commands.len(), 3);
    assert_eq!(record.commands[0][0], "ping", "the baseline round trip");
    assert_eq!(record.commands[1][..3], ["iperf3", "-s", "-1"]);
    assert!(record.started_unix_ns > 0 && record.duration_ns >= 950 * MS);

    let measured = measured(record.outcome);
    let transfer = measured.transfer().cloned().unwrap();
    assert_eq!(transfer.received_bytes, TCP_BYTES);
    assert_eq!(transfer.parameters.streams, Some(2));
    // Between two readings every program of the fake takes 10 ms, and the machine 100 ms.
    let cpu = measured.cpu;
    assert_eq!(
        (cpu.station_a_ns, cpu.station_b_ns, cpu.dut_ns),
        (10 * MS, 10 * MS, Some(20 * MS))
    );
    assert_eq!(
        (cpu.stations_ns, cpu.kernel_ns, cpu.busy_ns),
        (20 * MS, 60 * MS, 100 * MS)
    );
    // All of the time between two readings is user time; a tenth of the machine's is stolen
    // besides.
    assert_eq!((cpu.foreign_ns, cpu.steal_ns), (60 * MS, 10 * MS));
    assert!(cpu.wall_ns >= 900 * MS, "{cpu:?}");
    let counted = cpu.counted.unwrap();
    let cycles = CountsByRole {
        station_a: 1000,
        station_b: 1000,
        dut: Some(2000),
        machine: 9000,
    };
    assert_eq!((counted.cycles, cycles.beside_stations()), (cycles, 7000));
    assert_eq!(counted.instructions.dut, Some(4000));
    assert!(counted.wall_ns >= 850 * MS, "{counted:?}");

    let evidence = measured.evidence;
    assert!(
        evidence.checks.iter().all(|check| check.passed),
        "{:?}",
        evidence.checks
    );
    assert_eq!(evidence.cipher_link.frames, 300, "three samples are summed");
    assert_eq!(evidence.cipher_link.spis, ["c0ffee01"]);
    let opened = evidence.cipher_link.opened.unwrap();
    let counts = [opened.packets, opened.opened, opened.between_stations];
    assert_eq!(counts, [6; 3], "two packets of each sample");
    assert_eq!(evidence.watch, Some(CipherWatch::default()));
    assert!(evidence.dut_counters["gw1/clear_rx_bytes"] > TCP_BYTES);
    assert_eq!(evidence.dut_facts["gw1/engine"], "fake");
    assert!(evidence.interfaces["gw1/w0"].tx_bytes > TCP_BYTES);
    assert_eq!(evidence.offloads["a/a0"]["tcp-segmentation-offload"], "on");
}

#[test]
fn a_udp_trial_uses_the_socket_buffer_that_the_stations_allow() {
    let data = |name: &str| said(&std::fs::read_to_string(format!("tests/data/{name}")).unwrap());
    let script = Script {
        clients: vec![data("iperf3-3.12-udp-100m.client.json")],
        servers: vec![data("iperf3-3.12-udp-100m.server.json")],
        carried_bytes: 12_491_392,
        // Ethernet, IPv4 and UDP of each datagram.
        header_bytes: 8486 * 42,
        ..Script::default()
    };
    let mut bench = FakeBench::new(script);
    let record = run(&mut bench, &udp(Adapter::Direct)).unwrap();
    assert!(
        record.commands[1]
            .join(" ")
            .contains("-w 212992 -u -l 1472 -b 50000000")
    );
    let transfer = measured(record.outcome).transfer().cloned().unwrap();
    assert_eq!(transfer.parameters.window_bytes, Some(212_992));
    let datagrams = transfer.datagrams.unwrap();
    assert_eq!((datagrams.sent, datagrams.lost), (8486, 0));
}

/// Older kernels show the limit outside of the station's namespace only.
#[test]
fn the_socket_buffer_that_a_station_reports_is_used_even_if_its_namespace_hides_it() {
    let script = Script {
        buffers_max: Some(425_984),
        ..Script::default()
    };
    let record = run(&mut FakeBench::new(script), &udp(Adapter::Direct)).unwrap();
    assert!(record.commands[1].join(" ").contains("-w 425984 -u"));
}

#[test]
fn processes_run_on_cores_of_their_own_and_are_summed() {
    let data = |name: &str| said(&std::fs::read_to_string(format!("tests/data/{name}")).unwrap());
    let of = |role: &str| {
        [0, 1]
            .map(|n| data(&format!("iperf3-3.12-tcp-process-{n}.{role}.json")))
            .into()
    };
    let script = Script {
        clients: of("client"),
        servers: of("server"),
        carried_bytes: (1_466_595_976 + 1_453_387_056) / 2,
        header_bytes: (1_466_595_976 + 1_453_387_056) / 32,
        ..Script::default()
    };
    let mut bench = FakeBench::new(script);
    let record = run(&mut bench, &tcp(Adapter::Direct, 2)).unwrap();
    let transfer = measured(record.outcome).transfer().cloned().unwrap();
    assert_eq!(transfer.received_bytes, 1_466_595_976 + 1_453_387_056);
    let cores: Vec<_> = {
        let world = bench.world.lock().unwrap();
        let tools = world
            .started
            .iter()
            .filter(|(_, program)| program.argv[0] == "iperf3");
        tools
            .map(|(id, program)| (*id, program.cores.clone()))
            .collect()
    };
    let [a, b] = [NodeId::A, NodeId::B];
    assert_eq!(
        cores,
        [(b, vec![1]), (b, vec![0]), (a, vec![0]), (a, vec![1])]
    );
}

#[test]
fn a_ping_trial_records_every_round_trip() {
    let measured = measured(outcome(Script::default(), &ping(Adapter::Direct)));
    let latency = measured.latency().cloned().unwrap();
    assert_eq!(
        (latency.sent, latency.received, latency.round_trips_ns.len()),
        (20, 20, 20)
    );
    assert_eq!(measured.transfer(), None);
    assert_eq!(
        measured.evidence.cipher_link.frames, 100,
        "a short trial is sampled once"
    );
}

#[test]
fn evidence_against_a_figure_makes_it_invalid_with_the_reason() {
    let mut script = encrypted(Script::default());
    script.cipher_link.marker_frames = 5;
    let Outcome::Invalid { reasons, measured } = outcome(script, &ping(encrypting())) else {
        panic!("clear-text was seen")
    };
    assert_eq!(reasons.len(), 1);
    assert!(
        reasons[0].starts_with("no-clear-text: 5 of 100 frames"),
        "{reasons:?}"
    );
    assert!(measured.latency().is_some());
}

#[test]
fn sampled_packets_that_are_not_sealed_with_the_keys_make_a_trial_invalid() {
    let mut script = encrypted(Script::default());
    // One flipped bit in the ICV: the form is right, and only opening finds it.
    *script.tunnel.frame.last_mut().unwrap() ^= 1;
    let Outcome::Invalid { reasons, measured } = outcome(script, &ping(encrypting())) else {
        panic!("nothing could be opened")
    };
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    let expected = "samples-opened: of 2 whole sealed packets sampled 0 were opened";
    assert!(reasons[0].starts_with(expected), "{reasons:?}");
    assert!(
        reasons[0].ends_with("; not opened: 2 integrity_failed"),
        "{reasons:?}"
    );
    let opened = measured.evidence.cipher_link.opened.unwrap();
    assert_eq!(opened.refused, [("integrity_failed".to_owned(), 2)].into());
}

#[test]
fn what_iperf3_says_went_wrong_is_the_reason() {
    let refused = said(include_str!("../data/iperf3-3.12-refused.client.json"));
    let reason = failure(
        Script {
            clients: vec![refused],
            ..tcp_script()
        },
        &tcp(Adapter::Direct, 1),
    );
    assert_eq!(
        reason,
        "a: iperf3 says: unable to connect to server: Connection refused"
    );
    let buffer = said(include_str!(
        "../data/iperf3-3.12-buffer-refused.client.json"
    ));
    let reason = failure(
        Script {
            clients: vec![buffer],
            ..tcp_script()
        },
        &tcp(Adapter::Direct, 1),
    );
    assert!(reason.contains("raise net.core.rmem_max"), "{reason}");
}

#[test]
fn a_tool_that_prints_nothing_or_half_is_a_failure() {
    let killed = Ended {
        timed_out: true,
        signal: Some(9),
        stderr: "iperf3: stuck\n".to_owned(),
        ..Ended::default()
    };
    let reason = failure(
        Script {
            servers: vec![killed],
            ..tcp_script()
        },
        &tcp(Adapter::Direct, 1),
    );
    assert!(
        reason.starts_with("b: iperf3 printed nothing; it was killed after its time limit"),
        "{reason}"
    );
    assert!(
        reason.ends_with("standard error: iperf3: stuck"),
        "{reason}"
    );
    let whole = include_str!("../data/iperf3-3.12-tcp-2-streams.server.json");
    let half = said(&whole[..whole.len() / 2]);
    let reason = failure(
        Script {
            servers: vec![half],
            ..tcp_script()
        },
        &tcp(Adapter::Direct, 1),
    );
    assert!(reason.contains("cannot be read"), "{reason}");
}

#[test]
fn a_server_that_does_not_come_up_is_a_failure() {
    let script = Script {
        servers_listen: false,
        ..tcp_script()
    };
    assert!(failure(script, &tcp(Adapter::Direct, 1)).contains("did not listen"));
}

#[test]
fn a_dut_that_does_not_come_up_is_a_failure_before_any_tool_runs() {
    let script = Script {
        dut_comes_up: Err("did not come up: bad key".to_owned()),
        ..Script::default()
    };
    let mut bench = FakeBench::new(script);
    let record = run(&mut bench, &ping(encrypting())).unwrap();
    let Outcome::Failed { reason } = record.outcome else {
        panic!("the DUT was not up")
    };
    assert_eq!(
        reason,
        "the device under test `cipherbench` did not come up: bad key"
    );
    assert_eq!(bench.world.lock().unwrap().started.len(), 0);
}

#[test]
fn a_dut_that_died_makes_the_trial_invalid_with_its_last_words() {
    let script = Script {
        dut_lives: Err("died: SIGSEGV: oops".to_owned()),
        ..Script::default()
    };
    let Outcome::Invalid { reasons, .. } = outcome(encrypted(script), &ping(encrypting())) else {
        panic!("the DUT had died")
    };
    assert_eq!(
        reasons,
        ["the device under test `fake` died: SIGSEGV: oops"]
    );
}

#[test]
fn a_dut_that_dies_in_mid_trial_ends_the_trial_at_once_with_its_last_words() {
    let dead = Ended {
        signal: Some(11),
        stderr: "oops\n".to_owned(),
        ..Ended::default()
    };
    let script = Script {
        dut_ended: Some(dead),
        dut_lives: Err("died: SIGSEGV: oops".to_owned()),
        ..encrypted(tcp_script())
    };
    let mut cell = tcp(encrypting(), 1);
    last_for_hours(&mut cell);
    let reason = failure(script, &cell);
    assert!(
        reason.starts_with("the device under test `fake` died: SIGSEGV: oops; gw1: ended"),
        "{reason}"
    );
}

#[test]
fn a_dut_that_dies_while_pings_run_under_load_ends_the_trial_soon() {
    let script = Script {
        dut_ended: Some(Ended::default()),
        dut_dies_after: Duration::from_secs(1),
        ..Script::default()
    };
    let mut cell = ping(encrypting());
    if let Measurement::Ping { loaded, .. } = &mut cell.measurement {
        *loaded = true;
    }
    let started = Instant::now();
    let reason = failure(encrypted(script), &cell);
    assert!(reason.starts_with("gw1: ended before its time"), "{reason}");
    assert!(started.elapsed() < Duration::from_secs(8));
}

#[test]
fn a_dut_that_dies_while_the_tools_are_waited_for_ends_the_trial_at_once() {
    let script = Script {
        dut_ended: Some(Ended {
            signal: Some(11),
            ..Ended::default()
        }),
        // Nothing looks at it in the second that the trial lasts.
        dut_dies_after: Duration::from_millis(1200),
        dut_lives: Err("died: SIGSEGV".to_owned()),
        clients_hang: true,
        ..encrypted(tcp_script())
    };
    let started = Instant::now();
    let reason = failure(script, &tcp(encrypting(), 1));
    assert!(reason.contains("gw1: ended before its time"), "{reason}");
    // Far less than what a tool that hangs is given.
    assert!(started.elapsed() < Duration::from_secs(6));
}

#[test]
fn connections_of_an_earlier_trial_are_waited_out() {
    let mut bench = FakeBench::new(Script {
        lingering: 3,
        ..Script::default()
    });
    measured(run(&mut bench, &ping(Adapter::Direct)).unwrap().outcome);
    let world = bench.world.lock().unwrap();
    let programs = world
        .started
        .iter()
        .map(|(_, program)| program.argv[0].as_str());
    // Three looks at A find it, a fourth does not, one at B; then the tool.
    assert_eq!(
        programs.collect::<Vec<_>>(),
        ["cat", "tee", "cat", "cat", "cat", "cat", "ping"]
    );
}

#[test]
fn a_cell_that_asks_for_too_many_cores_is_a_failure() {
    let reason = failure(Script::default(), &tcp(Adapter::Direct, 3));
    assert!(
        reason.contains("3 cores per station, this machine has 2"),
        "{reason}"
    );
}

#[test]
fn an_interrupt_at_any_step_ends_the_trial_without_a_record_and_leaves_nothing() {
    for step in [
        "Hello",
        "Offloads",
        "InterfaceCounters",
        "Start",
        "CpuTime",
        "Sample",
        "Wait",
    ] {
        let mut bench = FakeBench::new(Script {
            interrupt_at: Some(step),
            ..Script::default()
        });
        let result = run(&mut bench, &ping(Adapter::Direct));
        assert!(
            matches!(result, Err(LabError::Interrupted)),
            "{step}: {result:?}"
        );
    }
}

#[test]
fn a_watch_that_does_not_end_leaves_no_other_one_behind() {
    let mut bench = FakeBench::new(Script {
        interrupt_at: Some("SettingsWatchEnd"),
        ..Script::default()
    });
    let cell = ping(Adapter::Direct);
    let links = links(&crate::bench::plan(vec![cell.clone()], 1), &cell);
    let result = measure(&mut bench, &Trial::of(&cell, 1, links), &Interrupt::new());
    assert!(matches!(result, Err(LabError::Interrupted)), "{result:?}");
    assert_eq!(bench.world.lock().unwrap().watches, 1);
}

#[test]
fn an_interrupt_while_the_tools_run_is_heeded_at_once() {
    let mut cell = tcp(Adapter::Direct, 1);
    last_for_hours(&mut cell);
    let links = links(&crate::bench::plan(vec![cell.clone()], 1), &cell);
    let mut bench = FakeBench::new(tcp_script());
    let interrupt = Interrupt::new();
    interrupt.set();
    let result = measure(&mut bench, &Trial::of(&cell, 1, links), &interrupt);
    assert!(matches!(result, Err(LabError::Interrupted)));
    bench.assert_clean();
}

#[test]
fn both_duts_cross_a_cipher_link_of_one_mtu() {
    let plan = crate::bench::plan(vec![ping(Adapter::Direct), ping(encrypting())], 1);
    let mtu = |at: usize| links(&plan, &plan.cells[at]).cipher_mtu;
    assert_eq!((mtu(0), mtu(1)), (1564, 1564));
}
