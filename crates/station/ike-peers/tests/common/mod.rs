//! A generator and a gateway in one process.

use ike::session::IkeSuite;
use ike_peers::gateway::{Counts, Settled};
use ike_peers::{
    Authentication, Behaviour, Hidden, Load, Progress, Report, Selectors, Sources, Spec, Triggers,
    run,
};
use pki::Texts;
use port::Stop;
use std::env;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

pub(crate) const CLASSIC: &str = "aes256gcm16-prfsha384-x25519";
pub(crate) const HYBRID: &str = "aes256gcm16-prfsha384-x25519-ke1_mlkem768";

/// Peers on addresses of loopback, with a shared key.
pub(crate) fn spec(peers: u32) -> Spec {
    // Those of one gateway; each test has its own.
    let [port, nat_port] = [free_ports(1), free_ports(1)];
    Spec {
        gateway: "127.0.0.1".parse().unwrap(),
        port,
        nat_port,
        peers,
        sources: Sources::Addresses {
            first: "127.1.0.1".parse().unwrap(),
            count: peers,
            port: 0,
            nat_port: 0,
        },
        identity: "peer-{n}.example".to_owned(),
        gateway_identity: Some("gateway.example".to_owned()),
        authentication: Authentication::SharedKey(Hidden("a secret of tests".to_owned())),
        proposal: CLASSIC.to_owned(),
        ppk: None,
        selectors: Selectors {
            local: "10.2.0.0".parse().unwrap(),
            remote_first: "10.1.0.0".parse().unwrap(),
            remote_last: "10.1.255.255".parse().unwrap(),
        },
        behaviour: Behaviour::default(),
        load: Load::Setup { per_s: 100 },
        delete_per_s: None,
    }
}

pub(crate) fn classic(proposal: &str) -> IkeSuite {
    proposal.parse().unwrap()
}

/// Ports below those that the kernel chooses, so that no other socket takes them meanwhile.
static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);

/// The first of this number of free ports.
pub(crate) fn free_ports(count: u16) -> u16 {
    loop {
        let first = NEXT_PORT.fetch_add(count, Ordering::Relaxed);
        assert!(first < 32_000, "no free ports");
        let all: Result<Vec<_>, _> = (first..first + count)
            .map(|it| UdpSocket::bind(("0.0.0.0", it)))
            .collect();
        if all.is_ok() {
            return first;
        }
    }
}

pub(crate) fn gateway(spec: &Spec, texts: Option<&Texts>) -> Settled {
    Settled::new(spec, texts).unwrap()
}

pub(crate) fn play(spec: &Spec) -> (Report, Counts) {
    play_against(spec, gateway(spec, None))
}

/// A storm begins once all peers are up.
pub(crate) fn play_against(spec: &Spec, settled: Settled) -> (Report, Counts) {
    let [stop, storm, end] = [(); 3].map(|()| Stop::new().unwrap());
    let gateway = settled.open().unwrap();
    thread::scope(|scope| {
        let serving = scope.spawn(|| gateway.serve(&stop));
        let triggers = Triggers {
            stop: &end,
            storm: &storm,
        };
        let report = run(spec, triggers, &mut |progress| {
            if matches!(progress, Progress::Up(_)) {
                storm.raise();
            }
        });
        stop.raise();
        (report.unwrap(), serving.join().unwrap().unwrap())
    })
}

/// The load is stopped once all peers are up.
pub(crate) fn play_and_stop(spec: &Spec) -> (Report, Counts) {
    let [stop, end] = [(); 2].map(|()| Stop::new().unwrap());
    let gateway = gateway(spec, None).open().unwrap();
    thread::scope(|scope| {
        let serving = scope.spawn(|| gateway.serve(&stop));
        let triggers = Triggers {
            stop: &end,
            storm: &end,
        };
        let report = run(spec, triggers, &mut |progress| {
            if matches!(progress, Progress::Up(_)) {
                end.raise();
            }
        });
        stop.raise();
        (report.unwrap(), serving.join().unwrap().unwrap())
    })
}

/// The gateway disappears once all peers are up.
pub(crate) fn play_until_up(spec: &Spec, settled: Settled) -> Report {
    let [stop, end] = [(); 2].map(|()| Stop::new().unwrap());
    let gateway = settled.open().unwrap();
    thread::scope(|scope| {
        let mut serving = Some(scope.spawn(|| gateway.serve(&stop)));
        let triggers = Triggers {
            stop: &end,
            storm: &end,
        };
        let report = run(spec, triggers, &mut |progress| {
            if matches!(progress, Progress::Up(_)) {
                stop.raise();
                if let Some(serving) = serving.take() {
                    serving.join().unwrap().unwrap();
                }
            }
        });
        stop.raise();
        report.unwrap()
    })
}

pub(crate) fn error_of(spec: &Spec) -> String {
    let stop = Stop::new().unwrap();
    let triggers = Triggers {
        stop: &stop,
        storm: &stop,
    };
    run(spec, triggers, &mut |_| {}).unwrap_err().to_string()
}

/// A spec, and whether the process is the gateway or the generator.
const PART: &str = "CIPHERBENCH_IKE_PEERS_PART";
const REPORT: &str = "report: ";

fn process(part: &str, spec: &Spec) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    let spec = serde_json::to_string(spec).unwrap();
    command
        .args(["--exact", "plays_apart", "--nocapture"])
        .env(PART, format!("{part} {spec}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// A gateway in a process of its own.
pub(crate) struct Apart(Child);

impl Apart {
    pub(crate) fn start(spec: &Spec) -> Self {
        let mut child = process("gateway", spec).spawn().unwrap();
        let output = BufReader::new(child.stdout.as_mut().unwrap());
        let mut lines = output.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("ready")), "it ended");
        Self(child)
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// The report of a generator in a process of its own.
pub(crate) fn apart(spec: &Spec) -> Report {
    let output = process("generator", spec).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (_, report) = text.split_once(REPORT).expect(&text);
    serde_json::from_str(report.lines().next().unwrap()).unwrap()
}

pub(crate) fn play_apart() {
    let Ok(part) = env::var(PART) else {
        return;
    };
    let (part, spec) = part.split_once(' ').unwrap();
    let spec: Spec = serde_json::from_str(spec).unwrap();
    let stop = Stop::new().unwrap();
    if part == "gateway" {
        let gateway = gateway(&spec, None).open().unwrap();
        println!("ready");
        gateway.serve(&stop).unwrap();
        return;
    }
    let triggers = Triggers {
        stop: &stop,
        storm: &stop,
    };
    let report = run(&spec, triggers, &mut |_| {}).unwrap();
    println!("{REPORT}{}", serde_json::to_string(&report).unwrap());
}

/// The report of peers whose datagrams are all answered so.
pub(crate) fn play_with_answer(spec: &Spec, answer: impl Fn(&[u8]) -> Vec<u8> + Sync) -> Report {
    let socket = UdpSocket::bind((spec.gateway, spec.port)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let [stop, end] = [(); 2].map(|()| Stop::new().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 4096];
            while !end.is_raised() {
                if let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
                    socket.send_to(&answer(&buffer[..bytes]), from).unwrap();
                }
            }
        });
        let triggers = Triggers {
            stop: &stop,
            storm: &stop,
        };
        let report = run(spec, triggers, &mut |_| {});
        end.raise();
        report.unwrap()
    })
}

/// The gateway starts after so many requests, which are lost.
pub(crate) fn play_late(spec: &Spec, lost: usize) -> (Report, Counts) {
    let [stop, end] = [(); 2].map(|()| Stop::new().unwrap());
    let socket = UdpSocket::bind((spec.gateway, spec.port)).unwrap();
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            for _ in 0..lost {
                socket.recv_from(&mut [0; 4096]).unwrap();
            }
            drop(socket);
            gateway(spec, None).open().unwrap().serve(&stop)
        });
        let triggers = Triggers {
            stop: &end,
            storm: &end,
        };
        let report = run(spec, triggers, &mut |_| {});
        stop.raise();
        (report.unwrap(), serving.join().unwrap().unwrap())
    })
}
