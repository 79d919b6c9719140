//! What a fleet costs and carries, with a real nats-server on this machine: an idle agent, `status`
//! with many jobs, the time from submit to start; and what the server takes on one core: leases,
//! runs, records of a thousand agents, and as many that follow the queue.
//!
//! `cargo run --release --package cipherbench-fleet --example scale -- [PROGRAM]`; with a PROGRAM
//! (`target/release/cipherbench`) the idle agent is its `fleet agent memory`.

use async_nats::jetstream::kv::Watch;
use async_nats::{Client, HeaderMap};
use fleet::{
    Access, Agent, AgentLab, Assignment, Change, Figure, Fleet, Job, Manifest, RunFigures, RunFile,
    Selector, Server, ServerOptions, State, free_address, submit, upload, watch,
};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use guard::{Component, RelativePath};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const ARCHIVED: usize = 10_000;
const QUEUED: usize = 500;
/// A cell that each of the ended jobs has measured.
const CELL: &str = "throughput-1500-direct";
/// Agents with one lab each, whose leases are renewed.
const AGENTS: usize = 1000;
/// What each of them sends of its journal, line by line, and how long a line is: of a trial of
/// frames with its latency histogram.
const RECORDS: usize = 10;
const RECORD_BYTES: usize = 4000;
/// The core of the server while it is measured; these agents have the others.
const SERVERS_CORE: &str = "0";
const IDLE: Duration = Duration::from_secs(60);
/// Of the kernel's accounting (USER_HZ).
const TICKS_PER_S: f64 = 100.0;
/// Requests at once.
const AT_ONCE: usize = 100;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, url, folder] = &words[..]
        && word == "agent"
    {
        return serve(url, Path::new(folder));
    }
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let options = ServerOptions {
        listen: free_address().expect("a free port"),
        folder: folder.path().join("server"),
        users: None,
    };
    let server = Server::start(&options).expect("nats-server: scripts/tools.sh nats");
    let access = server.access().clone();
    fleet::run(async {
        server.set_up().await.expect("a fleet");
        fill(&access).await;
        status(&access).await;
        history(&access).await;
    });
    let program = words.first().map(PathBuf::from);
    idle_agent(&access, folder.path(), program.as_deref());
    fleet::run(async {
        submit_to_start(&access).await;
        pin(server.pid());
        leases(&access.url, server.pid()).await;
        runs(&access, folder.path(), server.pid()).await;
        let agents = connect(&access.url).await;
        records(&agents, server.pid()).await;
        followers(&agents, &access.url, server.pid()).await;
    });
}

fn serve(url: &str, folder: &Path) {
    let agent = Agent {
        program: folder.join("program"),
        folder: folder.to_owned(),
        access: Access {
            url: url.to_owned(),
            ..Access::default()
        },
        labs: vec![AgentLab {
            name: "memory".to_owned(),
            file: "memory".to_owned(),
            labels: BTreeMap::new(),
            machines: BTreeSet::new(),
        }],
        turns: folder.join("turns"),
        allow: None,
        trust: None,
    };
    let (_stop, stopped) = watch::channel(false);
    let ended = fleet::run(agent.run(stopped, |text| eprintln!("{text}")));
    ended.expect("the agent serves until it is killed");
}

fn job(id: String) -> Job {
    Job {
        id,
        name: "campaigns/vut-fekt-100g.yaml".to_owned(),
        // As long as that file.
        campaign: format!("campaign: x\n#{}\n", "x".repeat(5000)),
        quick: false,
        selector: Selector {
            lab: Some("elsewhere".to_owned()),
            labels: BTreeMap::new(),
        },
        priority: 0,
        labels: BTreeMap::from([("firmware".to_owned(), "2.1".to_owned())]),
        by: "somebody".to_owned(),
        every: None,
        period: None,
        signature: None,
    }
}

fn bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("maps and texts")
}

async fn bucket(url: &str, name: &str) -> async_nats::jetstream::kv::Store {
    let client = async_nats::connect(url).await.expect("a server");
    let context = async_nats::jetstream::new(client);
    context.get_key_value(name).await.expect("a bucket")
}

/// Jobs as they are after months, and a queue.
async fn fill(access: &Access) {
    let url = &access.url;
    let fleet = &Fleet::connect(access).await.expect("a fleet");
    let figures = &RunFigures {
        // As long as a machine's record.
        surroundings: serde_json::json!({ "environment": { "all": "x".repeat(2000) } }),
        cells: BTreeMap::from([(CELL.to_owned(), vec![figure(), figure()])]),
        names: vec![(CELL.to_owned(), CELL.to_owned())],
        histograms: BTreeMap::new(),
    };
    let (jobs, states) = (
        bucket(url, "fleet-jobs").await,
        bucket(url, "fleet-states").await,
    );
    let runs = bucket(url, "fleet-runs").await;
    let (jobs, states, runs) = (&jobs, &states, &runs);
    let since = Instant::now();
    let put = |number: usize| async move {
        let id = format!("{number:011x}-00000000");
        let text = bytes(&job(id.clone()));
        jobs.put(&id, text.into()).await.expect("kept");
        let state = if number < ARCHIVED {
            let manifest = Manifest {
                job: id.clone(),
                run: Component::new("2026-11-28-a-run").expect("a name"),
                files: (0..6)
                    .map(|file| RunFile {
                        path: RelativePath::new(format!("file-{file}.json")).expect("a path"),
                        bytes: 1000,
                        sha256: "0".repeat(64),
                    })
                    .collect(),
            };
            runs.put(&id, bytes(&manifest).into()).await.expect("kept");
            let (its, labels) = (job(id.clone()), BTreeMap::new());
            let added = fleet.add_figures(&its, "memory", &labels, figures);
            added.await.expect("kept");
            let held = Assignment {
                lab: "memory".to_owned(),
                agent: "host-00000000".to_owned(),
                attempt: 1,
            };
            State::Done { held, exit: 0 }
        } else {
            State::Queued {
                attempts: 0,
                priority: 0,
            }
        };
        states.put(&id, bytes(&state).into()).await.expect("kept");
    };
    let puts = stream::iter(0..ARCHIVED + QUEUED).map(put);
    puts.buffer_unordered(AT_ONCE).collect::<()>().await;
    let took = since.elapsed().as_secs_f64();
    println!("{ARCHIVED} ended jobs and {QUEUED} queued ones: written in {took:.1} s");
}

async fn status(access: &Access) {
    let mut times = Vec::new();
    for _ in 0..5 {
        let since = Instant::now();
        let fleet = Fleet::connect(access).await.expect("a fleet");
        let listing = fleet.list(Some(20)).await.expect("jobs");
        fleet.offers().await.expect("labs");
        fleet.repeats().await.expect("repeats");
        assert_eq!(listing.rows.len(), QUEUED + 20);
        assert_eq!(listing.left_out, ARCHIVED - 20);
        times.push(since.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    println!(
        "status: median {:.3} s, longest {:.3} s of 5",
        times[2], times[4]
    );
}

fn figure() -> Figure {
    Figure {
        key: "frames_per_s".to_owned(),
        load_percent: None,
        value: 123_456.7,
        repeats: 5,
        spread: Some((123_000.0, 124_000.0)),
    }
}

async fn history(access: &Access) {
    let mut times = Vec::new();
    for _ in 0..5 {
        let since = Instant::now();
        let fleet = Fleet::connect(access).await.expect("a fleet");
        let points = fleet.history(CELL).await.expect("points");
        assert_eq!(points.len(), ARCHIVED);
        times.push(since.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    println!(
        "history of a cell in {ARCHIVED} runs: median {:.3} s, longest {:.3} s of 5",
        times[2], times[4]
    );
}

/// Processor time in seconds.
fn cpu(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
    let fields = stat.rsplit(") ").next().expect("fields").split(' ');
    let ticks = fields.skip(11).take(2).map(|field| field.parse::<f64>());
    ticks.map(|ticks| ticks.expect("a number")).sum::<f64>() / TICKS_PER_S
}

fn memory_mb(pid: u32, key: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with(key));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.expect("a number") * 1024.0 / 1e6
}

/// Ends with its owner.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn idle_agent(access: &Access, folder: &Path, program: Option<&Path>) {
    let its = folder.join("agent");
    fs::create_dir(&its).expect("a folder");
    let mut command = match program {
        Some(program) => {
            let mut command = Command::new(program);
            command.args(["fleet", "--url", &access.url, "agent", "memory", "--folder"]);
            command
        }
        None => {
            let mut command = Command::new(std::env::current_exe().expect("this program"));
            command.args(["agent", &access.url]);
            command
        }
    };
    let agent = Killed(command.arg(&its).spawn().expect("an agent"));
    // Until it has looked at every job.
    let fleet = fleet::run(Fleet::connect(access)).expect("a fleet");
    let last = format!("{:011x}-00000000", ARCHIVED + QUEUED - 1);
    loop {
        let listing = fleet::run(async {
            let fleet = Fleet::connect(access).await?;
            fleet.list(Some(0)).await
        });
        let rows = listing.expect("jobs").rows;
        let row = rows.iter().find(|row| row.job.id == last);
        if row.is_some_and(|row| !row.misfits.is_empty()) {
            break;
        }
    }
    drop(fleet);
    let pid = agent.0.id();
    let before = cpu(pid);
    std::thread::sleep(IDLE);
    let used = (cpu(pid) - before) / IDLE.as_secs_f64();
    println!(
        "idle agent: {:.3} % of a core in {} s, {:.1} MB resident, {:.1} MB of it its own (not the program's file)",
        used * 100.0,
        IDLE.as_secs(),
        memory_mb(pid, "VmRSS:"),
        memory_mb(pid, "RssAnon:")
    );
}

async fn submit_to_start(access: &Access) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    fs::write(&program, "#!/bin/sh\n[ $1 = check ] || sleep 2\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let _agent = Killed(
        command
            .args(["agent", &access.url])
            .arg(folder.path())
            .spawn()
            .expect("an agent"),
    );
    let fleet = Fleet::connect(access).await.expect("a fleet");
    let wanted = Job {
        selector: Selector::default(),
        ..job(fleet::new_id())
    };
    // The agent before this one, which was killed, has the lab for ten seconds.
    let incarnation = async || {
        let offers = fleet.offers().await.expect("labs");
        offers.first().map(|offer| offer.incarnation.clone())
    };
    let before = incarnation().await;
    while incarnation().await == before {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for _ in 0..3 {
        let wanted = Job {
            id: fleet::new_id(),
            ..wanted.clone()
        };
        let since = Instant::now();
        submit(&fleet, &wanted).await.expect("queued");
        let (stop, stopped) = watch::channel(false);
        let mut started = None;
        let see = |change: Change<'_>| {
            if let Change::Job(job, state) = change
                && job.id == wanted.id
            {
                match state {
                    State::Running(_) => started = Some(since.elapsed()),
                    state if state.is_final() => drop(stop.send(true)),
                    _ => {}
                }
            }
        };
        fleet.watch(false, stopped, see).await;
        println!("submit to start: {started:?}");
    }
}

/// How many renewals of leases the server takes.
async fn leases(url: &str, server: u32) {
    let labs = bucket(url, "fleet-labs").await;
    let labs = &labs;
    let (since, before) = (Instant::now(), cpu(server));
    let beats = AGENTS * 10;
    let renew = |number: usize| async move {
        let key = format!("lab-{}", number % AGENTS);
        // As long as an offer.
        labs.put(key, "x".repeat(200).into()).await.expect("kept");
    };
    stream::iter(0..beats)
        .map(renew)
        .buffer_unordered(AT_ONCE)
        .collect::<()>()
        .await;
    let took = since.elapsed().as_secs_f64();
    println!(
        "leases: {:.0} renewals/s, {:.0} µs of the server's processor each ({AGENTS} agents renew {} per second)",
        beats as f64 / took,
        (cpu(server) - before) / beats as f64 * 1e6,
        AGENTS / 2
    );
}

/// Puts a program on one core, with all of its threads.
fn pin(pid: u32) {
    let mut taskset = Command::new("taskset");
    taskset.args(["--all-tasks", "--cpu-list", "--pid", SERVERS_CORE]);
    let pinned = taskset.arg(pid.to_string()).output();
    assert!(pinned.expect("taskset").status.success());
}

/// As many connections as agents, on which each does its own.
async fn connect(url: &str) -> Vec<Client> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("as many files as may be");
    let connect = |_| async { async_nats::connect(url).await.expect("a server") };
    let agents = stream::iter(0..AGENTS).map(connect).buffered(AT_ONCE);
    agents.collect().await
}

/// How many records the server takes of all agents at once, each sent when the one before is kept.
async fn records(agents: &[Client], server: u32) {
    let (times, repeated) = (RefCell::new(Vec::new()), Cell::new(0_u32));
    let text = "x".repeat(RECORD_BYTES);
    let send = |(agent, client): (usize, &Client)| {
        let context = async_nats::jetstream::new(client.clone());
        let (times, text, repeated) = (&times, &text, &repeated);
        async move {
            for line in 1..=RECORDS {
                let mut headers = HeaderMap::new();
                headers.insert("Nats-Msg-Id", format!("agent-{agent}-{line}"));
                let subject = format!("fleet.records.agent-{agent}");
                let since = Instant::now();
                // As an agent does: one that is not acknowledged is sent again.
                loop {
                    let (subject, headers) = (subject.clone(), headers.clone());
                    let sent = context.publish_with_headers(subject, headers, text.clone().into());
                    if sent.await.expect("sent").await.is_ok() {
                        break;
                    }
                    repeated.set(repeated.get() + 1);
                }
                times.borrow_mut().push(since.elapsed());
            }
        }
    };
    let (since, before) = (Instant::now(), cpu(server));
    let all = agents.iter().enumerate().map(send);
    join_all(all).await;
    let took = since.elapsed().as_secs_f64();
    let mut times = times.into_inner();
    times.sort();
    let count = times.len() as f64;
    println!(
        "records of {RECORD_BYTES} B from {AGENTS} agents: {:.0} per second, {:.1} MB/s, {:.0} µs of the server's \
         processor each; kept after {:.0} ms (median), {:.0} ms (99 %); {} sent again",
        count / took,
        count * RECORD_BYTES as f64 / took / 1e6,
        (cpu(server) - before) / count * 1e6,
        times[times.len() / 2].as_secs_f64() * 1e3,
        times[times.len() * 99 / 100].as_secs_f64() * 1e3,
        repeated.get()
    );
}

/// Whether all agents can follow the queue at once, and when the last one sees a change.
async fn followers(agents: &[Client], url: &str, server: u32) {
    let before = memory_mb(server, "VmRSS:");
    let watch = |client: Client| async {
        let context = async_nats::jetstream::new(client);
        let states = context
            .get_key_value("fleet-states")
            .await
            .expect("a bucket");
        states.watch_all().await
    };
    let watches = stream::iter(agents.to_vec()).map(watch).buffered(AT_ONCE);
    let watches: Vec<_> = watches.collect().await;
    let refused = watches.iter().filter_map(|watch| watch.as_ref().err());
    if let Some(error) = refused.clone().next() {
        println!(
            "followers of the queue: {} of {AGENTS} refused ({error})",
            refused.count()
        );
        return;
    }
    let after = memory_mb(server, "VmRSS:");
    let states = bucket(url, "fleet-states").await;
    let since = Instant::now();
    states.put("x", "{}".into()).await.expect("kept");
    let see = |watch: Result<Watch, _>| async {
        watch
            .expect("a watch")
            .next()
            .await
            .expect("a change")
            .expect("a state");
    };
    join_all(watches.into_iter().map(see)).await;
    println!(
        "followers of the queue: {AGENTS}, the last one sees a change after {:.0} ms; {:.0} kB of the server's memory each",
        since.elapsed().as_secs_f64() * 1e3,
        (after - before) / AGENTS as f64 * 1e3
    );
}

/// How many runs the server takes, of 1 MB in six files.
async fn runs(access: &Access, folder: &Path, server: u32) {
    const RUNS: usize = 40;
    let fleet = Fleet::connect(access).await.expect("a fleet");
    let mut folders = Vec::new();
    for run in 0..RUNS {
        let its = folder.join(format!("run-{run}"));
        fs::create_dir(&its).expect("a folder");
        for (file, length) in [400, 300, 200, 80, 15, 5].into_iter().enumerate() {
            let content = format!("{run:08}").repeat(length * 125);
            fs::write(its.join(format!("file-{file}")), content).expect("written");
        }
        folders.push(its);
    }
    let store = || disk_bytes(&folder.join("server/store"));
    let (since, before, kept) = (Instant::now(), cpu(server), store());
    let fleet = &fleet;
    let uploads = folders.iter().enumerate().map(|(run, its)| async move {
        let manifest = upload(fleet, &format!("run-{run}"), its).await;
        manifest.expect("kept");
    });
    stream::iter(uploads)
        .buffer_unordered(8)
        .collect::<()>()
        .await;
    let took = since.elapsed().as_secs_f64();
    println!(
        "runs of 1 MB: {:.1} runs/s, each read back; {:.1} ms of the server's processor each, {:.2} MB on its disk each",
        RUNS as f64 / took,
        (cpu(server) - before) / RUNS as f64 * 1e3,
        (store() - kept) as f64 / RUNS as f64 / 1e6
    );
}

fn disk_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => disk_bytes(&entry.path()),
        Ok(meta) => meta.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
