//! Removes entries that cannot be read.

use crate::error::FleetError;
use crate::history::{LoadHistogram, Point};
use crate::message::{Job, LabOffer, Manifest, State};
use crate::store::Fleet;
use guard::visible;
use serde_json::Value;
use std::collections::BTreeMap;

impl Fleet {
    /// Removes an entry that cannot be read (`fleet-states/KEY`). Returns whether there was one.
    ///
    /// # Errors
    /// When it can be read, as it is removed by other commands; when there is no such bucket, or
    /// the user may not.
    pub async fn discard(&self, bucket: &str, key: &str) -> Result<bool, FleetError> {
        match bucket {
            "fleet-jobs" => self.jobs.discard::<Job>(key).await,
            "fleet-repeats" => self.repeats.discard::<Job>(key).await,
            "fleet-states" => self.states.discard::<State>(key).await,
            "fleet-labs" => self.labs.discard::<LabOffer>(key).await,
            "fleet-misfits" => self.misfits.discard::<BTreeMap<String, String>>(key).await,
            "fleet-runs" => self.runs.discard::<Manifest>(key).await,
            "fleet-figures" => match key.split('.').next() {
                Some("at") => self.figures.discard::<Point>(key).await,
                Some("hist") => self.figures.discard::<Vec<LoadHistogram>>(key).await,
                Some("cell") => self.figures.discard::<String>(key).await,
                _ => self.figures.discard::<Value>(key).await,
            },
            _ => Err(FleetError::Unfit {
                what: format!("{}/{}", visible(bucket), visible(key)),
                reason: "write BUCKET/KEY as `cipherbench fleet status` prints it".to_owned(),
            }),
        }
    }
}
