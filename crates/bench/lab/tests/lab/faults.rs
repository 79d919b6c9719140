//! Runs that are killed, stopped, interrupted, or in each other's way.

use crate::support::{
    PATIENCE, TestLab, await_that, install, is_alive, plan, setup, shell, start, this_program,
};
use lab::NamespaceLab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testbed::protocol::{Program, Request};
use testbed::{Bench, LabError, NodeId};

pub(crate) fn a_lab_name_is_held_by_one_run_at_a_time() {
    let folder = testing::folder().unwrap();
    let setup = setup(folder.path());
    let first = NamespaceLab::build(&plan("one"), &setup).unwrap();
    match NamespaceLab::build(&plan("one"), &setup) {
        Err(LabError::Taken { name, pid }) => {
            assert_eq!((name.as_str(), pid), ("one", std::process::id()));
        }
        other => panic!("{:?}", other.map(|_| ())),
    }
    let other = NamespaceLab::build(&plan("two"), &setup).unwrap();
    drop(first);
    let again = NamespaceLab::build(&plan("one"), &setup).unwrap();
    assert!(again.swept().is_empty());
    drop((other, again));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

pub(crate) fn an_interrupt_ends_a_pending_call_at_once() {
    let TestLab {
        lab,
        interrupt,
        _folder,
    } = TestLab::build();
    let node = lab.node(NodeId::A);
    let (process, pid) = start(node, Program::new(["sleep", "1000"]));
    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let result = node.call(Request::Wait {
                process,
                limit_ms: u64::MAX,
            });
            (result, Instant::now())
        });
        // Pending or not yet sent: it must end either way.
        std::thread::sleep(Duration::from_millis(20));
        let set = Instant::now();
        interrupt.set();
        let (result, ended) = waiting.join().unwrap();
        assert!(matches!(result, Err(LabError::Interrupted)));
        ended.saturating_duration_since(set)
    });
    // 100 ms are promised; the rest is for a machine that is busy.
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    assert!(matches!(
        node.call(Request::InterfaceCounters),
        Err(LabError::Interrupted)
    ));
    drop(lab);
    assert!(!is_alive(pid));
}

pub(crate) fn an_interrupt_ends_a_call_that_a_stopped_station_does_not_take() {
    let lab = TestLab::build();
    let node = lab.lab.node(NodeId::A);
    let station = lab.lab.station_pid(NodeId::A);
    signal(station, Signal::SIGSTOP);
    // More than its pipe holds.
    let request = Request::WriteFile {
        name: "long".to_owned(),
        content: "x".repeat(1 << 20),
        secret: false,
    };
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        scope.spawn(move || sender.send(node.call(request)).unwrap());
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
        lab.interrupt.set();
        let result = receiver.recv_timeout(PATIENCE);
        // It is to be gone quickly, also when this failed.
        signal(station, Signal::SIGCONT);
        assert!(matches!(result, Ok(Err(LabError::Interrupted))));
    });
}

/// A run in a process of its own, that can be killed.
pub(crate) struct KillableRun {
    run: Child,
    /// Stations: A, gw1, gw2, B, and a bridge and a router between the gateways.
    pub(crate) stations: Vec<u32>,
    /// A daemon on gw1.
    daemon: u32,
}

impl KillableRun {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_as(Command::new(this_program()).arg("hold").arg(folder))
    }

    fn start_as(command: &mut Command) -> Self {
        let mut run = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(run.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let mut stations: Vec<u32> = line
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        let daemon = stations.pop().unwrap();
        assert_eq!(stations.len(), 6);
        Self {
            run,
            stations,
            daemon,
        }
    }

    pub(crate) fn kill(&mut self) {
        self.run.kill().unwrap();
        self.run.wait().unwrap();
    }

    fn namespaces(&self) -> Vec<std::path::PathBuf> {
        self.stations
            .iter()
            .map(|pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap())
            .collect()
    }
}

/// The parent of a process that lives.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = stat.rsplit_once(") ").unwrap();
    rest.split(' ').nth(1).unwrap().parse().unwrap()
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

/// Network namespaces of all processes.
fn namespaces_in_use() -> Vec<std::path::PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read_link(entry.path().join("ns/net")).ok())
        .collect()
}

pub(crate) fn a_killed_run_leaves_no_process_and_no_namespace() {
    let folder = testing::folder().unwrap();
    let mut run = KillableRun::start(folder.path());
    let namespaces = run.namespaces();
    assert!(
        namespaces
            .iter()
            .all(|namespace| namespaces_in_use().contains(namespace))
    );
    assert!(is_alive(run.daemon));
    run.kill();
    await_that("all processes are gone", || {
        run.stations
            .iter()
            .chain([&run.daemon])
            .all(|pid| !is_alive(*pid))
    });
    await_that("all namespaces are gone", || {
        let in_use = namespaces_in_use();
        namespaces
            .iter()
            .all(|namespace| !in_use.contains(namespace))
    });
    // The name can be used again, and there is nothing to remove.
    let lab = NamespaceLab::build(&plan("held"), &setup(folder.path())).unwrap();
    assert!(lab.swept().is_empty(), "{:?}", lab.swept());
}

pub(crate) fn a_stopped_station_of_a_killed_run_is_removed_by_the_next_run() {
    let folder = testing::folder().unwrap();
    let mut run = KillableRun::start(folder.path());
    let gw1 = run.stations[1];
    signal(gw1, Signal::SIGSTOP);
    run.kill();
    await_that("the other stations are gone", || {
        run.stations
            .iter()
            .filter(|pid| **pid != gw1)
            .all(|pid| !is_alive(*pid))
    });
    assert!(is_alive(gw1) && is_alive(run.daemon));
    let lab = NamespaceLab::build(&plan("held"), &setup(folder.path())).unwrap();
    assert_eq!(lab.swept().len(), 1);
    let removed = &lab.swept()[0];
    assert!(removed.starts_with("removed station gw1"), "{removed}");
    assert!(
        removed.contains(&format!("process {gw1} and ")),
        "{removed}"
    );
    assert!(!is_alive(gw1) && !is_alive(run.daemon));
}

pub(crate) fn an_orphan_of_a_killed_run_and_a_killed_station_is_removed_by_the_next_run() {
    let folder = testing::folder().unwrap();
    let mut run = KillableRun::start(folder.path());
    // As with `killall -9`: the daemon has no parent left.
    let shell = parent(run.daemon);
    signal(run.stations[1], Signal::SIGSTOP);
    run.kill();
    signal(run.stations[1], Signal::SIGKILL);
    // The shell that has started the daemon goes with its station.
    await_that("all stations and the shell are gone", || {
        run.stations.iter().all(|pid| !is_alive(*pid)) && !is_alive(shell)
    });
    assert!(is_alive(run.daemon));
    let lab = NamespaceLab::build(&plan("held"), &setup(folder.path())).unwrap();
    let removed = format!(
        "removed processes of run {}, which was killed: 1",
        run.run.id()
    );
    assert_eq!(lab.swept(), [removed]);
    assert!(!is_alive(run.daemon));
}

pub(crate) fn a_recorded_process_is_removed_only_when_it_is_still_the_same() {
    let folder = testing::folder().unwrap();
    let mut survivor = Command::new("sleep").arg("1000").spawn().unwrap();
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let start_ticks = |child: &Child| -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(19).unwrap().parse().unwrap()
    };
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let station = |child: &Child, start_ticks: u64| {
        let pid = child.id();
        serde_json::json!({"name": "a", "pid": pid, "start_ticks": start_ticks})
    };
    // The bystander has the number of a station that ended long ago.
    let state = serde_json::json!({
        "boot_id": boot_id.trim(),
        "run": {"name": "run", "pid": 1, "start_ticks": 0},
        "stations": [
            station(&survivor, start_ticks(&survivor)),
            station(&bystander, start_ticks(&bystander) - 1),
        ],
    });
    std::fs::write(folder.path().join("planted.json"), state.to_string()).unwrap();
    let lab = NamespaceLab::build(&plan("planted"), &setup(folder.path())).unwrap();
    assert_eq!(lab.swept().len(), 1);
    assert!(lab.swept()[0].contains(&format!("process {}", survivor.id())));
    assert!(!is_alive(survivor.id()) && is_alive(bystander.id()));
    drop(lab);
    // Left by a run of an earlier boot, or cut off: nothing in it is of use.
    for text in [
        state.to_string().replace(boot_id.trim(), "another"),
        "{\"boot".to_owned(),
    ] {
        std::fs::write(folder.path().join("planted.json"), text).unwrap();
        let lab = NamespaceLab::build(&plan("planted"), &setup(folder.path())).unwrap();
        assert!(lab.swept().is_empty());
    }
    assert!(is_alive(bystander.id()));
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    survivor.wait().unwrap();
}

pub(crate) fn a_station_that_dies_is_reported_by_the_next_call() {
    let lab = TestLab::direct().lab;
    let node = lab.node(NodeId::Gw2);
    let (_, program) = start(node, Program::new(["sleep", "1000"]));
    let script = "setsid sh -c 'exec sleep 1000' </dev/null >/dev/null 2>&1 & echo $!";
    let daemon = node
        .run(shell(script), PATIENCE)
        .unwrap()
        .stdout
        .trim()
        .parse()
        .unwrap();
    signal(lab.station_pid(NodeId::Gw2), Signal::SIGKILL);
    await_that("a call reports it", || {
        match node.call(Request::InterfaceCounters) {
            Ok(_) => false,
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.contains("gw2: the station ended") && text.contains("signal: 9"),
                    "{text}"
                );
                true
            }
        }
    });
    // The kernel ends its programs with it.
    await_that("its programs are gone", || !is_alive(program));
    // A daemon has got away from it, but not out of its namespace.
    assert!(is_alive(daemon));
    drop(lab);
    assert!(!is_alive(daemon));
}

/// This program as an ordinary user runs it, with a state folder of that user.
struct OrdinaryUser {
    folder: tempfile::TempDir,
}

impl OrdinaryUser {
    const NOBODY: u32 = 65_534;

    /// `None`: this kernel does not let ordinary users build a lab.
    fn new() -> Option<Self> {
        // Where an ordinary user can execute it and write.
        let folder = testing::folder().unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        install(&this_program(), &folder.path().join("program"));
        let state = folder.path().join("state");
        std::fs::create_dir(&state).unwrap();
        if is_root() {
            std::os::unix::fs::chown(&state, Some(Self::NOBODY), Some(Self::NOBODY)).unwrap();
        }
        let user = Self { folder };
        let output = user.command("ordinary-user").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("entering a user namespace failed") {
            eprintln!(
                "SKIPPED in part: this kernel does not let ordinary users build a lab: {stderr}"
            );
            return None;
        }
        Some(user)
    }

    /// This program in a role that takes the state folder.
    fn command(&self, role: &str) -> Command {
        let mut command = Command::new(self.folder.path().join("program"));
        command
            .arg(role)
            .arg(self.folder.path().join("state"))
            .stdin(Stdio::null());
        if is_root() {
            command.uid(Self::NOBODY).gid(Self::NOBODY);
        }
        command
    }

    /// What it prints when it builds a lab.
    fn build_a_lab(&self) -> String {
        let start = Instant::now();
        let output = self.command("ordinary-user").output().unwrap();
        assert!(start.elapsed() < PATIENCE);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn is_root() -> bool {
    lab::privilege::current() == Some(lab::Privilege::Root)
}

pub(crate) fn an_ordinary_user_builds_a_lab() {
    let Some(user) = OrdinaryUser::new() else {
        return;
    };
    let stdout = user.build_a_lab();
    assert!(
        stdout.starts_with("UserNamespace") && stdout.contains("exit status 0"),
        "{stdout}"
    );
}

pub(crate) fn an_orphan_of_an_ordinary_users_killed_run_is_removed_by_the_next_run() {
    let Some(user) = OrdinaryUser::new() else {
        return;
    };
    // Each run is in a user namespace of its own.
    let mut run = KillableRun::start_as(&mut user.command("hold"));
    signal(run.stations[1], Signal::SIGSTOP);
    run.kill();
    signal(run.stations[1], Signal::SIGKILL);
    await_that("all stations are gone", || {
        run.stations.iter().all(|pid| !is_alive(*pid))
    });
    assert!(is_alive(run.daemon));
    let stdout = user.build_a_lab();
    let removed = format!(
        "removed processes of run {}, which was killed: 1",
        run.run.id()
    );
    assert!(stdout.contains(&removed), "{stdout}");
    assert!(!is_alive(run.daemon));
}
