//! Boxes outside, on cables: a [`Rack`] for the boxes, and the real lab for the tester.
//!
//! Each scenario has a network namespace of its own for what is the machine's otherwise: this
//! executable is started again in one.

mod agent;
mod forms;
mod gateway;
mod gone;
mod lent;
mod monitored;
mod plain;
mod rack;
mod refused;
mod reset;
mod switched;

use crate::frames::{assert_all_came, frames, load, passes, short};
use crate::one_gateway::is_on_kernel;
use crate::trials::{TestLab, cell, lab_plan, ping, plan, tcp};
use journal::record::{Measured, Outcome};
use lab::{NamespaceLab, Privilege, Setup, privilege};
use plan::{BaseLoad, Cell, Direction, Disturbed, Event, External, LabPlan, Procedure, Reset};
use rack::{Does, Rack, adapter, run, shipped};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use testbed::{Bench, DutAction, Interrupt, LabError, NodeId};
use testing::busy;
use trial::links;

const PATIENCE: Duration = Duration::from_secs(60);

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 30] = [
    ("boxes_that_seal_pass_every_check", || outside("seal")),
    (
        "bumps_in_the_wire_that_seal_frames_pass_every_check",
        || outside("bump"),
    ),
    ("boxes_in_clear_are_found_out_at_the_tap", || {
        outside("clear")
    }),
    ("boxes_that_do_not_encrypt_are_the_baseline", || {
        outside("plain")
    }),
    ("a_router_alone_is_measured", || outside("router")),
    (
        "a_box_that_restarts_by_its_own_command_is_proven_to",
        || outside("reset"),
    ),
    ("without_a_tap_nothing_is_proven_and_it_says_so", || {
        outside("untapped")
    }),
    ("boxes_are_switched_to_versions_and_back", || {
        outside("switched")
    }),
    ("a_command_that_fails_fails_the_cell_in_words", || {
        outside("refused-command")
    }),
    ("an_interface_that_cannot_be_taken_is_refused", || {
        outside("refused-interface")
    }),
    ("one_gateway_that_speaks_ikev2_is_measured_each_way", || {
        outside("ike-gateway")
    }),
    (
        "one_gateway_that_speaks_wireguard_is_measured_each_way",
        || outside("wireguard-gateway"),
    ),
    (
        "the_kernels_bare_esp_of_a_gateway_is_measured_each_way",
        || {
            if is_on_kernel() {
                outside("kernel-gateway");
            }
        },
    ),
    (
        "a_gateway_that_does_not_agree_fails_the_cell_in_words",
        || outside("refused-gateway"),
    ),
    ("a_gateway_that_narrows_the_selectors_is_measured", || {
        outside("narrowing-gateway")
    }),
    (
        "a_gateway_that_authenticates_itself_anew_changes_no_path",
        || outside("renewing-gateway"),
    ),
    (
        "a_gateway_that_sets_up_fewer_tunnels_anew_is_found_out",
        || outside("merging-gateway"),
    ),
    (
        "a_gateway_that_goes_away_fails_the_cell_by_its_signs",
        || outside("gone-gateway"),
    ),
    ("boxes_that_tunnel_in_gre_are_seen_to_do_so", || {
        outside("gre")
    }),
    ("boxes_that_tunnel_in_l2tpv3_are_seen_to_do_so", || {
        outside("l2tpv3")
    }),
    (
        "boxes_with_a_format_of_their_own_pass_if_they_hide_everything",
        || outside("opaque"),
    ),
    (
        "boxes_with_a_format_of_their_own_that_hide_less_are_found_out",
        || outside("opaque-lies"),
    ),
    ("a_killed_run_gives_back_what_it_took", || outside("killed")),
    ("what_an_interface_had_is_restored", || outside("restored")),
    ("an_interface_below_others_is_refused", || {
        outside("refused-below")
    }),
    (
        "an_interface_with_what_would_be_lost_is_refused_by_name",
        || outside("refused-lost"),
    ),
    (
        "stopped_and_killed_stations_give_back_what_they_took",
        || outside("stopped"),
    ),
    ("an_interrupted_run_takes_the_boxes_down", || {
        outside("interrupted")
    }),
    ("boxes_are_monitored_while_traffic_flows", || {
        outside("monitored")
    }),
    (
        "what_cannot_be_monitored_fails_the_cell_before_it_is_measured",
        || outside("unreadable"),
    ),
];

/// Plays a scenario in a network namespace that is its own.
fn outside(scenario: &str) {
    // In a user's namespaces there is no interface of the machine that could be lent.
    if privilege::current() != Some(Privilege::Root) {
        eprintln!("SKIPPED: cables can be taken by root only");
        return;
    }
    let status = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().unwrap())
        .args(["outside", scenario])
        .status()
        .unwrap();
    // The scenario is another process, so its verdict about the machine comes as an exit code.
    if status.code() == Some(BUSY.into()) {
        busy::too_busy(format!("{scenario}, see above"));
    }
    assert!(status.success(), "{scenario}");
}

/// How a scenario ends that a busy machine kept from measuring.
const BUSY: u8 = 77;

/// What this executable is there.
pub(crate) fn play(scenario: &str) -> ExitCode {
    let play = || match scenario {
        "seal" => seal(),
        "bump" => bump(),
        "clear" => clear(),
        "plain" => plain::two_boxes(),
        "router" => plain::router(),
        "reset" => reset::reset(),
        "untapped" => untapped(),
        "switched" => switched::switched(),
        "refused-command" => refused_command(),
        "refused-interface" => refused_interface(),
        "ike-gateway" => gateway::ike(),
        "kernel-gateway" => gateway::kernel(),
        "wireguard-gateway" => gateway::wireguard(),
        "refused-gateway" => refused::gateway(),
        "narrowing-gateway" => gateway::narrowing(),
        "renewing-gateway" => gone::renewing(),
        "merging-gateway" => gone::merging(),
        "gone-gateway" => gone::gone(),
        "gre" => forms::gre(),
        "l2tpv3" => forms::l2tpv3(),
        "opaque" => forms::opaque(),
        "opaque-lies" => forms::opaque_lies(),
        "killed" => lent::killed(),
        "restored" => lent::restored(),
        "refused-below" => lent::refused_below(),
        "refused-lost" => lent::refused_lost(),
        "stopped" => lent::stopped(),
        "interrupted" => interrupted(),
        "monitored" => monitored::monitored(),
        "unreadable" => monitored::unreadable(),
        other => panic!("no scenario `{other}`"),
    };
    match busy::skipped(0, play) {
        Some(_) => BUSY.into(),
        None => ExitCode::SUCCESS,
    }
}

fn lab_of(rack: &Rack) -> LabPlan {
    LabPlan {
        external: Some(rack.cables()),
        ..lab_plan()
    }
}

fn sealing(rack: &Rack) -> External {
    rack.device(Does::Seal)
}

fn ping_cell(device: External) -> Cell {
    cell(adapter(device), 1, true, ping())
}

fn seal() {
    let rack = Rack::build(true);
    let before = Rack::addresses();
    let mut lab = TestLab::on(&lab_of(&rack));
    let cells = [
        ping_cell(sealing(&rack)),
        cell(adapter(sealing(&rack)), 1, true, tcp(2)),
        cell(adapter(sealing(&rack)), 1, false, tcp(1)),
    ];
    for cell in &cells {
        assert_sealed(&lab.measured(cell));
    }
    for duplex in [false, true] {
        let mut traffic = short(Direction::Both);
        traffic.duplex = duplex;
        let cell = frames(adapter(sealing(&rack)), traffic, load(200));
        let measured = lab.measured(&cell);
        assert_all_came(&measured, 200, 1 + u64::from(duplex));
        assert_sealed(&measured);
    }
    // A lab with cables is a lab: others are measured there too, between those on the cables.
    let direct = lab.measured(&cell(plan::Adapter::Direct, 1, true, ping()));
    assert!(passes(&direct, "clear-text-visible") && direct.cpu.dut_ns == Some(0));
    cut(&mut lab, &cells[0]);
    // Once for each of the five trials with boxes, and once after the cut.
    rack.assert_taken_down(6);
    drop(lab);
    assert!(rack.has_all_back());
    assert_eq!(Rack::addresses(), before);
}

/// Ethernet frames of one network cross in the form of MACsec; signed only, they are found out.
fn bump() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&shipped("bump.yaml"));
    let device = rack.device(Does::SealFrames);
    let tools = ping_cell(device.clone());
    assert_sealed(&lab.measured(&tools));
    let mut traffic = short(Direction::Both);
    traffic.duplex = true;
    let of_frames = |device| frames(adapter(device), traffic.clone(), load(200));
    let measured = lab.measured(&of_frames(device));
    assert_all_came(&measured, 200, 2);
    assert_sealed(&measured);

    let signing = rack.device(Does::SignFrames);
    for cell in [ping_cell(signing.clone()), of_frames(signing)] {
        assert_found_in_clear(&lab.record(&cell).outcome);
    }
    rack.assert_taken_down(4);
    drop(lab);
    assert!(rack.has_all_back());
}

fn assert_found_in_clear(outcome: &Outcome) {
    let Outcome::Invalid { reasons, .. } = outcome else {
        panic!("{outcome:#?}");
    };
    for check in [
        "cipher-link-encrypted",
        "no-clear-text",
        "no-foreign-frames",
    ] {
        let found = reasons.iter().any(|reason| reason.starts_with(check));
        assert!(found, "{check} is not among {reasons:#?}");
    }
}

fn assert_sealed(measured: &Measured) {
    for check in [
        "cipher-link-encrypted",
        "no-clear-text",
        "no-foreign-frames",
    ] {
        assert!(passes(measured, check), "{check}");
    }
    let evidence = &measured.evidence;
    assert!(evidence.cipher_link.esp_frames > 0, "{evidence:?}");
    assert!(
        evidence
            .checks
            .iter()
            .all(|check| check.name != "encryption-not-proven")
    );
    let facts = &evidence.dut_facts;
    for gateway in ["gw1", "gw2"] {
        assert_eq!(facts[&format!("{gateway}/suite")], "aes-256-gcm");
        assert!(facts[&format!("{gateway}/version")].starts_with("version="));
        assert!(evidence.dut_counters[&format!("{gateway}/clear_bytes")] > 0);
    }
    // One line of several, of what came from the other box.
    assert!(evidence.dut_counters["gw2/wan_rx_bytes"] > 0);
    assert!(evidence.interfaces["tap/eth4"].tx_bytes > 0);
    assert!(passes(measured, "driver-counters"), "{evidence:?}");
    for card in ["a/eth1", "b/eth2", "tap/eth3", "tap/eth4"] {
        assert!(evidence.drivers.contains_key(card), "{card}");
    }
    // The boxes' CPU time is unknown, not 0.
    assert_eq!(measured.cpu.dut_ns, None);
}

/// The tap's end of the first box's cable goes down, and traffic with it.
fn cut(lab: &mut TestLab, cell: &Cell) {
    let links = links(&plan(cell), cell);
    lab.lab.configure(links).unwrap();
    let bench = &mut lab.lab;
    let mut dut = bench.start_dut(&cell.dut, links, Direction::Both).unwrap();
    let reaches = |bench: &NamespaceLab| {
        let target = bench.target().to_string();
        let ping = testbed::protocol::Program::new(["ping", "-n", "-c", "1", "-W", "1", &target]);
        let ended = bench.node(NodeId::A).run(ping, PATIENCE).unwrap();
        ended.code == Some(0)
    };
    assert!(reaches(bench));
    bench.act(&mut dut, DutAction::CutLink).unwrap();
    assert!(!reaches(bench));
    bench.act(&mut dut, DutAction::JoinLink).unwrap();
    await_that("A reaches B again", || reaches(bench));
    bench.stop_dut(dut).unwrap();
}

fn clear() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    let device = rack.device(Does::ForwardInClear);
    let tools = ping_cell(device.clone());
    let frames = frames(adapter(device), short(Direction::Both), load(200));
    for cell in [tools, frames] {
        assert_found_in_clear(&lab.record(&cell).outcome);
    }
    rack.assert_taken_down(2);
    drop(lab);
    assert!(rack.has_all_back());
}

fn untapped() {
    let rack = Rack::build(false);
    let mut lab = TestLab::on(&lab_of(&rack));
    // The cipher link is not visible: any behaviour looks the same.
    for does in [Does::Seal, Does::ForwardInClear] {
        let device = rack.device(does);
        let frames = frames(adapter(device.clone()), short(Direction::Both), load(200));
        for cell in [ping_cell(device), frames] {
            let measured = lab.measured(&cell);
            let evidence = &measured.evidence;
            let said = evidence
                .checks
                .iter()
                .find(|check| check.name == "encryption-not-proven")
                .unwrap();
            assert!(said.detail.starts_with("NOT PROVEN"), "{}", said.detail);
            assert!(evidence.dut_facts["tester/encryption"].starts_with("not proven"));
            assert!(evidence.watch.is_none() && evidence.cipher_link.frames == 0);
            assert!(
                !evidence
                    .checks
                    .iter()
                    .any(|check| check.name.contains("cipher-link"))
            );
        }
    }
    let device = rack.device(Does::ForwardInClear);
    let cell = ping_cell(device);
    let links = links(&plan(&cell), &cell);
    let mut dut = lab
        .lab
        .start_dut(&cell.dut, links, Direction::Both)
        .unwrap();
    let refused = lab.lab.act(&mut dut, DutAction::CutLink).unwrap_err();
    assert!(refused.to_string().contains("no tap"), "{refused}");
    lab.lab.stop_dut(dut).unwrap();
    drop(lab);
    assert!(rack.has_all_back());
}

fn refused_command() {
    let rack = Rack::build(true);
    let mut lab = TestLab::on(&lab_of(&rack));
    let reason = |lab: &mut TestLab, change: fn(&mut External)| {
        let mut device = sealing(&rack);
        change(&mut device);
        match lab.record(&ping_cell(device)).outcome {
            Outcome::Failed { reason } => reason,
            other => panic!("{other:#?}"),
        }
    };
    let said = reason(&mut lab, |device| {
        device.boxes[1].up[2] = "echo no such port >&2; exit 7".to_owned();
    });
    for words in ["gw2", "exit 7`", "exit status 7", "no such port"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = reason(&mut lab, |device| {
        device.limit_ns = 1_000_000_000;
        device.boxes[0]
            .up
            .push("echo at it; exec sleep 1000".to_owned());
    });
    assert!(said.contains("did not end within 1 s: at it"), "{said}");
    let said = reason(&mut lab, |device| {
        device.boxes[0].suite_told = Some("echo suite aes-128-gcm".to_owned());
    });
    assert!(
        said.contains("does not say on gw1") && said.contains("aes-128-gcm"),
        "{said}"
    );
    let said = reason(&mut lab, |device| {
        let counters = &mut device.boxes[0].counters;
        counters.insert("lost".to_owned(), "echo none".to_owned());
    });
    assert!(
        said.contains("`lost`") && said.contains("printed no number") && said.ends_with(": none"),
        "{said}"
    );
    let said = reason(&mut lab, |device| {
        device.ready_ns = 1_000_000_000;
        device.boxes[1].up.truncate(1);
        device.boxes[1].suite_told = None;
        device.boxes[1].down.remove(0);
    });
    assert!(said.contains("no device answers for 10.2.0.1"), "{said}");
    // However they failed, the boxes were taken down each time, and can be measured.
    rack.assert_taken_down(5);
    let said = reason(&mut lab, |device| {
        // Without `sh -c`.
        device.boxes[0].via.truncate(2);
    });
    assert!(
        said.contains("`via` gets the command as one word: end it with a shell"),
        "{said}"
    );
    lab.measured(&ping_cell(sealing(&rack)));
    drop(lab);
    assert!(rack.has_all_back());
}

fn refused_interface() {
    let rack = Rack::build(true);
    run("ip link add used type veth peer name user");
    run("ip address add 192.0.2.9/24 dev used");
    run("ip link add uplink type veth peer name router");
    run("ip link set uplink up");
    run("ip route add default dev uplink");
    run("ip link add port type veth peer name beyond");
    run("ip link add bridge7 type bridge");
    run("ip link set port master bridge7");
    run("ip link property add dev user altname another");
    for (name, words) in [
        ("none", "there is no interface `none` on that machine"),
        ("used", "it has the address 192.0.2.9"),
        ("uplink", "default route"),
        ("port", "is a port of `bridge7`"),
        ("another", "is another name of `user`"),
    ] {
        let said = refusal(&rack, name);
        assert!(said.contains(words) && said.contains("\nhelp: "), "{said}");
        assert!(rack.has_all_back());
    }
    let links = run("ip -o link show");
    assert!(
        ["used@", "uplink@", "port@"]
            .iter()
            .all(|name| links.contains(name))
    );
}

/// Why a lab with this interface at station B is refused.
fn refusal(rack: &Rack, name: &str) -> String {
    let folder = testing::folder().unwrap();
    let mut lab = lab_of(rack);
    lab.external.as_mut().unwrap().station_b = name.to_owned();
    match NamespaceLab::build(&lab, &setup_in(folder.path())).map(|_| ()) {
        Err(error @ LabError::CannotBuild { .. }) => error.to_string(),
        other => panic!("{name}: {other:?}"),
    }
}

fn setup_in(folder: &Path) -> Setup {
    Setup {
        state_folder: folder.to_owned(),
        interrupt: Interrupt::new(),
    }
}

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A run in a process of its own that has everything up.
fn held(rack: &Rack, folder: &Path) -> Child {
    held_with(rack, folder, &ping_cell(sealing(rack)))
}

/// The same with a cell.
fn held_with(rack: &Rack, folder: &Path, cell: &Cell) -> Child {
    let plan = serde_json::to_string(&(lab_of(rack), cell)).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["hold-outside", &folder.display().to_string(), &plan])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    // Only then does it hold interfaces and boxes, which is the state to kill it in.
    assert_eq!(line, "up\n");
    child
}

/// A run with everything up, until it is killed.
pub(crate) fn hold(folder: &str, plan: &str) -> ExitCode {
    let (lab, cell): (LabPlan, Cell) = serde_json::from_str(plan).unwrap();
    let mut lab = NamespaceLab::build(&lab, &setup_in(Path::new(folder))).unwrap();
    let links = links(&crate::trials::plan(&cell), &cell);
    lab.configure(links).unwrap();
    lab.start_dut(&cell.dut, links, Direction::Both).unwrap();
    println!("up");
    loop {
        // In a loop, since `park` may return without a reason.
        std::thread::park();
    }
}

/// Ctrl-C while a box is being configured, and with everything up.
fn interrupted() {
    let rack = Rack::build(true);
    let folder = testing::folder().unwrap();
    for at_start in [true, false] {
        let times = rack.times_down();
        let setup = setup_in(folder.path());
        let mut lab = NamespaceLab::build(&lab_of(&rack), &setup).unwrap();
        let mut device = sealing(&rack);
        let reached = rack.path("reached");
        if at_start {
            let command = format!("touch {}; exec sleep 1000", reached.display());
            device.boxes[1].up.push(command);
        }
        let cell = ping_cell(device);
        let links = links(&plan(&cell), &cell);
        lab.configure(links).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if at_start {
                    // The command itself makes the file, so the interrupt comes while it runs.
                    await_that("it is being configured", || reached.exists());
                    setup.interrupt.set();
                }
            });
            let started = lab.start_dut(&cell.dut, links, Direction::Both);
            match (at_start, started) {
                (true, Err(LabError::Interrupted)) => {}
                (false, Ok(_)) => setup.interrupt.set(),
                (_, other) => panic!("{other:?}"),
            }
        });
        // The run ends without another word.
        drop(lab);
        assert_eq!(rack.times_down(), times.map(|times| times + 1));
        assert!(rack.has_all_back());
    }
}
