//! Commands of trials over HTTP: this program on both stations. On B it becomes the server; on A it
//! is the client, or runs it.

use super::{CommandError, Commands, Cores, sub_command_on};
use crate::timing::Timing;
use http::object::MARKER;
use http::{Fetch, Serve, Spec};
use journal::record::ToolParameters;
use plan::HttpTest;
use std::net::{Ipv4Addr, SocketAddrV4};
use testbed::protocol::Ready;

/// Name of the subcommand that plays a part.
pub(crate) const SUB_COMMAND: &str = "http";
/// TCP port of the server.
const PORT: u16 = 8080;
/// Time limit of a transaction: shorter than a trial allows its tools to end.
const TIMEOUT_NS: u64 = 5_000_000_000;

pub(super) fn commands(
    test: &HttpTest,
    target: Ipv4Addr,
    cores: &Cores,
) -> Result<Commands, CommandError> {
    // A new one for each trial, so that no key outlives it.
    let certificate = test.tls.then(http::issue).transpose();
    let certificate = certificate.map_err(|error| CommandError::Certificate {
        problem: error.to_string(),
    })?;
    let (authority, identity) = certificate.map_or((None, None), |certificate| {
        (Some(certificate.authority), Some(certificate.identity))
    });
    let of = |cores: &[u16]| u16::try_from(cores.len()).unwrap_or(u16::MAX);
    let server = Spec::Serve(Serve {
        test: *test,
        port: PORT,
        workers: of(&cores.b),
        identity,
    });
    let client = Spec::Fetch(Fetch {
        test: *test,
        server: SocketAddrV4::new(target, PORT),
        threads: of(&cores.a),
        authority,
        timeout_ns: TIMEOUT_NS,
        store_bytes: None,
    });
    // The data is sealed by TLS on the whole path and shows no marker.
    let marker = if test.tls {
        Vec::new()
    } else {
        MARKER.to_vec()
    };
    Ok(Commands {
        preparations: Vec::new(),
        baseline: None,
        cores: cores.clone(),
        servers: vec![sub_command_on(
            SUB_COMMAND,
            &server,
            &cores.b,
            Ready::Listening(PORT),
        )],
        clients: vec![sub_command_on(
            SUB_COMMAND,
            &client,
            &cores.a,
            Ready::Started,
        )],
        parameters: ToolParameters::default(),
        timing: Timing::of_http(test),
        marker,
    })
}

/// The task of a program that plays a part, without its certificate.
pub(super) fn shown(task: &str) -> Option<String> {
    let mut spec: Spec = serde_json::from_str(task).ok()?;
    match &mut spec {
        Spec::Serve(serve) => serve.identity = None,
        Spec::Fetch(fetch) => fetch.authority = None,
    }
    serde_json::to_string(&spec).ok()
}
