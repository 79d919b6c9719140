//! Parts in the archive that belong to no file. Interrupted uploads left them, because the store
//! was full or the agent was killed.
//!
//! A part does not name its file. The file's entry names its parts and is written last, so parts
//! without an entry may also belong to an upload in progress: only old ones are removed. An upload
//! that pauses for longer finds the file damaged when it reads it back, and sends it again.

use crate::bucket::{ANSWER_LIMIT, AT_ONCE};
use crate::error::{FleetError, refused};
use crate::store::{FILES, Fleet};
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::object_store::ObjectInfo;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;
use tokio::time::timeout;

/// Younger parts may belong to an upload in progress.
pub const LEFT_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

fn failed(error: &dyn Error) -> FleetError {
    refused("list the archive".to_owned(), error)
}

impl Fleet {
    /// Removes the parts of interrupted uploads from the archive, if an upload's last part is older
    /// than `age` by the server's clock ([`LEFT_AFTER`] is generous). Returns the number of these
    /// uploads.
    ///
    /// # Errors
    /// When the server cannot be asked, or the user may not.
    pub async fn remove_leftovers(&self, age: Duration) -> Result<usize, FleetError> {
        let archive = self.context.get_stream(format!("OBJ_{FILES}")).await;
        let archive = archive.map_err(|error| failed(&error))?;
        // Listed before the entries: each file that is complete by now has an entry.
        let mut left = subjects(&archive, "C").await?;
        let now = name_files(&archive, self.context.client().new_inbox(), &mut left).await?;
        let before = now - i64::try_from(age.as_secs()).unwrap_or(i64::MAX);
        let mut old = BTreeSet::new();
        for parts in left {
            match archive.get_last_raw_message_by_subject(&parts).await {
                Ok(last) if last.time.unix_timestamp() <= before => drop(old.insert(parts)),
                Ok(_) => {}
                // The upload has removed them itself.
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        // Any server of a cluster may list the entries, and one that lags leaves some out.
        if !old.is_empty() && archive.cached_info().config.num_replicas > 1 {
            name_files_by_leader(&archive, &mut old).await?;
        }
        for parts in &old {
            // All parts of an upload have one subject.
            let purged = archive.purge().filter(parts).await;
            purged.map_err(|error| {
                refused("remove what uploads left in the archive".to_owned(), &error)
            })?;
        }
        Ok(old.len())
    }
}

/// Returns a message about the result of [`Fleet::remove_leftovers`]; `None` if it removed nothing.
#[must_use]
pub fn leftovers_removed(uploads: usize) -> Option<String> {
    (uploads > 0).then(|| {
        format!("what {uploads} uploads left that were cut short is removed from the archive")
    })
}

/// Returns the leader's subjects of parts (`C`) or entries (`M`).
async fn subjects(archive: &Stream, kind: &str) -> Result<BTreeSet<String>, FleetError> {
    let pattern = format!("$O.{FILES}.{kind}.>");
    let subjects = archive.info_with_subjects(pattern).await;
    let subjects = subjects.map_err(|error| failed(&error))?;
    let subjects = subjects.map_ok(|(subject, _)| subject);
    subjects.try_collect().await.map_err(|error| failed(&error))
}

/// Drops from `left` the parts of files, as one server lists them. Returns that server's clock, in
/// seconds since 1970.
async fn name_files(
    archive: &Stream,
    inbox: String,
    left: &mut BTreeSet<String>,
) -> Result<i64, FleetError> {
    let consumer = archive.create_consumer(OrderedConfig {
        deliver_subject: inbox,
        filter_subject: format!("$O.{FILES}.M.>"),
        deliver_policy: DeliverPolicy::LastPerSubject,
        ..OrderedConfig::default()
    });
    let consumer = consumer.await.map_err(|error| failed(&error))?;
    let info = consumer.cached_info();
    // The server's clock and its count: both belong to one moment.
    let (now, mut pending) = (info.created.unix_timestamp(), info.num_pending);
    let mut entries = consumer.messages().await.map_err(|error| failed(&error))?;
    while pending > 0 {
        let entry = timeout(ANSWER_LIMIT, entries.next()).await;
        let entry = entry.map_err(|error| failed(&error))?;
        let Some(entry) = entry.transpose().map_err(|error| failed(&error))? else {
            let reason = std::io::Error::other("it ended the list");
            return Err(failed(&reason));
        };
        pending = entry.info().map_err(|error| failed(&*error))?.pending;
        name(left, &entry.payload);
    }
    Ok(now)
}

/// As `name_files`, with each entry from the leader.
async fn name_files_by_leader(
    archive: &Stream,
    left: &mut BTreeSet<String>,
) -> Result<(), FleetError> {
    let read = |entry: String| async move {
        let found = archive.get_last_raw_message_by_subject(&entry).await;
        found.map_err(|error| failed(&error))
    };
    let entries = subjects(archive, "M").await?;
    let mut entries = stream::iter(entries).map(read).buffer_unordered(AT_ONCE);
    while let Some(entry) = entries.next().await {
        name(left, &entry?.payload);
    }
    Ok(())
}

/// Drops from `left` the parts that an entry names. An unreadable entry names none.
fn name(left: &mut BTreeSet<String>, entry: &[u8]) {
    if let Ok(file) = serde_json::from_slice::<ObjectInfo>(entry)
        && !file.deleted
    {
        left.remove(&format!("$O.{FILES}.C.{}", file.nuid));
    }
}
