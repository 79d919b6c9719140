//! Messages and storage of a fleet with a real server, and attacks on them.

mod attack;
mod job;
mod streams;
