//! The plan of a run, with every default explicit.
//!
//! A [`Plan`] is made from a checked campaign and lab, shown by `cipherbench plan`, carried out by
//! `trial`, and written whole into the head of the journal, so that a journal needs no other file
//! to be understood. It is plain data: nothing in it depends on the machine that made it.

#![forbid(unsafe_code)]

mod adapter;
mod axis;
mod cables;
mod capture;
mod cell;
mod checked;
mod claim;
mod demand;
mod device;
mod dscp;
pub mod estimate;
mod expectation;
mod frames;
mod hosts;
mod http;
mod ike;
mod keys;
mod lab;
mod lacking;
mod measurement;
mod names;
mod order;
mod pinned;
mod plan;
mod procedure;
mod published;
mod search;
mod setting;
mod settings;
mod software;
mod stations;
pub mod text;
mod tool;
mod value;
mod video;
mod words;

pub use adapter::*;
pub use axis::{Axis, Column, Coordinate};
pub use cables::Cables;
pub use capture::{Capture, CapturePoint, Keep};
pub use cell::{Cell, group_of};
pub use claim::{Bound, Claim, ClaimUnit, Percentile};
pub use demand::Demand;
pub use device::{
    Device, DeviceFault, DeviceKind, DeviceModel, DeviceSpeed, DeviceTest, Devices, Fatigue, Kat,
    Workers,
};
pub use dscp::Dscp;
pub use expectation::{Expectation, Expectations, StoredFigure, StoredRun};
pub use hosts::{Host, HostName, Hosts};
pub use http::{HttpClient, HttpServer, HttpTest, HttpVersion, Store};
pub use ike::IkeTest;
pub use impair::{Impairment, Profile as ImpairProfile};
pub use keys::KeySource;
pub use lab::{Addresses, Element, LabKind, LabPlan};
pub use lacking::LackingCores;
pub use measurement::Measurement;
pub use names::{TEST_RANGES, is_congestion, is_interface, is_program_path, is_test_network};
pub use order::Order;
pub use plan::{Plan, TrialRef};
pub use procedure::*;
pub use published::{
    Published, PublishedAt, PublishedCell, PublishedChart, PublishedReport, PublishedRow,
    PublishedTable, PublishedUnit, RateBasis, RateDirection, RateKind, RateLayer,
};
pub use setting::{Common, Dimension, Setting};
pub use settings::{
    LINK_FEATURES, NodeSettings, STATION_PROGRAMS, SYSCTL_CHARS_MAX, StationProgram, Switch,
    VersionSettings, is_sysctl, is_sysctl_value,
};
pub use software::{Build, Software, is_variable};
pub use stations::{Overlay, Stations};
pub use text::{in_words, to_text, to_text_here};
pub use tool::{FlowDirection, Tool, TransferDirection};
pub use value::Value;
pub use video::{Picture, Player, VideoTest, VideoTransport};
pub use words::{compact, compact_time, nanos, on_off};

pub use self::search::{Criteria, Goal, Profile, ProfileTimes, ThroughputSearch};
pub use frames::{FrameTest, IpVersion, PortKind, Ports, Traffic};
pub use pinned::PinnedProgram;

/// The value of a number that older journals lack.
fn one<T: From<u8>>() -> T {
    // Their versions had one tunnel, and one trial at each load.
    T::from(1)
}

/// Whether a number has that value; it is not written then.
fn is_one<T: From<u8> + PartialEq>(number: &T) -> bool {
    *number == one()
}

/// Whether a setting has its usual value; it is not written then.
fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}
