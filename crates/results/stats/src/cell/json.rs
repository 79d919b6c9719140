//! The form in `results.json` of stations, and of figures of crypto devices, nested by trial.

use crate::figures::device::{
    DeviceFigures, DeviceMember, DeviceSpeedResult, FatigueResult, KatResult,
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
    /// Overlay network between the stations that the tools use: `none`, `vxlan` or `geneve`; `null`
    /// for crypto devices.
    overlay: Option<&'static str>,
    /// Class of service of the tools' packets, as `ef`; `null`: the tools' default.
    dscp: Option<&'static str>,
}

pub(crate) fn stations<S: Serializer>(
    stations: &Option<Stations>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let info = StationsInfo {
        mtu_bytes: stations.map(|stations| stations.mtu),
        cores_per_station: stations.map(|stations| stations.cores),
        offloads: stations.map(|stations| stations.offloads),
        overlay: stations.map(|stations| stations.overlay.name()),
        dscp: stations.and_then(|stations| Some(stations.dscp?.name())),
    };
    info.serialize(serializer)
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
