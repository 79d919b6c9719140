//! One GET request: to a port of this namespace's loopback, or to a page elsewhere.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// From the connection to the end of the answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(3);
const BODY_BYTES_MAX: usize = 16 << 20;
const CHUNK_BYTES: usize = 64 << 10;
const PORT: u16 = 80;

/// Address of a page; its host's name has been resolved.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// `http://host:port/path`, for messages.
    pub(crate) url: String,
    address: SocketAddr,
    host: String,
    path: String,
}

impl Page {
    /// The page of a URL; without a port at 80.
    ///
    /// # Errors
    /// A sentence for people: it is none of HTTP, or its host is unknown.
    pub(crate) fn at(url: &str) -> Result<Self, String> {
        let parts = url
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once('/'));
        let (host, path) = parts.ok_or_else(|| format!("`{url}` is not the URL of a page"))?;
        // An IPv6 address in brackets has colons too: only a number behind the last one is a port.
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let resolved = if has_port {
            host.to_socket_addrs()
        } else {
            format!("{host}:{PORT}").to_socket_addrs()
        };
        let found = resolved.map(|mut addresses| addresses.next());
        let unknown = |why: String| format!("cannot get {url}: {why}");
        match found {
            Ok(Some(address)) => Self::new(url.to_owned(), address, host, &format!("/{path}")),
            Ok(None) => Err(unknown("its host has no address".to_owned())),
            Err(error) => Err(unknown(error.to_string())),
        }
    }

    fn new(url: String, address: SocketAddr, host: &str, path: &str) -> Result<Self, String> {
        // White space would end the line of the request, and could begin a header.
        let breaks = |c: char| c.is_ascii_whitespace() || c.is_control();
        if !path.starts_with('/') || path.contains(breaks) || host.contains(breaks) {
            return Err(format!("`{path}` is not the path of a URL"));
        }
        Ok(Self {
            url,
            address,
            host: host.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Returns the body of the answer to a GET request, within 4 seconds.
    ///
    /// # Errors
    /// A sentence for people: no listener, a timeout, an answer without end, or a status other than
    /// 200.
    pub(crate) fn get(&self) -> Result<String, String> {
        let url = &self.url;
        let response = self
            .exchange()
            .map_err(|error| format!("cannot get {url}: {error}"))?;
        parse(&response).map_err(|error| format!("{url} answered {error}"))
    }

    fn exchange(&self) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, CONNECT_LIMIT)?;
        // From the connection on, which has a limit before this one.
        let deadline = Instant::now() + ANSWER_LIMIT;
        stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        // HTTP/1.0: the answer is not chunked, and ends with the connection.
        let Self { path, host, .. } = self;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes())?;
        let mut response = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            // For each read anew: a page that sends a byte now and then does not extend the limit.
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(late());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut chunk) {
                Ok(0) => break,
                Ok(bytes) => response.extend_from_slice(&chunk[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
                Err(error) => return Err(error),
            }
            // A page without an end must not fill the memory.
            if response.len() > BODY_BYTES_MAX {
                let most = BODY_BYTES_MAX >> 20;
                return Err(io::Error::other(format!("it has more than {most} MiB")));
            }
        }
        String::from_utf8(response).map_err(|_| io::Error::other("its answer is no text"))
    }
}

fn late() -> io::Error {
    let limit = ANSWER_LIMIT.as_secs();
    io::Error::other(format!("its answer did not end within {limit} s"))
}

/// Returns the body of the answer to `GET http://127.0.0.1:port/path`.
///
/// # Errors
/// As [`Page::get`].
pub(crate) fn get(port: u16, path: &str) -> Result<String, String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let url = format!("http://127.0.0.1:{port}{path}");
    Page::new(url, address, "127.0.0.1", path)?.get()
}

fn parse(response: &str) -> Result<String, String> {
    let (head, body) = response.split_once("\r\n\r\n").ok_or("no HTTP")?;
    let status = head.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(format!("`{status}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, socket,
    };
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    fn serve_once(response: &'static str) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(response.as_bytes()).unwrap();
        });
        port
    }

    #[test]
    fn the_answer_is_the_body_of_a_200() {
        let port = serve_once("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody");
        assert_eq!(get(port, "/metrics"), Ok("body".to_owned()));
    }

    #[test]
    fn anything_else_is_an_error_that_names_the_url() {
        let port = serve_once("HTTP/1.0 404 Not Found\r\n\r\nnothing");
        let error = get(port, "/metrics").unwrap_err();
        assert!(error.contains(&format!(":{port}/metrics")) && error.contains("404 Not Found"));
        assert!(get(port, "/a b").is_err());
    }

    #[test]
    fn a_port_where_nobody_listens_is_an_error() {
        // Bound and not listening: no other socket gets the port meanwhile.
        let flags = SockFlag::SOCK_CLOEXEC;
        let held = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
        bind(held.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
        let port = getsockname::<SockaddrIn>(held.as_raw_fd()).unwrap().port();
        assert!(get(port, "/").unwrap_err().contains("refused"));
    }
}
