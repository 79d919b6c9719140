//! The server's buckets, and changes of entries that end in exactly one of two ways.

use crate::message::SCHEMA;
use async_nats::jetstream::kv::{Entry, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::{self, kv, object_store};
use async_nats::{ConnectOptions, ServerAddr};
use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// How long a server may take to answer before a command says that it does not.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Between attempts of what must be done whatever the server does.
const RETRY: Duration = Duration::from_millis(500);
/// The largest entry: a campaign's file is far smaller.
const ENTRY_BYTES_MAX: i32 = 512 << 10;

/// Error of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// There is no server.
    #[error("cannot reach the fleet's server at {url}: {reason}\nhelp: {help}")]
    Unreachable {
        /// Where.
        url: String,
        /// Why.
        reason: String,
        /// Advice.
        help: &'static str,
    },
    /// The server has no fleet, or one of another version.
    #[error("{what}\nhelp: {help}")]
    Foreign {
        /// What is wrong.
        what: String,
        /// Advice.
        help: String,
    },
    /// The server refused or lost a request.
    #[error("the fleet's server did not {what}: {reason}")]
    Refused {
        /// What it was asked.
        what: String,
        /// Why.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{what}: {error}")]
    Disk {
        /// What was done.
        what: String,
        /// The reason.
        error: std::io::Error,
    },
}

/// How to reach the server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `nats://host:port`, or `tls://…`.
    pub url: String,
    /// A file of credentials: a user's JWT and NKey.
    pub credentials: Option<PathBuf>,
    /// Certificates of who signed the server's.
    pub ca: Option<PathBuf>,
}

/// A fleet's server, connected.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) jobs: Store,
    pub(crate) states: Store,
    pub(crate) labs: Store,
    pub(crate) misfits: Store,
    pub(crate) runs: Store,
    pub(crate) files: ObjectStore,
}

/// What came of a swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swap {
    /// It is as asked now, with this revision.
    Made(u64),
    /// Somebody else changed it before.
    Lost,
}

/// An entry and its revision.
#[derive(Debug, Clone)]
pub(crate) struct Found<T> {
    pub(crate) value: T,
    pub(crate) revision: u64,
}

impl Fleet {
    /// Connects to a server that has a fleet.
    ///
    /// # Errors
    /// [`FleetError::Unreachable`]; [`FleetError::Foreign`] when there is no fleet, or another
    /// version's.
    pub async fn connect(access: &Access) -> Result<Self, FleetError> {
        let context = context(access).await?;
        let Ok(meta) = context.get_key_value("fleet-meta").await else {
            return Err(FleetError::Foreign {
                what: format!("the server at {} has no fleet", access.url),
                help: format!("`cipherbench fleet server --url {}` makes one", access.url),
            });
        };
        let schema: Option<u32> = read(&meta, "schema").await?.map(|found| found.value);
        match schema {
            Some(SCHEMA) => {}
            found => {
                let found = found.map_or_else(|| "none".to_owned(), |schema| schema.to_string());
                return Err(FleetError::Foreign {
                    what: format!(
                        "the fleet at {} has schema {found}, and this program {SCHEMA}",
                        access.url
                    ),
                    help: "use the same version of cipherbench for server, agents and submitters"
                        .to_owned(),
                });
            }
        }
        let bucket = async |name: &str| {
            context
                .get_key_value(name)
                .await
                .map_err(|error| refused(format!("open bucket {name}"), &error))
        };
        Ok(Self {
            jobs: bucket("fleet-jobs").await?,
            states: bucket("fleet-states").await?,
            labs: bucket("fleet-labs").await?,
            misfits: bucket("fleet-misfits").await?,
            runs: bucket("fleet-runs").await?,
            files: context
                .get_object_store("fleet-files")
                .await
                .map_err(|error| refused("open the archive".to_owned(), &error))?,
        })
    }

    /// Makes what is missing on a server, and connects. What is there stays.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and when the server does not let it.
    pub async fn set_up(access: &Access, replicas: usize) -> Result<Self, FleetError> {
        let context = context(access).await?;
        for (name, description) in [
            ("fleet-jobs", "Campaigns as they were submitted"),
            ("fleet-states", "How far each job is"),
            ("fleet-labs", "Labs on offer, and who has them"),
            ("fleet-misfits", "Why a job does not fit a lab"),
            ("fleet-runs", "The files of each run"),
            ("fleet-meta", "Version of the fleet"),
        ] {
            let config = kv::Config {
                bucket: name.to_owned(),
                description: description.to_owned(),
                history: 1,
                max_value_size: ENTRY_BYTES_MAX,
                num_replicas: replicas,
                ..kv::Config::default()
            };
            context
                .create_or_update_key_value(config)
                .await
                .map_err(|error| refused(format!("make bucket {name}"), &error))?;
        }
        if context.get_object_store("fleet-files").await.is_err() {
            let config = object_store::Config {
                bucket: "fleet-files".to_owned(),
                description: Some("Files of runs, by the hash of their content".to_owned()),
                num_replicas: replicas,
                ..object_store::Config::default()
            };
            context
                .create_object_store(config)
                .await
                .map_err(|error| refused("make the archive".to_owned(), &error))?;
        }
        let meta = context
            .get_key_value("fleet-meta")
            .await
            .map_err(|error| refused("open bucket fleet-meta".to_owned(), &error))?;
        if read::<u32>(&meta, "schema").await?.is_none() {
            swap(&meta, "schema", 0, &SCHEMA).await;
        }
        Self::connect(access).await
    }
}

async fn context(access: &Access) -> Result<jetstream::Context, FleetError> {
    let unreachable = |reason: String, help| FleetError::Unreachable {
        url: access.url.clone(),
        reason,
        help,
    };
    let address: ServerAddr = access.url.parse().map_err(|error: std::io::Error| {
        unreachable(error.to_string(), "write it as nats://host:4222")
    })?;
    let mut options = ConnectOptions::new()
        .name("cipherbench")
        .connection_timeout(ANSWER_LIMIT)
        .request_timeout(Some(ANSWER_LIMIT));
    if let Some(path) = &access.ca {
        options = options.add_root_certificates(path.clone());
    }
    if let Some(path) = &access.credentials {
        options = options.credentials_file(path).await.map_err(|error| {
            let reason = format!("{}: {error}", path.display());
            unreachable(reason, "give a file of credentials that can be read")
        })?;
    }
    let client = options.connect(address).await.map_err(|error| {
        unreachable(
            error.to_string(),
            "start one with `cipherbench fleet server`, or correct `--url` and the credentials",
        )
    })?;
    Ok(jetstream::new(client))
}

pub(crate) fn refused(what: String, error: &dyn std::error::Error) -> FleetError {
    FleetError::Refused {
        what,
        reason: error.to_string(),
    }
}

/// An entry; `None` where there is none.
pub(crate) async fn read<T: DeserializeOwned>(
    bucket: &Store,
    key: &str,
) -> Result<Option<Found<T>>, FleetError> {
    let entry = bucket.entry(key).await;
    let entry = entry.map_err(|error| refused(format!("read {key} of {}", bucket.name), &error))?;
    entry
        .and_then(|entry| parse(bucket, entry).transpose())
        .transpose()
}

/// Every entry of a bucket, by its key.
pub(crate) async fn read_all<T: DeserializeOwned>(
    bucket: &Store,
) -> Result<BTreeMap<String, Found<T>>, FleetError> {
    let failed = |error: &dyn std::error::Error| refused(format!("list {}", bucket.name), error);
    // A bucket's own `status` is that of when it was opened.
    let info = bucket
        .stream
        .get_info()
        .await
        .map_err(|error| failed(&error))?;
    let mut all = BTreeMap::new();
    if info.state.messages == 0 {
        return Ok(all);
    }
    let mut entries = bucket
        .watch_with_history(">")
        .await
        .map_err(|error| failed(&error))?;
    // The last entry may have been deleted meanwhile.
    while let Ok(Some(entry)) = timeout(ANSWER_LIMIT, entries.next()).await {
        let entry = entry.map_err(|error| failed(&error))?;
        let (key, is_last) = (entry.key.clone(), entry.seen_current || entry.delta == 0);
        if let Some(found) = parse(bucket, entry)? {
            all.insert(key, found);
        }
        if is_last {
            break;
        }
    }
    Ok(all)
}

fn parse<T: DeserializeOwned>(
    bucket: &Store,
    entry: Entry,
) -> Result<Option<Found<T>>, FleetError> {
    if entry.operation != Operation::Put {
        return Ok(None);
    }
    let value = serde_json::from_slice(&entry.value).map_err(|error| {
        let what = format!("read {} of {}", entry.key, bucket.name);
        refused(what, &error)
    })?;
    Ok(Some(Found {
        value,
        revision: entry.revision,
    }))
}

/// Changes an entry from a revision (0: none) to a value, and repeats until the server has said
/// which of the two ways it went: an answer that was lost is looked up.
pub(crate) async fn swap<T: Serialize>(
    bucket: &Store,
    key: &str,
    revision: u64,
    value: &T,
) -> Swap {
    let bytes = serde_json::to_vec(value)
        .unwrap_or_else(|error| unreachable!("an entry is maps, texts and numbers: {error}"));
    loop {
        match bucket.update(key, bytes.clone().into(), revision).await {
            Ok(revision) => return Swap::Made(revision),
            // It may be our own earlier attempt, whose answer was lost.
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {}
            Err(_) => tokio::time::sleep(RETRY).await,
        }
        match bucket.entry(key).await {
            Ok(Some(entry)) if entry.value == bytes => return Swap::Made(entry.revision),
            Ok(Some(entry)) if entry.revision == revision => {}
            Ok(None) if revision == 0 => {}
            Ok(_) => return Swap::Lost,
            Err(_) => tokio::time::sleep(RETRY).await,
        }
    }
}
