//! One point of the matrix.

use crate::axis::{Axis, Conditions, Coordinate};
use crate::value::Value;
use crate::{Dscp, Dut, ImpairProfile, Measurement, Overlay, Stations};
use serde::{Deserialize, Serialize};

/// One point of the matrix: everything that is fixed while a figure is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
// Only reading needs another form: older journals lack coordinates, and have zeros for stations.
#[serde(try_from = "Read")]
pub struct Cell {
    /// Unique in the plan and stable between runs of the same campaign,
    /// for example `tcp/mtu=1500/cores=1/cipherbench`.
    pub id: String,
    /// The id without the DUT: cells of one group are compared with each other.
    pub group: String,
    /// The group's coordinates in the matrix: the axes in its id, in that order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coordinates: Vec<Coordinate>,
    /// The device under test.
    pub dut: Dut,
    /// Settings of the stations; `None` for crypto devices, which have no traffic.
    // In a journal the settings of the stations are keys of the cell.
    #[serde(flatten)]
    pub stations: Option<Stations>,
    /// The measurement and its parameters.
    pub measurement: Measurement,
    /// Impairments of frames between the gateways; `None` without an impaired path, or if the
    /// cell's frames do not cross it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impair: Option<ImpairProfile>,
    /// Search the tool's best parameters first (`-P` and `-w`, or `-b` and `-l`) and use those.
    pub tune: bool,
    /// Time that one trial of this cell will take, in nanoseconds: bringing the DUT up and the
    /// trial's share of the cell's search included ([`crate::estimate`]).
    pub estimate_ns: u64,
    /// Whether it measures the tester, not a DUT of the campaign: its figure bounds the verdicts of
    /// the cells with the same [`group`](Self::group).
    pub calibration: bool,
}

impl Cell {
    /// Whether it measures the tester itself: added for it, or with the DUT `straight` of the
    /// campaign, which then serves.
    #[must_use]
    pub fn calibrates(&self) -> bool {
        // Tools on `straight` measure the stations' kernels, which bound no frame test.
        let is_frames = self.measurement.frames().is_some();
        self.calibration || (is_frames && self.dut.adapter.is_straight())
    }

    /// The length of the IP packet that carries one of the given length over the cipher link.
    pub fn carried_bytes(&self) -> impl Fn(usize) -> usize {
        let profile = self.dut.adapter.profile();
        let mtu = self.stations.map_or(0, |stations| stations.mtu);
        // The profile is made once: evidence asks for thousands of packets.
        move |packet| profile.carried_bytes(packet, mtu)
    }

    /// The value in force on an axis; `None` if the axis does not apply to the cell.
    #[must_use]
    pub fn value(&self, axis: Axis) -> Option<Value> {
        axis.value(&Conditions {
            measurement: &self.measurement,
            dut: &self.dut,
            stations: self.stations,
            impair: self.impair.as_ref(),
        })
    }

    /// Whether the [`group`](Self::group) names this axis.
    #[must_use]
    pub fn is_named_by(&self, axis: Axis) -> bool {
        self.coordinates.iter().any(|at| at.axis == axis)
    }

    /// The [`group`](Self::group) without one axis. Without the tool: cells of one question differ
    /// in tool and DUT only. Without the size of the frames: cells of one series differ in size and
    /// DUT only.
    #[must_use]
    pub fn group_without(&self, axis: Axis) -> String {
        if !self.is_named_by(axis) {
            return self.group.clone();
        }
        let others = self.coordinates.iter().filter(|at| at.axis != axis);
        group_of(&self.measurement, others)
    }
}

/// The id of a group: the kind of trial and its coordinates.
pub fn group_of<'c>(
    measurement: &Measurement,
    coordinates: impl Iterator<Item = &'c Coordinate>,
) -> String {
    let mut group = measurement.name().to_owned();
    for coordinate in coordinates {
        group.push_str(&format!("/{coordinate}"));
    }
    group
}

/// A cell as it is read.
#[derive(Deserialize)]
struct Read {
    id: String,
    group: String,
    /// Absent in older journals, which have them only in the group's id.
    #[serde(default)]
    coordinates: Vec<Coordinate>,
    dut: Dut,
    /// This and the next two: absent without stations; in older journals then 0, 0 and false.
    mtu: Option<u16>,
    cores_per_station: Option<u16>,
    offloads: Option<bool>,
    #[serde(default)]
    overlay: Overlay,
    dscp: Option<Dscp>,
    measurement: Measurement,
    impair: Option<ImpairProfile>,
    tune: bool,
    estimate_ns: u64,
    #[serde(default)]
    calibration: bool,
}

impl TryFrom<Read> for Cell {
    type Error = String;

    fn try_from(read: Read) -> Result<Self, String> {
        let stations = match (
            &read.measurement,
            read.mtu,
            read.cores_per_station,
            read.offloads,
        ) {
            // Older journals have zeros here.
            (Measurement::Device(_), ..) => None,
            (_, Some(mtu), Some(cores), Some(offloads)) => Some(Stations {
                mtu,
                cores,
                offloads,
                overlay: read.overlay,
                dscp: read.dscp,
            }),
            _ => {
                let what = "has traffic, but not `mtu`, `cores_per_station` and `offloads`";
                return Err(format!("cell `{}` {what}", read.id));
            }
        };
        // A cell of a group without axes has no coordinates either way.
        let coordinates = if read.coordinates.is_empty() {
            Coordinate::all_in(&read.group)
        } else {
            read.coordinates
        };
        Ok(Self {
            id: read.id,
            group: read.group,
            coordinates,
            dut: read.dut,
            stations,
            measurement: read.measurement,
            impair: read.impair,
            tune: read.tune,
            estimate_ns: read.estimate_ns,
            calibration: read.calibration,
        })
    }
}
