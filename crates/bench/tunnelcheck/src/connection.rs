//! The control connection: JSON lines, each limited in length and time.

use crate::error::CheckError;
use crate::message::{LINE_BYTES_MAX, parse};
use nix::sys::socket::{setsockopt, sockopt};
use port::is_timeout;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Longest wait of one call, after which Ctrl-C and the limit are looked at.
pub(crate) const STEP: Duration = Duration::from_millis(100);
/// Time to write a line.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Segments of the control connection pass a black hole of the MTU.
const SEGMENT_BYTES: u32 = 512;
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// One end of the control connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Received bytes that are no whole line yet.
    buffer: Vec<u8>,
    interrupt: Interrupt,
}

/// Why a line did not come.
#[derive(Debug)]
pub(crate) enum Silence {
    Interrupted,
    /// Nothing came within this time.
    Late(Duration),
    Broken(String),
}

impl Silence {
    pub(crate) fn during(self, during: &'static str) -> CheckError {
        match self {
            Self::Interrupted => CheckError::Interrupted,
            other => CheckError::Lost {
                during,
                reason: other.reason(),
            },
        }
    }

    /// As a clause for people.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Interrupted => "interrupted".to_owned(),
            Self::Late(limit) => {
                let limit = units::human::duration(limit);
                format!("it did not answer within {limit}")
            }
            Self::Broken(reason) => reason,
        }
    }
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, interrupt: &Interrupt) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STEP))?;
        stream.set_write_timeout(Some(WRITE_LIMIT))?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
            interrupt: interrupt.clone(),
        })
    }

    pub(crate) fn write(&mut self, value: &impl Serialize) -> Result<(), Silence> {
        let broken = |error: &dyn std::fmt::Display| Silence::Broken(error.to_string());
        let mut line = serde_json::to_vec(value).map_err(|error| broken(&error))?;
        line.push(b'\n');
        self.stream.write_all(&line).map_err(|error| broken(&error))
    }

    /// Reads a line that comes within `limit`. A peer that sends it byte by byte gains no time.
    pub(crate) fn read<T: DeserializeOwned>(&mut self, limit: Duration) -> Result<T, Silence> {
        let deadline = Instant::now() + limit;
        let broken = |reason: String| Err(Silence::Broken(reason));
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return parse(&line[..end]).map_err(|error| Silence::Broken(error.to_string()));
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return broken(format!("it sent a line of more than {LINE_BYTES_MAX} B"));
            }
            if self.interrupt.is_set() {
                return Err(Silence::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(Silence::Late(limit));
            }
            let mut part = [0; 1024];
            match self.stream.read(&mut part) {
                Ok(0) => return broken("it closed the connection".to_owned()),
                Ok(bytes) => self.buffer.extend_from_slice(&part[..bytes]),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return broken(error.to_string()),
            }
        }
    }
}

/// Connects, with short segments for the control connection.
pub(crate) fn connect(peer: SocketAddr, is_control: bool) -> io::Result<TcpStream> {
    let domain = socket2::Domain::for_address(peer);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    if is_control {
        setsockopt(&socket, sockopt::TcpMaxSeg, &SEGMENT_BYTES)?;
    }
    socket.connect_timeout(&peer.into(), CONNECT_LIMIT)?;
    Ok(socket.into())
}

/// Shortens the segments of an accepted control connection.
pub(crate) fn shorten(stream: &TcpStream) {
    // A kernel that refuses leaves the ordinary segments, which only a black hole swallows.
    let _ = setsockopt(stream, sockopt::TcpMaxSeg, &SEGMENT_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Ask;
    use std::net::TcpListener;

    fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = connect(listener.local_addr().unwrap(), true).unwrap();
        let (near, _) = listener.accept().unwrap();
        (Connection::new(near, &Interrupt::new()).unwrap(), far)
    }

    #[test]
    fn lines_come_whole_whatever_their_pieces() {
        let (mut near, mut far) = pair();
        let limit = Duration::from_secs(10);
        far.write_all(b"{\"ask\":\"mtu\"}\n{\"ask\":").unwrap();
        assert_eq!(near.read::<Ask>(limit).unwrap(), Ask::Mtu);
        far.write_all(b"\"bye\"}\n").unwrap();
        assert_eq!(near.read::<Ask>(limit).unwrap(), Ask::Bye);
        far.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let reason = near.read::<Ask>(limit).unwrap_err().reason();
        assert!(
            reason.starts_with("no message of this protocol"),
            "{reason}"
        );
    }

    #[test]
    fn silence_length_and_the_end_have_reasons() {
        let (mut near, mut far) = pair();
        let soon = Duration::from_millis(1);
        let said = near.read::<Ask>(soon).unwrap_err().reason();
        assert_eq!(said, "it did not answer within 1 ms");
        far.write_all(&vec![b'x'; LINE_BYTES_MAX + 1]).unwrap();
        let said = near
            .read::<Ask>(Duration::from_secs(10))
            .unwrap_err()
            .reason();
        assert_eq!(said, "it sent a line of more than 8192 B");
        let (mut near, far) = pair();
        drop(far);
        let said = near
            .read::<Ask>(Duration::from_secs(10))
            .unwrap_err()
            .reason();
        assert_eq!(said, "it closed the connection");
    }
}
