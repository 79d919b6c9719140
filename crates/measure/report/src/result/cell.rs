//! A cell for machines: a key for each kind of figures, of which those of other kinds are `null`.

use schemars::JsonSchema;
use serde::Serialize;
use stats::{
    BackToBackResult, Bulk, Ceiling, CellResult, Control, CpuResult, DesyncResult, DeviceFigures,
    DeviceMember, DeviceSpeedResult, DeviceTestInfo, DisturbanceResult, DisturbedLoad,
    FailoverResult, FatigueResult, FrameFigures, HostileResult, KatResult, LatencyResult,
    LoadLatency, LoadResult, Overhead, Parameters, PortUsed, Reason, RecoveryResult, RekeyResult,
    Repeats, SetupResult, SoakResult, Status, ThroughputResult, TrafficInfo, Verdict,
};

/// Results of a cell over its trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CellResult")]
pub struct CellInfo {
    /// The cell's id in the plan.
    pub id: String,
    /// The id without the DUT: cells of one group are compared with one another.
    pub group: String,
    /// The DUT's name.
    pub dut: String,
    /// Whether this is the baseline: nothing is encrypted.
    pub baseline: bool,
    /// Whether it measures the tester and no DUT of the campaign.
    pub calibration: bool,
    /// What makes it a control, where it is one.
    pub control: Option<Control>,
    /// Why this DUT must not protect data; `null` where it may, or is not meant to.
    pub insecure: Option<String>,
    /// `tcp`, `udp` or `ping`; of a frame test, its procedure; of crypto devices `kat`, `speed` or
    /// `fatigue`.
    pub protocol: String,
    /// IP MTU of the stations' interfaces, in bytes; `null` for crypto devices, as are the next
    /// two.
    pub mtu_bytes: Option<u16>,
    /// Cores that each station's tools may use.
    pub cores_per_station: Option<u16>,
    /// Whether TSO, GSO and GRO are on at the links' ends.
    pub offloads: Option<bool>,
    /// Tool parameters in force.
    pub parameters: Parameters,
    /// Whether there is a figure, and why not.
    pub status: Status,
    /// Why trials are invalid or failed, in the order of the repeats.
    pub reasons: Vec<Reason>,
    /// What became of the repeats.
    pub repeats: Repeats,
    /// Bulk transfer, for `tcp` and `udp`; `null` when the cell has no figure.
    pub bulk: Option<Bulk>,
    /// Round-trip times, for `ping`; `null` when the cell has no figure.
    pub latency: Option<LatencyResult>,
    /// What the frames look like, for frame tests.
    pub traffic: Option<TrafficInfo>,
    /// Figures of a frame test; `null` when the cell has none.
    pub frames: Option<FrameInfo>,
    /// Operation and devices, for trials of crypto devices.
    pub device_test: Option<DeviceTestInfo>,
    /// Figures of a trial of crypto devices; `null` when the cell has none.
    pub device: Option<DeviceInfo>,
    /// What limits the figure, for frame tests; `null` when the cell has none.
    pub verdict: Option<Verdict>,
    /// CPU by role; `null` when the cell has no figure.
    pub cpu: Option<CpuResult>,
    /// What the device adds to each packet, for `tcp`, `udp` and `throughput`; `null` where nothing
    /// encrypts, where packets are fragmented, and where it depends on more than the packet.
    pub overhead: Option<Overhead>,
    /// What the path could carry of such packets, for the same; `null` where neither line rate nor
    /// baseline is known.
    pub ceiling: Option<Ceiling>,
}

/// Figures of a frame test. Which are there depends on the procedure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FrameFigures")]
pub struct FrameInfo {
    /// What the search found, for `throughput`, `latency` and `recovery`.
    pub throughput: Option<ThroughputResult>,
    /// One load after the other, for `load` and `loss-curve`; the highest first.
    pub loads: Vec<LoadResult>,
    /// Latency under each load; of procedures other than `latency`, under that of the evidence.
    pub latency: Vec<LoadLatency>,
    /// Longest burst without loss, for `back-to-back`.
    pub back_to_back: Option<BackToBackResult>,
    /// For `recovery`.
    pub recovery: Option<RecoveryResult>,
    /// For `rekey`, `failover`, `setup`, `desync` and `hostile`.
    pub disturbance: Option<DisturbanceInfo>,
    /// For `soak`.
    pub soak: Option<SoakResult>,
    /// Counts of the trials whose evidence is recorded.
    pub at_evidence: Option<LoadResult>,
    /// How station A sent.
    pub sender: PortUsed,
    /// How the receiving station received.
    pub receiver: PortUsed,
}

/// Figures of `rekey`, `failover`, `setup`, `desync` and `hostile`; one of the five is there.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DisturbanceResult")]
pub struct DisturbanceInfo {
    /// The same load with nothing happening, which comes first; `null` where the procedure has
    /// none.
    pub quiet: Option<DisturbedLoad>,
    /// For `rekey`.
    pub rekey: Option<RekeyResult>,
    /// For `failover`.
    pub failover: Option<FailoverResult>,
    /// For `setup`.
    pub setup: Option<SetupResult>,
    /// For `desync`.
    pub desync: Option<DesyncResult>,
    /// For `hostile`.
    pub hostile: Option<HostileResult>,
}

/// Figures of a trial on crypto devices. Which are there depends on the trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DeviceFigures")]
pub struct DeviceInfo {
    /// What the devices report about themselves, by the last repeat.
    pub members: Vec<DeviceMember>,
    /// Why there is no figure though nothing failed: the device does not have the operation.
    pub not_offered: Option<String>,
    /// For `kat`.
    pub kat: Option<KatResult>,
    /// For `speed`.
    pub speed: Option<DeviceSpeedResult>,
    /// For `fatigue`.
    pub fatigue: Option<FatigueResult>,
}

impl CellInfo {
    pub(super) fn of(cell: CellResult) -> Self {
        Self {
            mtu_bytes: cell.stations.map(|stations| stations.mtu),
            cores_per_station: cell.stations.map(|stations| stations.cores),
            offloads: cell.stations.map(|stations| stations.offloads),
            bulk: cell.bulk().cloned(),
            latency: cell.latency().cloned(),
            traffic: cell.traffic().cloned(),
            frames: cell.frames().map(FrameInfo::of),
            device_test: cell.device_test().cloned(),
            device: cell.device().map(DeviceInfo::of),
            verdict: cell.verdict().cloned(),
            id: cell.id,
            group: cell.group,
            dut: cell.dut,
            baseline: cell.baseline,
            calibration: cell.calibration,
            control: cell.control,
            insecure: cell.insecure,
            protocol: cell.protocol,
            parameters: cell.parameters,
            status: cell.status,
            reasons: cell.reasons,
            repeats: cell.repeats,
            cpu: cell.cpu,
            overhead: cell.overhead,
            ceiling: cell.ceiling,
        }
    }
}

impl FrameInfo {
    fn of(figures: &FrameFigures) -> Self {
        Self {
            throughput: figures.throughput.clone(),
            loads: figures.loads().to_vec(),
            latency: figures.latency.clone(),
            back_to_back: figures.back_to_back().cloned(),
            recovery: figures.recovery().cloned(),
            disturbance: figures.disturbance().map(DisturbanceInfo::of),
            soak: figures.soak().cloned(),
            at_evidence: figures.at_evidence.clone(),
            sender: figures.sender.clone(),
            receiver: figures.receiver.clone(),
        }
    }
}

impl DisturbanceInfo {
    fn of(found: &DisturbanceResult) -> Self {
        Self {
            quiet: found.quiet.clone(),
            rekey: found.rekey().cloned(),
            failover: found.failover().cloned(),
            setup: found.setup().cloned(),
            desync: found.desync().cloned(),
            hostile: found.hostile().cloned(),
        }
    }
}

impl DeviceInfo {
    fn of(figures: &DeviceFigures) -> Self {
        Self {
            members: figures.members.clone(),
            not_offered: figures.not_offered.clone(),
            kat: figures.kat().cloned(),
            speed: figures.speed().cloned(),
            fatigue: figures.fatigue().cloned(),
        }
    }
}
