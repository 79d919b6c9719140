//! The form in `results.json` of stations, and of figures that are nested by procedure or trial.

use crate::figures::device::{
    DeviceFigures, DeviceMember, DeviceSpeedResult, FatigueResult, KatResult,
};
use crate::figures::frames::{
    BackToBackResult, DesyncResult, DirectionLoss, DisturbanceResult, DisturbedLoad,
    FailoverResult, FrameFigures, HostileResult, LoadLatency, LoadResult, MrrResult, PortUsed,
    RecoveryResult, RekeyResult, ResetResult, ServiceResult, SetupResult, SoakResult,
    ThroughputResult,
};
use plan::Stations;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

#[derive(Serialize, JsonSchema)]
pub(crate) struct StationsInfo {
    /// IP MTU of the stations' interfaces, in bytes; `null` for crypto devices, as are the next
    /// two.
    mtu_bytes: Option<u16>,
    /// Cores that each station's tools may use.
    cores_per_station: Option<u16>,
    /// Whether TSO, GSO and GRO are on at the links' ends.
    offloads: Option<bool>,
}

pub(crate) fn stations<S: Serializer>(
    stations: &Option<Stations>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let info = StationsInfo {
        mtu_bytes: stations.map(|stations| stations.mtu),
        cores_per_station: stations.map(|stations| stations.cores),
        offloads: stations.map(|stations| stations.offloads),
    };
    info.serialize(serializer)
}

/// Figures of a frame test; the procedure determines which exist.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FrameFigures")]
pub(crate) struct FrameInfo<'a> {
    /// The result of the search, for `throughput`, `latency` and `recovery`.
    throughput: Option<&'a ThroughputResult>,
    /// One load after the other, for `load`, `mrr` and `loss-curve`; the highest first.
    loads: &'a [LoadResult],
    /// Latency under each load; for procedures other than `latency`, under the evidence's load.
    latency: &'a [LoadLatency],
    /// For `mrr`.
    mrr: Option<&'a MrrResult>,
    /// Longest burst without loss, for `back-to-back`.
    back_to_back: Option<&'a BackToBackResult>,
    /// For `recovery`.
    recovery: Option<&'a RecoveryResult>,
    /// For `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`.
    disturbance: Option<DisturbanceInfo<'a>>,
    /// For `service`.
    service: Option<&'a ServiceResult>,
    /// For `soak`.
    soak: Option<&'a SoakResult>,
    /// Counts of the trials with recorded evidence.
    at_evidence: Option<&'a LoadResult>,
    /// Loss per direction over all frame trials except the one that found the highest load; empty
    /// if only one direction is loaded, and for older journals.
    directions: &'a [DirectionLoss],
    /// Station A's sending port.
    sender: &'a PortUsed,
    /// The receiving station's port.
    receiver: &'a PortUsed,
}

/// Figures of `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`; exactly one is set.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DisturbanceResult")]
struct DisturbanceInfo<'a> {
    /// The same load without a disturbance, measured first; `null` if the procedure has no control.
    quiet: Option<&'a DisturbedLoad>,
    /// For `rekey`.
    rekey: Option<&'a RekeyResult>,
    /// For `failover`.
    failover: Option<&'a FailoverResult>,
    /// For `reset`.
    reset: Option<&'a ResetResult>,
    /// For `setup`.
    setup: Option<&'a SetupResult>,
    /// For `desync`.
    desync: Option<&'a DesyncResult>,
    /// For `hostile`.
    hostile: Option<&'a HostileResult>,
}

/// Figures of a trial on crypto devices; the kind of trial determines which exist.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeviceFigures")]
pub(crate) struct DeviceInfo<'a> {
    /// The devices' reports about themselves, from the last repeat.
    members: &'a [DeviceMember],
    /// Why there is no figure though nothing failed: the device does not offer the operation.
    not_offered: Option<&'a str>,
    /// For `kat`.
    kat: Option<&'a KatResult>,
    /// For `speed`.
    speed: Option<&'a DeviceSpeedResult>,
    /// For `fatigue`.
    fatigue: Option<&'a FatigueResult>,
}

impl<'a> FrameInfo<'a> {
    pub(crate) fn of(figures: &'a FrameFigures) -> Self {
        Self {
            throughput: figures.throughput.as_ref(),
            loads: figures.loads(),
            latency: &figures.latency,
            mrr: figures.mrr(),
            back_to_back: figures.back_to_back(),
            recovery: figures.recovery(),
            disturbance: figures.disturbance().map(DisturbanceInfo::of),
            service: figures.service(),
            soak: figures.soak(),
            at_evidence: figures.at_evidence.as_ref(),
            directions: &figures.directions,
            sender: &figures.sender,
            receiver: &figures.receiver,
        }
    }
}

impl<'a> DisturbanceInfo<'a> {
    fn of(found: &'a DisturbanceResult) -> Self {
        Self {
            quiet: found.quiet.as_ref(),
            rekey: found.rekey(),
            failover: found.failover(),
            reset: found.reset(),
            setup: found.setup(),
            desync: found.desync(),
            hostile: found.hostile(),
        }
    }
}

impl<'a> DeviceInfo<'a> {
    pub(crate) fn of(figures: &'a DeviceFigures) -> Self {
        Self {
            members: &figures.members,
            not_offered: figures.not_offered.as_deref(),
            kat: figures.kat(),
            speed: figures.speed(),
            fatigue: figures.fatigue(),
        }
    }
}
