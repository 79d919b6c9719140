//! A thousand connections a second, from strangers and from the peer's own address: genuine peers
//! get keys in time, at a bounded cost.

use crate::support::{
    Gateway, HERE, Site, connect_from, listener, provider, roots, settings, tunnel,
};
use keying::rollover::Role;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection};
use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Connections per second of a flood.
const RATE: u32 = 1000;
/// Time within which a genuine peer must have keys among strangers.
const LIMIT: Duration = Duration::from_secs(2);
/// The same while its own address is used by an attacker, of whose connections the oldest are
/// closed for new ones: the peer's may be among them, and is repeated.
const LIMIT_OF_SAME_ADDRESS: Duration = Duration::from_secs(10);
/// Genuine peers that start one after the other during a flood.
const PEERS: usize = 5;
/// Between them, so that the flood lasts, however fast they are.
const PAUSE: Duration = Duration::from_millis(300);
/// Times that a flood is repeated on a machine that is too busy for it.
const ATTEMPTS: usize = 3;
/// The newest connections of a flood stay open.
const OPEN_MAX: usize = 300;
/// Share of a core that one connection of a stranger may cost on average, times [`RATE`].
const STRANGERS_SHARE_MAX: f64 = 0.5;

/// Who connects, and what is sent then.
struct Attack {
    name: &'static str,
    from: fn(u32) -> Ipv4Addr,
    /// Connections take turns with these.
    greetings: Vec<Vec<u8>>,
    /// Whether each is refused without being read.
    is_of_strangers: bool,
    /// Until a genuine peer must have keys.
    limit: Duration,
    /// Maximum share of a core that the gateway's thread may spend. One thread never takes more
    /// than one core, whatever a peer's address sends.
    share_max: f64,
}

/// Result of one flood.
#[derive(Debug)]
struct Outcome {
    connections_per_s: f64,
    /// Until each genuine peer had keys.
    took: [Duration; PEERS],
    /// Share of a core that the control threads of this process spent.
    share: f64,
}

#[test]
fn strangers_delay_no_genuine_peer() {
    under(&Attack {
        name: "strangers",
        from: |number| {
            let place = number % 1000;
            Ipv4Addr::new(127, 0, 1 + (place / 250) as u8, 1 + (place % 250) as u8)
        },
        greetings: vec![Vec::new()],
        is_of_strangers: true,
        limit: LIMIT,
        share_max: STRANGERS_SHARE_MAX,
    });
}

#[test]
fn silent_half_open_and_garbling_connections_from_the_peers_address_delay_no_genuine_peer() {
    under(&Attack {
        name: "garbage from the peer's address",
        from: |_| Ipv4Addr::LOCALHOST,
        greetings: vec![
            Vec::new(),
            // The first byte of a record of TLS, the longest record, which never comes, and one
            // that is too long.
            vec![0x16],
            vec![0x16, 3, 1, 0x40, 0],
            vec![0x16, 3, 1, 0xff, 0xff, 1],
        ],
        is_of_strangers: false,
        limit: LIMIT_OF_SAME_ADDRESS,
        share_max: 1.0,
    });
}

/// Each costs a key encapsulation and a signature.
#[test]
fn handshakes_that_are_never_completed_delay_no_genuine_peer() {
    let site = Site::new();
    let config = ClientConfig::builder_with_provider(provider(&[kx_group::X25519MLKEM768]))
        .with_protocol_versions(&[&TLS13])
        .expect("a version")
        .with_root_certificates(roots(&site))
        .with_no_client_auth();
    let name = ServerName::try_from("gw2").expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut hello = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut hello).expect("memory");
    }
    under(&Attack {
        name: "half handshakes from the peer's address",
        from: |_| Ipv4Addr::LOCALHOST,
        greetings: vec![hello],
        is_of_strangers: false,
        limit: LIMIT_OF_SAME_ADDRESS,
        share_max: 1.0,
    });
}

/// Repeats a flood until it is as dense as intended, and asserts what genuine peers then get.
fn under(attack: &Attack) {
    // One flood at a time: each takes a core.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut spoilt = Vec::new();
    let mut was_quiet = false;
    for _ in 0..ATTEMPTS {
        // How fast the machine is now.
        let alone = run(None);
        let flooded = run(Some(attack));
        eprintln!("{}: {flooded:?}; without: {alone:?}", attack.name);
        let slowest = flooded.took.iter().max().expect("there are peers");
        let is_dense = flooded.connections_per_s >= 0.9 * f64::from(RATE);
        let is_good = *slowest < attack.limit && flooded.share <= attack.share_max;
        if is_dense && is_good {
            return;
        }
        was_quiet |= is_dense && alone.took.iter().all(|took| *took < LIMIT / 8);
        spoilt.push(flooded);
    }
    assert!(!was_quiet, "{}: {spoilt:?}", attack.name);
    eprintln!(
        "SKIPPED: {}: this machine is too busy: {spoilt:?}",
        attack.name
    );
}

/// Starts genuine peers one after the other, under the attack if there is one.
fn run(attack: Option<&Attack>) -> Outcome {
    let site = Site::new();
    let (bound, address) = listener();
    let listens = settings(Role::Listener, "gw2", "gw1", 0);
    let tunnels = vec![tunnel(listens, (HERE, 1).into())];
    let gateway = Gateway::start(site.identity("gw2"), bound, tunnels);
    let ended = AtomicBool::new(false);
    let (began, before) = (Instant::now(), control_cpu());
    let (took, connections) = thread::scope(|scope| {
        let attacker = attack.map(|attack| scope.spawn(|| attack.connect(address, &ended)));
        let took = [(); PEERS].map(|()| {
            thread::sleep(PAUSE);
            let began = Instant::now();
            let connects = settings(Role::Connector, "gw1", "gw2", 0);
            let tunnels = vec![tunnel(connects, address)];
            let peer = Gateway::start(site.identity("gw1"), listener().0, tunnels);
            peer.established(1);
            began.elapsed()
        });
        ended.store(true, Ordering::Relaxed);
        let connections = attacker.map_or(0, |attacker| attacker.join().expect("it ends"));
        (took, connections)
    });
    let seconds = began.elapsed().as_secs_f64();
    let cpu = control_cpu().saturating_sub(before);
    if attack.is_some_and(|attack| attack.is_of_strangers) {
        // Reports are limited, counts are not.
        gateway.log.wait("every stranger is counted", |state| {
            (state.refused_count >= connections).then_some(())
        });
        let reports = gateway.log.with(|state| state.refused.len());
        assert!(
            (1..connections as usize / 4).contains(&reports),
            "{reports}"
        );
    }
    drop(gateway);
    Outcome {
        connections_per_s: f64::from(connections) / seconds,
        took,
        share: cpu.as_secs_f64() / seconds,
    }
}

impl Attack {
    /// Opens connections at the rate until the end. Returns their number.
    fn connect(&self, to: SocketAddr, ended: &AtomicBool) -> u32 {
        let mut open = VecDeque::new();
        let began = Instant::now();
        let mut connections = 0;
        while !ended.load(Ordering::Relaxed) {
            let due = began + Duration::from_secs(1) * connections / RATE;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut stream = connect_from((self.from)(connections), to);
            let greeting = &self.greetings[connections as usize % self.greetings.len()];
            // It may be closed already.
            let _ = stream.write_all(greeting);
            open.push_back(stream);
            if open.len() > OPEN_MAX {
                open.pop_front();
            }
            connections += 1;
        }
        connections
    }
}

/// CPU time of this process's control threads that still run.
fn control_cpu() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("/proc");
    let ticks = tasks.flatten().filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let mut numbers = rest.split_whitespace().skip(11);
        let mut number = || numbers.next()?.parse::<u64>().ok();
        (name == control::THREAD_NAME).then_some(number()? + number()?)
    });
    // USER_HZ, which is 100 on every architecture.
    Duration::from_millis(ticks.sum::<u64>() * 10)
}
