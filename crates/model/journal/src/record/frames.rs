//! The result of a frame test: every frame trial with its counts, and the procedure's findings.
//!
//! Loads are frames per second in one direction. Sizes include the FCS.

use super::{
    BurstTrial, Disturbance, FramePort, FrameTrial, LatencyTrial, RecoveryTrial, SearchRecord,
    ServiceTrial, SoakSegment, at_most_one, is_empty,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// The result of a frame test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrameResult {
    /// Every frame trial in the order made, including the trials of a search.
    pub trials: Vec<FrameTrial>,
    /// The result of the search, if there was one.
    pub throughput: Option<SearchRecord>,
    /// Latency at each share of the throughput, for `latency`; for other procedures at the load of
    /// the evidence.
    pub latency: Vec<LatencyTrial>,
    /// The procedure's other findings.
    pub found: ProcedureRecord,
    /// The sending port in use.
    pub sender: FramePort,
    /// The receiving port in use.
    pub receiver: FramePort,
    /// Index in `trials` of the trial with the recorded CPU time and evidence.
    pub evidence_trial: Option<usize>,
    /// Index in `trials` of the trial that warms the device up and, if the plan sets no highest
    /// load, finds it; it is in no figure.
    pub flood_trial: Option<usize>,
}

/// Findings of a procedure besides its trials, a search and latency.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ProcedureRecord {
    /// Nothing: `load`, `throughput`, `mrr`, `loss-curve` and `latency`, or a procedure that ended
    /// early.
    #[default]
    Nothing,
    /// Bursts tried and the longest without loss, for `back-to-back`.
    Bursts(Vec<BurstTrial>),
    /// For `recovery`.
    Recovery(RecoveryTrial),
    /// For `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`.
    Disturbed(DisturbedTrials),
    /// For `service`: its steps, in the order made.
    Service(Vec<ServiceTrial>),
    /// For `soak`: its segments, in the order made.
    Soak(Vec<SoakSegment>),
}

/// Frame trials with disturbances of a DUT.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DisturbedTrials {
    /// In the order made: first the control, if there is one.
    pub disturbances: Vec<Disturbance>,
    /// The result of a search with keys renewed in each trial, for a `rekey` that requests it.
    pub rekeyed_throughput: Option<SearchRecord>,
}

impl FrameResult {
    /// The trials over the path of the figures. If latencies could not be timed one way, earlier
    /// trials are omitted: the loads were searched again for round trips.
    pub fn trials_on_path(&self) -> impl Iterator<Item = &FrameTrial> {
        let is_reflected = self.is_reflected();
        let all = self.trials.iter();
        // Trials of round trips load both directions; the earlier ones load one.
        all.filter(move |trial| !is_reflected || trial.loads_both())
    }

    /// Whether the search and the loads of a `latency` procedure are round trips.
    #[must_use]
    pub fn is_reflected(&self) -> bool {
        let mut timed = self.latency.iter();
        timed.any(|latency| latency.percent.is_some() && latency.round_trip.is_some())
    }

    /// Every latency: of the loads, and of the steps of a service.
    pub fn latencies(&self) -> impl Iterator<Item = &LatencyTrial> {
        let of_steps = self.service().iter().map(|step| &step.latency);
        self.latency.iter().chain(of_steps)
    }

    /// The bursts of `back-to-back`; empty for others.
    #[must_use]
    pub fn bursts(&self) -> &[BurstTrial] {
        match &self.found {
            ProcedureRecord::Bursts(bursts) => bursts,
            _ => &[],
        }
    }

    /// The trial of `recovery`.
    #[must_use]
    pub const fn recovery(&self) -> Option<&RecoveryTrial> {
        match &self.found {
            ProcedureRecord::Recovery(recovery) => Some(recovery),
            _ => None,
        }
    }

    /// The trials with disturbances and their controls; empty for others.
    #[must_use]
    pub fn disturbances(&self) -> &[Disturbance] {
        self.disturbed().map_or(&[], |found| &found.disturbances)
    }

    /// The result of the search with keys renewed in each trial.
    #[must_use]
    pub fn rekeyed_throughput(&self) -> Option<&SearchRecord> {
        self.disturbed()?.rekeyed_throughput.as_ref()
    }

    /// The steps of `service`; empty for others.
    #[must_use]
    pub fn service(&self) -> &[ServiceTrial] {
        match &self.found {
            ProcedureRecord::Service(steps) => steps,
            _ => &[],
        }
    }

    /// The segments of `soak`; empty for others.
    #[must_use]
    pub fn soak(&self) -> &[SoakSegment] {
        match &self.found {
            ProcedureRecord::Soak(segments) => segments,
            _ => &[],
        }
    }

    const fn disturbed(&self) -> Option<&DisturbedTrials> {
        match &self.found {
            ProcedureRecord::Disturbed(disturbed) => Some(disturbed),
            _ => None,
        }
    }
}

/// The form in journals: a key for each procedure's findings.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    trials: Cow<'a, [FrameTrial]>,
    throughput: Option<Cow<'a, SearchRecord>>,
    bursts: Cow<'a, [BurstTrial]>,
    latency: Cow<'a, [LatencyTrial]>,
    recovery: Option<RecoveryTrial>,
    #[serde(default, skip_serializing_if = "is_empty")]
    disturbances: Cow<'a, [Disturbance]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rekeyed_throughput: Option<Cow<'a, SearchRecord>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    soak: Cow<'a, [SoakSegment]>,
    #[serde(default, skip_serializing_if = "is_empty")]
    service: Cow<'a, [ServiceTrial]>,
    sender: Cow<'a, FramePort>,
    receiver: Cow<'a, FramePort>,
    evidence_trial: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flood_trial: Option<usize>,
}

impl Serialize for FrameResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            trials: Cow::Borrowed(&self.trials),
            throughput: self.throughput.as_ref().map(Cow::Borrowed),
            bursts: Cow::Borrowed(self.bursts()),
            latency: Cow::Borrowed(&self.latency),
            recovery: self.recovery().copied(),
            disturbances: Cow::Borrowed(self.disturbances()),
            rekeyed_throughput: self.rekeyed_throughput().map(Cow::Borrowed),
            soak: Cow::Borrowed(self.soak()),
            service: Cow::Borrowed(self.service()),
            sender: Cow::Borrowed(&self.sender),
            receiver: Cow::Borrowed(&self.receiver),
            evidence_trial: self.evidence_trial,
            flood_trial: self.flood_trial,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FrameResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let disturbed = DisturbedTrials {
            disturbances: wire.disturbances.into_owned(),
            rekeyed_throughput: wire.rekeyed_throughput.map(Cow::into_owned),
        };
        let found = [
            // An empty list is no part: some keys are always in the file.
            (!wire.bursts.is_empty()).then(|| ProcedureRecord::Bursts(wire.bursts.into_owned())),
            wire.recovery.map(ProcedureRecord::Recovery),
            // Two keys of the file are one part here: either of them makes it.
            (disturbed != DisturbedTrials::default())
                .then_some(ProcedureRecord::Disturbed(disturbed)),
            (!wire.soak.is_empty()).then(|| ProcedureRecord::Soak(wire.soak.into_owned())),
            (!wire.service.is_empty()).then(|| ProcedureRecord::Service(wire.service.into_owned())),
        ];
        let keys = "`bursts`, `recovery`, `disturbances`, `soak` and `service`";
        Ok(Self {
            trials: wire.trials.into_owned(),
            throughput: wire.throughput.map(Cow::into_owned),
            latency: wire.latency.into_owned(),
            found: at_most_one(found, keys)?.unwrap_or_default(),
            sender: wire.sender.into_owned(),
            receiver: wire.receiver.into_owned(),
            evidence_trial: wire.evidence_trial,
            flood_trial: wire.flood_trial,
        })
    }
}
