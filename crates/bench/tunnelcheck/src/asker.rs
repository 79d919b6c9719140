//! The asking end's connection with the listener.

use crate::connection::{Connection, Silence, connect};
use crate::datagrams::Datagrams;
use crate::error::{CheckError, here};
use crate::message::{Answer, Ask, VERSION};
use crate::token::Token;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Time for an answer that needs no measuring.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(10);
const GREETING_LIMIT: Duration = Duration::from_secs(3);

/// A check to make.
#[derive(Debug)]
pub struct Question<'a> {
    /// The listener.
    pub peer: SocketAddr,
    /// Its token.
    pub token: &'a Token,
    /// Time of the stream in each direction, in whole seconds, 2 to 30.
    pub seconds: u32,
    /// Whether the offload that hurts is searched, as root at both ends.
    pub offloads: bool,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Gets a line about each step.
    pub notice: fn(&str),
}

pub(crate) struct Asker<'a> {
    pub(crate) question: &'a Question<'a>,
    pub(crate) connection: Connection,
    pub(crate) there: crate::HostFacts,
    /// The datagrams, or why they are not used.
    pub(crate) datagrams: Result<Datagrams, String>,
    pub(crate) round_trip: Duration,
}

impl<'a> Asker<'a> {
    pub(crate) fn begin(question: &'a Question<'a>) -> Result<Self, CheckError> {
        let peer = question.peer;
        (question.notice)(&format!("asking {peer}\n"));
        let stream = connect(peer, true).map_err(|error| unreachable(peer, error))?;
        let connection = Connection::new(stream, question.interrupt);
        let mut connection = connection.map_err(here("use a connection"))?;
        let hello = Ask::Hello {
            version: VERSION,
            token: question.token.digits(),
        };
        let begun = Instant::now();
        let greeted = connection.write(&hello);
        let answer = greeted.and_then(|()| connection.read(ANSWER_LIMIT));
        let answer = answer.map_err(|silence| match silence {
            Silence::Interrupted => CheckError::Interrupted,
            other => CheckError::NoListener {
                peer,
                error: io::Error::other(other.reason()),
                help: "see whether `cipherbench tunnel-check --listen` runs there, and no other check",
            },
        })?;
        let (key, there) = match answer {
            Answer::Welcome { key, host } => (key, host),
            Answer::WrongToken {} => return Err(CheckError::WrongToken(peer)),
            Answer::WrongVersion { version } => {
                return Err(CheckError::WrongVersion {
                    peer,
                    theirs: version,
                    ours: VERSION,
                });
            }
            other => return Err(unexpected(&other)),
        };
        let round_trip = begun.elapsed();
        let datagrams = datagrams(peer, key).map_err(here("use a socket"))?;
        let is_answered = datagrams.greet(GREETING_LIMIT);
        let datagrams = is_answered
            .then_some(datagrams)
            .ok_or_else(|| format!("UDP to port {} is not answered: a firewall?", peer.port()));
        Ok(Self {
            question,
            connection,
            there,
            datagrams,
            round_trip,
        })
    }

    pub(crate) fn step(&self, text: &str) -> Result<(), CheckError> {
        if self.question.interrupt.is_set() {
            return Err(CheckError::Interrupted);
        }
        (self.question.notice)(text);
        Ok(())
    }

    pub(crate) fn request(
        &mut self,
        ask: &Ask,
        limit: Duration,
        during: &'static str,
    ) -> Result<Answer, CheckError> {
        let answer = self.ask(ask, limit, during)?;
        answer.ok_or_else(|| Silence::Late(limit).during(during))
    }

    /// The answer to a request, if it comes within `limit`.
    pub(crate) fn ask(
        &mut self,
        ask: &Ask,
        limit: Duration,
        during: &'static str,
    ) -> Result<Option<Answer>, CheckError> {
        let written = self.connection.write(ask);
        match written.and_then(|()| self.connection.read(limit)) {
            Ok(answer) => Ok(Some(answer)),
            Err(Silence::Late(_)) => Ok(None),
            Err(silence) => Err(silence.during(during)),
        }
    }

    /// The answer to an earlier request.
    pub(crate) fn answer(
        &mut self,
        limit: Duration,
        during: &'static str,
    ) -> Result<Answer, CheckError> {
        let read = self.connection.read(limit);
        read.map_err(|silence| silence.during(during))
    }

    /// Whether datagrams pass both ways, as far as they are used at all.
    pub(crate) fn greets(&self, limit: Duration) -> bool {
        let datagrams = self.datagrams.as_ref();
        datagrams.map_or(true, |datagrams| datagrams.greet(limit))
    }

    pub(crate) fn peer(&self) -> IpAddr {
        self.question.peer.ip()
    }
}

fn datagrams(peer: SocketAddr, key: u64) -> io::Result<Datagrams> {
    let any = match peer {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    Datagrams::new(socket, peer.ip(), key)
}

fn unreachable(peer: SocketAddr, error: io::Error) -> CheckError {
    let help = match error.kind() {
        ErrorKind::ConnectionRefused => {
            "run `cipherbench tunnel-check --listen` there, and then the line that it prints"
        }
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            "see whether the tunnel is up (`ping` it), and whether a firewall there lets this port through"
        }
        _ => "see whether the address is the other end's in the tunnel, and the tunnel is up",
    };
    CheckError::NoListener { peer, error, help }
}

/// Both ends have the same version, so this is a mistake in the program.
pub(crate) fn unexpected(answer: &Answer) -> CheckError {
    CheckError::Lost {
        during: "answered",
        reason: format!("unexpected answer {answer:?}"),
    }
}
