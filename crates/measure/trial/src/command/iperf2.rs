//! Commands of iperf2.
//!
//! Its server ends by itself when so many streams as `-P` says have ended. Its clients send the
//! digits over and over, unasked, behind a header that is repeated in each datagram, and in each
//! block of a TCP stream.

use super::{MARKER_BYTES, Share, pattern, seconds};
use lab::protocol::Ready;

/// What its client writes before the digits: up to 160 B were seen.
const HEADER_BYTES: usize = 160;
/// `-b` cannot be left open: without it, a client sends 1 Mbit/s. Nothing here sends so much, in
/// bit/s.
const FULL_SPEED_BPS: u64 = 1_000_000_000_000;
/// Handed to a TCP socket at once, as it does unasked.
pub(crate) const BLOCK_BYTES: u64 = 131_072;

impl Share<'_> {
    /// Server, client, and when the server is ready.
    pub(super) fn iperf2(&self) -> (String, String, Ready) {
        let Self {
            target,
            port,
            streams,
            ..
        } = self;
        let interval = seconds(self.timing.interval_ns);
        let window = self
            .window_bytes
            .map_or(String::new(), |bytes| format!(" -w {bytes}"));
        let (of_server, of_client, ready) = match self.datagrams {
            Some(of) => (
                format!(" -u -l {}", of.bytes),
                format!(
                    " -u -l {} -b {}",
                    of.bytes,
                    of.rate_bps.unwrap_or(FULL_SPEED_BPS)
                ),
                Ready::Bound(*port),
            ),
            None => (
                String::new(),
                format!(" -l {BLOCK_BYTES}"),
                Ready::Listening(*port),
            ),
        };
        let common = format!("-p {port} -y C -i {interval} -P {streams}{window}");
        let server = format!("iperf -s {common}{of_server}");
        let client = format!(
            "iperf -c {target} {common}{of_client} -t {}",
            self.timing.run_seconds()
        );
        (server, client, ready)
    }
}

/// The digits that a datagram shows wherever they begin, when it has enough of them behind the
/// header.
pub(super) fn marker(payload_bytes: usize) -> Vec<u8> {
    // In so many digits, those of the marker stand in their order at least once.
    let needed = HEADER_BYTES + 2 * MARKER_BYTES - 1;
    match payload_bytes >= needed {
        true => pattern(0, MARKER_BYTES),
        false => Vec::new(),
    }
}
