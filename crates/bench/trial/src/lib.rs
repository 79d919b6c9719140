//! One measurement: the tools that carry traffic, the meters that run meanwhile, and the evidence
//! that a figure is valid.

#![forbid(unsafe_code)]

mod capture;
mod checkpoint;
mod clock;
pub mod command;
mod congestion;
mod cores;
mod counters;
mod counting;
mod device;
mod direction;
mod disturbance;
mod driver;
mod error;
mod event;
pub mod evidence;
pub mod frames;
pub mod ike;
mod impaired;
pub mod iperf2;
pub mod iperf3;
pub mod links;
mod loaded;
mod markers;
mod measurer;
mod on_bench;
mod overlay;
mod path_readings;
pub mod ping;
mod prepared;
mod quiet;
mod route;
pub mod run;
mod settings;
pub mod timing;
mod tool_trial;
mod tools;
pub mod transfer;
pub mod tune;
mod watch;

pub use checkpoint::Checkpoint;
pub use command::{CommandError, Commands, Cores, commands, parameters, words};
pub use cores::{Machine, Machines};
pub use device::OnDevices;
pub use disturbance::{HostileLoad, PlannedAction, PlannedDisturbance};
pub use error::TrialError;
pub use event::{EventSink, FrameStep, Progress, RunEvent, TrialEvent};
pub use links::{cipher_mtu, links};
pub use measurer::{Measurer, Trial, judge, record};
pub use on_bench::{OnBench, measure};
pub use run::{Conclusion, Done, is_of_machine, run};
pub use timing::Timing;
