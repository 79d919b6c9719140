//! Campaign and lab files to a [`Plan`](plan::Plan) with every default explicit.
//!
//! ```text
//! campaign.yaml -> Campaign --.
//!                              >-- Campaign::plan(lab, host) -> Plan
//! lab.yaml      -> LabFile  --'
//! ```
//!
//! A [`Campaign`] and a [`LabFile`] are checked when they are read: all mistakes of a file are
//! reported together, with their places. What can be wrong only together (an MTU that does not fit
//! the lab's cipher link, more cores than the host has) is reported by [`Campaign::plan`], still
//! with the place in the campaign file.
//!
//! Text in, values out: nothing here looks at the host or touches a network. `docs/campaign.md` and
//! `docs/lab.md` are the reference of the formats.

#![forbid(unsafe_code)]

mod axis;
mod capture;
mod check;
mod claim;
mod declared;
mod device;
mod dut;
mod expand;
mod expect;
mod file;
mod flows;
mod frames;
mod grid;
mod host;
mod http;
mod ike;
mod impairment;
mod keys;
mod lab;
mod point;
mod published;
mod shipped;
mod tools;
mod trial;
mod video;
mod words;

pub use declared::CAMPAIGN_KEYS;
pub use file::{Campaign, Input, from_text, load, load_input};
pub use host::HostFacts;
pub use lab::{LAB_KEYS, LabFile, lab_from_text, load_lab};
pub use shipped::{CAMPAIGNS, LABS, Shipped};
