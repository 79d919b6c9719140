//! Stations, links and devices under test: built, driven and always torn down.
//!
//! ```text
//!  station A        gateway gw1                     gateway gw2       station B
//!  .----.           .---------.    cipher link      .---------.           .----.
//!  | a0 |-----------| a1   w0 |---------------------| w1   b1 |-----------| b0 |
//!  '----'           '---------'  DUT in between     '---------'           '----'
//!  tools            DUT process                     DUT process           tools
//!  .----.                                                                 .----.
//!  | c0 |-----------------------------------------------------------------| c1 |
//!  '----'           past the gateways, to know the tester itself          '----'
//!
//!  with a path of elements, instead of the cipher link:
//!     .---------.    .---------.    .---------.    .---------.
//!  …--| gw1  w0 |----| p0   p1 |----| p0   p1 |----| w1  gw2 |--…
//!     '---------'    '---------'    '---------'    '---------'
//!                      bridge1        router2
//! ```
//!
//! Each box is a network namespace without a name, held by one child process: a [`station`]. The
//! run sends it requests over its standard input and output ([`testbed::protocol`]), which suffices
//! for a station on another host too. However the run ends, the station's input ends, it kills all
//! that it started, and the kernel removes namespace and links with the last process. The next run
//! of the same lab name removes processes that were stopped or hung ([`state`]). The namespaces of
//! the machine are never touched.
//!
//! The only crate that needs privileges ([`privilege`]). It implements the traits of crate
//! `testbed`, through which trials see a lab.
//!
//! This crate deliberately does no measuring and no evaluation.

mod bypass;
mod cables;
mod caller;
mod clock_probe;
mod clocks;
mod cpus;
mod cut;
mod dut;
mod exposition;
pub mod host;
mod http;
mod kill;
mod lent;
mod mark;
mod monitor;
mod namespaces;
mod nat;
mod offloads;
mod on_node;
mod overlay;
mod own_children;
mod own_file;
mod packet_socket;
mod perf;
pub mod privilege;
mod procfs;
pub mod programs;
mod reading;
mod remains;
mod remote;
mod sample;
mod scan;
mod secret_file;
mod settings;
pub mod state;
pub mod station;
mod switch;
mod sync;
mod topology;
mod tunnel_keys;
mod version_settings;

#[cfg(test)]
mod tests;

pub use caller::Station;
pub use namespaces::{NamespaceLab, Setup};
pub use own_file::expect_whole;
pub use privilege::Privilege;
pub use remote::Visit;
pub use tunnel_keys::{Network, StaticTunnels};
