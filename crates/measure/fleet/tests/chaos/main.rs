//! A fleet whose agents and server are killed at random moments: every job ends once, with the run
//! that its agent has on its disk.
//!
//! The server is a real nats-server. Agents are processes of this file, so that they can be killed.
//! What they measure with is a script that writes a journal line by line and can be resumed, as the
//! program does: here the queue, the leases and the archive are tested, not the measuring.
//!
//! `CHAOS="SEED AGENTS JOBS KILLS"` plays another game; `make chaos` a long one.

use fleet::{
    Access, Agent, AgentLab, Fleet, Job, Selector, Server, ServerOptions, State, fetch,
    free_address, submit,
};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(120);

/// Stands for the program: a run of ten lines, one at a time, which `resume` goes on with. Each
/// line is written once in all.
const PROGRAM: &str = "#!/bin/sh
case $1 in
check) case $(cat \"$4\") in *unfit*) echo 'error: this lab has 2 cores of 4' >&2; exit 3;; esac; exit 0;;
run) run=runs/the-run; mkdir -p $run;;
resume) run=$2;;
esac
grep -q wrong campaign.yaml && { echo 'error: a wrong campaign' >&2; exit 2; }
grep -q deadly campaign.yaml && kill -9 $(cat ../../pid)
touch $run/journal.jsonl
while [ $(wc -l < $run/journal.jsonl) -lt 10 ]; do
  echo \"{\\\"line\\\":$(wc -l < $run/journal.jsonl)}\" >> $run/journal.jsonl
  sleep 0.02
done
echo done > $run/report.md
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, agent, url, folder, lab] = &words[..]
        && agent == "agent"
    {
        return serve(url, Path::new(folder), lab);
    }
    let tests = [
        (
            "killed_agents_and_servers_lose_nothing_and_double_nothing",
            chaos as fn(),
        ),
        ("a_job_that_ends_its_agent_each_time_is_parked", deadly),
        (
            "what_fits_no_lab_says_why_and_a_wrong_campaign_is_parked",
            misfits,
        ),
        ("a_lab_has_one_agent", one_agent),
    ];
    let is_missing = is_server_missing();
    if is_missing {
        eprintln!("SKIPPED: nats-server is not installed: scripts/tools.sh nats");
    }
    let tests = tests.map(|(name, test)| {
        let trial = Trial::test(name, move || {
            test();
            Ok::<(), Failed>(())
        });
        trial.with_ignored_flag(is_missing)
    });
    let arguments = Arguments {
        test_threads: Some(1),
        ..Arguments::from_args()
    };
    libtest_mimic::run(&arguments, tests.into()).exit_code()
}

/// Where CI runs it must be there.
fn is_server_missing() -> bool {
    let find =
        "PATH=$PATH:$HOME/.local/bin:$HOME/.cache/cipherbench-tools/bin command -v nats-server";
    let found = Command::new("sh").args(["-c", find]).output();
    let is_there = found.is_ok_and(|found| found.status.success());
    !is_there && std::env::var_os("CI").is_none_or(|ci| ci != "true")
}

/// An agent, until it is killed.
fn serve(url: &str, folder: &Path, lab: &str) -> ExitCode {
    let agent = Agent {
        program: folder.join("program"),
        folder: folder.to_owned(),
        access: access(url),
        labs: vec![AgentLab {
            name: lab.to_owned(),
            file: "memory".to_owned(),
            labels: BTreeMap::from([("site".to_owned(), "here".to_owned())]),
        }],
    };
    let (_stop, stopped) = watch::channel(false);
    let ended = runtime().block_on(agent.run(stopped, |text| eprintln!("{text}")));
    eprintln!("{ended:?}");
    ExitCode::FAILURE
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn access(url: &str) -> Access {
    Access {
        url: url.to_owned(),
        ..Access::default()
    }
}

/// A server and agents' folders.
struct Site {
    folder: tempfile::TempDir,
    options: ServerOptions,
    server: Option<Server>,
    runtime: Runtime,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = ServerOptions {
            listen: free_address().unwrap(),
            folder: folder.path().join("server"),
        };
        let server = Server::start(&options).unwrap();
        let runtime = runtime();
        runtime.block_on(server.set_up()).unwrap();
        Self {
            folder,
            options,
            server: Some(server),
            runtime,
        }
    }

    fn url(&self) -> String {
        format!("nats://{}", self.options.listen)
    }

    fn fleet(&self) -> Fleet {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.runtime.block_on(Fleet::connect(&access(&self.url()))) {
                Ok(fleet) => return fleet,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }

    fn kill_server(&mut self) {
        let server = self.server.take().unwrap();
        kill(server.pid());
        drop(server);
        self.server = Some(Server::start(&self.options).unwrap());
    }

    fn agent_folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, name: &str, lab: &str) -> Child {
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
            .args(["agent", &self.url()])
            .arg(&folder)
            .arg(lab)
            .stderr(log)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        fs::create_dir_all(folder.join(lab)).unwrap();
        fs::write(folder.join("pid"), child.id().to_string()).unwrap();
        child
    }

    fn submit(&self, number: usize, campaign: &str, selector: Selector) -> String {
        let job = Job {
            id: format!("{number:08}"),
            name: "campaign.yaml".to_owned(),
            campaign: campaign.to_owned(),
            quick: false,
            selector,
            priority: 0,
            labels: BTreeMap::new(),
            by: "test".to_owned(),
        };
        let fleet = self.fleet();
        self.runtime.block_on(submit(&fleet, &job)).unwrap();
        // Again changes nothing.
        self.runtime.block_on(submit(&fleet, &job)).unwrap();
        job.id
    }

    fn states(&self) -> BTreeMap<String, State> {
        let fleet = self.fleet();
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.runtime.block_on(fleet.rows()) {
                Ok(rows) => {
                    return rows
                        .into_iter()
                        .map(|row| (row.job.id, row.state))
                        .collect();
                }
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }

    fn await_all(&self, what: &str, holds: impl Fn(&State) -> bool) -> BTreeMap<String, State> {
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

    fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.folder.path()).unwrap().flatten() {
            let log = fs::read_to_string(entry.path().join("log")).unwrap_or_default();
            text.push_str(&format!("{}:\n{log}\n", entry.path().display()));
        }
        text
    }
}

fn kill(pid: u32) {
    let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

/// xorshift64*: the same game for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

fn chaos() {
    let game = std::env::var("CHAOS").unwrap_or_else(|_| "7 4 24 12".to_owned());
    let game: Vec<u64> = game
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let [seed, agents, jobs, kills] = game[..] else {
        panic!("CHAOS=\"SEED AGENTS JOBS KILLS\"");
    };
    let mut dice = Dice(seed + 1);
    let mut site = Site::new();
    let names: Vec<(String, String)> = (0..agents)
        .map(|number| (format!("agent-{number}"), format!("lab-{number}")))
        .collect();
    let mut running: Vec<Child> = names
        .iter()
        .map(|(name, lab)| site.start(name, lab))
        .collect();
    for number in 0..jobs as usize {
        site.submit(number, "fine", Selector::default());
    }
    for nth in 0..kills {
        std::thread::sleep(Duration::from_millis(100 + dice.below(900)));
        if nth % 10 == 9 || nth == kills / 2 {
            site.kill_server();
            continue;
        }
        let which = dice.below(agents) as usize;
        kill(running[which].id());
        running[which].wait().unwrap();
        let (name, lab) = &names[which];
        running[which] = site.start(name, lab);
    }
    // A job whose run was killed three times is parked: reported, and not lost.
    let states = site.await_all("at an end", State::is_final);
    assert_eq!(states.len() as u64, jobs);
    let fleet = site.fleet();
    let into = tempfile::tempdir().unwrap();
    let mut done = 0;
    for (id, state) in &states {
        let State::Done { exit, .. } = state else {
            assert!(matches!(state, State::Parked { .. }), "{state:?}");
            continue;
        };
        done += 1;
        assert_eq!(*exit, 0);
        let folder = into.path().join(id);
        let run = site
            .runtime
            .block_on(fetch(&fleet, id, &folder))
            .unwrap()
            .unwrap();
        let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap();
        let lines: String = (0..10)
            .map(|line| format!("{{\"line\":{line}}}\n"))
            .collect();
        assert_eq!(journal, lines, "{id}");
        assert_eq!(fs::read_to_string(run.join("report.md")).unwrap(), "done\n");
    }
    println!("{done} of {jobs} jobs done, {} parked", states.len() - done);
    assert!(done > states.len() / 2, "{states:?}");
    for agent in &mut running {
        kill(agent.id());
        agent.wait().unwrap();
    }
}

fn deadly() {
    let site = Site::new();
    let mut agent = site.start("agent", "lab");
    site.submit(0, "deadly", Selector::default());
    let since = Instant::now();
    let states = loop {
        if let Ok(Some(_)) = agent.try_wait() {
            agent = site.start("agent", "lab");
        }
        let states = site.states();
        if states.values().all(State::is_final) {
            break states;
        }
        assert!(since.elapsed() < PATIENCE, "{states:?}\n{}", site.logs());
    };
    let [state] = Vec::from_iter(states.values())[..] else {
        panic!("{states:?}");
    };
    let State::Parked { reason } = state else {
        panic!("{state:?}");
    };
    assert!(reason.contains("none came to an end"), "{reason}");
    // The agent lives on, and takes the next.
    site.submit(1, "fine", Selector::default());
    site.await_all("at an end", State::is_final);
    kill(agent.id());
    agent.wait().unwrap();
}

fn misfits() {
    let site = Site::new();
    let mut agent = site.start("agent", "lab");
    let asks = |key: &str, value: &str| Selector {
        labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
        ..Selector::default()
    };
    site.submit(0, "unfit", Selector::default());
    site.submit(1, "fine", asks("site", "there"));
    let wrong = site.submit(2, "wrong", asks("site", "here"));
    let is_parked = |states: &BTreeMap<String, State>| match &states[&wrong] {
        State::Parked { reason } => Some(reason.clone()),
        _ => None,
    };
    let since = Instant::now();
    let reason = loop {
        if let Some(reason) = is_parked(&site.states()) {
            break reason;
        }
        assert!(since.elapsed() < PATIENCE, "{}", site.logs());
    };
    assert!(reason.contains("a wrong campaign"), "{reason}");
    let fleet = site.fleet();
    let rows = site.runtime.block_on(fleet.rows()).unwrap();
    assert_eq!(rows[0].misfits["lab"], "error: this lab has 2 cores of 4");
    assert_eq!(
        rows[1].misfits["lab"],
        "it asks for site=there, and the lab has here"
    );
    for id in ["00000000", "00000001"] {
        let before = site.runtime.block_on(fleet.cancel(id)).unwrap();
        assert!(matches!(before, Some(State::Queued { .. })), "{before:?}");
    }
    site.await_all("at an end", State::is_final);
    kill(agent.id());
    agent.wait().unwrap();
}

fn one_agent() {
    let site = Site::new();
    let mut first = site.start("first", "lab");
    let fleet = site.fleet();
    let holder = || {
        let offers = site.runtime.block_on(fleet.offers()).unwrap();
        offers.first().map(|offer| offer.agent.clone())
    };
    let since = Instant::now();
    let one = loop {
        if let Some(holder) = holder() {
            break holder;
        }
        assert!(since.elapsed() < PATIENCE, "{}", site.logs());
    };
    let mut second = site.start("second", "lab");
    for number in 0..3 {
        site.submit(number, "fine", Selector::default());
    }
    let states = site.await_all("at an end", State::is_final);
    for state in states.values() {
        let State::Done { held, .. } = state else {
            panic!("{state:?}");
        };
        assert_eq!(held.agent, one);
    }
    // Once the first is gone, the second has the lab.
    kill(first.id());
    first.wait().unwrap();
    let since = Instant::now();
    while holder().is_none_or(|holder| holder == one) {
        assert!(since.elapsed() < PATIENCE, "{}", site.logs());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(site.logs().contains("has it"), "{}", site.logs());
    kill(second.id());
    second.wait().unwrap();
}
