//! Comparisons of crypto devices.
//!
//! ```text
//! DeviceFigures per cell -> DeviceSeries over sizes or concurrency
//!                        -> FatigueBatch over devices
//! ```

mod batch;
mod curve;
mod series;

pub use batch::{FatigueBatch, FatigueClass, REPORT_CLASSES_NS};
pub use curve::{Course, Crossover, CrossoverPoint, DeviceStanding};
pub use series::{
    DeviceAxis, DeviceComparison, DeviceCurve, DeviceGain, DevicePointResult, DeviceSeries,
    DeviceUnit,
};

pub(crate) use batch::batches;
pub(crate) use series::all as all_series;
