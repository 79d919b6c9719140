//! Attacks on a fleet with a real nats-server: by clients of the server that are not this program.

#[path = "../aid/job.rs"]
mod aid;
mod attack;
