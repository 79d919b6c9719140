//! The kernel's account of a TCP connection (`TCP_INFO`, tcp(7)).

use crate::kernel::option;
use std::io;
use std::os::fd::AsRawFd;

/// The kernel's counts of a connection's sending side. Fields that an older kernel lacks are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpReading {
    /// Segments with data that were sent, repeated ones included.
    pub segments: u32,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Time with data to send or unacknowledged, in microseconds.
    pub busy_us: u64,
    /// The part of it in which the receiver's window was full.
    pub receiver_limited_us: u64,
    /// The part of it in which the send buffer was full.
    pub buffer_limited_us: u64,
}

/// `struct tcp_info` up to `tcpi_sndbuf_limited`, in words of 32 bits.
const WORDS: usize = 48;

impl TcpReading {
    /// Reads a connected TCP socket.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn of(socket: &impl AsRawFd) -> io::Result<Self> {
        let words: [u32; WORDS] = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
        Ok(Self::from_words(&words))
    }

    fn from_words(words: &[u32; WORDS]) -> Self {
        let long = |at: usize| {
            let [a, b] = [words[at].to_ne_bytes(), words[at + 1].to_ne_bytes()];
            u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
        };
        Self {
            segments: words[39],
            retransmitted: words[25],
            busy_us: long(42),
            receiver_limited_us: long(44),
            buffer_limited_us: long(46),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn segments_of_a_connection_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let before = TcpReading::of(&sender).unwrap();
        assert_eq!(before.segments, 0);
        sender.write_all(&[0; 1000]).unwrap();
        receiver.read_exact(&mut [0; 1000]).unwrap();
        let after = TcpReading::of(&sender).unwrap();
        assert_eq!((after.segments, after.retransmitted), (1, 0));
    }

    #[test]
    fn long_fields_are_two_words() {
        let mut words = [0; WORDS];
        words[44..46].copy_from_slice(if cfg!(target_endian = "little") {
            &[7, 1]
        } else {
            &[1, 7]
        });
        let reading = TcpReading::from_words(&words);
        assert_eq!(reading.receiver_limited_us, (1 << 32) + 7);
    }
}
