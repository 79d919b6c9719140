//! The largest packet that passes, compared with the MTU that the kernel assumes.

use crate::spec::PathMtu;
use nix::sys::socket::{getsockopt, sockopt};
use port::is_timeout;
use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// IPv4 and UDP header.
const HEADER_BYTES: u16 = 28;
/// Every path carries packets of this length (RFC 791 §3.2 asks for 576 B).
pub const LEAST_BYTES: u16 = 576;
/// Time for an answer.
const ANSWER: Duration = Duration::from_millis(80);
const ATTEMPTS: usize = 3;
/// First byte of a request and of an answer, which repeats the packet's length.
const REQUEST: u8 = b'?';
const ANSWERED: u8 = b'!';

/// Finds the largest packet. The socket is connected to a peer that [`answer`]s.
pub(crate) fn find(socket: &UdpSocket) -> io::Result<PathMtu> {
    port::never_fragment(socket)?;
    socket.set_read_timeout(Some(ANSWER))?;
    largest_packet(|| mtu(socket), |bytes| passes(socket, bytes))
}

/// Finds the largest packet by the MTU that the kernel uses now, and by whether a packet of a
/// length arrives. It is 0 if not even one of 576 B does.
///
/// # Errors
/// That of either.
pub fn largest_packet<E>(
    known_now: impl Fn() -> Result<u16, E>,
    mut passes: impl FnMut(u16) -> Result<bool, E>,
) -> Result<PathMtu, E> {
    let mut known = known_now()?;
    loop {
        if passes(known)? {
            return Ok(PathMtu {
                known_bytes: known,
                passed_bytes: known,
            });
        }
        // A router's report may have arrived meanwhile.
        let now = known_now()?;
        if now >= known {
            break;
        }
        known = now;
    }
    // Between one that passes and one that does not.
    let (mut least, mut most) = (0, known);
    if passes(LEAST_BYTES.min(known))? {
        least = LEAST_BYTES.min(known);
        while least + 1 < most {
            let middle = least.midpoint(most);
            if passes(middle)? {
                least = middle;
            } else {
                most = middle;
            }
        }
    }
    Ok(PathMtu {
        known_bytes: known,
        passed_bytes: least,
    })
}

/// Answers requests until `limit`, or until a datagram says that the peer has found its answer.
pub(crate) fn answer(socket: &UdpSocket, limit: Duration) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let end = Instant::now() + limit;
    let mut buffer = vec![0; 1 << 16];
    while Instant::now() < end {
        match socket.recv(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(bytes) if buffer[0] == REQUEST => {
                let [high, low] = (bytes as u16).to_be_bytes();
                // A lost answer is requested again.
                let _ = socket.send(&[ANSWERED, high, low]);
            }
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            // Reports of routers about answers.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Tells the peer that no more requests follow.
pub(crate) fn done(socket: &UdpSocket) {
    // Without it the peer waits for its limit.
    let _ = socket.send(&[]);
    let _ = socket.send(&[]);
}

fn mtu(socket: &UdpSocket) -> io::Result<u16> {
    let mtu = getsockopt(socket, sockopt::IpMtu)?;
    Ok(u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// Whether a packet of this length is answered; also false if the kernel refuses it as too long.
fn passes(socket: &UdpSocket, packet_bytes: u16) -> io::Result<bool> {
    let payload = vec![REQUEST; usize::from(packet_bytes.saturating_sub(HEADER_BYTES).max(1))];
    let mut buffer = [0; 64];
    for _ in 0..ATTEMPTS {
        match socket.send(&payload) {
            Err(error) if error.raw_os_error() == Some(nix::libc::EMSGSIZE) => return Ok(false),
            // A report of a router about an earlier packet ends the next call.
            Err(_) => continue,
            Ok(_) => {}
        }
        let end = Instant::now() + ANSWER;
        while Instant::now() < end {
            let [high, low] = (payload.len() as u16).to_be_bytes();
            match socket.recv(&mut buffer) {
                Ok(3) if buffer[..3] == [ANSWERED, high, low] => return Ok(true),
                Err(error) if error.raw_os_error() == Some(nix::libc::EMSGSIZE) => break,
                _ => {}
            }
        }
    }
    Ok(false)
}
