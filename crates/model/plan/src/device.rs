//! Crypto devices, and the tests made on them.

pub use catalog::device::{
    DeviceFault, DeviceKind, DeviceModel, DeviceSpeed, DeviceTest, Fatigue, Kat, Workers,
};

use serde::{Deserialize, Serialize};

/// A crypto device, or several that work in parallel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Devices {
    /// At least one.
    pub members: Vec<Device>,
    /// Whether they are declared to take work off the CPU, which then needs proof.
    pub offloads: bool,
}

/// One crypto device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Its name: the DUT's name, with a number if there are several.
    pub name: String,
    /// Its kind and address.
    pub kind: DeviceKind,
}
