//! The end that waits: one asker, one check, then it ends.

use crate::connection::{Connection, STEP, Silence, shorten};
use crate::datagrams::Datagrams;
use crate::error::{CheckError, here};
use crate::findings::HostFacts;
use crate::interfaces::{interfaces, towards};
use crate::leaving::leaving;
use crate::message::{Answer, Ask, STREAM_MS_MAX, VERSION};
use crate::serving::Serving;
use crate::token::Token;
use crate::trying::REVERT_AFTER;
use crate::under_test::under_test;
use crate::{path_mtu, stream};
use port::is_timeout;
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Time for a caller's first line.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
/// Longest time between two requests.
const ASK_LIMIT: Duration = Duration::from_secs(60);
/// Longest check.
const CHECK_LIMIT: Duration = Duration::from_secs(300);
/// Time for the connection of a stream.
const JOIN_LIMIT: Duration = Duration::from_secs(5);
/// A sender goes on until the receiver's last second is over.
pub(crate) const TAIL: Duration = Duration::from_millis(500);
/// Round trips before any is known.
const ROUND_TRIP: Duration = Duration::from_millis(50);

/// A listening end.
#[derive(Debug)]
pub struct Listener {
    connections: TcpListener,
    datagrams: UdpSocket,
    token: Token,
    address: SocketAddr,
}

impl Listener {
    /// Listens on this address only, TCP and UDP.
    ///
    /// # Errors
    /// [`CheckError::CannotListen`].
    pub fn open(address: SocketAddr, token: Token) -> Result<Self, CheckError> {
        let refused = |error: io::Error| CheckError::CannotListen {
            address,
            help: match error.kind() {
                ErrorKind::AddrInUse => {
                    "another check or program uses this port: end it, or write another one, \
                     `--listen ADDRESS:PORT`"
                }
                ErrorKind::AddrNotAvailable => {
                    "it is no address of this host: `ip address` lists them"
                }
                ErrorKind::PermissionDenied => "take a port from 1024 on",
                _ => "see whether the address and the port are free",
            },
            error,
        };
        let connections = TcpListener::bind(address).map_err(refused)?;
        let address = connections.local_addr().map_err(refused)?;
        let datagrams = UdpSocket::bind(address).map_err(refused)?;
        connections.set_nonblocking(true).map_err(refused)?;
        Ok(Self {
            connections,
            datagrams,
            token,
            address,
        })
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the asker and takes part in one check. Callers without the token are refused and
    /// passed to `notice`.
    ///
    /// # Errors
    /// [`CheckError`].
    pub fn serve(
        self,
        wait: Duration,
        interrupt: &Interrupt,
        notice: impl Fn(&str),
    ) -> Result<(), CheckError> {
        let deadline = Instant::now() + wait;
        loop {
            let Some((stream, from)) = self.accept(deadline, interrupt)? else {
                return Err(CheckError::NoClient(units::human::duration(wait)));
            };
            match self.hello(stream, interrupt) {
                Ok(connection) => {
                    notice(&format!("{} asks\n", from.ip()));
                    return self.check(connection, from.ip(), interrupt);
                }
                Err(Silence::Interrupted) => return Err(CheckError::Interrupted),
                Err(silence) => {
                    notice(&format!("refused {}: {}\n", from.ip(), silence.reason()));
                }
            }
        }
    }

    /// The next connection; `None` if none came by then.
    fn accept(
        &self,
        by: Instant,
        interrupt: &Interrupt,
    ) -> Result<Option<(TcpStream, SocketAddr)>, CheckError> {
        let failed = here("accept a connection");
        loop {
            if interrupt.is_set() {
                return Err(CheckError::Interrupted);
            }
            match self.connections.accept() {
                Ok((stream, from)) => {
                    stream.set_nonblocking(false).map_err(failed)?;
                    return Ok(Some((stream, from)));
                }
                Err(error) if is_timeout(&error) => {}
                // A caller that is gone already.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(failed(error)),
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            match port::wait_readable(&[self.connections.as_fd()], Some(left.min(STEP))) {
                Err(error) if !is_timeout(&error) => return Err(failed(error)),
                _ => {}
            }
        }
    }

    /// Checks a caller's first line.
    fn hello(&self, stream: TcpStream, interrupt: &Interrupt) -> Result<Connection, Silence> {
        shorten(&stream);
        let connection = Connection::new(stream, interrupt);
        let mut connection = connection.map_err(|error| Silence::Broken(error.to_string()))?;
        let refused = |reason: &str| Err(Silence::Broken(reason.to_owned()));
        let Ask::Hello { version, token } = connection.read(HELLO_LIMIT)? else {
            return refused("it sent no token");
        };
        if !self.token.is(&token) {
            connection.write(&Answer::WrongToken {})?;
            return refused("it has another token");
        }
        if version != VERSION {
            connection.write(&Answer::WrongVersion { version: VERSION })?;
            return refused("it has another version of this protocol");
        }
        Ok(connection)
    }

    fn check(
        self,
        mut connection: Connection,
        asker: IpAddr,
        interrupt: &Interrupt,
    ) -> Result<(), CheckError> {
        const DURING: &str = "answered it";
        let lost = |silence: Silence| silence.during(DURING);
        let mut key = [0; 8];
        getrandom::fill(&mut key).map_err(|error| here("make a key")(io::Error::other(error)))?;
        let key = u64::from_ne_bytes(key);
        let socket = self.datagrams.try_clone().map_err(here("use a socket"))?;
        let datagrams = Datagrams::new(socket, asker, key).map_err(here("use a socket"))?;
        let host = facts(asker);
        connection
            .write(&Answer::Welcome { key, host })
            .map_err(lost)?;
        let mut left = None;
        let mut serving: Option<Serving> = None;
        let end = Instant::now() + CHECK_LIMIT;
        while Instant::now() < end {
            let ask = next(&mut connection, serving.as_mut()).map_err(lost)?;
            let answer = match ask {
                Ask::Bye => return Ok(()),
                Ask::Mtu => Answer::Mtu {
                    found: path_mtu::find(&datagrams, ROUND_TRIP, interrupt),
                },
                Ask::Leaving => {
                    let seal = leaving(&datagrams, asker, interrupt);
                    left = seal.interface().map(str::to_owned);
                    Answer::Leaving { seal }
                }
                Ask::MayTry => Answer::MayTry {
                    refused: under_test(asker, None).err(),
                },
                Ask::Offloads => {
                    // Earlier ones are restored before these are read.
                    serving = None;
                    let own = self.address.ip();
                    match Serving::start(own, (asker, &self.token), left.as_deref()) {
                        Ok((started, port, found)) => {
                            serving = Some(started);
                            Answer::Offloads {
                                port,
                                found: Ok(found),
                            }
                        }
                        Err(reason) => Answer::Offloads {
                            port: 0,
                            found: Err(reason),
                        },
                    }
                }
                Ask::Apply { row } => match &mut serving {
                    Some(serving) => serving.apply(&row),
                    None => return Err(lost(Silence::Broken("it read no offloads".to_owned()))),
                },
                Ask::Still => Answer::Ready {},
                Ask::Restore => Answer::Restored {
                    wrong: serving.take().map(Serving::restore).unwrap_or_default(),
                },
                Ask::Send { ms } => {
                    let stream = self.joined(&mut connection, asker, interrupt)?;
                    let report =
                        stream.and_then(|stream| stream::send(stream, time(ms) + TAIL, interrupt));
                    Answer::Sent {
                        report: report.map_err(|error| error.to_string()),
                    }
                }
                Ask::Receive { ms } => {
                    let stream = self.joined(&mut connection, asker, interrupt)?;
                    let report =
                        stream.and_then(|stream| stream::receive(stream, time(ms), interrupt));
                    Answer::Received {
                        report: report.map_err(|error| error.to_string()),
                    }
                }
                Ask::Hello { .. } => {
                    return Err(lost(Silence::Broken("it sent its token again".to_owned())));
                }
            };
            if interrupt.is_set() {
                return Err(CheckError::Interrupted);
            }
            connection.write(&answer).map_err(lost)?;
        }
        Err(lost(Silence::Broken("the check takes too long".to_owned())))
    }

    /// The asker's next connection, which begins with the token.
    fn joined(
        &self,
        connection: &mut Connection,
        asker: IpAddr,
        interrupt: &Interrupt,
    ) -> Result<io::Result<TcpStream>, CheckError> {
        connection
            .write(&Answer::Ready {})
            .map_err(|silence| silence.during("answered it"))?;
        let by = Instant::now() + JOIN_LIMIT;
        while let Some((mut stream, from)) = self.accept(by, interrupt)? {
            let mut digits = [0; Token::DIGITS];
            // One call has this limit; a caller that sends less at a time is cut off by `by`.
            let read = stream
                .set_read_timeout(Some(JOIN_LIMIT / 5))
                .and_then(|()| stream.read_exact(&mut digits));
            let is_token = std::str::from_utf8(&digits).is_ok_and(|text| self.token.is(text));
            if read.is_ok() && is_token && from.ip() == asker {
                return Ok(Ok(stream));
            }
        }
        Ok(Err(io::Error::other("no connection for the stream came")))
    }
}

/// The next request. Offloads are set as they were found if none comes: they may have cut the
/// connection.
fn next(connection: &mut Connection, serving: Option<&mut Serving>) -> Result<Ask, Silence> {
    let changed = serving.filter(|serving| !serving.is_as_found());
    if let Some(serving) = changed {
        match connection.read(REVERT_AFTER) {
            Err(Silence::Late(_)) => serving.go_back().map_err(Silence::Broken)?,
            read => return read,
        }
    }
    connection.read(ASK_LIMIT)
}

/// The time of a stream, limited.
fn time(ms: u32) -> Duration {
    Duration::from_millis(ms.min(STREAM_MS_MAX).into())
}

/// This host, with its route to the other end.
pub(crate) fn facts(peer: IpAddr) -> HostFacts {
    // Only named in the result: an unknown one is left out there.
    let interface = towards(peer).unwrap_or_default();
    let all = interfaces().unwrap_or_default();
    let kind = all
        .iter()
        .find(|known| known.name == interface)
        .map(|known| known.kind().to_owned());
    HostFacts {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        interface,
        kind: kind.unwrap_or_default(),
    }
}
