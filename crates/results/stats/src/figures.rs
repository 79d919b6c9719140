//! The figures of one cell: each kind of measurement over its repeats, and the statistics beneath.

pub(crate) mod bands;
pub(crate) mod bulk;
pub(crate) mod captures;
pub(crate) mod device;
pub(crate) mod direction;
pub(crate) mod drift;
pub(crate) mod estimate;
pub(crate) mod frames;
pub(crate) mod goodput;
pub(crate) mod http;
pub(crate) mod ike;
pub(crate) mod latency;
pub(crate) mod monitored;
#[cfg(test)]
pub(crate) mod noise;
pub(crate) mod overhead;
pub(crate) mod packet_cost;
pub(crate) mod parameters;
pub(crate) mod repeats;
pub(crate) mod rfc6349;
pub(crate) mod series;
pub(crate) mod student;
pub(crate) mod video;
