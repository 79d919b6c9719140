//! The encryptor as a service: from a configuration to running lanes, and to a clean stop.
//!
//! Everything that can be refused is refused before the first packet moves, with one clear error:
//! engine, keys, addresses, interface, metrics port.

use crate::config::{Config, MTU_MIN, Mode, Tunnel};
use crate::counters::Tally;
use crate::inbound::InboundKeys;
use crate::lane::{self, LaneKeys, LaneSettings, LaneTunnel};
use crate::metrics::{self, Facts};
use crate::payload::{IpRules, Payload};
use crate::policy::Policy;
use crate::tunnel::{self, TunnelError};
use crate::worker::Worker;
use engine::Selection;
use keying::{KeyFile, StaticKeys};
use port::{Stop, Tun, TunError, TunOffloads, TunSettings, UdpLane};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use wire::overhead::{self, Outer};

/// Why the encryptor did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// No engine can do it.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// Several peers, or frames.
    #[error("only one tunnel in mode `l3` is served yet")]
    ModeNotServed,
    /// The keys cannot be used.
    #[error(transparent)]
    Keys(#[from] keying::KeyError),
    /// The TUN device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The interface's settings.
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// A lane's socket.
    #[error("cannot open lane {lane} from {local} to {remote}: {error}\nhelp: {help}")]
    Lane {
        /// Number of the lane.
        lane: u16,
        /// Its own address.
        local: SocketAddr,
        /// The peer's.
        remote: SocketAddr,
        /// What the kernel said.
        error: io::Error,
        /// What to do.
        help: &'static str,
    },
    /// The tunnel's packets would not fit the path.
    #[error(
        "an MTU of {mtu} B makes ESP packets too long for the route to the peer, which takes {path_mtu} B\n\
         help: {help}"
    )]
    PathMtu {
        /// `tunnel.mtu`, or the smallest that makes sense.
        mtu: u16,
        /// MTU of the route to the peer, in bytes.
        path_mtu: usize,
        /// What to do.
        help: String,
    },
    /// The metrics port.
    #[error(
        "cannot serve metrics on {address}: {error}\nhelp: another process may have the port; choose another under `metrics`"
    )]
    Metrics {
        /// Configured address.
        address: SocketAddr,
        /// What the kernel said.
        error: io::Error,
    },
    /// A thread could not be started, or a flag not be made.
    #[error("the system gives no thread or descriptor: {0}")]
    Resources(io::Error),
    /// A lane ended by itself.
    #[error("lane {lane} lost its port: {error}\nhelp: was the interface removed?")]
    LaneEnded {
        /// Number of the lane.
        lane: u16,
        /// What the kernel said.
        error: io::Error,
    },
}

/// Runs the encryptor until `stop` is raised; `ready` is called once, when it forwards, with what it found.
/// `version` is what the program calls itself, in one word.
///
/// # Errors
/// [`ServiceError`]; nothing stays behind.
pub fn run(
    config: &Config,
    version: &str,
    stop: &Stop,
    ready: impl FnOnce(&Facts),
) -> Result<Tally, ServiceError> {
    let selection = engine::select(&config.engine, config.suite)?;
    for passed in selection.passed_over() {
        eprintln!(
            "warning: {}; using {} instead",
            passed.reason,
            selection.engine()
        );
    }
    if config.engine.is_null() {
        eprintln!(
            "warning: the engine `null` neither encrypts nor authenticates: for measurements only"
        );
    }
    let Mode::L3(tunnel) = &config.mode else {
        return Err(ServiceError::ModeNotServed);
    };
    let [peer] = &config.peers[..] else {
        return Err(ServiceError::ModeNotServed);
    };
    let Some(keys) = &peer.keys else {
        return Err(ServiceError::ModeNotServed);
    };
    let key_file = KeyFile::open(keys)?;
    let lanes = (0..config.workers)
        .map(|lane| open_lane(config, lane))
        .collect::<Result<Vec<_>, _>>()?;
    let mtu = tunnel_mtu(config, tunnel, &lanes)?;
    let (tuns, tun_offloads) = open_tun(config, tunnel, mtu)?;
    let listener = config.metrics.map(listen).transpose()?;
    let mut facts = facts(config, tunnel, mtu, &selection, tun_offloads, &lanes);
    facts.insert(0, ("version", version.to_owned()));

    // Nothing can be refused any more that would waste an epoch.
    let keys = Arc::new(Mutex::new(key_file.draw_epoch()?));
    let workers: Vec<_> = (0..)
        .zip(tuns.into_iter().zip(lanes))
        .map(|(lane, (tun, udp))| make_worker(config, lane, tun, udp, &selection, &keys))
        .collect();
    let counters: Vec<_> = workers.iter().map(Worker::counters).collect();
    if let Some(listener) = listener {
        metrics::serve(listener, facts.clone(), counters.clone())
            .map_err(ServiceError::Resources)?;
    }
    ready(&facts);
    run_workers(workers, stop)?;
    Ok(counters
        .iter()
        .fold(Tally::default(), |sum, lane| sum + lane.read()))
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServiceError> {
    TcpListener::bind(address).map_err(|error| ServiceError::Metrics { address, error })
}

/// The interface's MTU: as configured if the path takes it, else the largest that it takes.
fn tunnel_mtu(config: &Config, tunnel: &Tunnel, lanes: &[UdpLane]) -> Result<u16, ServiceError> {
    let path_mtu = lanes.iter().filter_map(|lane| lane.path_mtu(0).ok()).min();
    // An IP packet is not longer, whatever an interface (loopback) says.
    let path_mtu = path_mtu
        .unwrap_or(usize::from(u16::MAX))
        .min(usize::from(u16::MAX));
    let outer = Outer {
        ipv6: config.local.is_ipv6(),
        udp: true,
    };
    let largest = overhead::inner_mtu(config.suite, outer, path_mtu).unwrap_or(0) as u16;
    let mtu = tunnel.mtu.unwrap_or(largest);
    if mtu <= largest && mtu >= MTU_MIN {
        return Ok(mtu);
    }
    let help = if largest >= MTU_MIN {
        format!("write `mtu: {largest} B` or `mtu: auto`, or raise the MTU of the link")
    } else {
        "raise the MTU of the link".to_owned()
    };
    Err(ServiceError::PathMtu {
        mtu: mtu.max(MTU_MIN),
        path_mtu,
        help,
    })
}

fn open_tun(
    config: &Config,
    tunnel: &Tunnel,
    mtu: u16,
) -> Result<(Vec<Tun>, TunOffloads), ServiceError> {
    let settings = TunSettings {
        name: &tunnel.name,
        queues: usize::from(config.workers),
    };
    let mut tuns = Tun::create(&settings)?;
    tunnel::set_up(tunnel, &config.peers, mtu)?;
    let wanted = config.offloads.tun;
    let granted = tuns
        .iter_mut()
        .map(|tun| tun.enable_offloads(wanted))
        .last();
    Ok((tuns, granted.unwrap_or(wanted)))
}

fn open_lane(config: &Config, lane: u16) -> Result<UdpLane, ServiceError> {
    // `Config` holds no port so high that the last lane's would wrap.
    let local = SocketAddr::new(config.local, config.port + lane);
    let remote = SocketAddr::new(
        config.peers[0].remote.ip(),
        config.peers[0].remote.port() + lane,
    );
    UdpLane::connect(local, remote, config.offloads.udp).map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another process has this port; stop it or choose another `port`"
            }
            io::ErrorKind::AddrNotAvailable => "`local` must be an address of this host",
            io::ErrorKind::PermissionDenied => {
                "ports below 1024 need root, and a broadcast address is no peer"
            }
            _ => "`remote` must be reachable: look at `ip route get`",
        };
        ServiceError::Lane {
            lane,
            local,
            remote,
            error,
            help,
        }
    })
}

fn make_worker(
    config: &Config,
    lane: u16,
    tun: Tun,
    udp: UdpLane,
    selection: &Selection,
    keys: &Arc<Mutex<StaticKeys>>,
) -> Worker<Tun, UdpLane, LaneKeys> {
    let tunnels = [LaneTunnel {
        id: 0,
        peer: 0,
        keys: Some(Arc::clone(keys)),
        inner_bytes_max: usize::from(u16::MAX),
        mss_max: [u16::MAX; 2],
    }];
    let (outbound, inbound) = lane::halves(&LaneSettings {
        lane,
        lanes: config.workers,
        tunnels: &tunnels,
        payload: &Payload::Ip(IpRules::NONE),
        policy: Arc::new(Policy::new(std::slice::from_ref(
            &config.peers[0].selectors,
        ))),
        selection,
        window: config.replay_window,
    });
    Worker::new(tun, udp, outbound, inbound)
}

fn facts(
    config: &Config,
    tunnel: &Tunnel,
    mtu: u16,
    selection: &Selection,
    tun: TunOffloads,
    lanes: &[UdpLane],
) -> Facts {
    let on = |on: bool| if on { "on" } else { "off" }.to_owned();
    let gso = lanes.iter().all(|lane| lane.offloads().gso);
    let gro = lanes.iter().all(|lane| lane.offloads().gro);
    vec![
        ("suite", config.suite.to_string()),
        ("engine", selection.engine().to_owned()),
        ("engine_version", selection.version().replace(' ', "-")),
        ("lanes", config.workers.to_string()),
        ("interface", tunnel.name.clone()),
        ("mtu", mtu.to_string()),
        ("tso", on(tun.tso)),
        ("uso", on(tun.uso)),
        ("gso", on(gso)),
        ("gro", on(gro)),
    ]
}

/// Runs each worker on a thread of its own until the stop flag is up or one of them fails.
fn run_workers<K>(workers: Vec<Worker<Tun, UdpLane, K>>, stop: &Stop) -> Result<(), ServiceError>
where
    K: InboundKeys,
{
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (lane, worker) in (0u16..).zip(workers) {
            let name = format!("lane-{lane}");
            let work = move || {
                // One lane alone would carry its flows only: when it ends, however it ends, all stop.
                let _all = RaiseOnDrop(stop);
                worker
                    .run(stop)
                    .map_err(|error| ServiceError::LaneEnded { lane, error })
            };
            let started = thread::Builder::new().name(name).spawn_scoped(scope, work);
            threads.push(started.map_err(|error| {
                stop.raise();
                ServiceError::Resources(error)
            })?);
        }
        let results = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect()
    })
}

/// Raises the flag when it goes, also by a panic.
struct RaiseOnDrop<'s>(&'s Stop);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}
