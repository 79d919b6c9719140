//! The journal on a real file system: round trips, cuts, kills, full disks.

mod added;
mod any;
mod any_tester;
mod attack;
mod checksums;
mod documentation;
mod faults;
mod fixture;
mod folders;
mod possible;
mod roundtrip;
mod versions;
