//! One GET request to a port of this namespace's loopback.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const CONNECT_LIMIT: Duration = Duration::from_secs(1);
const READ_LIMIT: Duration = Duration::from_secs(3);
const BODY_BYTES_MAX: u64 = 16 << 20;

/// Returns the body of the answer to `GET http://127.0.0.1:port/path`.
///
/// # Errors
/// A sentence for people: no listener, a timeout, or a status other than 200.
pub(crate) fn get(port: u16, path: &str) -> Result<String, String> {
    if !path.starts_with('/') || path.contains(|c: char| c.is_ascii_whitespace() || c.is_control())
    {
        return Err(format!("`{path}` is not the path of a URL"));
    }
    let response = exchange(port, path)
        .map_err(|error| format!("cannot get http://127.0.0.1:{port}{path}: {error}"))?;
    parse(&response).map_err(|error| format!("http://127.0.0.1:{port}{path} answered {error}"))
}

fn exchange(port: u16, path: &str) -> std::io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
    stream.set_read_timeout(Some(READ_LIMIT))?;
    stream.set_write_timeout(Some(READ_LIMIT))?;
    // HTTP/1.0: the answer is not chunked, and ends with the connection.
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").as_bytes())?;
    let mut response = String::new();
    stream.take(BODY_BYTES_MAX).read_to_string(&mut response)?;
    Ok(response)
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
