//! A server, and agents that are processes of these tests.

pub(crate) use crate::job::job;

use fleet::{
    Access, Agent, AgentLab, Fleet, Identity, Job, Selector, Server, ServerExtras, ServerOptions,
    State, Trust, fetch, free_address, submit,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Stands for the program: a run of ten lines, one at a time, which `resume` goes on with. Each
/// line is written once in all. One that is told to end takes a moment, as a lab is given back, in
/// which no other may run. One that is held waits until the agent's folder has a file `go`, and one
/// that lingers does at its end.
const PROGRAM: &str = "#!/bin/sh
case $1 in
check) case $(cat \"$4\") in *unfit*) echo 'error: this lab has 2 cores of 4' >&2; exit 3;; esac; exit 0;;
figures) echo '{\"surroundings\":{\"kernel\":\"1\"},\"cells\":{\"the cell\":[{\"key\":\"frames_per_s\",\"value\":2.5,\"repeats\":3}]}}'; exit 0;;
run) run=runs/the-run; mkdir -p $run;;
resume) run=$2;;
esac
mkdir busy 2>/dev/null || { echo 'error: two runs at once' >&2; exit 2; }
machine=$(cat \"$(dirname \"$0\")/machine\" 2>/dev/null)
[ -z \"$machine\" ] || mkdir \"$machine/measured\" || { rmdir busy; echo 'error: two labs at once' >&2; exit 2; }
await_go() { until [ -e \"$(dirname \"$0\")/go\" ]; do sleep 0.05; done; }
trap 'trap \"\" TERM; sleep 0.3; ! grep -q lingering campaign.yaml || await_go; rmdir busy ${machine:+\"$machine/measured\"}' EXIT
trap 'exit 4' TERM
grep -q wrong campaign.yaml && { echo 'error: a wrong campaign' >&2; exit 2; }
grep -q deadly campaign.yaml && kill -9 $(cat ../../pid)
touch $run/journal.jsonl
grep -q fat campaign.yaml && head -c 3000000 /dev/urandom > $run/capture
grep -qE 'held|greedy' campaign.yaml && await_go
if grep -q greedy campaign.yaml; then
  head -c 30000000 /dev/zero > $run/big || { rm -f $run/big; echo 'error: no space left' >&2; exit 2; }
  rm $run/big
fi
while [ $(wc -l < $run/journal.jsonl) -lt 10 ]; do
  echo \"{\\\"record\\\":\\\"trial\\\",\\\"line\\\":$(wc -l < $run/journal.jsonl)}\" >> $run/journal.jsonl
  sleep 0.02
  grep -q slow campaign.yaml && sleep 0.5
done
echo done > $run/report.md
";

/// An agent, until it is killed or finds a file `stop`: `URL FOLDER LAB[,LAB…]`. A key, trusted
/// keys, and the folder that stands for its machine are in its folder.
pub(crate) fn serve(words: &[String]) -> ExitCode {
    let [url, folder, lab] = words else {
        panic!("{words:?}");
    };
    let folder = Path::new(folder);
    let file = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
    let machine = fs::read_to_string(folder.join("machine")).ok();
    let served = |lab: &str| AgentLab {
        name: lab.to_owned(),
        file: "memory".to_owned(),
        labels: BTreeMap::from([("site".to_owned(), "here".to_owned())]),
        machines: machine.iter().cloned().collect(),
    };
    let agent = Agent {
        program: folder.join("program"),
        folder: folder.to_owned(),
        access: Access {
            key: file("key"),
            ..access(url)
        },
        labs: lab.split(',').map(served).collect(),
        turns: folder.join("../turns"),
        allow: None,
        trust: file("trust").map(|path| Trust::read(&path).unwrap()),
    };
    let (stop, stopped) = watch::channel(false);
    let asked = folder.join("stop");
    std::thread::spawn(move || {
        while !asked.exists() {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.send(true).unwrap();
        eprintln!("asked to end");
    });
    eprintln!("clock {}", now());
    let ended = runtime().block_on(agent.run(stopped, |text| eprintln!("{text}")));
    eprintln!("{ended:?}");
    ExitCode::FAILURE
}

/// Seconds since 1970, by this process' clock.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_secs()
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) fn access(url: &str) -> Access {
    Access {
        url: url.to_owned(),
        ..Access::default()
    }
}

/// A server and agents' folders.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    url: String,
    pub(crate) options: ServerOptions,
    pub(crate) extras: ServerExtras,
    server: RefCell<Option<Server>>,
    pub(crate) runtime: Runtime,
    /// Of agents whose clock is wrong.
    wrong: RefCell<Vec<u32>>,
}

impl Drop for Site {
    fn drop(&mut self) {
        // What libfaketime leaves of a process that is killed.
        for pid in self.wrong.borrow().iter() {
            for name in ["faketime_shm_", "sem.faketime_sem_"] {
                let _ = fs::remove_file(format!("/dev/shm/{name}{pid}"));
            }
        }
    }
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let of_server = folder.path().join("server");
        Self::at(folder, of_server)
    }

    /// With the server's folder elsewhere.
    pub(crate) fn at(folder: tempfile::TempDir, of_server: PathBuf) -> Self {
        Self::start_server(folder, of_server, None)
    }

    /// With a file of users.
    pub(crate) fn with_users(folder: tempfile::TempDir, users: PathBuf) -> Self {
        let of_server = folder.path().join("server");
        Self::start_server(folder, of_server, Some(users))
    }

    fn start_server(folder: tempfile::TempDir, of_server: PathBuf, users: Option<PathBuf>) -> Self {
        let options = ServerOptions {
            listen: free_address().unwrap(),
            folder: of_server,
            users,
        };
        let server = Server::start(&options).unwrap();
        let runtime = runtime();
        runtime.block_on(server.set_up()).unwrap();
        Self {
            folder,
            url: format!("nats://{}", options.listen),
            options,
            extras: ServerExtras::default(),
            server: RefCell::new(Some(server)),
            runtime,
            wrong: RefCell::default(),
        }
    }

    /// With a server that runs elsewhere.
    pub(crate) fn of(folder: tempfile::TempDir, url: &str) -> Self {
        Self {
            options: ServerOptions {
                listen: free_address().unwrap(),
                folder: folder.path().join("server"),
                users: None,
            },
            extras: ServerExtras::default(),
            folder,
            url: url.to_owned(),
            server: RefCell::new(None),
            runtime: runtime(),
            wrong: RefCell::default(),
        }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// As the server's administrator, if there are users.
    pub(crate) fn fleet(&self) -> Fleet {
        let access = Access {
            key: Some(self.options.folder.join("admin.nk")).filter(|path| path.exists()),
            ..access(&self.url())
        };
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.runtime.block_on(Fleet::connect(&access)) {
                Ok(fleet) => return fleet,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }

    pub(crate) fn kill_server(&mut self) {
        kill(self.server_pid());
        self.restart_server();
    }

    /// Ends it in order, and starts it with the extras as they are now.
    pub(crate) fn restart_server(&mut self) {
        drop(self.server.take());
        let started = Server::start_with(&self.options, &self.extras);
        self.server = RefCell::new(Some(started.unwrap()));
    }

    pub(crate) fn server_pid(&self) -> u32 {
        self.server.borrow().as_ref().unwrap().pid()
    }

    /// What `fleet server` prints of its server from time to time.
    pub(crate) fn tend(&self) -> String {
        let mut server = self.server.borrow_mut();
        server.as_mut().unwrap().tend().join("\n")
    }

    pub(crate) fn agent_folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn start(&self, name: &str, lab: &str) -> Child {
        self.start_with(name, lab, &self.url(), "")
    }

    /// An agent that reaches the server at this URL.
    pub(crate) fn start_via(&self, name: &str, lab: &str, url: &str) -> Child {
        self.start_with(name, lab, url, "")
    }

    /// An agent whose clock is wrong by so much, such as `+1d`.
    pub(crate) fn start_with(&self, name: &str, lab: &str, url: &str, clock: &str) -> Child {
        let folder = self.agent_folder(name);
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("program");
        if !program.exists() {
            fs::write(&program, PROGRAM).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.join("log"))
            .unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .envs(wrong_clock(clock))
            .args(["agent", url])
            .arg(&folder)
            .arg(lab)
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        if !clock.is_empty() {
            self.wrong.borrow_mut().push(child.id());
        }
        fs::create_dir_all(folder.join(lab)).unwrap();
        fs::write(folder.join("pid"), child.id().to_string()).unwrap();
        child
    }

    pub(crate) fn submit(&self, number: usize, campaign: &str, selector: Selector) -> String {
        self.submit_to(&self.fleet(), number, campaign, selector)
    }

    pub(crate) fn submit_to(
        &self,
        fleet: &Fleet,
        number: usize,
        campaign: &str,
        selector: Selector,
    ) -> String {
        let job = Job {
            selector,
            ..job(&format!("{number:08}"), campaign)
        };
        self.runtime.block_on(submit(fleet, &job)).unwrap();
        // Again changes nothing.
        self.runtime.block_on(submit(fleet, &job)).unwrap();
        job.id
    }

    pub(crate) fn states(&self) -> BTreeMap<String, State> {
        let fleet = self.fleet();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.runtime.block_on(fleet.states()) {
                Ok(states) => return states,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }

    /// Why a job does not fit a lab, once that is known.
    pub(crate) fn misfit(&self, id: &str, lab: &str) -> String {
        let fleet = self.fleet();
        self.await_some("a misfit", || {
            let listing = self.runtime.block_on(fleet.list(None)).ok()?;
            let row = listing.rows.into_iter().find(|row| row.job.id == id)?;
            row.misfits.get(lab).cloned()
        })
    }

    /// Waits for something.
    pub(crate) fn await_some<T>(&self, what: &str, mut find: impl FnMut() -> Option<T>) -> T {
        let since = Instant::now();
        loop {
            if let Some(found) = find() {
                return found;
            }
            assert!(since.elapsed() < PATIENCE, "no {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The run of a job that is done, as its agent wrote it: each line once.
    pub(crate) fn check_run(&self, fleet: &Fleet, id: &str) {
        let into = tempfile::tempdir().unwrap();
        let fetched = self.runtime.block_on(fetch(fleet, id, into.path()));
        let run = fetched.unwrap().unwrap();
        let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap();
        let lines: String = (0..10)
            .map(|line| format!("{{\"record\":\"trial\",\"line\":{line}}}\n"))
            .collect();
        assert_eq!(journal, lines, "{id}");
        assert_eq!(fs::read_to_string(run.join("report.md")).unwrap(), "done\n");
    }

    /// Every job that is done is once in the course of its cell.
    pub(crate) fn check_history(&self, fleet: &Fleet, done: usize) {
        let points = self.runtime.block_on(fleet.history("the cell")).unwrap();
        let jobs: BTreeSet<&str> = points.iter().map(|point| point.job.as_str()).collect();
        assert_eq!((jobs.len(), points.len()), (done, done));
        for point in &points {
            assert_eq!(point.labels["site"], "here");
            assert!((point.figures[0].value - 2.5).abs() < 1e-9);
        }
        let none = self.runtime.block_on(fleet.history("another")).unwrap();
        assert!(none.is_empty());
        assert_eq!(self.runtime.block_on(fleet.cells()).unwrap(), ["the cell"]);
    }

    pub(crate) fn await_all(
        &self,
        what: &str,
        holds: impl Fn(&State) -> bool,
    ) -> BTreeMap<String, State> {
        let since = Instant::now();
        loop {
            let states = self.states();
            if states.values().all(&holds) {
                return states;
            }
            assert!(
                since.elapsed() < PATIENCE,
                "not all are {what}: {states:?}\n{}",
                self.logs()
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What an agent has said so far.
    pub(crate) fn log(&self, name: &str) -> String {
        fs::read_to_string(self.agent_folder(name).join("log")).unwrap_or_default()
    }

    /// Lets an agent's runs that are held go on, now and later.
    pub(crate) fn go(&self, name: &str) {
        fs::write(self.agent_folder(name).join("go"), "").unwrap();
    }

    /// Waits until a job runs.
    pub(crate) fn await_running(&self, id: &str) {
        self.await_some("run", || {
            matches!(self.states().get(id), Some(State::Running(_))).then_some(())
        });
    }

    /// The run of a job of an agent, which may not have begun.
    pub(crate) fn run_of(&self, name: &str, lab: &str, id: &str) -> PathBuf {
        let folder = self.agent_folder(name).join(lab).join(id);
        folder.join("runs/the-run")
    }

    /// Waits until a run has ended, wherever the server is.
    pub(crate) fn await_end_of_run(&self, name: &str, lab: &str, id: &str) {
        let report = self.run_of(name, lab, id).join("report.md");
        self.await_some("end of the run", || report.exists().then_some(()));
    }

    /// Asks an agent to end.
    pub(crate) fn stop(&self, name: &str) {
        fs::write(self.agent_folder(name).join("stop"), "").unwrap();
    }

    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.folder.path()).unwrap().flatten() {
            let log = fs::read_to_string(entry.path().join("log")).unwrap_or_default();
            text.push_str(&format!("{}:\n{log}\n", entry.path().display()));
        }
        text
    }
}

/// What makes a process' clock wrong, with libfaketime.
fn wrong_clock(offset: &str) -> Vec<(&'static str, String)> {
    const FOLDERS: [&str; 4] = [
        "/usr/lib/x86_64-linux-gnu/faketime",
        "/usr/lib/aarch64-linux-gnu/faketime",
        "/usr/lib64/faketime",
        "/usr/lib/faketime",
    ];
    let libraries = FOLDERS.map(|folder| Path::new(folder).join("libfaketime.so.1"));
    let library = libraries.into_iter().find(|path| path.exists());
    match library {
        _ if offset.is_empty() => Vec::new(),
        Some(library) => vec![
            ("LD_PRELOAD", library.display().to_string()),
            ("FAKETIME", offset.to_owned()),
            // The clock that people set, and no other.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ],
        None => {
            testing::lacks("wrong clocks", "libfaketime", "apt install libfaketime");
            Vec::new()
        }
    }
}

/// A new user: the file of the key and the public key.
pub(crate) fn user(folder: &Path, name: &str) -> (PathBuf, String) {
    let path = folder.join(name);
    let public = Identity::create(&path).unwrap().public();
    (path, public)
}

/// Kills an agent, and waits for its end.
pub(crate) fn end(mut agent: Child) {
    kill(agent.id());
    agent.wait().unwrap();
}

pub(crate) fn kill(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}
