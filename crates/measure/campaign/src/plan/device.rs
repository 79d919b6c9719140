//! Crypto devices, and the tests made on them.

pub use operation::device::{
    DeviceFault, DeviceKind, DeviceModel, DeviceSpeed, DeviceTest, Fatigue, Kat, Workers,
};

use serde::{Deserialize, Serialize};

/// A crypto device, or several that work at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Devices {
    /// At least one.
    pub members: Vec<Device>,
    /// Whether they are said to take work off the CPU, so that there must be proof of it.
    pub offloads: bool,
}

/// One crypto device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name: that of the DUT, with a number where there are several.
    pub name: String,
    /// What it is and how it is reached.
    pub kind: DeviceKind,
}
