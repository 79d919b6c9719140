//! Relays on the stations, which count the packets and bytes that pass.

use crate::error::VideoError;
use crate::rtp::Packet;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use port::is_timeout;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a relay checks whether to stop.
const STEP: Duration = Duration::from_millis(50);
/// Room for a burst: a key frame's packets arrive together.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
const DATAGRAM_BYTES_MAX: usize = 65_535;
const COPY_BYTES: usize = 64 << 10;

/// Opens a socket for a relay to receive on, with room for bursts if the kernel permits it.
pub(crate) fn socket(address: Ipv4Addr, port: u16) -> Result<UdpSocket, VideoError> {
    let bound = UdpSocket::bind((address, port));
    let socket = bound.map_err(VideoError::system(format!("use UDP port {port}")))?;
    // Datagrams lost here are counted by the kernel and reported by a check.
    let _ = setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER_BYTES);
    let limited = socket.set_read_timeout(Some(STEP));
    limited.map_err(VideoError::system("set a time limit"))?;
    Ok(socket)
}

/// Forwards datagrams until `is_over` returns true; it is called whenever none arrived for `STEP`.
/// Returns the RTP packets in the order of arrival.
pub(crate) fn datagrams(
    from: &UdpSocket,
    to: SocketAddr,
    started: Instant,
    mut is_over: impl FnMut() -> bool,
) -> io::Result<Vec<Packet>> {
    let onward = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut passed = Vec::new();
    let mut datagram = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        match from.recv(&mut datagram) {
            Ok(bytes) => {
                let at_ns = started.elapsed().as_nanos() as u64;
                let datagram = &datagram[..bytes];
                // Recorded before it is passed on: what the player does not take has still arrived.
                passed.extend(Packet::of(datagram, at_ns));
                onward.send_to(datagram, to)?;
            }
            Err(error) if is_timeout(&error) => {
                if is_over() {
                    return Ok(passed);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Forwards connections to a server until `over` is set, and counts the bytes from the server.
pub(crate) fn connections(
    listener: &TcpListener,
    server: SocketAddr,
    over: &AtomicBool,
    received_bytes: &Arc<AtomicU64>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    while !over.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((player, _)) => {
                // Linux gives an accepted socket blocking mode, other systems the listener's.
                player.set_nonblocking(false)?;
                let Ok(server) = TcpStream::connect(server) else {
                    // The player sees its connection end.
                    continue;
                };
                let (to_player, to_server) = (player.try_clone()?, server.try_clone()?);
                thread::spawn(move || copy(player, to_server, None));
                let count = Arc::clone(received_bytes);
                thread::spawn(move || copy(server, to_player, Some(&count)));
            }
            Err(error) if is_timeout(&error) => thread::sleep(STEP),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Copies one direction of a connection until either end is closed.
fn copy(mut from: TcpStream, mut to: TcpStream, count: Option<&AtomicU64>) {
    let mut buffer = vec![0; COPY_BYTES];
    while let Ok(bytes) = from.read(&mut buffer)
        && bytes > 0
    {
        if let Some(count) = count {
            count.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        if to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    // Half-closed: the other direction may still have data.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
