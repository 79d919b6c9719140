//! The other end of a tunnel's check over ssh: this program is started there, or sent there and
//! removed afterwards, as for a lab of two hosts.

use lab::Visit;
use plan::{Host, HostName};
use std::net::SocketAddr;
use std::time::Duration;
use testbed::Interrupt;
use testbed::protocol::{Program, Ready, THIS_PROGRAM};
use tunnelcheck::{CheckError, Token};

/// Beginning of the line that a listener prints once it listens.
const LISTENING: &str = "listening on ";
const START_LIMIT: Duration = Duration::from_secs(20);
/// Time for the listener to end by itself.
const GRACE: Duration = Duration::from_secs(3);

/// The listener on the other host. Dropping it ends the listener, and removes a program that was
/// sent.
pub struct FarEnd {
    visit: Visit,
    process: u64,
    /// Its token.
    pub token: Token,
}

/// Starts a listener at `peer` on a host, `user@host` or the name of a host in the configuration of
/// ssh.
///
/// # Errors
/// [`CheckError`] with the host and its words.
pub fn listen_over_ssh(
    host: &str,
    peer: SocketAddr,
    interrupt: &Interrupt,
) -> Result<FarEnd, CheckError> {
    // ssh takes a host that begins with `-` for an option, and `-oProxyCommand` runs a command.
    let is_name = !host.starts_with('-') && !host.is_empty() && !host.contains(char::is_whitespace);
    if !is_name {
        return Err(CheckError::mistake(
            format!("`{host}` is no host for ssh"),
            "write `--ssh user@host`, or a name of ~/.ssh/config",
        ));
    }
    let host = Host {
        reach: vec!["ssh".to_owned(), host.to_owned()],
        interface: None,
        cpus: Vec::new(),
        program: None,
    };
    let token = Token::new()?;
    let visit = Visit::open(HostName::B, &host, interrupt)?;
    let address = peer.to_string();
    // The token on standard input: every user of the host sees a command line.
    let words = [
        THIS_PROGRAM,
        "tunnel-check",
        "--listen",
        &address,
        "--token-on-stdin",
    ];
    let program = Program {
        ready: Ready::Line(LISTENING.to_owned()),
        ..Program::new(words).with_input(token.digits() + "\n")
    };
    let process = visit.node().start(program, START_LIMIT)?;
    Ok(FarEnd {
        visit,
        process,
        token,
    })
}

impl FarEnd {
    /// Ends the listener.
    pub fn end(self) {
        // The agent kills it anyway once the visit is over.
        let _ = self.visit.node().stop(self.process, GRACE);
    }
}
