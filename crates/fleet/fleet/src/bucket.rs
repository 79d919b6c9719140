//! A bucket of the server: reads entries as JSON, changes them by compare-and-swap, and follows
//! their changes.

use crate::denial::Denials;
use crate::error::{FleetError, is_full, refused};
use crate::unreadable::{Unreadable, discarding, parsed};
use async_nats::HeaderMap;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::kv::{Entry, Operation, Store, UpdateErrorKind, Watch};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use futures_util::{StreamExt, stream};
use guard::{escaped, visible};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The largest entry with its headers, in bytes: below nats-server's message limit of 1 MiB.
pub(crate) const ENTRY_BYTES_MAX: i32 = 1000 << 10;
/// The largest value.
pub(crate) const VALUE_BYTES_MAX: usize = (ENTRY_BYTES_MAX as usize) - 1024;
/// How long a server may take to answer before a command reports that it does not.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Interval between attempts of a request that must succeed.
const RETRY: Duration = Duration::from_millis(500);
/// After this long without a change, the server is asked whether one was missed.
const QUIET: Duration = Duration::from_secs(60);
/// How long a change may be under way before it counts as missed.
const ON_THE_WAY: Duration = Duration::from_secs(2);
/// Requests in parallel.
pub(crate) const AT_ONCE: usize = 64;
/// Entries per request while all are reported: the client buffers entries that are not read yet,
/// and does not return this memory to the system later.
const BATCH: usize = 500;
/// Without a request for this long the server forgets a consumer.
const INACTIVE_MAX: Duration = Duration::from_secs(30);
/// Failed attempts after which the server counts as unreachable; a single timeout is enough.
const SILENT_MAX: u32 = 2;

/// Entries by key.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) store: Store,
    pub(crate) denials: Denials,
    pub(crate) unreadable: Unreadable,
    /// Whether several servers replicate it.
    is_replicated: bool,
}

/// An entry as the server has it.
struct Raw {
    value: Vec<u8>,
    revision: u64,
    is_deleted: bool,
    /// In seconds since 1970.
    written_at: i64,
}

impl From<Entry> for Raw {
    fn from(entry: Entry) -> Self {
        Self {
            value: entry.value.to_vec(),
            revision: entry.revision,
            is_deleted: entry.operation != Operation::Put,
            written_at: entry.created.unix_timestamp(),
        }
    }
}

impl From<StreamMessage> for Raw {
    fn from(message: StreamMessage) -> Self {
        Self {
            is_deleted: is_deletion(&message.headers),
            value: message.payload.to_vec(),
            revision: message.sequence,
            written_at: message.time.unix_timestamp(),
        }
    }
}

/// Whether the headers mark a deletion, by the client or by the server.
fn is_deletion(headers: &HeaderMap) -> bool {
    let is_marked = |mark: &str| {
        let value = headers.get(mark);
        value.is_some_and(|value| value.as_str() != "PUT")
    };
    ["KV-Operation", "Nats-Marker-Reason"]
        .into_iter()
        .any(is_marked)
}

/// The result of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swap {
    /// The entry has the new value, at this revision.
    Made(u64),
    /// Somebody else changed the entry first.
    Lost,
}

/// An entry and its revision.
#[derive(Debug, Clone)]
pub(crate) struct Versioned<T> {
    pub(crate) value: T,
    pub(crate) revision: u64,
    /// When it was written, by the server's clock, in seconds since 1970.
    pub(crate) written_at: u64,
}

impl<T> Versioned<Result<T, String>> {
    /// Returns the entry, or why it cannot be read.
    fn known(self) -> Result<Versioned<T>, String> {
        let Self {
            value,
            revision,
            written_at,
        } = self;
        value.map(|value| Versioned {
            value,
            revision,
            written_at,
        })
    }
}

/// An event of [`Bucket::follow`].
pub(crate) enum BucketEvent<T> {
    /// An entry's new value; `None` if it was deleted or cannot be read.
    Entry(String, Option<Versioned<T>>),
    /// All entries that were there have been reported.
    Current,
}

impl Bucket {
    pub(crate) fn new(store: Store, denials: Denials, unreadable: Unreadable) -> Self {
        Self {
            is_replicated: store.stream.cached_info().config.num_replicas > 1,
            store,
            denials,
            unreadable,
        }
    }

    /// Returns an entry or its deletion; `None` if it never existed.
    async fn entry(&self, key: &str) -> Result<Option<Raw>, async_nats::Error> {
        // One server has no replicas that lag.
        if !self.is_replicated || !is_key(key) {
            return Ok(self.store.entry(key).await?.map(Raw::from));
        }
        // Any server of a cluster may answer, and one that lags may not have a change yet that this
        // program made.
        self.entry_of_leader(key).await
    }

    /// Returns the leader's entry; the key may have any form.
    async fn entry_of_leader(&self, key: &str) -> Result<Option<Raw>, async_nats::Error> {
        let subject = format!("$KV.{}.{key}", self.store.name);
        let asked = self.store.stream.get_last_raw_message_by_subject(&subject);
        match asked.await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns an entry; `None` if absent.
    ///
    /// # Errors
    /// Also if the entry cannot be read.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Versioned<T>>, FleetError> {
        let found = self.look(key).await?;
        found.map(Versioned::known).transpose().map_err(|reason| {
            let entry = format!("{}/{key}", self.store.name);
            FleetError::Refused {
                what: format!("return an entry {} of this version", escaped(&entry)),
                reason: format!("{reason}\nhelp: `{}` removes it", discarding(&entry)),
            }
        })
    }

    /// Returns an entry or why it cannot be read; `None` if absent.
    pub(crate) async fn look<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Versioned<Result<T, String>>>, FleetError> {
        let entry = self.entry(key).await;
        self.looked(key, entry)
    }

    /// As `look`, for a key that no version of this program writes.
    pub(crate) async fn look_at_stray<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Versioned<Result<T, String>>>, FleetError> {
        let entry = self.entry_of_leader(key).await;
        self.looked(key, entry)
    }

    fn looked<T: DeserializeOwned>(
        &self,
        key: &str,
        entry: Result<Option<Raw>, async_nats::Error>,
    ) -> Result<Option<Versioned<Result<T, String>>>, FleetError> {
        let what = || format!("read {} of {}", visible(key), self.store.name);
        let entry = entry.map_err(|error| refused(what(), &*error))?;
        Ok(self.taken(key, entry.as_ref()))
    }

    /// Parses an entry, and notes whether that was possible; `None` if it was deleted.
    fn taken<T: DeserializeOwned>(
        &self,
        key: &str,
        entry: Option<&Raw>,
    ) -> Option<Versioned<Result<T, String>>> {
        let found = entry.filter(|entry| !entry.is_deleted);
        let found = found.map(|entry| Versioned {
            value: parsed(&entry.value),
            revision: entry.revision,
            // Servers have no clock before 1970.
            written_at: entry.written_at.unsigned_abs(),
        });
        let reason = found.as_ref().and_then(|found| found.value.as_ref().err());
        self.unreadable.note(&self.store.name, key, reason.cloned());
        found
    }

    /// Returns an entry; `None` if absent or unreadable. Unreadable entries are noted.
    pub(crate) async fn read_known<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Versioned<T>>, FleetError> {
        let found = self.look(key).await?;
        Ok(found.and_then(|found| found.known().ok()))
    }

    /// Reads entries by key, in parallel. Missing and unreadable entries are left out.
    pub(crate) async fn read_each<T: DeserializeOwned>(
        &self,
        keys: impl IntoIterator<Item = String>,
    ) -> Result<BTreeMap<String, Versioned<T>>, FleetError> {
        let read = |key: String| async move {
            let found = self.read_known(&key).await?;
            Ok::<_, FleetError>(found.map(|found| (key, found)))
        };
        let mut all = BTreeMap::new();
        // The answer of each takes a round trip, and a list may have thousands.
        let mut reads = stream::iter(keys).map(read).buffer_unordered(AT_ONCE);
        while let Some(found) = reads.next().await {
            all.extend(found?);
        }
        Ok(all)
    }

    /// Returns every readable entry, by key.
    pub(crate) async fn read_all<T: DeserializeOwned>(
        &self,
    ) -> Result<BTreeMap<String, Versioned<T>>, FleetError> {
        self.read_under(">").await
    }

    /// Returns every readable entry that matches a pattern (`at.*`), by key. If a bucket has
    /// entries but none matches, this waits for a timeout.
    pub(crate) async fn read_under<T: DeserializeOwned>(
        &self,
        pattern: &str,
    ) -> Result<BTreeMap<String, Versioned<T>>, FleetError> {
        let until = Instant::now() + ANSWER_LIMIT;
        loop {
            // Any server of a cluster may answer, and one that lags leaves out entries that the
            // leader counts.
            let expected = if self.is_replicated {
                self.count(pattern).await?
            } else {
                0
            };
            let (all, seen) = self.list(pattern).await?;
            if seen >= expected {
                return Ok(all);
            }
            if Instant::now() > until {
                return Err(FleetError::Refused {
                    what: format!("list {}", self.store.name),
                    reason: format!("it has {expected} entries and shows {seen}"),
                });
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Returns the leader's number of entries that match a pattern, including deleted ones.
    async fn count(&self, pattern: &str) -> Result<usize, FleetError> {
        let failed =
            |error: &dyn std::error::Error| refused(format!("count {}", self.store.name), error);
        let pattern = format!("$KV.{}.{pattern}", self.store.name);
        let subjects = self.store.stream.info_with_subjects(pattern).await;
        let mut subjects = subjects.map_err(|error| failed(&error))?;
        let mut count = 0;
        while let Some(subject) = subjects.next().await {
            subject.map_err(|error| failed(&error))?;
            count += 1;
        }
        Ok(count)
    }

    /// Returns one server's entries that match a pattern, and their number including deleted ones.
    async fn list<T: DeserializeOwned>(
        &self,
        pattern: &str,
    ) -> Result<(BTreeMap<String, Versioned<T>>, usize), FleetError> {
        let failed =
            |error: &dyn std::error::Error| refused(format!("list {}", self.store.name), error);
        let (mut all, mut seen) = (BTreeMap::new(), BTreeSet::new());
        // An empty bucket would report nothing, and the wait would end by the limit.
        if self.last_sequence().await?.is_none() {
            return Ok((all, 0));
        }
        let watch = self.store.watch_with_history(pattern).await;
        let mut entries = watch.map_err(|error| failed(&error))?;
        let mut limit = if pattern == ">" {
            ANSWER_LIMIT
        } else {
            ON_THE_WAY
        };
        // The last entry may have been deleted meanwhile.
        while let Ok(Some(entry)) = timeout(limit, entries.next()).await {
            // After the first entry the rest is on the way.
            limit = ANSWER_LIMIT;
            let entry = entry.map_err(|error| failed(&error))?;
            let (key, is_last) = (entry.key.clone(), entry.seen_current || entry.delta == 0);
            if let Some(found) = self.parse(&key, &entry.into()) {
                all.insert(key.clone(), found);
            }
            seen.insert(key);
            if is_last {
                break;
            }
        }
        Ok((all, seen.len()))
    }

    /// Returns the sequence number of the last change; `None` for an empty bucket.
    async fn last_sequence(&self) -> Result<Option<u64>, FleetError> {
        // The `status` of the store is as old as its opening.
        let info = self.store.stream.get_info().await;
        let info =
            info.map_err(|error| refused(format!("describe {}", self.store.name), &error))?;
        Ok((info.state.messages > 0).then_some(info.state.last_sequence))
    }

    /// Reports every entry, then each change, until `on` breaks, and then returns `Ok`. An
    /// unanswered request or a missed change is an error; another call reports all entries again.
    pub(crate) async fn follow<T: DeserializeOwned>(
        &self,
        mut on: impl FnMut(BucketEvent<T>) -> ControlFlow<()>,
    ) -> Result<(), FleetError> {
        let failed =
            |error: &dyn std::error::Error| refused(format!("follow {}", self.store.name), error);
        let reported = match self.report_all(&mut on).await {
            Ok(Some(last)) => last,
            Ok(None) => return Ok(()),
            // A server that an earlier version of this program started: the watch reports all
            // entries.
            Err(FleetError::Denied { .. }) => 0,
            Err(error) => return Err(error),
        };
        // A bucket keeps only the last change of each entry.
        let entries = self.store.watch_all_from_revision(reported + 1);
        let mut entries: Watch = entries.await.map_err(|error| failed(&error))?;
        // Read after the watch began, which reports all changes up to this one.
        let mut last = self.last_sequence().await?;
        let mut is_current = reported > 0 || last.is_none();
        if is_current && on(BucketEvent::Current).is_break() {
            return Ok(());
        }
        let mut missed = false;
        loop {
            let limit = if missed { ON_THE_WAY } else { QUIET };
            match timeout(limit, entries.next()).await {
                Ok(Some(entry)) => {
                    let entry = entry.map_err(|error| failed(&error))?;
                    (last, missed) = (Some(entry.revision), false);
                    let became_current = !is_current && (entry.seen_current || entry.delta == 0);
                    let key = entry.key.clone();
                    let found = self.parse(&key, &entry.into());
                    if on(BucketEvent::Entry(key, found)).is_break() {
                        return Ok(());
                    }
                    if became_current {
                        is_current = true;
                        if on(BucketEvent::Current).is_break() {
                            return Ok(());
                        }
                    }
                }
                Ok(None) => break,
                Err(_) if self.last_sequence().await? == last => missed = false,
                Err(_) if missed => break,
                Err(_) => missed = true,
            }
        }
        Err(FleetError::Refused {
            what: format!("report each change of {}", self.store.name),
            reason: "it knows of changes that it did not report".to_owned(),
        })
    }

    /// Reports every existing entry. Returns the highest revision, 0 for an empty bucket; `None` if
    /// `on` broke.
    async fn report_all<T: DeserializeOwned>(
        &self,
        on: &mut impl FnMut(BucketEvent<T>) -> ControlFlow<()>,
    ) -> Result<Option<u64>, FleetError> {
        let failed =
            |error: &dyn std::error::Error| refused(format!("list {}", self.store.name), error);
        let prefix = format!("$KV.{}.", self.store.name);
        let stream = &self.store.stream;
        // Pulled in batches, as a push of all entries would fill the client's memory.
        let consumer = stream.create_consumer(pull::Config {
            deliver_policy: DeliverPolicy::LastPerSubject,
            ack_policy: AckPolicy::None,
            filter_subject: format!("{prefix}>"),
            inactive_threshold: INACTIVE_MAX,
            num_replicas: 1,
            memory_storage: true,
            ..pull::Config::default()
        });
        let consumer = consumer.await.map_err(|error| failed(&error))?;
        let (name, mut pending) = {
            let info = consumer.cached_info();
            (info.name.clone(), info.num_pending)
        };
        let next = format!(
            "$JS.API.CONSUMER.MSG.NEXT.{}",
            stream.cached_info().config.name
        );
        // The permission may have changed since an earlier attempt.
        self.denials.forget(&next);
        let mut last = 0;
        while pending > 0 {
            let batch = consumer.fetch().max_messages(BATCH).messages().await;
            let mut batch = batch.map_err(|error| failed(&error))?;
            let before = pending;
            while pending > 0 {
                let message = tokio::select! {
                    message = timeout(ANSWER_LIMIT, batch.next()) => message,
                    subject = self.denials.under(&next) => return Err(FleetError::Denied {
                        what: format!("list {}", self.store.name),
                        subject,
                    }),
                };
                let message = message.map_err(|error| failed(&error))?;
                let Some(message) = message.transpose().map_err(|error| failed(&*error))? else {
                    break;
                };
                let (entry, left) = raw_of(&message).map_err(|error| failed(&*error))?;
                (last, pending) = (last.max(entry.revision), left);
                let key = message.subject.strip_prefix(&*prefix).unwrap_or_default();
                let found = self.parse(key, &entry);
                if on(BucketEvent::Entry(key.to_owned(), found)).is_break() {
                    return Ok(None);
                }
            }
            // No entry came: the others were removed meanwhile.
            if pending == before {
                break;
            }
        }
        // Otherwise it expires.
        let _ = stream.delete_consumer(&name).await;
        Ok(Some(last))
    }

    /// Parses an entry; `None` if it was deleted or cannot be read, which is noted.
    fn parse<T: DeserializeOwned>(&self, key: &str, entry: &Raw) -> Option<Versioned<T>> {
        self.taken(key, Some(entry))?.known().ok()
    }

    /// Replaces an entry of a revision (0: absent) with a value. Repeats until the result is known:
    /// if an answer was lost, the entry is read.
    ///
    /// # Errors
    /// Only [`FleetError::Denied`], [`FleetError::Full`] and, for a key or value that an entry
    /// cannot have, [`FleetError::Unfit`].
    pub(crate) async fn swap<T: Serialize>(
        &self,
        key: &str,
        revision: u64,
        value: &T,
    ) -> Result<Swap, FleetError> {
        let bytes = serde_json::to_vec(value)
            .unwrap_or_else(|error| unreachable!("an entry is maps, texts and numbers: {error}"));
        // The server would refuse it each time.
        let reason = match bytes.len() {
            _ if !is_key(key) => Some("its key is none".to_owned()),
            length if length > VALUE_BYTES_MAX => Some(format!(
                "it has {length} bytes of at most {VALUE_BYTES_MAX}"
            )),
            _ => None,
        };
        if let Some(reason) = reason {
            let what = format!("entry {} of {}", visible(key), self.store.name);
            return Err(FleetError::Unfit { what, reason });
        }
        let subject = format!("$KV.{}.{key}", self.store.name);
        self.denials.forget(&subject);
        // For a deleted entry, the revision of its deletion.
        let mut expected = revision;
        let mut silent = 0;
        loop {
            let updated = tokio::select! {
                updated = self.store.update(key, bytes.clone().into(), expected) => updated,
                subject = self.denials.under(&subject) => return Err(FleetError::Denied {
                    what: format!("change {key} of {}", self.store.name),
                    subject,
                }),
            };
            match updated {
                Ok(revision) => {
                    self.denials.answered();
                    return Ok(Swap::Made(revision));
                }
                // An earlier attempt may have succeeded, and its answer was lost.
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {}
                Err(error) if is_full(&error.to_string()) => {
                    return Err(FleetError::Full {
                        what: format!("change {key} of {}", self.store.name),
                        reason: error.to_string(),
                    });
                }
                Err(error) => {
                    // Not reported at the first time: a leader may just be elected.
                    silent += 1;
                    if silent >= SILENT_MAX || error.kind() == UpdateErrorKind::TimedOut {
                        self.denials.silent(&error.to_string());
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
            match self.entry(key).await {
                // The entry has the value: an earlier attempt succeeded, or somebody wrote the
                // same.
                Ok(Some(entry)) if !entry.is_deleted && entry.value == bytes => {
                    return Ok(Swap::Made(entry.revision));
                }
                Ok(Some(entry)) if entry.revision == expected => {}
                // A deleted entry has a revision, and the server compares with that.
                Ok(Some(entry)) if revision == 0 && entry.is_deleted => expected = entry.revision,
                Ok(None) if revision == 0 => {}
                Ok(_) => return Ok(Swap::Lost),
                Err(_) => tokio::time::sleep(RETRY).await,
            }
        }
    }

    /// Removes an entry if it has this revision. Best effort.
    pub(crate) async fn remove(&self, key: &str, revision: u64) {
        let _ = self.store.delete_expect_revision(key, Some(revision)).await;
    }
}

/// Returns the entry of a consumer's message, and how many are left.
fn raw_of(message: &Message) -> Result<(Raw, u64), async_nats::Error> {
    let info = message.info()?;
    let raw = Raw {
        is_deleted: message.headers.as_ref().is_some_and(is_deletion),
        value: message.payload.to_vec(),
        revision: info.stream_sequence,
        written_at: info.published.unix_timestamp(),
    };
    Ok((raw, info.pending))
}

/// Whether it is a key of one entry, and not a pattern.
pub(crate) fn is_key(key: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-/_=.".contains(c);
    !key.is_empty() && key.chars().all(is_fine) && !key.starts_with('.') && !key.ends_with('.')
}
