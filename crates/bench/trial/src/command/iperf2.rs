//! Commands of iperf2.
//!
//! Its server ends by itself after `-P` streams. By default its clients send the repeated digits,
//! behind a header in each datagram and in each block of a TCP stream.

use super::{MARKER_BYTES, Share, pattern, seconds};
use plan::TransferDirection;
use testbed::protocol::Ready;

/// Longest header before the digits that was observed.
const HEADER_BYTES: usize = 160;
/// Rate in bit/s for "as fast as possible", beyond any machine: without `-b`, a client sends
/// 1 Mbit/s.
const FULL_SPEED_BPS: u64 = 1_000_000_000_000;
/// Bytes per write to a TCP socket: its default.
pub(crate) const BLOCK_BYTES: u64 = 131_072;

impl Share<'_> {
    /// Returns the commands of server and client, and the server's sign of being ready.
    pub(super) fn iperf2(&self) -> (String, String, Ready) {
        let Self {
            target,
            port,
            streams,
            ..
        } = self;
        let interval = seconds(self.timing.step_ns);
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
        let direction = match self.direction {
            TransferDirection::AToB => "",
            TransferDirection::BToA => " -R",
            // Unlike `-d`, which opens a connection from B to A, it needs no way for that.
            TransferDirection::Duplex => " --full-duplex",
        };
        // Each end sets the congestion control of its sent data.
        let congestion = self
            .congestion
            .map_or(String::new(), |name| format!(" -Z {name}"));
        // The server answers with its own class.
        let class = self.class();
        let common =
            format!("-p {port} -y C -i {interval} -P {streams}{window}{congestion}{class}");
        let server = format!("iperf -s {common}{of_server}");
        let client = format!(
            "iperf -c {target} {common}{of_client}{direction} -t {}",
            self.timing.run_seconds()
        );
        (server, client, ready)
    }
}

/// Returns the digits that a datagram contains at any phase, if it has enough of them behind the
/// header.
pub(super) fn marker(payload_bytes: usize) -> Vec<u8> {
    // This many digits contain the marker at least once.
    let needed = HEADER_BYTES + 2 * MARKER_BYTES - 1;
    if payload_bytes >= needed {
        pattern(0, MARKER_BYTES)
    } else {
        Vec::new()
    }
}
