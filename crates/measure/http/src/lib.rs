//! Application traffic over HTTP, with the terms of RFC 9411: one station's part in one trial.
//!
//! `cipherbench http` reads a [`Spec`] as JSON and either serves objects by a real server or
//! fetches them and prints an [`HttpResult`](journal::record::HttpResult) as JSON ([`play`]). The
//! content of every object is known to both ends ([`object`]), so the client proves each byte.
//!
//! It looks at no link and judges nothing: `trial` compares its counts with those of the path.

#![forbid(unsafe_code)]

mod certificate;
mod client;
mod connect;
mod error;
mod flow;
mod http1;
mod http2;
mod limits;
pub mod object;
mod play;
mod schedule;
mod server;
mod shared;
mod spec;
mod tally;
mod wget2;

pub use certificate::{Certificate, issue};
pub use error::HttpError;
pub use play::play;
pub use spec::{Fetch, Identity, SERVER_NAME, Serve, Spec};
