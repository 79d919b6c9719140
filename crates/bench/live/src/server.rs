//! The server of pages: its address, and its thread.

use crate::error::LiveError;
use crate::site::{self, Pages, Site};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Most time that open pages have for their last content.
const LINGER: Duration = Duration::from_secs(3);
/// Between two looks at whether they have it.
const LINGER_STEP: Duration = Duration::from_millis(20);
/// Threads that read files and render reports.
const BLOCKING_THREADS_MAX: usize = 2;

/// An address that is taken, before anything is served. It starts no thread.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Takes an address; port 0 is a free one. `option` is named in errors.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn new(address: SocketAddr, option: &'static str) -> Result<Self, LiveError> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            // `tokio::net::TcpListener::from_std` demands it: `accept` would block the only thread.
            listener.set_nonblocking(true)?;
            // With port 0 the kernel has chosen the port.
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        listen().map_err(|error| LiveError::Listen {
            address,
            option,
            error,
        })
    }

    /// Returns the address of the first page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Whether other machines can reach the pages.
    #[must_use]
    pub fn is_public(&self) -> bool {
        !self.address.ip().is_loopback()
    }
}

/// A server on a thread. Dropping it ends it at once.
#[derive(Debug)]
pub struct Server {
    pages: Arc<Pages>,
    /// Ends the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a site.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(bound: Bound, site: Site) -> Result<Self, LiveError> {
        // One thread for connections: pages must not take several cores from a run. Threads for
        // files start later, from this one, and inherit its priority.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .enable_all()
            .build()
            .map_err(LiveError::NoThread)?;
        let pages = Arc::new(Pages::new(site));
        let (stop, stopped) = oneshot::channel();
        let of_thread = Arc::clone(&pages);
        let serve = move || {
            // The programs of a run have the usual priority.
            lab::host::lower_priority();
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(bound.listener) else {
                    return;
                };
                tokio::select! {
                    _ = page::serve(listener, site::router(of_thread)) => {}
                    _ = stopped => {}
                }
            });
            // A report that is being rendered is not waited for.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new()
            .name("pages".to_owned())
            .spawn(serve)
            .map_err(LiveError::NoThread)?;
        Ok(Self {
            pages,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Ends the server once open pages have their last content, or after some seconds.
    pub fn finish(self) {
        self.pages.end();
        let began = Instant::now();
        // A page gives its place back once its last content is sent.
        while self.pages.are_open() && began.elapsed() < LINGER {
            thread::sleep(LINGER_STEP);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Before the join: a closed channel ends the thread, which would be awaited forever
        // otherwise.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A server that has failed is no fault of the run.
            let _ = thread.join();
        }
    }
}
