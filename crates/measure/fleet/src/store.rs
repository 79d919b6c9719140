//! The connection to a fleet's server, and the buckets there.

use crate::bucket::{ANSWER_LIMIT, Bucket};
use crate::denial::Denials;
use crate::error::{FleetError, refused};
use crate::identity::Identity;
use crate::message::SCHEMA;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::{self, kv, object_store};
use async_nats::{Auth, AuthError, ConnectErrorKind, ConnectOptions, ServerAddr};
use std::path::PathBuf;

/// The largest entry: a campaign's file is far smaller.
const ENTRY_BYTES_MAX: i32 = 512 << 10;
/// Buckets of entries, each with what it has.
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

/// How to reach the server.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `nats://host:port`, or `tls://…`.
    pub url: String,
    /// A file with a user's NKey, alone or with a JWT.
    pub key: Option<PathBuf>,
    /// Certificates of who signed the server's.
    pub ca: Option<PathBuf>,
}

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
}

impl Fleet {
    /// Connects to a server that has a fleet.
    ///
    /// # Errors
    /// [`FleetError::Unreachable`]; [`FleetError::Unknown`] when it does not accept the user;
    /// [`FleetError::Foreign`] when there is no fleet, or another version's.
    pub async fn connect(access: &Access) -> Result<Self, FleetError> {
        let connection = Connection::to(access).await?;
        let context = &connection.context;
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
        })
    }

    /// Makes what is missing on a server, brings what an earlier version made to this one, and
    /// connects. What is there stays.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and when the server does not let it.
    pub async fn set_up(access: &Access, replicas: usize) -> Result<Self, FleetError> {
        let connection = Connection::to(access).await?;
        let make = async {
            for (name, description) in BUCKETS {
                connection.make_bucket(name, description, replicas).await?;
            }
            connection.make_archive(replicas).await
        };
        tokio::select! {
            made = make => made?,
            subject = connection.denials.under("$JS.API.") => return Err(FleetError::Denied {
                what: "make a fleet".to_owned(),
                subject,
            }),
        }
        let meta = connection.context.get_key_value("fleet-meta").await;
        let meta = meta.map_err(|error| refused("open bucket fleet-meta".to_owned(), &error))?;
        let meta = connection.bucket(meta);
        let found = meta.read::<u32>("schema").await?;
        let (schema, revision) = found.map_or((0, 0), |found| (found.value, found.revision));
        // All that is new since schema 1 may be missing.
        if schema < SCHEMA {
            meta.swap("schema", revision, &SCHEMA).await?;
        }
        Self::connect(access).await
    }
}

struct Connection {
    context: jetstream::Context,
    denials: Denials,
}

impl Connection {
    async fn to(access: &Access) -> Result<Self, FleetError> {
        let unreachable = |reason: String, help| FleetError::Unreachable {
            url: access.url.clone(),
            reason,
            help,
        };
        let address: ServerAddr = access.url.parse().map_err(|error: std::io::Error| {
            unreachable(error.to_string(), "write it as nats://host:4222")
        })?;
        let mut options = match &access.key {
            Some(path) => identified(path)?,
            None => ConnectOptions::new(),
        };
        let denials = Denials::new();
        let noting = denials.clone();
        options = options
            .name("cipherbench")
            .connection_timeout(ANSWER_LIMIT)
            .request_timeout(Some(ANSWER_LIMIT))
            .event_callback(move |event| {
                noting.note(&event);
                async {}
            });
        if let Some(path) = &access.ca {
            options = options.add_root_certificates(path.clone());
        }
        let client = options.connect(address).await.map_err(|error| {
            let is_of_user = matches!(
                error.kind(),
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication
            );
            match is_of_user {
                true => FleetError::Unknown {
                    url: access.url.clone(),
                    reason: error.to_string(),
                    help: "name the file of a user's key or credentials that the server knows and that has not \
                           expired: `--key FILE`",
                },
                false => unreachable(
                    error.to_string(),
                    "start one with `cipherbench fleet server`, or correct `--url`",
                ),
            }
        })?;
        Ok(Self {
            context: jetstream::new(client),
            denials,
        })
    }

    fn bucket(&self, store: kv::Store) -> Bucket {
        Bucket::new(store, self.denials.clone())
    }

    async fn make_bucket(
        &self,
        name: &str,
        description: &str,
        replicas: usize,
    ) -> Result<(), FleetError> {
        let config = kv::Config {
            bucket: name.to_owned(),
            description: description.to_owned(),
            history: 1,
            max_value_size: ENTRY_BYTES_MAX,
            num_replicas: replicas,
            ..kv::Config::default()
        };
        let made = self.context.create_or_update_key_value(config).await;
        made.map(drop)
            .map_err(|error| refused(format!("make bucket {name}"), &error))
    }

    async fn make_archive(&self, replicas: usize) -> Result<(), FleetError> {
        if self.context.get_object_store(FILES).await.is_ok() {
            return Ok(());
        }
        let config = object_store::Config {
            bucket: FILES.to_owned(),
            description: Some("Files of runs, by the hash of their content".to_owned()),
            num_replicas: replicas,
            ..object_store::Config::default()
        };
        let made = self.context.create_object_store(config).await;
        made.map(drop)
            .map_err(|error| refused("make the archive".to_owned(), &error))
    }
}

/// The inboxes of a user, which no other user may read.
pub(crate) fn inbox(public_key: &str) -> String {
    format!("_INBOX.{public_key}")
}

/// Identifies by a file that is read again at each connection: credentials that expire are renewed
/// by replacing it.
fn identified(path: &std::path::Path) -> Result<ConnectOptions, FleetError> {
    let public = Identity::read(path)?.public();
    let path = path.to_owned();
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        let path = path.clone();
        async move {
            let failed = |error: &dyn std::error::Error| AuthError::new(error.to_string());
            let identity = Identity::read(&path).map_err(|error| failed(&error))?;
            let signature = identity.key.sign(&nonce).map_err(|error| failed(&error))?;
            let mut auth = Auth::new();
            auth.signature = Some(signature);
            auth.nkey = identity.jwt.is_none().then(|| identity.public());
            auth.jwt = identity.jwt;
            Ok(auth)
        }
    });
    Ok(options.custom_inbox_prefix(inbox(&public)))
}
