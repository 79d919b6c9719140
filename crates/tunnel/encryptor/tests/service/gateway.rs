//! The service as a process, and its observable state.

use crate::namespace::Namespace;
use encryptor::privileges::{self, Confinement, Needs};
use encryptor::{Config, Program, barrier};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User};
use port::Stop;
use signal_hook::consts::{SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

/// The service, until SIGTERM. Its output line begins with `ready`, as that of the program does.
pub(crate) fn encrypt(file: &str) -> ExitCode {
    let config = Config::load(Path::new(file)).unwrap();
    let stop = Stop::new().unwrap();
    let mut signals = Signals::new([SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]).unwrap();
    let raised = stop.clone();
    let fault = config.fault;
    let mut holder = Command::new("/proc/self/exe");
    holder.arg("hold");
    let program = Program {
        version: "test",
        holder: Some(holder),
    };
    let ended = encryptor::run(&config, program, &stop, move |facts, rekeyer| {
        // Not earlier: the thread would keep its privileges.
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if signal == SIGTERM {
                    return raised.raise();
                }
                match fault {
                    Some(fault) if signal == SIGUSR2 => rekeyer.inject(fault),
                    _ if signal == SIGHUP => rekeyer.reload(),
                    _ => rekeyer.ask(),
                }
            }
        });
        let facts: Vec<_> = facts
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        println!("ready {}", facts.join(" "));
    });
    match ended {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The process that keeps a service's tables in place.
pub(crate) fn hold() -> ExitCode {
    match barrier::hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Drops the service's privileges, and then tries forbidden operations.
pub(crate) fn confined(key_file: &str) -> ExitCode {
    const FORBIDDEN: Option<i32> = Some(libc::EPERM);
    let key_file = Path::new(key_file);
    let keys = keying::KeyFile::open(key_file).unwrap();
    let in_force = privileges::give_up(&Needs {
        key_files: vec![key_file.to_owned()],
        ..Needs::default()
    });
    let in_force = in_force.unwrap();
    assert!(in_force.no_caps && in_force.seccomp, "{in_force:?}");
    let error = UdpSocket::bind("127.0.0.1:0").unwrap_err();
    assert_eq!(error.raw_os_error(), FORBIDDEN, "a new socket");
    let error = Command::new("true").spawn().unwrap_err();
    assert_eq!(error.raw_os_error(), FORBIDDEN, "another program");
    let has_landlock = in_force.landlock != Confinement::Off;
    if has_landlock {
        let error = fs::read("/etc/hostname").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EACCES), "a file elsewhere");
    }
    let own = key_file.to_owned();
    std::thread::spawn(move || {
        in_force.restrict_worker().unwrap();
        let error = std::thread::Builder::new().spawn(|| ()).unwrap_err();
        assert_eq!(error.raw_os_error(), FORBIDDEN, "a worker's own thread");
        let error = fs::read(&own).unwrap_err();
        assert_eq!(error.raw_os_error(), FORBIDDEN, "a worker reads a file");
        let error = fs::rename(&own, own.with_extension("new")).unwrap_err();
        assert_eq!(error.raw_os_error(), FORBIDDEN, "a worker renames a file");
        // Needed to abort.
        signal_hook::low_level::raise(0).unwrap();
    })
    .join()
    .unwrap();
    // Still permitted: recording epochs.
    let mut keys = keys.draw_epoch().unwrap();
    keys.note_peer_epoch(7).unwrap();
    ExitCode::SUCCESS
}

/// Drops the service's privileges, and then tries to start processes and to enter namespaces, from
/// each kind of thread: prints those ways that succeed.
pub(crate) fn escaping(user: &str) -> ExitCode {
    let user = User::from_name(user).unwrap();
    let in_force = privileges::give_up(&Needs {
        user: user.filter(|user| !user.uid.is_root()),
        ..Needs::default()
    });
    let in_force = in_force.unwrap();
    assert!(in_force.seccomp && in_force.bounded, "{in_force:?}");
    try_to_escape("main");
    let service = std::thread::spawn(|| try_to_escape("service"));
    service.join().expect("threads can be started");
    let worker = std::thread::spawn(move || {
        in_force.restrict_worker().unwrap();
        try_to_escape("worker");
    });
    worker.join().unwrap();
    ExitCode::SUCCESS
}

fn try_to_escape(thread: &str) {
    let report = |way: &str, succeeded: bool| {
        if succeeded {
            println!("{thread}: {way}");
        }
    };
    let namespaces = [
        ("a process", 0),
        ("a user namespace", libc::CLONE_NEWUSER),
        (
            "a user and a network namespace",
            libc::CLONE_NEWUSER | libc::CLONE_NEWNET,
        ),
        ("a mount namespace", libc::CLONE_NEWNS),
    ];
    for (way, flags) in namespaces {
        let flags = libc::c_long::from(flags | libc::SIGCHLD);
        // SAFETY: without CLONE_VM the child is a copy of the process, as with fork; it only exits.
        let child = unsafe {
            let child = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
            if child == 0 {
                libc::_exit(0);
            }
            child
        };
        report(&format!("clone for {way}"), child > 0);
        // `struct clone_args`: flags, and the signal at its end.
        let mut arguments = [0u64; 8];
        (arguments[0], arguments[4]) = ((flags & !0xff) as u64, libc::SIGCHLD as u64);
        // SAFETY: as above, with arguments in memory that outlives the call.
        let child = unsafe {
            let size = size_of_val(&arguments);
            let child = libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size);
            if child == 0 {
                libc::_exit(0);
            }
            child
        };
        report(&format!("clone3 for {way}"), child > 0);
    }
    let entered = nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER);
    report("unshare of the user namespace", entered.is_ok());
    report("another program", Command::new("true").spawn().is_ok());
}

/// Drops the privileges of a service with negotiated keys, and then tries forbidden operations.
pub(crate) fn connecting(ppk_file: &str) -> ExitCode {
    const FORBIDDEN: Option<i32> = Some(libc::EPERM);
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (peer, stranger) = (bind(), bind());
    let [known, unknown] = [&peer, &stranger].map(|listener| listener.local_addr().unwrap());
    keying::PpkFile::load(Path::new(ppk_file)).unwrap();
    let network = privileges::Network {
        connect: [known.port()].into(),
    };
    let in_force = privileges::give_up(&Needs {
        network: Some(network),
        ..Needs::default()
    });
    let in_force = in_force.unwrap();
    assert!(in_force.seccomp, "{in_force:?}");
    TcpStream::connect(known).expect("the peer's control port");
    peer.accept().expect("connections of peers");
    let error = UdpSocket::bind("127.0.0.1:0").unwrap_err();
    assert_eq!(
        error.raw_os_error(),
        FORBIDDEN,
        "a socket that is not TCP's"
    );
    let error = UnixStream::connect("/run/none").unwrap_err();
    assert_eq!(error.raw_os_error(), FORBIDDEN, "a local socket");
    if in_force.landlock != Confinement::Off {
        const DENIED: Option<i32> = Some(libc::EACCES);
        let error = fs::read(ppk_file).unwrap_err();
        assert_eq!(error.raw_os_error(), DENIED, "the PPK once more");
        // The kernel has rules for TCP from version 6.7 on, and reports it in no other way.
        let open = TcpStream::connect(unknown).is_ok();
        if open {
            eprintln!("SKIPPED: this kernel's Landlock does not know TCP");
        }
        let port = if open { 0 } else { unknown.port() };
        let bound = TcpListener::bind(("127.0.0.2", port)).map_err(|error| error.raw_os_error());
        assert!(open || bound.err() == Some(DENIED), "a new port");
    }
    std::thread::spawn(move || {
        in_force.restrict_worker().unwrap();
        let error = TcpStream::connect(known).unwrap_err();
        assert_eq!(error.raw_os_error(), FORBIDDEN, "a worker's connection");
    })
    .join()
    .unwrap();
    ExitCode::SUCCESS
}

/// A forwarding service. Killed when dropped.
pub(crate) struct Gateway {
    child: Child,
    /// Its ready line.
    pub(crate) facts: BTreeMap<String, String>,
}

impl Gateway {
    /// Starts it with the configuration in `file`; returns its output if it fails to start.
    pub(crate) fn start(namespace: &Namespace, file: &Path, config: &str) -> Result<Self, String> {
        fs::write(file, config).unwrap();
        // Whatever the umask is.
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        let file = file.to_owned();
        let mut child = namespace.run(move || {
            Command::new(std::env::current_exe().unwrap())
                .arg("encrypt")
                .arg(&file)
                // Path of its core file, if it leaves one.
                .current_dir(file.parent().unwrap())
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        });
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let Some(facts) = line.strip_prefix("ready ") else {
            let mut said = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut said)
                .unwrap();
            child.wait().unwrap();
            return Err(said);
        };
        let facts = facts
            .split_whitespace()
            .filter_map(|fact| fact.split_once('='));
        let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(Self {
            facts: facts.collect(),
            child,
        })
    }

    /// A field of `/proc/PID/status` of each of its threads, by the thread's name.
    pub(crate) fn status(&self, field: &str) -> BTreeMap<String, String> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let text = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).unwrap();
        let tasks = fs::read_dir(tasks).unwrap().map(|task| text(task.unwrap()));
        tasks
            .map(|status| {
                let value = |name: &str| {
                    let line = status.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap().trim_start_matches(':').trim().to_owned()
                };
                (value("Name"), value(field))
            })
            .collect()
    }

    /// A file of `/proc/PID`.
    pub(crate) fn proc(&self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap()
    }

    /// The process that keeps its tables in place.
    pub(crate) fn holder(&self) -> Option<Pid> {
        let pid = self.child.id();
        let children = self.proc(&format!("task/{pid}/children"));
        let child = children.split_whitespace().next()?;
        child.parse().ok().map(Pid::from_raw)
    }

    /// The next line of its standard error.
    pub(crate) fn line(&mut self) -> String {
        let (mut line, mut byte) = (Vec::new(), [0]);
        let stderr = self.child.stderr.as_mut().unwrap();
        while stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        String::from_utf8(line).unwrap()
    }

    /// Requests new keys.
    pub(crate) fn rekey(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGUSR1).unwrap();
    }

    /// Has it read its certificate again.
    pub(crate) fn reload(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGHUP).unwrap();
    }

    /// Makes its keys fail, as configured.
    pub(crate) fn inject_fault(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGUSR2).unwrap();
    }

    /// Ends it as by an internal error; returns its exit status.
    pub(crate) fn crash(mut self) -> ExitStatus {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGABRT).unwrap();
        self.child.wait().unwrap()
    }

    /// Waits until it has ended by itself; returns its standard error.
    pub(crate) fn failed(mut self) -> String {
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(!status.success(), "{status}: {said}");
        said
    }

    /// Sends SIGTERM, and waits for the end; returns its standard error.
    pub(crate) fn stop(mut self) -> String {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(status.success(), "{status}: {said}");
        said
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail for a process that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The content of `/metrics` inside.
pub(crate) fn metrics(namespace: &Namespace) -> String {
    namespace.run(|| {
        let mut stream = TcpStream::connect("127.0.0.1:9464").unwrap();
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    })
}
