//! An input that counts as closed once nothing has come for a time.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

/// Reads from `input`; ends after `limit` without a byte, as if the other end were closed.
pub(crate) struct Attentive<R> {
    input: R,
    limit: Duration,
}

impl<R: Read + AsFd> Attentive<R> {
    pub(crate) const fn new(input: R, limit: Duration) -> Self {
        Self { input, limit }
    }
}

impl<R: Read + AsFd> Read for Attentive<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = PollTimeout::try_from(self.limit).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, limit) {
            // As if the input were closed: its reader then ends everything in the usual order.
            Ok(0) => Ok(0),
            // Readers of the standard library try again, with the whole limit.
            Err(Errno::EINTR) => Err(io::ErrorKind::Interrupted.into()),
            Err(errno) => Err(errno.into()),
            Ok(_) => self.input.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    #[test]
    fn what_is_said_is_read_and_silence_is_the_end() {
        let (mut speaker, listener) = UnixStream::pair().unwrap();
        let limit = Duration::from_millis(200);
        let mut input = BufReader::new(Attentive::new(listener, limit));
        let mut line = String::new();
        speaker.write_all(b"alive\n").unwrap();
        assert_eq!(input.read_line(&mut line).unwrap(), 6);
        let began = Instant::now();
        assert_eq!(input.read_line(&mut line).unwrap(), 0);
        assert!(began.elapsed() >= limit);
        drop(speaker);
    }
}
