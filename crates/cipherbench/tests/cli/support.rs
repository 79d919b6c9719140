//! A folder, a lab name and a mark of its own for each test, so that tests neither meet nor leave
//! anything.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Set in the environment of all that a test starts, and so found again in whatever it starts.
const MARK: &str = "CIPHERBENCH_TEST";

/// No state takes this long to come about on a machine that works.
const LIMIT: Duration = Duration::from_secs(60);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cipherbench");

/// Checks that fail where a machine does something else at the same time.
const STARVATION: [&str; 4] = [
    "offered-as-intended",
    "processes-in-step",
    "station-kept-up",
    "receiver-kept-up",
];

/// So often what was starved is made again.
const BUSY_MACHINE_ATTEMPTS: u32 = 10;

/// Two pings, `direct` and `cipherbench`, twice each: a whole run in a few seconds. Long enough for
/// every sample of the cipher link, on a busy machine too.
pub(crate) const PINGS: &str = "\
campaign: pings
repeats: 2
duts: [direct, cipherbench]
trials:
  - ping: { mtu: 1500 B, count: 60, interval: 10 ms }
";

/// Where one test works. Dropping it asserts that nothing is left behind.
pub(crate) struct Sandbox {
    folder: TempDir,
    mark: String,
    host: Host,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let sandbox = Self {
            folder: tempfile::tempdir().expect("a folder for temporary files"),
            mark: format!("t{}-{number}", std::process::id()),
            host: Host::now(),
        };
        sandbox.write(
            "lab.yaml",
            &format!("lab: {}\nkind: namespaces\n", sandbox.mark),
        );
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The lab's name.
    pub(crate) fn lab(&self) -> &str {
        &self.mark
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("the folder can be written to");
    }

    /// A command that works in the folder and can be found again.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env(MARK, &self.mark)
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// The program with these arguments.
    pub(crate) fn program(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(PROGRAM);
        command.args(arguments);
        command
    }

    /// The program with these arguments, which SIGINT ends: a shell has what it starts in the
    /// background ignore that, tests included, and the program would heed it.
    pub(crate) fn interruptible(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("env");
        command
            .args(["--default-signal=INT", PROGRAM])
            .args(arguments);
        command
    }

    /// `cipherbench run` of a campaign in the test's own lab.
    pub(crate) fn run(&self, campaign: &str) -> Command {
        self.write("campaign.yaml", campaign);
        self.program(&["run", "campaign.yaml", "--lab", "lab.yaml"])
    }

    /// Runs to the end what must be measured in full.
    ///
    /// A machine that does something else may starve a trial. That is found out and said, and not
    /// what is tested here: what was starved is made again, as a user would have it. The result is
    /// of the last attempt.
    #[track_caller]
    pub(crate) fn measures(&self, command: &mut Command) -> Ended {
        let mut ended = end(command);
        for _ in 0..BUSY_MACHINE_ATTEMPTS {
            if ended.code != Some(1) || !self.is_starved() {
                break;
            }
            let run = self.only_run();
            let run = run.to_str().expect("a plain name");
            ended = end(&mut self.program(&["resume", "--invalid", run]));
        }
        ended.exits(0)
    }

    /// Whether all that stands between the only run and its figures is a machine that was too busy.
    fn is_starved(&self) -> bool {
        let trials = self.trials();
        let mut outcomes = trials.values();
        outcomes.all(|outcome| match outcome["kind"].as_str() {
            Some("measured") => true,
            Some("invalid") => {
                let reasons = outcome["reasons"].as_array().expect("reasons");
                let mut reasons = reasons.iter().filter_map(Value::as_str);
                reasons.all(|reason| STARVATION.iter().any(|check| reason.starts_with(check)))
            }
            _ => false,
        })
    }

    /// What came of each trial of the only run: of the last attempt, by cell and repeat.
    pub(crate) fn trials(&self) -> BTreeMap<(String, u64), Value> {
        let outcome = |record: &Value| {
            let cell = record["cell"].as_str().expect("a cell").to_owned();
            let repeat = record["repeat"].as_u64().expect("a repeat");
            ((cell, repeat), record["outcome"].clone())
        };
        self.trial_records().iter().map(outcome).collect()
    }

    /// Every record of a trial in the journal of the only run.
    pub(crate) fn trial_records(&self) -> Vec<Value> {
        let journal = String::from_utf8(self.run_file("journal.jsonl")).expect("UTF-8");
        let records = journal
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        records
            .filter(|record| record["record"] == "trial")
            .collect()
    }

    /// A shell script; `$0` is the program.
    pub(crate) fn script(&self, wrapper: &[&str], script: &str) -> Command {
        let mut words = wrapper.to_vec();
        words.extend(["sh", "-c", script, PROGRAM]);
        let mut command = self.command(words[0]);
        command.args(&words[1..]);
        command
    }

    /// The only run that was made, relative to the folder.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs: Vec<_> = fs::read_dir(self.path("runs"))
            .expect("runs were made")
            .map(|entry| entry.expect("a readable entry").file_name())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        Path::new("runs").join(&runs[0])
    }

    /// A file of the only run.
    pub(crate) fn run_file(&self, name: &str) -> Vec<u8> {
        let path = self.path("").join(self.only_run()).join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Trials in the journal of the only run; 0 while there is none.
    ///
    /// A line counts once its end is written: a reader can see the first page of a line that
    /// crosses into the next one, and a run that is killed there leaves it so.
    pub(crate) fn trials_recorded(&self) -> usize {
        let runs = fs::read_dir(self.path("runs"))
            .into_iter()
            .flatten()
            .flatten();
        let journals =
            runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok());
        let trials = |text: String| {
            text.split_inclusive('\n')
                .filter(|line| line.ends_with('\n') && line.contains(r#""record":"trial""#))
                .count()
        };
        journals.map(trials).sum()
    }

    /// Command lines of what this test has started and still runs, by process id.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.mark);
        let numbers = fs::read_dir("/proc").expect("/proc").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment
                    .split(|&byte| byte == 0)
                    .any(|entry| entry == mark.as_bytes())
            })
            .map(|pid| {
                let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                (pid, words.replace('\0', " "))
            })
            .collect()
    }

    /// The process whose command line contains these words; waits until there is one.
    pub(crate) fn process(&self, words: &str) -> i32 {
        wait_for(&format!("a process `{words}`"), || {
            self.processes()
                .into_iter()
                .find(|(_, line)| line.contains(words))
                .map(|(pid, _)| pid)
        })
    }

    /// Waits until all that this test has started is gone, and checks that the host is as before.
    pub(crate) fn assert_nothing_is_left(&self) {
        wait_for("the end of all processes", || {
            self.processes().is_empty().then_some(())
        });
        for folder in state_folders() {
            let state = folder.join(format!("{}.json", self.mark));
            assert!(!state.exists(), "{} is left", state.display());
        }
        assert_eq!(Host::now(), self.host, "the host has changed");
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (pid, line) in self.processes() {
                eprintln!("killing what the failed test has left: {pid} {line}");
                kill(pid, nix::sys::signal::SIGKILL);
            }
        } else {
            self.assert_nothing_is_left();
        }
    }
}

/// Where labs are noted, for root and for an ordinary user.
fn state_folders() -> Vec<PathBuf> {
    let user = format!("cipherbench-{}", nix::unistd::geteuid());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut folders = vec!["/run/cipherbench".into(), std::env::temp_dir().join(user)];
    folders.extend(runtime.map(|folder| folder.join("cipherbench")));
    folders
}

/// What of the host itself must not change.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    interfaces: Vec<String>,
    mounts: usize,
    sysctls: Vec<(&'static str, String)>,
}

impl Host {
    fn now() -> Self {
        const SYSCTLS: [&str; 5] = [
            "net/ipv4/ip_forward",
            "net/core/rmem_max",
            "net/core/wmem_max",
            "net/core/netdev_max_backlog",
            "net/ipv4/conf/all/rp_filter",
        ];
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let devices = read("/proc/net/dev");
        let names = devices
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, _)| name.trim());
        Self {
            interfaces: names.map(str::to_owned).collect(),
            mounts: read("/proc/self/mounts").lines().count(),
            sysctls: SYSCTLS
                .map(|name| (name, read(&format!("/proc/sys/{name}"))))
                .into(),
        }
    }
}

/// Waits for a state.
pub(crate) fn wait_for<T>(what: &str, mut state: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = state() {
            return value;
        }
        assert!(
            start.elapsed() < LIMIT,
            "{what} did not come about in {LIMIT:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What came of a command.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// The same, after checking the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        let Self { stdout, stderr, .. } = &self;
        assert_eq!(
            self.code,
            Some(code),
            "\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
        );
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(
            self.stderr.contains(words),
            "`{words}` is not in:\n{}",
            self.stderr
        );
        self
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Runs a command to its end.
pub(crate) fn end(command: &mut Command) -> Ended {
    command.output().expect("the command can be started").into()
}

/// A command that was started, with its output piped.
pub(crate) fn start(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command can be started")
}

/// Waits for the end of what was started.
pub(crate) fn finish(child: Child) -> Ended {
    child
        .wait_with_output()
        .expect("a child can be waited for")
        .into()
}

/// Reads a child's standard output up to the end of a line, and not a byte further.
pub(crate) fn read_line(child: &mut Child) -> String {
    let output = child.stdout.as_mut().expect("standard output is piped");
    let (mut line, mut byte) = (Vec::new(), [0]);
    while output.read(&mut byte).expect("a pipe can be read") == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    String::from_utf8(line).expect("output is UTF-8")
}

pub(crate) fn kill(pid: i32, signal: nix::sys::signal::Signal) {
    // It may have ended by itself.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
}

/// `unshare` with one more kind of namespace; an ordinary user gets one in which he is root first.
pub(crate) fn namespaces(kind: &'static str) -> Vec<&'static str> {
    match nix::unistd::geteuid().is_root() {
        true => vec!["unshare", kind],
        false => vec!["unshare", "--user", "--map-root-user", kind],
    }
}

/// Why no user namespace can be made here, when none can. In CI that is a failure.
pub(crate) fn why_no_user_namespace_can_be_made() -> Option<String> {
    let root_in_it = ["--user", "--map-root-user", "--net", "--mount", "true"];
    match Command::new("unshare").args(root_in_it).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => no_namespaces(String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => no_namespaces(&format!("unshare: {error}")),
    }
}

/// Why no lab can be built here, when none can. In CI that is a failure.
pub(crate) fn why_no_lab_can_be_built() -> Option<String> {
    if nix::unistd::geteuid().is_root() {
        None
    } else {
        why_no_user_namespace_can_be_made()
    }
}

fn no_namespaces(reason: &str) -> Option<String> {
    assert!(
        std::env::var_os("CI").is_none(),
        "CI must not skip tests: {reason}"
    );
    Some(reason.to_owned())
}
