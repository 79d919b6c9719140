//! Application traffic over HTTP, with the terms of RFC 9411: one station's part in one trial.
//!
//! `cipherbench http` reads a [`Spec`] as JSON and either serves objects by a real server
//! ([`serve`]) or fetches them and prints an [`HttpResult`](journal::record::HttpResult) as JSON
//! ([`fetch`]). The content of every object is known to both ends ([`object`]), so the client proves
//! each byte.
//!
//! It looks at no link and judges nothing: `trial` compares its counts with those of the path.

mod certificate;
mod client;
mod connect;
mod error;
mod http1;
mod http2;
mod limits;
pub mod object;
mod schedule;
mod server;
mod spec;
mod tally;
mod wget2;

pub use certificate::{Certificate, issue};
pub use client::fetch;
pub use error::HttpError;
pub use server::serve;
pub use spec::{Fetch, SERVER_NAME, Serve, Spec};
