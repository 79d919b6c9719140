//! What a server does once a day beside its work: it removes what uploads that were cut short left
//! in the archive.

use crate::connection::Access;
use crate::error::{FleetError, refused};
use crate::leftovers::{LEFT_AFTER, leftovers_removed};
use crate::store::Fleet;
use async_nats::rustls::pki_types::CertificateDer;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// From one to the next.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// From one that came to no end to the next.
const AGAIN: Duration = Duration::from_secs(60 * 60);
/// How long one may take.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// When it is done, and by whom.
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

    /// Begins it in a thread of its own.
    pub(super) fn begin(&mut self, access: Access, pinned: Option<CertificateDer<'static>>) {
        self.next = Instant::now() + EVERY;
        self.under_way = Some(thread::spawn(move || {
            crate::run(async {
                let fleet = Fleet::connect_to(&access, pinned.as_ref()).await?;
                let removed = timeout(LIMIT, fleet.remove_leftovers(LEFT_AFTER)).await;
                removed.unwrap_or_else(|error| Err(refused("list the archive".to_owned(), &error)))
            })
        }));
    }

    /// What came of it, for people, once.
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
