//! Streams of the server: the stream of records, and the limit of consumers of each stream.

use crate::error::{FleetError, refused};
use async_nats::jetstream::Context;
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use std::time::Duration;

/// The stream of records, and the beginning of its subjects, which end with the job.
pub(crate) const RECORDS: &str = "fleet-records";
pub(crate) const RECORDS_SUBJECT: &str = "fleet.records";
/// Records are kept for this long, and no more bytes than this: the oldest go first.
const RECORDS_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const RECORDS_BYTES_MAX: i64 = 1 << 30;
/// The most consumers of a stream. Each agent follows two buckets, and listing a bucket takes a
/// consumer for half a minute. By default nats-server (2.15.1) allows 1000.
const CONSUMERS_MAX: i32 = 10_000;
/// Buckets that agents and people follow or list.
const FOLLOWED: [&str; 8] = [
    "KV_fleet-jobs",
    "KV_fleet-states",
    "KV_fleet-labs",
    "KV_fleet-misfits",
    "KV_fleet-repeats",
    "KV_fleet-runs",
    "KV_fleet-figures",
    "OBJ_fleet-files",
];

/// Makes the stream of records, and raises the limit of consumers of the others.
pub(crate) async fn complete(context: &Context) -> Result<(), FleetError> {
    let mut replicas = 1;
    for name in FOLLOWED {
        let stream = context.get_stream(name).await;
        let stream = stream.map_err(|error| refused(format!("describe {name}"), &error))?;
        let config = stream.cached_info().config.clone();
        replicas = config.num_replicas;
        if config.max_consumers != CONSUMERS_MAX {
            let config = Config {
                max_consumers: CONSUMERS_MAX,
                ..config
            };
            // A server that refuses is older and has no limit, or is an operator's with a lower
            // limit.
            let _ = context.update_stream(config).await;
        }
    }
    let config = Config {
        name: RECORDS.to_owned(),
        description: Some("Journals of runs under way".to_owned()),
        subjects: vec![format!("{RECORDS_SUBJECT}.*")],
        max_age: RECORDS_AGE_MAX,
        max_bytes: RECORDS_BYTES_MAX,
        max_consumers: CONSUMERS_MAX,
        discard: DiscardPolicy::Old,
        allow_direct: true,
        num_replicas: replicas,
        ..Config::default()
    };
    // A store with less room keeps no records: they are only a copy.
    let _ = context.create_or_update_stream(config).await;
    Ok(())
}
