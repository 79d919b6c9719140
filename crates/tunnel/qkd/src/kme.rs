//! A simulator of the KMEs of a QKD network, for tests and labs. It serves ETSI GS QKD 014 v1.1.1
//! and generates its keys from random numbers.
//!
//! [`start`] runs all KMEs of a [`Config`] on one thread, each with its own listener, certificate
//! and SAEs. `docs/kme.md` specifies what the standard leaves open. Faults can be injected at run
//! time.
//!
//! It deliberately has no quantum channel, no peers in other processes, and no protection of keys
//! from its operator.

mod admin;
mod bucket;
mod call;
mod config;
mod door;
mod fault;
mod network;
mod refusal;
mod serve;
mod tls;

pub use call::Call;
pub use config::{Config, KEYS, Keys, KmeConfig};
pub use fault::{Armed, Fault};

use crate::error::SetupError;
use axum::Router;
use door::{Caller, Door};
use network::Network;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tls::Names;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time limit at shutdown for responses that are being written.
const LINGER: Duration = Duration::from_secs(1);

/// Why the simulator cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file of a KME is invalid.
    #[error("KME {kme}: {error}")]
    Files {
        /// The KME's name.
        kme: String,
        /// What is wrong.
        error: SetupError,
    },
    /// A listener cannot be bound.
    #[error("cannot listen at {address}: {error} (see what has that port: ss -ltnp)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        error: io::Error,
    },
    /// The thread or its event queue cannot be created.
    #[error("cannot start a thread with an event queue: {0}")]
    Thread(io::Error),
}

/// State shared by all KMEs.
struct Shared {
    network: Mutex<Network>,
    start: Instant,
}

impl Shared {
    fn network(&self) -> MutexGuard<'_, Network> {
        // A panic ends one response; the other requests continue.
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// The running KMEs; they stop when this is dropped.
pub struct Simulator {
    shared: Arc<Shared>,
    kmes: Vec<(String, SocketAddr)>,
    faults: Option<SocketAddr>,
    /// Dropping it ends the thread.
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts all KMEs. They accept connections when this returns.
///
/// # Errors
/// [`StartError`]; nothing is left running.
pub fn start(config: &Config) -> Result<Simulator, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)?;
    // One network behind one lock: a key that one KME hands out must be at the others at that
    // moment.
    let shared = Arc::new(Shared {
        network: Mutex::new(Network::new(config)),
        start: Instant::now(),
    });
    let (stop, stopped) = watch::channel(());
    let mut servers = Servers {
        running: JoinSet::new(),
        stopped,
    };
    let mut kmes = Vec::new();
    let mut faults = None;
    runtime.block_on(async {
        for (place, kme) in config.kmes.iter().enumerate() {
            let tls = tls::server_config(kme).map_err(|error| StartError::Files {
                kme: kme.name.clone(),
                error,
            })?;
            let names = Names::new(&kme.saes);
            let door = listen(kme.listen, |listener| serve::open(listener, tls, names)).await?;
            kmes.push((kme.name.clone(), door.address()));
            servers.add(door, serve::router(Arc::clone(&shared), place));
        }
        if let Some(address) = config.faults {
            let door = listen(address, admin::open).await?;
            faults = Some(door.address());
            servers.add(door, admin::router(Arc::clone(&shared)));
        }
        Ok::<_, StartError>(())
    })?;
    let thread = thread::Builder::new()
        .name("kme".to_owned())
        .spawn(move || servers.run(&runtime))
        .map_err(StartError::Thread)?;
    Ok(Simulator {
        shared,
        kmes,
        faults,
        stop: Some(stop),
        thread: Some(thread),
    })
}

async fn listen<S>(
    address: SocketAddr,
    open: impl FnOnce(tokio::net::TcpListener) -> io::Result<Door<S>>,
) -> Result<Door<S>, StartError> {
    let listener = tokio::net::TcpListener::bind(address).await;
    listener
        .and_then(open)
        .map_err(|error| StartError::Listen { address, error })
}

impl Simulator {
    /// Name and address of each KME.
    #[must_use]
    pub fn kmes(&self) -> &[(String, SocketAddr)] {
        &self.kmes
    }

    /// The address for fault injection and metrics, if configured.
    #[must_use]
    pub const fn faults(&self) -> Option<SocketAddr> {
        self.faults
    }

    /// Arms a fault at one KME, or at all; at none if no KME has the name.
    pub fn arm(&self, kme: Option<&str>, armed: Armed) {
        let mut network = self.shared.network();
        network.faults(kme).for_each(|faults| faults.arm(armed));
    }

    /// Clears all faults of one KME, or of all.
    pub fn clear(&self, kme: Option<&str>) {
        let mut network = self.shared.network();
        network.faults(kme).for_each(|faults| faults.clear(None));
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic can only have come from the task of one response; it was already reported.
            let _ = thread.join();
        }
    }
}

/// The servers on the thread.
struct Servers {
    running: JoinSet<()>,
    /// Closed at shutdown.
    stopped: watch::Receiver<()>,
}

impl Servers {
    fn add<S>(&mut self, door: Door<S>, router: Router)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let stopped = wait_for(self.stopped.clone());
        let service = router.into_make_service_with_connect_info::<Caller>();
        let server = axum::serve(door, service).with_graceful_shutdown(stopped);
        self.running.spawn(async {
            // The server never fails; a connection fails alone.
            let _ = server.into_future().await;
        });
    }

    fn run(self, runtime: &Runtime) {
        let Self {
            mut running,
            stopped,
        } = self;
        runtime.block_on(async {
            // The servers run on this thread while it waits.
            wait_for(stopped).await;
            let all = async { while running.join_next().await.is_some() {} };
            // Unfinished responses are dropped with the runtime.
            let _ = timeout(LINGER, all).await;
        });
    }
}

/// Completes when the sender is dropped.
async fn wait_for(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}
