//! The sub-commands, one module each.
//!
//! To add one: its arguments in `cli`, a module here, its line in `main`.

pub(crate) mod bisect;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod device;
pub(crate) mod devices;
pub(crate) mod doctor;
pub(crate) mod encrypt;
pub(crate) mod examples;
pub(crate) mod export;
#[cfg(feature = "fleet")]
pub(crate) mod figures;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod frames;
pub(crate) mod generate;
mod given;
pub(crate) mod history;
pub(crate) mod http;
pub(crate) mod ike_peers;
pub(crate) mod impair;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod kme;
pub(crate) mod lint;
pub(crate) mod live;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod report;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod sign;
pub(crate) mod speed;
pub(crate) mod station;
pub(crate) mod tunnel_check;
pub(crate) mod video;
