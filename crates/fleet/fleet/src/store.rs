//! A fleet's server and its buckets.

use crate::bucket::Bucket;
use crate::connection::{Access, Connection};
use crate::denial::Denials;
use crate::error::{FleetError, refused};
use crate::message::{SCHEMA, is_id};
use crate::random_id;
use crate::streams;
use crate::unreadable::{Unreadable, UnreadableEntry};
use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::rustls::pki_types::CertificateDer;

/// The buckets of entries, each with its description.
pub(crate) const BUCKETS: [(&str, &str); 8] = [
    ("fleet-jobs", "Campaigns as they were submitted"),
    ("fleet-states", "How far each job is"),
    ("fleet-labs", "Labs on offer, and who has them"),
    ("fleet-misfits", "Why a job does not fit a lab"),
    ("fleet-repeats", "Jobs that are repeated"),
    ("fleet-runs", "The files of each run"),
    ("fleet-figures", "Figures of runs by cell"),
    ("fleet-meta", "Version of the fleet"),
];
/// The bucket of files.
pub(crate) const FILES: &str = "fleet-files";

/// A fleet's server, connected.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) jobs: Bucket,
    pub(crate) states: Bucket,
    pub(crate) labs: Bucket,
    pub(crate) misfits: Bucket,
    pub(crate) repeats: Bucket,
    pub(crate) runs: Bucket,
    pub(crate) figures: Bucket,
    pub(crate) files: ObjectStore,
    pub(crate) denials: Denials,
    pub(crate) context: Context,
    pub(crate) unreadable: Unreadable,
    id: String,
    is_open: bool,
}

impl Fleet {
    /// Connects to a server that has a fleet.
    ///
    /// # Errors
    /// [`FleetError::Unreachable`]; [`FleetError::Unknown`] when it does not accept the user;
    /// [`FleetError::Foreign`] when there is no fleet, or another version's.
    pub async fn connect(access: &Access) -> Result<Self, FleetError> {
        Self::connect_to(access, None).await
    }

    /// As `connect`; if a certificate is pinned, the server must have exactly this one.
    pub(crate) async fn connect_to(
        access: &Access,
        pinned: Option<&CertificateDer<'static>>,
    ) -> Result<Self, FleetError> {
        let connection = Connection::to(access, pinned).await?;
        let context = &connection.context;
        // A denied request gets no answer, only an event of the connection.
        let meta = tokio::select! {
            meta = context.get_key_value("fleet-meta") => meta,
            subject = connection.denials.under("$JS.API.") => return Err(FleetError::Denied {
                what: "read the fleet".to_owned(),
                subject,
            }),
        };
        let Ok(meta) = meta else {
            return Err(FleetError::Foreign {
                what: format!("the server at {} has no fleet", access.url),
                help: format!("`cipherbench fleet server --url {}` makes one", access.url),
            });
        };
        let meta = connection.bucket(meta);
        let schema: Option<u32> = meta.read("schema").await?.map(|found| found.value);
        // Before any other entry is read, as its form may be another.
        if schema != Some(SCHEMA) {
            let found = schema.map_or_else(|| "none".to_owned(), |schema| schema.to_string());
            return Err(FleetError::Foreign {
                what: format!(
                    "the fleet at {} has schema {found}, and this program {SCHEMA}",
                    access.url
                ),
                help: format!(
                    "use the same version of cipherbench for server, agents and submitters; `cipherbench fleet server` \
                     brings a fleet of an earlier one to schema {SCHEMA}"
                ),
            });
        }
        let id: Option<String> = meta.read("id").await?.map(|found| found.value);
        let id = id
            .filter(|id| is_id(id))
            .ok_or_else(|| FleetError::Foreign {
                what: format!("the fleet at {} has no id", access.url),
                help: "`cipherbench fleet server` gives it one".to_owned(),
            })?;
        let bucket = async |name: &str| match context.get_key_value(name).await {
            Ok(store) => Ok(connection.bucket(store)),
            Err(error) => Err(refused(format!("open bucket {name}"), &error)),
        };
        Ok(Self {
            jobs: bucket("fleet-jobs").await?,
            states: bucket("fleet-states").await?,
            labs: bucket("fleet-labs").await?,
            misfits: bucket("fleet-misfits").await?,
            repeats: bucket("fleet-repeats").await?,
            runs: bucket("fleet-runs").await?,
            figures: bucket("fleet-figures").await?,
            files: context
                .get_object_store(FILES)
                .await
                .map_err(|error| refused("open the archive".to_owned(), &error))?,
            denials: connection.denials.clone(),
            context: context.clone(),
            unreadable: connection.unreadable.clone(),
            id,
            is_open: !context.client().server_info().auth_required,
        })
    }

    /// Returns the fleet's unique id: made once, by the server's administrator.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether its server accepts everybody who reaches it.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the entries that this connection could not read, and why. Lists leave them out.
    #[must_use]
    pub fn unreadable(&self) -> Vec<UnreadableEntry> {
        self.unreadable.all()
    }

    /// Creates missing buckets and streams on a server, upgrades a fleet of an earlier version, and
    /// connects. Entries stay. Without a number of replicas, buckets keep theirs, and new ones have
    /// one.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and when the server does not let it.
    pub async fn set_up(access: &Access, replicas: Option<usize>) -> Result<Self, FleetError> {
        Self::set_up_at(access, replicas, None).await
    }

    /// As `set_up`; if a certificate is pinned, the server must have exactly this one.
    pub(crate) async fn set_up_at(
        access: &Access,
        replicas: Option<usize>,
        pinned: Option<&CertificateDer<'static>>,
    ) -> Result<Self, FleetError> {
        let connection = Connection::to(access, pinned).await?;
        let make = async {
            for (name, description) in BUCKETS {
                connection.make_bucket(name, description, replicas).await?;
            }
            connection.make_archive(FILES, replicas).await
        };
        tokio::select! {
            made = make => made?,
            subject = connection.denials.under("$JS.API.") => return Err(FleetError::Denied {
                what: "make a fleet".to_owned(),
                subject,
            }),
        }
        streams::complete(&connection.context).await?;
        let meta = connection.context.get_key_value("fleet-meta").await;
        let meta = meta.map_err(|error| refused("open bucket fleet-meta".to_owned(), &error))?;
        let meta = connection.bucket(meta);
        // If two programs make one concurrently, the first one stays.
        if meta.read::<String>("id").await?.is_none() {
            meta.swap("id", 0, &random_id()).await?;
        }
        let found = meta.read::<u32>("schema").await?;
        let (schema, revision) = found.map_or((0, 0), |found| (found.value, found.revision));
        // All that is new since schema 1 may be missing.
        if schema < SCHEMA {
            meta.swap("schema", revision, &SCHEMA).await?;
        }
        Self::connect_to(access, pinned).await
    }
}
