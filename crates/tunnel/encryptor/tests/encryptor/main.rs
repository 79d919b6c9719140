//! Encryptors over links in memory, and their configurations.

mod attack;
mod clear_link;
mod config;
mod config_ike;
mod config_keys;
mod declared;
mod lanes;
mod negotiated;
mod policy;
mod renewal;
