//! What several tests need.

use journal::record::CipherWatch;
use lab::{NamespaceLab, Setup};
use plan::{Adapter, Direction, Dut, Element, LabPlan};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::protocol::{Program, Request, Response, SealedPort};
use testbed::{Bench, Interrupt, LabError, Links, Node, NodeId};

/// No test waits longer for anything; machines that build at the same time are slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const LINKS: Links = Links {
    mtu: 1500,
    cipher_mtu: 1600,
    offloads: true,
    rate_bps: None,
};

/// A lab with a state folder of its own.
pub(crate) struct TestLab {
    // Dropped first.
    pub(crate) lab: NamespaceLab,
    pub(crate) interrupt: Interrupt,
    pub(crate) _folder: TempDir,
}

impl TestLab {
    pub(crate) fn build() -> Self {
        Self::with_path(&[])
    }

    /// With elements between the gateways.
    pub(crate) fn with_path(path: &[Element]) -> Self {
        let folder = testing::folder().unwrap();
        let setup = setup(folder.path());
        let lab = NamespaceLab::build(&plan_with_path("test", path), &setup).unwrap();
        Self {
            lab,
            interrupt: setup.interrupt,
            _folder: folder,
        }
    }

    /// Built, configured, and with no encryptor in between.
    pub(crate) fn direct() -> Self {
        let mut lab = Self::build();
        lab.lab.configure(LINKS).unwrap();
        lab.lab
            .start_dut(&direct(), LINKS, Direction::Both)
            .unwrap();
        lab
    }
}

/// "Cipherbench", as `ping -p` takes it to repeat it in every payload.
pub(crate) const MARKER_IN_HEX: &str = "43697068657262656e6368";

/// Starts a watch for that marker on a gateway's end of the cipher link.
pub(crate) fn watch(gateway: &dyn Node, sealed_ports: &[SealedPort]) -> u64 {
    let interface = if gateway.id() == NodeId::Gw1 {
        "w0"
    } else {
        "w1"
    };
    let request = Request::Watch {
        interface: interface.to_owned(),
        received_only: false,
        sealed_ports: sealed_ports.to_vec(),
        control_ports: Vec::new(),
        markers: vec![b"Cipherbench".to_vec()],
        inside: false,
    };
    match gateway.call(request).unwrap() {
        Response::Watching { watch } => watch,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn end_watch(gateway: &dyn Node, watch: u64) -> CipherWatch {
    match gateway.call(Request::WatchEnd { watch }).unwrap() {
        Response::Watched(seen) => seen,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn setup(state_folder: &Path) -> Setup {
    Setup {
        state_folder: state_folder.to_owned(),
        interrupt: Interrupt::new(),
    }
}

pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// Copies a file to where it can be executed.
///
/// Another process writes it: a file that this process has open for writing is inherited by every
/// child that another test forks meanwhile, and cannot be executed until that child is gone
/// (`ETXTBSY`).
pub(crate) fn install(source: &Path, target: &Path) {
    let installed = std::process::Command::new("install")
        .args(["-m", "755"])
        .args([source, target])
        .status()
        .unwrap();
    assert!(installed.success());
}

pub(crate) fn plan(name: &str) -> LabPlan {
    LabPlan::named(name)
}

pub(crate) fn plan_with_path(name: &str, path: &[Element]) -> LabPlan {
    LabPlan {
        path: path.to_vec(),
        ..LabPlan::named(name)
    }
}

pub(crate) fn direct() -> Dut {
    Dut::new("direct", Adapter::Direct)
}

/// A shell script as a program.
pub(crate) fn shell(script: &str) -> Program {
    Program::new(["sh", "-c", script])
}

/// The process id of a program that was just started.
pub(crate) fn start(node: &dyn Node, program: Program) -> (u64, u32) {
    match node
        .call(Request::Start {
            program,
            limit_ms: 30_000,
        })
        .unwrap()
    {
        Response::Started { process, pid, .. } => (process, pid),
        other => panic!("{other:?}"),
    }
}

/// Pings B from A.
///
/// Without `-w`, ping waits for late replies after its last request: one interval or two round
/// trips, whichever is longer. With `-w` it sends more requests until `-c` replies are in, so tests
/// that count packets exactly use a long interval instead.
pub(crate) fn ping(lab: &NamespaceLab, arguments: &[&str]) -> testbed::protocol::Ended {
    let target = lab.target().to_string();
    let argv = ["ping", "-n"]
        .into_iter()
        .chain(arguments.iter().copied())
        .chain([target.as_str()]);
    lab.node(NodeId::A)
        .run(Program::new(argv), PATIENCE)
        .unwrap()
}

/// Whether a process is there, and more than a zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits for a state; fails with `what` when it does not come.
pub(crate) fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "still not: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn reason(error: &LabError) -> String {
    match error {
        LabError::Node { reason, .. } | LabError::Dut { reason, .. } => reason.clone(),
        other => panic!("{other}"),
    }
}

/// All that a DUT could leave behind, by node; without a bridge's timers, the state of interfaces
/// and their part in IPv6's multicast, which the kernel brings up to date when it has time.
pub(crate) fn dump(lab: &TestLab) -> BTreeSet<String> {
    // As few programs as can be: it is read hundreds of times.
    const SCRIPT: &str = "{ ip -o -d link; printf 'address\\nroute show table all\\nneigh\\n' | ip -o -batch -; \
                          bridge fdb; nft list ruleset; tc qdisc; \
                          grep -s '' /proc/sys/net/ipv4/ip_forward* /proc/sys/net/ipv[46]/conf/*/*forwarding; } | \
                          sed 's/_timer *[0-9.]*//g; s/packets [0-9]* bytes [0-9]*//; s/ state [A-Z]* mode / /; s/NO-CARRIER,//; \
                          /^multicast ff00::/d; /^33:33:00:00:00:01 /d; \
                          s/^qdisc \\([a-z_]*\\) [0-9a-f]*: /qdisc \\1 /; s/ refcnt [0-9]*//'";
    let show = |id: NodeId| {
        let ended = lab.lab.node(id).run(shell(SCRIPT), PATIENCE).unwrap();
        let lines = ended
            .stdout
            .lines()
            .map(|line| format!("{}: {line}", id.name()));
        lines.collect::<Vec<_>>()
    };
    let nodes = NodeId::ALL.into_iter().chain(lab.lab.elements());
    nodes.flat_map(show).collect()
}

/// Fails with what is different from before.
pub(crate) fn assert_nothing_is_left(lab: &TestLab, before: &BTreeSet<String>, of: &str) {
    let after = dump(lab);
    let differences: Vec<_> = before.symmetric_difference(&after).collect();
    assert!(differences.is_empty(), "{of}: {differences:#?}");
}
