//! What each attack achieves, against the bounds of docs/security-fleet.md.

mod archive;
mod queue;
mod replay;

use fleet::{
    Agent, AgentLab, Fleet, FleetError, Server, ServerOptions, State, Trust, free_address, watch,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(120);

/// Stands for the program: each run is a line more in `runs`. While `busy` exists the lab is in
/// use.
const PROGRAM: &str = "#!/bin/sh
case $1 in
run) test -e \"$(dirname \"$0\")/busy\" && { echo x >> \"$(dirname \"$0\")/begun\"; exit 3; }
mkdir -p runs/the-run; echo $PWD >> \"$(dirname \"$0\")/runs\"; echo '{}' > runs/the-run/journal.jsonl;;
figures) exit 1;;
esac
";

/// An agent of one lab in a thread of this test.
struct RunningAgent {
    folder: PathBuf,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<Result<(), FleetError>>>,
}

impl RunningAgent {
    fn start(server: &Server, folder: &Path, trust: Option<&Path>) -> Self {
        fs::create_dir_all(folder).unwrap();
        let program = folder.join("program");
        if !program.exists() {
            fs::write(&program, PROGRAM).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let agent = Agent {
            program,
            folder: folder.to_owned(),
            access: server.access().clone(),
            labs: vec![AgentLab {
                name: "lab".to_owned(),
                file: "memory".to_owned(),
                labels: BTreeMap::new(),
                machines: BTreeSet::new(),
            }],
            turns: folder.join("turns"),
            allow: None,
            trust: trust.map(|path| Trust::read(path).unwrap()),
        };
        let (stop, stopped) = watch::channel(false);
        let log = folder.join("log");
        let thread = thread::spawn(move || {
            fleet::run(agent.run(stopped, |text| {
                let known = fs::read_to_string(&log).unwrap_or_default();
                fs::write(&log, format!("{known}{text}\n")).unwrap();
            }))
        });
        Self {
            folder: folder.to_owned(),
            stop,
            thread: Some(thread),
        }
    }

    /// How many runs it began.
    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.folder.join("runs")).unwrap_or_default();
        runs.lines().count()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn end(mut self) -> Result<(), FleetError> {
        self.stop.send_replace(true);
        self.thread.take().unwrap().join().unwrap()
    }
}

/// Waits for something.
fn await_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "no {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a job is done.
fn await_done(server: &Server, id: &str) {
    await_some("end of the job", || {
        let state = fleet::run(async { connect(server).await.state(id).await });
        matches!(state, Ok(Some(State::Done { .. }))).then_some(())
    });
}

/// Waits until an agent has said why a job does not fit, and returns that.
fn await_misfit(server: &Server, id: &str) -> String {
    await_some("misfit", || {
        let listing = fleet::run(async { connect(server).await.list(None).await }).ok()?;
        let row = listing.rows.into_iter().find(|row| row.job.id == id)?;
        row.misfits.get("lab").cloned()
    })
}

/// A server that accepts everybody, with a fleet; `None` where nats-server is not installed.
fn open_server(folder: &TempDir) -> Option<Server> {
    if Server::program().is_none() {
        testing::lacks("attacks on a fleet", "nats-server", "scripts/tools.sh nats");
        return None;
    }
    let options = ServerOptions {
        listen: free_address().unwrap(),
        folder: folder.path().join("server"),
        users: None,
    };
    Some(Server::start(&options).unwrap())
}

/// Writes an entry as any client of the server can.
async fn put(server: &Server, bucket: &str, key: &str, value: String) {
    let client = async_nats::connect(&server.access().url).await.unwrap();
    let context = async_nats::jetstream::new(client);
    let store = context.get_key_value(bucket).await.unwrap();
    store.put(key, value.into()).await.unwrap();
}

async fn connect(server: &Server) -> Fleet {
    Fleet::connect(server.access()).await.unwrap()
}
