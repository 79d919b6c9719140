//! A network namespace, held by a thread.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// Removed when it is dropped and its processes have ended.
pub(crate) struct Namespace {
    jobs: Sender<Job>,
    /// The thread in it.
    thread: i32,
}

impl Namespace {
    pub(crate) fn new() -> io::Result<Self> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (sender, started) = mpsc::channel();
        thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            let failed = entered.is_err();
            sender.send(entered).unwrap();
            if !failed {
                todo.into_iter().for_each(|job| job());
            }
        });
        let thread = started.recv().unwrap().map_err(io::Error::from)?;
        Ok(Self { jobs, thread })
    }

    /// A namespace without traffic except the test's.
    pub(crate) fn quiet() -> Self {
        let namespace = Self::new().unwrap();
        // Fails where the kernel has no IPv6, which needs no action.
        let off = || fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let _ = namespace.run(off);
        namespace.ip("link set lo up");
        namespace
    }

    /// The result of `job`, run inside. Processes that it starts are inside, too.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (sender, result) = mpsc::channel();
        let job = Box::new(move || sender.send(job()).unwrap());
        self.jobs.send(job).unwrap();
        result.recv().expect("the job did not panic")
    }

    /// Runs `ip` inside, once per line.
    pub(crate) fn ip(&self, lines: &str) {
        for line in lines.lines() {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let status = self.run(move || Command::new("ip").args(words).status().unwrap());
            assert!(status.success(), "ip {line}");
        }
    }

    /// Whether `target` answers a ping with this many bytes of payload, without fragmentation here.
    pub(crate) fn reaches_with(&self, bytes: usize, target: &str) -> bool {
        let (bytes, target) = (bytes.to_string(), target.to_owned());
        let ping = move || {
            let quiet = ["-n", "-q", "-c", "1", "-w", "5", "-M", "do", "-s"];
            let mut ping = Command::new("ping");
            ping.args(quiet).args([&bytes, &target]).output().unwrap()
        };
        self.run(ping).status.success()
    }

    /// The same with a short ping.
    pub(crate) fn reaches(&self, target: &str) -> bool {
        self.reaches_with(56, target)
    }

    /// A host behind this one, on the far end of its interface `name`.
    pub(crate) fn station(&self, name: &str, address: &str) -> Self {
        let station = Self::quiet();
        self.ip(&format!(
            "link add {name} type veth peer name eth0 netns {}\nlink set {name} up",
            station.thread
        ));
        station.ip(&format!("address add {address} dev eth0\nlink set eth0 up"));
        station
    }
}

/// Two namespaces with a link between them: `w0` with 192.0.2.1, `w1` with 192.0.2.2.
pub(crate) fn pair() -> [Namespace; 2] {
    let [a, b] = [(); 2].map(|()| Namespace::quiet());
    a.ip(&format!(
        "link add w0 type veth peer name w1 netns {}\n\
         address add 192.0.2.1/24 dev w0\n\
         link set w0 up",
        b.thread
    ));
    b.ip("address add 192.0.2.2/24 dev w1\nlink set w1 up");
    [a, b]
}
