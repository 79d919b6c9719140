//! Application traffic over HTTP, with the terms of RFC 9411: one station's part in one trial.
//!
//! `cipherbench http` reads a [`Spec`] as JSON and either serves objects by a real server or
//! fetches them and prints an [`HttpResult`](journal::record::HttpResult) as JSON ([`play`]). Both
//! ends know the content of every object ([`object`]), so the client verifies each byte.
//!
//! It looks at no link and draws no conclusions: `trial` compares its counts with the path's.

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
