//! The client and the pool against servers of TLS that do as the test says, right and wrong, and
//! against the simulator.

mod answers;
mod connections;
mod pool;
mod requests;
mod server;
mod setup;
mod simulator;
mod tls;
