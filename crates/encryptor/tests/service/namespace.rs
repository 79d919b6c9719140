//! A network namespace, held by a thread.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;
use std::fs;
use std::io;
use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::thread;

type Job = Box<dyn FnOnce() + Send>;

/// Goes when it is dropped and its processes have ended.
pub(crate) struct Namespace {
    jobs: Sender<Job>,
    /// The thread in it.
    thread: i32,
}

impl Namespace {
    pub(crate) fn new() -> io::Result<Self> {
        let (jobs, todo) = mpsc::channel::<Job>();
        let (told, started) = mpsc::channel();
        thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            let failed = entered.is_err();
            told.send(entered).unwrap();
            if !failed {
                todo.into_iter().for_each(|job| job());
            }
        });
        let thread = started.recv().unwrap().map_err(io::Error::from)?;
        Ok(Self { jobs, thread })
    }

    /// What `job` gives, run inside. Processes that it starts are inside, too.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (told, result) = mpsc::channel();
        let job = Box::new(move || told.send(job()).unwrap());
        self.jobs.send(job).unwrap();
        result.recv().expect("the job did not panic")
    }

    /// Runs `ip` inside, a line for each call.
    pub(crate) fn ip(&self, lines: &str) {
        for line in lines.lines() {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let status = self.run(move || Command::new("ip").args(words).status().unwrap());
            assert!(status.success(), "ip {line}");
        }
    }

    /// Whether `target` answers one of some pings.
    pub(crate) fn reaches(&self, target: &str) -> bool {
        let target = target.to_owned();
        let ping = move || {
            Command::new("ping")
                .args(["-n", "-c", "1", "-w", "5", &target])
                .output()
                .unwrap()
        };
        self.run(ping).status.success()
    }
}

/// Two namespaces with a link between them: `w0` with 192.0.2.1, `w1` with 192.0.2.2.
pub(crate) fn pair() -> [Namespace; 2] {
    let [a, b] = [(); 2].map(|()| Namespace::new().unwrap());
    for namespace in [&a, &b] {
        // No packets but those that a test sends. Fails where the kernel has no IPv6 anyway.
        let off = || fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        let _ = namespace.run(off);
    }
    a.ip(&format!(
        "link set lo up\n\
         link add w0 type veth peer name w1 netns {}\n\
         address add 192.0.2.1/24 dev w0\n\
         link set w0 up",
        b.thread
    ));
    b.ip("link set lo up\naddress add 192.0.2.2/24 dev w1\nlink set w1 up");
    [a, b]
}
