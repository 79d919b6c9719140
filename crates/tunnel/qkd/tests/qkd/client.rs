//! The client and the pool against scripted TLS servers, correct and faulty, and against the
//! simulator.

mod answers;
mod attack;
mod connections;
mod pool;
mod requests;
mod server;
mod setup;
mod simulator;
mod tls;
