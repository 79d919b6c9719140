//! Removes entries that cannot be read.

use crate::bucket::{Bucket, is_key};
use crate::error::{FleetError, refused};
use crate::history::{LoadHistogram, Point};
use crate::message::{Job, LabOffer, Manifest, State};
use crate::store::Fleet;
use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use guard::escaped;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

impl Fleet {
    /// Removes an entry that cannot be read (`fleet-states/KEY`), with a key of any form. Returns
    /// whether it existed.
    ///
    /// # Errors
    /// When the entry can be read (other commands remove it), the bucket does not exist, or the
    /// user may not.
    pub async fn discard(&self, bucket: &str, key: &str) -> Result<bool, FleetError> {
        let context = &self.context;
        // Each with its type: only an entry that cannot be read as that may be removed.
        match bucket {
            "fleet-jobs" => self.jobs.discard::<Job>(context, key).await,
            "fleet-repeats" => self.repeats.discard::<Job>(context, key).await,
            "fleet-states" => self.states.discard::<State>(context, key).await,
            "fleet-labs" => self.labs.discard::<LabOffer>(context, key).await,
            "fleet-misfits" => {
                let misfits = &self.misfits;
                misfits
                    .discard::<BTreeMap<String, String>>(context, key)
                    .await
            }
            "fleet-runs" => self.runs.discard::<Manifest>(context, key).await,
            "fleet-figures" => match key.split('.').next() {
                Some("at") => self.figures.discard::<Point>(context, key).await,
                Some("hist") => {
                    let figures = &self.figures;
                    figures.discard::<Vec<LoadHistogram>>(context, key).await
                }
                Some("cell") => self.figures.discard::<String>(context, key).await,
                _ => self.figures.discard::<Value>(context, key).await,
            },
            _ => Err(FleetError::Unfit {
                what: format!("{}/{}", escaped(bucket), escaped(key)),
                reason: "write BUCKET/KEY as `cipherbench fleet status` prints it".to_owned(),
            }),
        }
    }
}

impl Bucket {
    /// As `Fleet::discard`, in this bucket.
    async fn discard<T: DeserializeOwned>(
        &self,
        context: &Context,
        key: &str,
    ) -> Result<bool, FleetError> {
        let found = match is_key(key) {
            true => self.look::<T>(key).await?,
            // A pattern would match several entries.
            false if !is_subject(key) => return Ok(false),
            false => self.look_at_stray::<T>(key).await?,
        };
        let Some(found) = found else {
            return Ok(false);
        };
        // A mistake in the key must not remove an entry that works.
        if found.value.is_ok() {
            return Err(FleetError::Unfit {
                what: format!("{}/{}", self.store.name, escaped(key)),
                reason: "it can be read, and `discard` removes only entries that cannot".to_owned(),
            });
        }
        let subject = format!("$KV.{}.{key}", self.store.name);
        self.denials.forget(&subject);
        let what = || format!("remove {} of {}", escaped(key), self.store.name);
        // The client's marker of a deletion, sent directly since the client refuses some keys.
        let mut headers = HeaderMap::new();
        headers.insert("KV-Operation", "DEL");
        headers.insert(
            // Only the entry that was looked at: it may have been repaired meanwhile.
            "Nats-Expected-Last-Subject-Sequence",
            found.revision.to_string(),
        );
        let deletion = async {
            let sent = context.publish_with_headers(subject.clone(), headers, "".into());
            sent.await?.await
        };
        tokio::select! {
            removed = deletion => {
                removed.map_err(|error| refused(what(), &error))?;
            }
            subject = self.denials.under(&subject) => return Err(FleetError::Denied {
                what: what(),
                subject,
            }),
        }
        self.unreadable.note(&self.store.name, key, None);
        Ok(true)
    }
}

/// Whether an entry can have this key: it fits into a line of the protocol, and is not a pattern.
fn is_subject(key: &str) -> bool {
    let is_fine = |word: &str| !word.is_empty() && word != "*" && word != ">";
    key.split('.').all(is_fine) && !key.contains([' ', '\t', '\r', '\n', '\0'])
}
