//! The daily upkeep of a server: it removes parts of interrupted uploads from the archive.

use crate::connection::Access;
use crate::error::{FleetError, refused};
use crate::leftovers::{LEFT_AFTER, leftovers_removed};
use crate::store::Fleet;
use async_nats::rustls::pki_types::CertificateDer;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Interval between upkeeps.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// Interval after an upkeep that failed.
const AGAIN: Duration = Duration::from_secs(60 * 60);
/// Time limit of an upkeep.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// The time of the next upkeep, and the thread of the current one.
#[derive(Debug)]
pub(super) struct Upkeep {
    next: Instant,
    under_way: Option<JoinHandle<Result<usize, FleetError>>>,
}

impl Upkeep {
    pub(super) fn new() -> Self {
        Self {
            next: Instant::now(),
            under_way: None,
        }
    }

    /// Whether it is to be begun now.
    pub(super) fn is_due(&self) -> bool {
        self.under_way.is_none() && Instant::now() >= self.next
    }

    /// Begins an upkeep in a new thread.
    pub(super) fn begin(&mut self, access: Access, pinned: Option<CertificateDer<'static>>) {
        self.next = Instant::now() + EVERY;
        self.under_way = Some(thread::spawn(move || {
            // A runtime: the caller of `tend` has none.
            crate::run(async {
                let fleet = Fleet::connect_to(&access, pinned.as_ref()).await?;
                let removed = timeout(LIMIT, fleet.remove_leftovers(LEFT_AFTER)).await;
                removed.unwrap_or_else(|error| Err(refused("list the archive".to_owned(), &error)))
            })
        }));
    }

    /// Returns a message about an upkeep that has ended, once.
    pub(super) fn news(&mut self) -> Option<String> {
        let ended = self.under_way.take_if(|thread| thread.is_finished())?;
        let error = match ended.join() {
            Ok(Ok(uploads)) => return leftovers_removed(uploads),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its thread panicked".to_owned(),
        };
        self.next = Instant::now() + AGAIN;
        Some(format!(
            "what uploads left that were cut short is not removed from the archive: {error}; it is tried again in an hour"
        ))
    }
}
