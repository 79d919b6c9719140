//! A TCP listener with a maximum number of concurrent connections.
//!
//! Further connections wait in the kernel's backlog; when that is full, the kernel refuses them.

use axum::serve::Listener;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Accepts a connection only while fewer than the maximum are open.
#[derive(Debug)]
pub struct LimitedListener {
    listener: TcpListener,
    permits: Arc<Semaphore>,
}

impl LimitedListener {
    /// Limits a listener to this many concurrent connections.
    #[must_use]
    pub fn new(listener: TcpListener, connections: usize) -> Self {
        Self {
            listener,
            permits: Arc::new(Semaphore::new(connections)),
        }
    }

    /// The next connection, with its place among the open ones: to be dropped when it is closed.
    pub async fn accept(&mut self) -> (TcpStream, OwnedSemaphorePermit) {
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // axum's listener pauses and retries when the process is out of file descriptors.
        let (stream, _) = Listener::accept(&mut self.listener).await;
        (stream, permit)
    }
}
