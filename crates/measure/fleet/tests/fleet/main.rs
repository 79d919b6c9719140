//! What a fleet sends and stores, with a real server.

mod attack;
mod job;
mod streams;
