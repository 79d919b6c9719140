//! A job, as several tests submit it.

use fleet::{Job, Selector};
use std::collections::BTreeMap;

/// A job without a signature.
pub(crate) fn job(id: &str, campaign: &str) -> Job {
    Job {
        id: id.to_owned(),
        name: "campaign.yaml".to_owned(),
        campaign: campaign.to_owned(),
        quick: false,
        selector: Selector::default(),
        priority: 0,
        labels: BTreeMap::new(),
        by: "test".to_owned(),
        every: None,
        period: None,
        signature: None,
    }
}
