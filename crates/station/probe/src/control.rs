//! The control connection: the caller requests one check after the other.

use crate::payload::Payload;
use crate::spec::{
    Check, DatagramCounts, Datagrams, Direction, Findings, PathMtu, READY, Spec, StreamCounts,
};
use crate::{ProbeError, datagrams, failed, path_mtu, stream};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Time for a line of the control connection: a check, its drain, and retransmissions.
const LINE_LIMIT: Duration = Duration::from_secs(6);
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Time for the first datagram: the server learns the caller's port from it.
const HELLO_LIMIT: Duration = Duration::from_secs(1);
const HELLO_STEP: Duration = Duration::from_millis(100);
const HELLO: [u8; 1] = *b"h";
/// Longest search of the largest packet.
const MTU_LIMIT: Duration = Duration::from_secs(5);
/// Longest check that a server plays a part in.
const CHECK_MS_MAX: u64 = 10_000;
const LINE_BYTES_MAX: u64 = 4096;
/// Longest wait for a caller, after which the end is looked at.
const ACCEPT_STEP: Duration = Duration::from_millis(100);

/// A request of the caller.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "check")]
enum Request {
    Tcp {
        direction: Direction,
        ms: u64,
    },
    Udp {
        direction: Direction,
        kind: Datagrams,
        ms: u64,
        bytes: u16,
    },
    Mtu {
        direction: Direction,
    },
    /// The caller has sent its last datagram.
    Over,
}

/// The port of a check's socket at the server.
#[derive(Debug, Serialize, Deserialize)]
struct Port {
    port: u16,
}

/// The callers of a server that strangers can reach, and its end.
pub struct Access<'a> {
    /// The only caller's address.
    pub caller: IpAddr,
    /// Whether a caller's first line is the secret.
    pub is_secret: &'a dyn Fn(&str) -> bool,
    /// Whether the server shall end.
    pub is_over: &'a dyn Fn() -> bool,
}

/// The checks that a caller makes.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The server.
    pub server: SocketAddr,
    /// Its secret, if it demands one.
    pub secret: Option<&'a str>,
    /// Time of each check in milliseconds.
    pub check_ms: u64,
    /// Length of the long datagrams' payload in bytes.
    pub datagram_bytes: u16,
    /// The checks; empty: all.
    pub checks: &'a [(Direction, Check)],
    /// Whether the largest packet is searched first.
    pub mtu: bool,
}

/// Plays a station's part; a caller prints its [`Findings`].
///
/// # Errors
/// When the spec cannot be read, or a server cannot listen, or a caller cannot reach it.
pub fn play(spec: &str, mut out: impl Write) -> Result<(), ProbeError> {
    match serde_json::from_str(spec)? {
        Spec::Serve { port } => {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port));
            let listener = listener.map_err(failed("cannot listen for probes"))?;
            writeln!(out, "{READY}").map_err(failed("cannot report"))?;
            serve(&listener, None)
        }
        Spec::Call {
            target,
            port,
            check_ms,
            datagram_bytes,
            checks,
        } => {
            let findings = call(&Call {
                server: (target, port).into(),
                secret: None,
                check_ms,
                datagram_bytes,
                checks: &checks,
                mtu: true,
            })?;
            serde_json::to_writer(&mut out, &findings)?;
            Ok(())
        }
    }
}

/// Serves one caller after the other: they never come together, and one that went away is replaced
/// by the next. Without `access` every caller is served, and the server does not end.
///
/// # Errors
/// When connections cannot be accepted.
pub fn serve(listener: &TcpListener, access: Option<&Access<'_>>) -> Result<(), ProbeError> {
    let refused = failed("cannot accept probes");
    let payload = Payload::new();
    listener
        .set_nonblocking(access.is_some())
        .map_err(&refused)?;
    loop {
        if let Some(access) = access {
            if (access.is_over)() {
                return Ok(());
            }
            // Errors and the end of the wait lead to the next turn.
            let _ = port::wait_readable(&[listener.as_fd()], Some(ACCEPT_STEP));
        }
        let (connection, caller) = match listener.accept() {
            Err(error) if access.is_some() && port::is_timeout(&error) => continue,
            accepted => accepted.map_err(&refused)?,
        };
        if access.is_some_and(|access| access.caller != caller.ip()) {
            continue;
        }
        let lines = connection
            .set_nonblocking(false)
            .and_then(|()| Lines::new(connection))
            .map_err(failed("cannot use a connection"))?;
        // A caller that is cut off may come again.
        let _ = Server {
            lines,
            caller: caller.ip(),
            payload: &payload,
        }
        .serve(access);
    }
}

/// JSON lines on a connection.
struct Lines {
    reader: BufReader<TcpStream>,
}

impl Lines {
    fn new(connection: TcpStream) -> io::Result<Self> {
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(LINE_LIMIT))?;
        connection.set_write_timeout(Some(LINE_LIMIT))?;
        Ok(Self {
            reader: BufReader::new(connection),
        })
    }

    fn write(&self, value: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(value)? + "\n";
        self.reader.get_ref().write_all(line.as_bytes())
    }

    fn read<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        Ok(serde_json::from_str(&self.line()?)?)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        let mut limited = io::Read::take(&mut self.reader, LINE_BYTES_MAX);
        if limited.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }

    /// The address of a further socket of this end.
    fn own(&self) -> io::Result<SocketAddr> {
        Ok((self.reader.get_ref().local_addr()?.ip(), 0).into())
    }

    /// Whether a line has arrived.
    fn is_waiting(&self) -> bool {
        let connection = self.reader.get_ref();
        let mut byte = [0];
        if !self.reader.buffer().is_empty() {
            return true;
        }
        if connection.set_nonblocking(true).is_err() {
            return true;
        }
        // Also true at the end of the connection: the caller is gone.
        let waiting = match connection.peek(&mut byte) {
            Err(error) => !port::is_timeout(&error),
            Ok(_) => true,
        };
        let _ = connection.set_nonblocking(false);
        waiting
    }
}

struct Server<'a> {
    lines: Lines,
    caller: IpAddr,
    payload: &'a Payload,
}

impl Server<'_> {
    fn serve(mut self, access: Option<&Access<'_>>) -> io::Result<()> {
        if let Some(access) = access
            && !(access.is_secret)(self.lines.line()?.trim_end())
        {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        loop {
            match self.lines.read()? {
                Request::Tcp { direction, ms } => self.tcp(direction, limited(ms))?,
                Request::Udp {
                    direction,
                    kind,
                    ms,
                    bytes,
                } => self.udp(direction, kind, limited(ms), bytes)?,
                Request::Mtu { direction } => self.mtu(direction)?,
                Request::Over => {}
            }
        }
    }

    fn tcp(&mut self, direction: Direction, time: Duration) -> io::Result<()> {
        let listener = TcpListener::bind(self.lines.own()?)?;
        let port = listener.local_addr()?.port();
        self.lines.write(&Port { port })?;
        listener.set_nonblocking(true)?;
        let end = Instant::now() + CONNECT_LIMIT;
        let accepted = loop {
            match listener.accept() {
                Ok((stream, _)) => break Ok(stream),
                Err(error) if port::is_timeout(&error) && Instant::now() < end => {
                    // The caller connects as soon as it has the port.
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => break Err(error),
            }
        };
        let counts = accepted.and_then(|stream| {
            stream.set_nonblocking(false)?;
            match direction {
                Direction::Up => stream::receive(&stream, time, self.payload),
                Direction::Down => Ok(StreamCounts {
                    sent_bytes: stream::send(&stream, time, self.payload)?,
                    ..StreamCounts::default()
                }),
            }
        });
        self.lines.write(&counts.map_err(|error| error.to_string()))
    }

    fn udp(
        &mut self,
        direction: Direction,
        kind: Datagrams,
        time: Duration,
        bytes: u16,
    ) -> io::Result<()> {
        let socket = UdpSocket::bind(self.lines.own()?)?;
        let port = socket.local_addr()?.port();
        self.lines.write(&Port { port })?;
        let counts = self.hear(&socket).and_then(|()| match direction {
            Direction::Up => datagrams::receive(&socket, kind, bytes, self.payload, || {
                self.lines.is_waiting()
            }),
            Direction::Down => datagrams::send(&socket, kind, time, bytes, self.payload),
        });
        if direction == Direction::Up {
            // The line that ended the check.
            let _: Request = self.lines.read()?;
        }
        self.lines.write(&counts.map_err(|error| error.to_string()))
    }

    fn mtu(&mut self, direction: Direction) -> io::Result<()> {
        let socket = UdpSocket::bind(self.lines.own()?)?;
        let port = socket.local_addr()?.port();
        self.lines.write(&Port { port })?;
        let found = self.hear(&socket).and_then(|()| match direction {
            Direction::Up => path_mtu::answer(&socket, MTU_LIMIT).map(|()| PathMtu::default()),
            Direction::Down => {
                let found = path_mtu::find(&socket);
                path_mtu::done(&socket);
                found
            }
        });
        self.lines.write(&found.map_err(|error| error.to_string()))
    }

    /// Waits for the caller's first datagram, connects to its source, and answers.
    fn hear(&self, socket: &UdpSocket) -> io::Result<()> {
        socket.set_read_timeout(Some(HELLO_LIMIT))?;
        let mut buffer = [0; 64];
        loop {
            let (bytes, from) = socket.recv_from(&mut buffer)?;
            if from.ip() == self.caller && buffer[..bytes] == HELLO {
                socket.connect(from)?;
                socket.send(&HELLO)?;
                return Ok(());
            }
        }
    }
}

fn limited(ms: u64) -> Duration {
    Duration::from_millis(ms.min(CHECK_MS_MAX))
}

/// Makes checks against a server.
///
/// # Errors
/// When the server cannot be reached at all.
pub fn call(calls: &Call<'_>) -> Result<Findings, ProbeError> {
    let Call {
        check_ms: ms,
        datagram_bytes: bytes,
        checks,
        ..
    } = *calls;
    let is_wanted = |direction, check| checks.is_empty() || checks.contains(&(direction, check));
    let payload = Payload::new();
    let mut findings = Findings::default();
    let mut connection = None;
    for direction in Direction::BOTH.into_iter().filter(|_| calls.mtu) {
        let request = Request::Mtu { direction };
        let mtu = on(&mut connection, calls, |caller| {
            caller.mtu(request, direction)
        })?;
        findings.mtu.push((direction, mtu));
    }
    for direction in Direction::BOTH {
        if is_wanted(direction, Check::Tcp) {
            let request = Request::Tcp { direction, ms };
            let tcp = on(&mut connection, calls, |caller| {
                caller.tcp(request, direction, ms, &payload)
            })?;
            findings.tcp.push((direction, tcp));
        }
        let kinds = Datagrams::ALL.into_iter();
        for kind in kinds.filter(|kind| is_wanted(direction, Check::Udp(*kind))) {
            let request = Request::Udp {
                direction,
                kind,
                ms,
                bytes,
            };
            let udp = on(&mut connection, calls, |caller| {
                caller.udp(request, (direction, kind), (ms, bytes), &payload)
            })?;
            findings.udp.push((direction, kind, udp));
        }
    }
    Ok(findings)
}

/// Makes a check on the control connection; opens another one if the last check broke it. Only a
/// server that cannot be reached at all is an error of the probe.
fn on<T>(
    connection: &mut Option<Caller>,
    calls: &Call<'_>,
    check: impl FnOnce(&mut Caller) -> io::Result<Result<T, String>>,
) -> Result<Result<T, String>, ProbeError> {
    let mut caller = match connection.take() {
        Some(caller) => caller,
        None => Caller::new(calls).map_err(failed("cannot reach the server of probes"))?,
    };
    match check(&mut caller) {
        Ok(found) => {
            *connection = Some(caller);
            Ok(found)
        }
        Err(error) => Ok(Err(format!("the check broke off: {error}"))),
    }
}

struct Caller {
    lines: Lines,
    server: SocketAddr,
}

impl Caller {
    fn new(calls: &Call<'_>) -> io::Result<Self> {
        let server = calls.server;
        let connection = TcpStream::connect_timeout(&server, CONNECT_LIMIT)?;
        if let Some(secret) = calls.secret {
            (&connection).write_all(format!("{secret}\n").as_bytes())?;
        }
        let lines = Lines::new(connection)?;
        Ok(Self { lines, server })
    }

    /// Requests a check; returns the server's address for it.
    fn begin(&mut self, request: Request) -> io::Result<SocketAddr> {
        self.lines.write(&request)?;
        let Port { port } = self.lines.read()?;
        Ok(SocketAddr::new(self.server.ip(), port))
    }

    fn tcp(
        &mut self,
        request: Request,
        direction: Direction,
        ms: u64,
        payload: &Payload,
    ) -> io::Result<Result<StreamCounts, String>> {
        let server = self.begin(request)?;
        let time = Duration::from_millis(ms);
        let own =
            TcpStream::connect_timeout(&server, CONNECT_LIMIT).and_then(|stream| match direction {
                Direction::Up => Ok(StreamCounts {
                    sent_bytes: stream::send(&stream, time, payload)?,
                    ..StreamCounts::default()
                }),
                Direction::Down => stream::receive(&stream, time, payload),
            });
        let theirs: Result<StreamCounts, String> = self.lines.read()?;
        let joined = own.map_err(|error| error.to_string());
        Ok(joined.and_then(|own| {
            let theirs = theirs?;
            let (sender, receiver) = match direction {
                Direction::Up => (own, theirs),
                Direction::Down => (theirs, own),
            };
            Ok(StreamCounts {
                sent_bytes: sender.sent_bytes,
                ..receiver
            })
        }))
    }

    fn udp(
        &mut self,
        request: Request,
        (direction, kind): (Direction, Datagrams),
        (ms, bytes): (u64, u16),
        payload: &Payload,
    ) -> io::Result<Result<DatagramCounts, String>> {
        let socket = connected(self.begin(request)?)?;
        let time = Duration::from_millis(ms);
        let own = greet(&socket).and_then(|()| match direction {
            Direction::Up => datagrams::send(&socket, kind, time, bytes, payload),
            Direction::Down => {
                datagrams::receive(&socket, kind, bytes, payload, || self.lines.is_waiting())
            }
        });
        if direction == Direction::Up {
            self.lines.write(&Request::Over)?;
        }
        let theirs: Result<DatagramCounts, String> = self.lines.read()?;
        let joined = own.map_err(|error| error.to_string());
        Ok(joined.and_then(|own| {
            let theirs = theirs?;
            let (sender, receiver) = match direction {
                Direction::Up => (own, theirs),
                Direction::Down => (theirs, own),
            };
            Ok(DatagramCounts {
                sent: sender.sent,
                elapsed_ns: sender.elapsed_ns,
                refused: sender.refused,
                ..receiver
            })
        }))
    }

    fn mtu(
        &mut self,
        request: Request,
        direction: Direction,
    ) -> io::Result<Result<PathMtu, String>> {
        let socket = connected(self.begin(request)?)?;
        let own = greet(&socket).and_then(|()| match direction {
            Direction::Up => {
                let found = path_mtu::find(&socket);
                path_mtu::done(&socket);
                found
            }
            Direction::Down => path_mtu::answer(&socket, MTU_LIMIT).map(|()| PathMtu::default()),
        });
        let theirs: Result<PathMtu, String> = self.lines.read()?;
        let own = own.map_err(|error| error.to_string());
        Ok(match direction {
            Direction::Up => theirs.and(own),
            Direction::Down => own.and(theirs),
        })
    }
}

fn connected(server: SocketAddr) -> io::Result<UdpSocket> {
    let any = match server {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    Ok(socket)
}

/// Sends datagrams until the server answers: it learns this socket's address from them.
fn greet(socket: &UdpSocket) -> io::Result<()> {
    let end = Instant::now() + HELLO_LIMIT;
    socket.set_read_timeout(Some(HELLO_STEP))?;
    let mut buffer = [0; 64];
    while Instant::now() < end {
        // A lost one is repeated.
        let _ = socket.send(&HELLO);
        if let Ok(bytes) = socket.recv(&mut buffer)
            && buffer[..bytes] == HELLO
        {
            return Ok(());
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "not even a datagram of one byte was answered",
    ))
}
