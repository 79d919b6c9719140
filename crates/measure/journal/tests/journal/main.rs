//! The journal on a real file system: round trips, cuts, kills, full disks.

mod any;
mod any_tester;
mod documentation;
mod faults;
mod fixture;
mod roundtrip;
mod versions;
