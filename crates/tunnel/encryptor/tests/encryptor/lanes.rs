//! Two encryptors joined in memory: every packet comes out, and an attacker's additions are counted
//! and dropped.

mod bench;
mod engines;
mod faults;
mod fields;
mod ip;
mod layer2;
mod network;
mod tunnels;
