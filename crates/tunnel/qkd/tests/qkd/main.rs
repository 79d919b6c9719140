//! Clients of KMEs, and our KME, on real connections.

mod client;
mod kme;
