//! A separate folder, lab name and mark for each test, so that tests neither interfere nor leave
//! anything behind.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testing::busy;

/// Environment variable that marks all processes that a test starts, directly or indirectly.
const MARK: &str = "CIPHERBENCH_TEST";

/// Time limit for reaching a state, generous for a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_cipherbench");

/// Two pings, `direct` and `cipherbench`, twice each: a whole run in a few seconds. Long enough for
/// every sample of the cipher link, on a busy machine too.
pub(crate) const PINGS: &str = "\
campaign: pings
repeats: 2
duts: [direct, cipherbench]
trials:
  - ping: { mtu: 1500 B, count: 60, interval: 10 ms }
";

/// The environment of one test. Dropping it asserts that nothing is left behind.
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
            // Root runs nothing from a folder that others could change, as a umask may allow.
            folder: tempfile::Builder::new()
                .permissions(Permissions::from_mode(0o755))
                .tempdir()
                .expect("a folder for temporary files"),
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

    /// Writes a file that only its owner can change, whatever the umask is.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::write(&path, content).expect("the folder can be written to");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("our own file");
    }

    /// Makes a folder that only its owner can change, whatever the umask is.
    pub(crate) fn make_folder(&self, name: &str) {
        let path = self.path(name);
        fs::create_dir(&path).expect("a new folder");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("our own folder");
    }

    /// A command that runs in the folder and is marked.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env(MARK, &self.mark)
            .env("XDG_STATE_HOME", self.path("state"))
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

    /// The program with these arguments, with the default action of SIGINT: shells set background
    /// processes, tests included, to ignore it, and the program respects that.
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

    /// Runs a command whose trials must all be measured.
    #[track_caller]
    pub(crate) fn measures(&self, command: &mut Command) -> Ended {
        self.measured(end(command))
    }

    /// The result of a command whose trials must all be measured. The test is repeated where the
    /// machine was too busy for some of them, which the program detects and reports, and is not
    /// tested here.
    #[track_caller]
    pub(crate) fn measured(&self, ended: Ended) -> Ended {
        if ended.code == Some(1) {
            self.repeat_if_busy(|outcome| outcome["kind"] == "measured");
        }
        ended.exits(0)
    }

    /// The result of a command whose trials must all be recorded, whatever the machine left them
    /// worth: it exits with this code, or where some are invalid because the machine was busy with
    /// 1, or with 5 if a limit is undecided without them.
    #[track_caller]
    pub(crate) fn recorded_with(&self, ended: Ended, code: i32) -> Ended {
        if !matches!(ended.code, Some(1 | 5)) {
            return ended.exits(code);
        }
        let mut spoilt = 0;
        for (trial, outcome) in self.trials() {
            let reasons = outcome["reasons"].as_array().into_iter().flatten();
            let is_busy = busy::is_the_cause(reasons.filter_map(Value::as_str));
            spoilt += usize::from(is_busy);
            assert!(
                is_busy || outcome["kind"] == "measured",
                "{trial:?}: {outcome}"
            );
        }
        match spoilt {
            0 => ended.exits(code),
            _ => ended,
        }
    }

    /// Runs a command whose trials must all be recorded, whatever the machine left them worth.
    #[track_caller]
    pub(crate) fn records(&self, command: &mut Command) -> Ended {
        self.recorded_with(end(command), 0)
    }

    /// Ends the attempt at the test if some trials are invalid because the machine was busy, and
    /// the outcomes of all others are as expected.
    pub(crate) fn repeat_if_busy(&self, is_expected: impl Fn(&Value) -> bool) {
        repeat_if_busy(&self.trials(), is_expected);
    }

    /// Kinds of the warnings of the only run by which the machine, not the device, lost frames.
    pub(crate) fn busy_warnings(&self) -> Vec<String> {
        const KINDS: [&str; 3] = ["machine-taken", "sender-stalled", "receiver-stalled"];
        let results: Value = serde_json::from_slice(&self.run_file("results.json")).expect("JSON");
        let warnings = results["warnings"].as_array().into_iter().flatten();
        let kinds = warnings.filter_map(|warning| warning["kind"].as_str());
        kinds
            .filter(|kind| KINDS.contains(kind))
            .map(str::to_owned)
            .collect()
    }

    /// The outcome of each trial's last attempt in the only run, by cell and repeat.
    pub(crate) fn trials(&self) -> BTreeMap<(String, u64), Value> {
        outcomes(&self.trial_records())
    }

    /// All trial records in the journal of the only run; without an unfinished last line.
    pub(crate) fn trial_records(&self) -> Vec<Value> {
        let journal = String::from_utf8(self.run_file("journal.jsonl")).expect("UTF-8");
        trial_records(&journal)
    }

    /// A `PATH` that has every program of this host but these, and the environment without what
    /// names programs elsewhere.
    pub(crate) fn without_programs<'c>(
        &self,
        missing: &[&str],
        command: &'c mut Command,
    ) -> &'c mut Command {
        let folder = self.path("bin");
        if !folder.exists() {
            self.make_folder("bin");
            for place in ["/usr/sbin", "/usr/bin", "/sbin", "/bin"] {
                for entry in fs::read_dir(place).expect("a folder of programs").flatten() {
                    let name = entry.file_name();
                    if !missing.iter().any(|program| name == *program) {
                        // The first program of a name in `PATH` is used.
                        let _ = symlink(entry.path(), folder.join(name));
                    }
                }
            }
        }
        for variable in ["PEERS", "SUDO_USER", "WIREGUARD_GO", "BORINGTUN", "GOTATUN"] {
            command.env_remove(variable);
        }
        command.env("PATH", folder).env("HOME", self.path(""))
    }

    /// A shell script; `$0` is the program.
    pub(crate) fn script(&self, wrapper: &[&str], script: &str) -> Command {
        let mut words = wrapper.to_vec();
        words.extend(["sh", "-c", script, PROGRAM]);
        let mut command = self.command(words[0]);
        command.args(&words[1..]);
        command
    }

    /// The folder of the only run, relative to the test's folder.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs: Vec<_> = fs::read_dir(self.path("runs"))
            .expect("runs exist")
            .map(|entry| entry.expect("a readable entry").file_name())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        Path::new("runs").join(&runs[0])
    }

    /// Reads a file of the only run.
    pub(crate) fn run_file(&self, name: &str) -> Vec<u8> {
        let path = self.path("").join(self.only_run()).join(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Number of trials in the journal of the only run; 0 before the journal exists.
    ///
    /// Counts complete lines only: a reader may see the beginning of a line that spans two pages,
    /// and a run that is killed there leaves it incomplete.
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

    /// Command lines of this test's running processes, by process ID.
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

    /// Waits for a process whose command line contains these words.
    pub(crate) fn process(&self, words: &str) -> i32 {
        wait_for(&format!("a process `{words}`"), || {
            self.processes()
                .into_iter()
                .find(|(_, line)| line.contains(words))
                .map(|(pid, _)| pid)
        })
    }

    /// Waits until all processes of this test have ended, and checks that the host is unchanged.
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

/// All trial records of a journal, without an unfinished last line.
pub(crate) fn trial_records(journal: &str) -> Vec<Value> {
    let finished = journal.rsplit_once('\n').map_or("", |(lines, _)| lines);
    let records = finished
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    records
        .filter(|record| record["record"] == "trial")
        .collect()
}

/// The last outcome of each cell's repeats.
pub(crate) fn outcomes(records: &[Value]) -> BTreeMap<(String, u64), Value> {
    let outcome = |record: &Value| {
        let cell = record["cell"].as_str().expect("a cell").to_owned();
        let repeat = record["repeat"].as_u64().expect("a repeat");
        ((cell, repeat), record["outcome"].clone())
    };
    records.iter().map(outcome).collect()
}

/// Ends the attempt at the test if some of these trials are invalid because the machine was busy,
/// and the outcomes of all others are as expected.
pub(crate) fn repeat_if_busy(
    trials: &BTreeMap<(String, u64), Value>,
    is_expected: impl Fn(&Value) -> bool,
) {
    let mut spoilt = Vec::new();
    for ((cell, _), outcome) in trials {
        let reasons: Vec<&str> = outcome["reasons"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if busy::is_the_cause(reasons.iter().copied()) {
            spoilt.push(format!("{cell}: {}", reasons.join("; ")));
        } else if !is_expected(outcome) {
            return;
        }
    }
    if !spoilt.is_empty() {
        busy::too_busy(spoilt.join("; "));
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

/// The folders that record labs, for root and for an ordinary user.
fn state_folders() -> Vec<PathBuf> {
    let user = format!("cipherbench-{}", nix::unistd::geteuid());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut folders = vec!["/run/cipherbench".into(), std::env::temp_dir().join(user)];
    folders.extend(runtime.map(|folder| folder.join("cipherbench")));
    folders
}

/// The state of the host that must not change.
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
            "{what} was not reached in {LIMIT:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The result of a command.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Asserts the exit code.
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

/// Runs a command and waits for it.
pub(crate) fn end(command: &mut Command) -> Ended {
    command.output().expect("the command can be started").into()
}

/// Starts a command with its output piped.
pub(crate) fn start(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command can be started")
}

/// Waits for a started command.
pub(crate) fn finish(child: Child) -> Ended {
    child
        .wait_with_output()
        .expect("a child can be waited for")
        .into()
}

/// Reads one line of a child's standard output, and no byte more.
pub(crate) fn read_line(child: &mut Child) -> String {
    let output = child.stdout.as_mut().expect("standard output is piped");
    let (mut line, mut byte) = (Vec::new(), [0]);
    while output.read(&mut byte).expect("a pipe can be read") == 1 && byte != *b"\n" {
        line.extend(byte);
    }
    String::from_utf8(line).expect("output is UTF-8")
}

pub(crate) fn kill(pid: i32, signal: nix::sys::signal::Signal) {
    // The process may have ended by itself.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
}

/// `unshare` with an additional kind of namespace; an ordinary user first gets a user namespace in
/// which it is root.
pub(crate) fn namespaces(kind: &'static str) -> Vec<&'static str> {
    if nix::unistd::geteuid().is_root() {
        vec!["unshare", kind]
    } else {
        vec!["unshare", "--user", "--map-root-user", kind]
    }
}

/// Why no user namespace can be created here, if so.
pub(crate) fn missing_user_namespaces() -> Option<String> {
    let root_in_it = ["--user", "--map-root-user", "--net", "--mount", "true"];
    match Command::new("unshare").args(root_in_it).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

/// Why no lab can be built here, if so.
pub(crate) fn missing_lab() -> Option<String> {
    if nix::unistd::geteuid().is_root() {
        None
    } else {
        missing_user_namespaces()
    }
}
