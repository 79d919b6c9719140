//! Two encryptors joined in memory: what goes in comes out, and what an attacker adds is counted and dropped.

mod bench;
mod engines;
mod faults;
mod fields;
mod ip;
mod layer2;
mod tunnels;
