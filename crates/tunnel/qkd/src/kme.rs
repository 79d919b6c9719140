//! A simulator of the KMEs of a QKD network, for tests and labs: it serves ETSI GS QKD 014 v1.1.1 and makes its keys of
//! random numbers.
//!
//! [`start`] runs all KMEs of a [`Config`] on one thread, each with a listener, a certificate and SAEs of its own.
//! What the standard leaves open is decided as `docs/kme.md` tells, and faults can be switched on while it runs.
//!
//! It deliberately has no quantum channel, no peers in other processes, and no protection of keys from who runs it.

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
pub use config::{Config, Keys, KmeConfig};
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

/// When it is ended, answers that are being written have so long to go out.
const LINGER: Duration = Duration::from_secs(1);

/// Why the simulator does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file of a KME is not what it should be.
    #[error("KME {kme}: {error}")]
    Files {
        /// Its name.
        kme: String,
        /// What is wrong.
        error: SetupError,
    },
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {error} (see what has that port: ss -ltnp)")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The process can have no thread, or no event queue.
    #[error("cannot start a thread with an event queue: {0}")]
    Thread(io::Error),
}

/// What all KMEs share.
struct Shared {
    network: Mutex<Network>,
    start: Instant,
}

impl Shared {
    fn network(&self) -> MutexGuard<'_, Network> {
        // One panic ends one answer; the rest of the network goes on as well as it can.
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

/// KMEs that run, until this is dropped.
pub struct Simulator {
    shared: Arc<Shared>,
    kmes: Vec<(String, SocketAddr)>,
    faults: Option<SocketAddr>,
    /// The thread ends once this is gone.
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts all KMEs; they serve when this returns.
///
/// # Errors
/// See [`StartError`]: nothing is left running.
pub fn start(config: &Config) -> Result<Simulator, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)?;
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
    /// The KMEs' names, and where each serves.
    #[must_use]
    pub fn kmes(&self) -> &[(String, SocketAddr)] {
        &self.kmes
    }

    /// Where faults are switched and metrics served, if the configuration has such an address.
    #[must_use]
    pub const fn faults(&self) -> Option<SocketAddr> {
        self.faults
    }

    /// Lets a fault strike at one KME, or at all; nowhere if no KME has the name.
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
            // It panicked, if at all, in a task of one answer: nothing more is to be done about it.
            let _ = thread.join();
        }
    }
}

/// What runs on the thread.
struct Servers {
    running: JoinSet<()>,
    /// Closed when all is to end.
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
            // It never fails: connections do, each by itself.
            let _ = server.into_future().await;
        });
    }

    fn run(self, runtime: &Runtime) {
        let Self {
            mut running,
            stopped,
        } = self;
        runtime.block_on(async {
            wait_for(stopped).await;
            let all = async { while running.join_next().await.is_some() {} };
            // What is still not done then is dropped with the runtime.
            let _ = timeout(LINGER, all).await;
        });
    }
}

/// Ends when the sender is gone.
async fn wait_for(mut stopped: watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}
