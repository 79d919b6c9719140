//! The report of one iperf3 process (`-J`), parsed strictly.
//!
//! Trials use the sums of intervals, on which all versions agree: a UDP server of version 3.12, for
//! example, reports `"bytes": 0` at its end. In JSON mode iperf3 exits with 0 after an error, so
//! the `error` key decides, not the exit code.

use serde::Deserialize;

/// Limit of times in seconds; a longer time is a misreading.
const SECONDS_MAX: f64 = 1e8;
/// Limit of counts: a petabyte in one interval is a misreading. Sums of smaller counts cannot
/// overflow.
const COUNT_MAX: f64 = 1e15;
/// Characters of the output that an error quotes.
const EXCERPT_CHARS: usize = 80;

/// What one process of a tool, client or server, counted by the way of the payload; at least one
/// has a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sessions {
    /// What it sent.
    pub sent: Option<Session>,
    /// What it received.
    pub received: Option<Session>,
}

/// The counts of one tool process one way, as sender or as receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// Its intervals in order, summed over all streams of the process.
    pub steps: Vec<Step>,
    /// Bytes sent or received by its closing summary, if it has them.
    pub summary_bytes: Option<u64>,
    /// Streams of the process.
    pub streams: u64,
    /// Bytes per write to a socket.
    pub block_bytes: u64,
    /// Datagrams that arrived out of order; 0 for TCP.
    pub out_of_order: u64,
    /// Interarrival jitter (RFC 3550 §6.4.1), mean over its streams in nanoseconds; 0 for TCP.
    pub jitter_ns: u64,
    /// TCP: maximum segment size at the start, if the tool reports it.
    pub segment_bytes: Option<u64>,
    /// TCP: congestion control that this process's kernel used, if the tool reports it.
    pub congestion: Option<String>,
}

/// One interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// From the start of the test.
    pub start_ns: u64,
    /// From the start of the test.
    pub end_ns: u64,
    /// Payload bytes sent or received.
    pub bytes: u64,
    /// UDP: datagrams sent, or the increase of the receiver's highest sequence number.
    pub packets: Option<u64>,
    /// TCP sender: retransmitted segments, if the kernel reports them.
    pub retransmits: Option<u64>,
    /// TCP sender: smoothed round-trip time at the end, mean over its streams, if the kernel
    /// reports it.
    pub rtt_ns: Option<u64>,
}

/// Why an output is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Iperf3Error {
    /// Nothing was printed: it was killed, or could not start.
    #[error("iperf3 printed nothing")]
    Empty,
    /// An error that iperf3 reports.
    #[error("iperf3 says: {0}")]
    Reported(String),
    /// Not the JSON of iperf3, or truncated.
    #[error("iperf3's output cannot be read: {problem}, at `{excerpt}`")]
    Malformed {
        /// What is wrong and where.
        problem: String,
        /// The place, or the beginning.
        excerpt: String,
    },
}

impl Sessions {
    /// Parses the output of an iperf3 client or server with `-J`.
    ///
    /// # Errors
    /// When it reports an error, is truncated, or lacks data that a trial needs.
    pub fn parse(output: &str) -> Result<Self, Iperf3Error> {
        if output.trim().is_empty() {
            return Err(Iperf3Error::Empty);
        }
        let raw: RawOutput = serde_json::from_str(output).map_err(|error| {
            let line = output
                .lines()
                .nth(error.line().saturating_sub(1))
                .unwrap_or_default();
            malformed(&error.to_string(), line)
        })?;
        if let Some(error) = raw.error {
            return Err(Iperf3Error::Reported(error));
        }
        let missing = |key: &str| malformed(&format!("`{key}` is missing"), output);
        let intervals = raw.intervals.ok_or_else(|| missing("intervals"))?;
        let end = raw.end.ok_or_else(|| missing("end"))?;
        let start = raw.start.ok_or_else(|| missing("test_start"))?;
        if start.test_start.is_none() {
            return Err(missing("test_start"));
        }
        if intervals.is_empty() {
            return Err(malformed("`intervals` is empty", output));
        }
        let mut sessions = Self::default();
        for reverse in [false, true] {
            let sums = intervals.iter().map(|interval| interval.sum(reverse));
            // Only both ways at once have a second sum.
            let Some(sums) = sums.collect::<Option<Vec<&RawSum>>>() else {
                continue;
            };
            let sender = sums.first().is_some_and(|sum| sum.sender);
            let session = Session::assemble(&intervals, &sums, sender, &start, end.of(reverse));
            *sessions.of(sender) = Some(session?);
        }
        Ok(sessions)
    }

    /// The place of what this process sent, or received.
    const fn of(&mut self, sender: bool) -> &mut Option<Session> {
        match sender {
            true => &mut self.sent,
            false => &mut self.received,
        }
    }
}

impl Session {
    fn assemble(
        intervals: &[RawInterval],
        sums: &[&RawSum],
        sender: bool,
        start: &RawStart,
        end: EndOfWay<'_>,
    ) -> Result<Self, Iperf3Error> {
        let mut steps: Vec<Step> = Vec::with_capacity(sums.len());
        for (interval, sum) in intervals.iter().zip(sums) {
            let step = Step {
                rtt_ns: interval.rtt_ns(sender),
                ..sum.step()
            };
            if step.end_ns < step.start_ns
                || steps.last().is_some_and(|l| step.start_ns < l.start_ns)
            {
                let problem = format!("interval {} runs backwards in time", steps.len());
                return Err(malformed(&problem, &format!("{sum:?}")));
            }
            steps.push(step);
        }
        // A client's `sum_received` is a copy of the server's, a server's `sum_sent` is zero.
        let summary = if sender { end.sent } else { end.received };
        // The streams of the other way have the other role.
        let udp = end.streams.iter().filter_map(|stream| stream.udp.as_ref());
        let udp: Vec<&RawUdp> = udp.filter(|udp| udp.sender == sender).collect();
        let jitters: f64 = udp.iter().filter_map(|stream| stream.jitter_ms).sum();
        let jitter_ms = if udp.is_empty() {
            0.0
        } else {
            jitters / udp.len() as f64
        };
        let (streams, block_bytes) = start
            .test_start
            .as_ref()
            .map_or((0, 0), |test| (test.num_streams.0, test.blksize.0));
        Ok(Self {
            steps,
            summary_bytes: summary.map(|sum| sum.bytes.0),
            streams,
            block_bytes,
            out_of_order: udp
                .iter()
                .filter_map(|stream| stream.out_of_order)
                .map(|n| n.0)
                .sum(),
            jitter_ns: (jitter_ms.max(0.0) * 1e6).round() as u64,
            segment_bytes: start
                .tcp_mss_default
                .map(|n| n.0)
                .filter(|bytes| *bytes > 0),
            congestion: end.congestion.filter(|_| sender).map(str::to_owned),
        })
    }

    /// Bytes over the whole session.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.steps.iter().map(|step| step.bytes).sum()
    }

    /// Bytes that may have been sent but not counted: from version 3.16 on, sending threads may be
    /// stopped between sending and counting a block.
    #[must_use]
    pub const fn uncounted_bytes(&self) -> u64 {
        self.streams.saturating_mul(self.block_bytes)
    }

    /// Datagrams over the whole session; 0 for TCP.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.steps.iter().filter_map(|step| step.packets).sum()
    }
}

fn malformed(problem: &str, place: &str) -> Iperf3Error {
    let excerpt: String = place.trim().chars().take(EXCERPT_CHARS).collect();
    Iperf3Error::Malformed {
        problem: problem.to_owned(),
        excerpt,
    }
}

#[derive(Deserialize)]
struct RawOutput {
    start: Option<RawStart>,
    intervals: Option<Vec<RawInterval>>,
    end: Option<RawEnd>,
    error: Option<String>,
}

/// Optional: a process that fails before it connects has no test.
#[derive(Deserialize)]
struct RawStart {
    test_start: Option<RawTest>,
    /// Of TCP; 0 where the kernel does not say.
    tcp_mss_default: Option<Count>,
}

#[derive(Deserialize)]
struct RawTest {
    num_streams: Count,
    blksize: Count,
}

#[derive(Deserialize)]
struct RawInterval {
    sum: RawSum,
    /// With `--bidir`: the streams from server to client.
    sum_bidir_reverse: Option<RawSum>,
    #[serde(default)]
    streams: Vec<RawPart>,
}

impl RawInterval {
    const fn sum(&self, reverse: bool) -> Option<&RawSum> {
        match reverse {
            false => Some(&self.sum),
            true => self.sum_bidir_reverse.as_ref(),
        }
    }

    /// Mean over the streams that this process sends on.
    fn rtt_ns(&self, sender: bool) -> Option<u64> {
        let streams = self.streams.iter().filter(|part| sender && part.sender);
        let times: Vec<u64> = streams
            .map(|part| Some(part.rtt?.0))
            .collect::<Option<_>>()?;
        let count = u64::try_from(times.len()).ok().filter(|count| *count > 0)?;
        Some(times.iter().sum::<u64>().saturating_mul(1000) / count)
    }
}

/// One stream in one interval.
#[derive(Deserialize)]
struct RawPart {
    /// Microseconds; of TCP senders only.
    rtt: Option<Count>,
    #[serde(default)]
    sender: bool,
}

#[derive(Debug, Deserialize)]
struct RawSum {
    start: Seconds,
    end: Seconds,
    bytes: Count,
    packets: Option<Count>,
    /// Negative when the kernel restarts its count.
    retransmits: Option<f64>,
    /// Whether this process is the sender.
    sender: bool,
}

impl RawSum {
    fn step(&self) -> Step {
        Step {
            start_ns: self.start.ns(),
            end_ns: self.end.ns(),
            bytes: self.bytes.0,
            packets: self.packets.map(|n| n.0),
            retransmits: self.retransmits.map(|n| n.max(0.0) as u64),
            rtt_ns: None,
        }
    }
}

/// All optional: after an error `end` is an empty object.
#[derive(Deserialize)]
struct RawEnd {
    sum_sent: Option<RawSum>,
    sum_received: Option<RawSum>,
    sum_sent_bidir_reverse: Option<RawSum>,
    sum_received_bidir_reverse: Option<RawSum>,
    #[serde(default)]
    streams: Vec<RawStream>,
    /// Of the process's own end, if it sends.
    sender_tcp_congestion: Option<String>,
}

/// The part of [`RawEnd`] for one way.
struct EndOfWay<'a> {
    sent: Option<&'a RawSum>,
    received: Option<&'a RawSum>,
    /// Of both ways.
    streams: &'a [RawStream],
    congestion: Option<&'a str>,
}

impl RawEnd {
    fn of(&self, reverse: bool) -> EndOfWay<'_> {
        let (sent, received) = match reverse {
            false => (&self.sum_sent, &self.sum_received),
            true => (
                &self.sum_sent_bidir_reverse,
                &self.sum_received_bidir_reverse,
            ),
        };
        EndOfWay {
            sent: sent.as_ref(),
            received: received.as_ref(),
            streams: &self.streams,
            congestion: self.sender_tcp_congestion.as_deref(),
        }
    }
}

#[derive(Deserialize)]
struct RawStream {
    udp: Option<RawUdp>,
}

#[derive(Deserialize)]
struct RawUdp {
    jitter_ms: Option<f64>,
    out_of_order: Option<Count>,
    #[serde(default)]
    sender: bool,
}

/// A count; iperf3 prints large ones like `1e+16`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
struct Count(u64);

impl TryFrom<f64> for Count {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=COUNT_MAX).contains(&value) && value.fract() == 0.0 {
            Ok(Self(value as u64))
        } else {
            Err(format!("{value} is not a count"))
        }
    }
}

/// A time since the start of the test.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
struct Seconds(f64);

impl Seconds {
    fn ns(self) -> u64 {
        (self.0 * 1e9).round() as u64
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..SECONDS_MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("{value} s is not a time in a test"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TCP_CLIENT: &str = include_str!("../tests/data/iperf3-3.12-tcp-2-streams.client.json");
    const TCP_SERVER: &str = include_str!("../tests/data/iperf3-3.12-tcp-2-streams.server.json");
    const UDP_CLIENT: &str = include_str!("../tests/data/iperf3-3.12-udp-loss.client.json");
    const UDP_SERVER: &str = include_str!("../tests/data/iperf3-3.12-udp-loss.server.json");

    fn reported(output: &str) -> String {
        match Sessions::parse(output) {
            Err(Iperf3Error::Reported(text)) => text,
            other => panic!("expected iperf3's own error, got {other:?}"),
        }
    }

    #[test]
    fn reads_a_tcp_client_and_its_server() {
        let client = Sessions::parse(TCP_CLIENT).unwrap().sent.unwrap();
        assert_eq!(client.steps.len(), 10);
        assert_eq!(client.bytes(), 1_259_601_920);
        assert_eq!(client.summary_bytes, Some(1_259_601_920));
        assert_eq!((client.streams, client.uncounted_bytes()), (2, 2 * 131_072));
        assert_eq!(client.segment_bytes, Some(1448));
        assert_eq!(client.congestion.as_deref(), Some("bbr"));
        assert!(client.steps.iter().all(|step| step.rtt_ns.is_some()));
        let retransmits: u64 = client
            .steps
            .iter()
            .filter_map(|step| step.retransmits)
            .sum();
        assert_eq!(retransmits, 1491);
        let server = Sessions::parse(TCP_SERVER).unwrap().received.unwrap();
        assert_eq!(server.steps.len(), 11);
        assert_eq!(server.steps[0].end_ns, 100_837_000);
        assert_eq!(server.summary_bytes, Some(server.bytes()));
        assert_eq!(server.steps[0].retransmits, None);
        assert_eq!(server.packets(), 0);
    }

    #[test]
    fn both_ways_at_once_are_read_apart() {
        for (client, server) in [
            (
                include_str!("../tests/data/iperf3-3.12-tcp-duplex.client.json"),
                include_str!("../tests/data/iperf3-3.12-tcp-duplex.server.json"),
            ),
            (
                include_str!("../tests/data/iperf3-3.12-udp-duplex.client.json"),
                include_str!("../tests/data/iperf3-3.12-udp-duplex.server.json"),
            ),
        ] {
            let [client, server] = [client, server].map(|text| Sessions::parse(text).unwrap());
            for (sent, received) in [
                (client.sent, server.received),
                (server.sent, client.received),
            ] {
                let (sent, received) = (sent.unwrap(), received.unwrap());
                assert!(received.bytes() > 0 && received.bytes() <= sent.bytes());
                assert_eq!(received.summary_bytes, Some(received.bytes()));
                assert_eq!(sent.summary_bytes, Some(sent.bytes()));
                let is_udp = sent.packets() > 0;
                assert!(
                    sent.steps
                        .iter()
                        .all(|step| step.rtt_ns.is_some() != is_udp)
                );
                assert_eq!(sent.congestion.is_some(), !is_udp);
                assert_eq!(received.congestion, None);
            }
        }
    }

    #[test]
    fn of_the_other_way_the_server_is_the_sender() {
        let text = include_str!("../tests/data/iperf3-3.12-tcp-reverse.client.json");
        let client = Sessions::parse(text).unwrap();
        assert!(client.sent.is_none() && client.received.is_some());
        let text = include_str!("../tests/data/iperf3-3.12-tcp-reverse.server.json");
        let server = Sessions::parse(text).unwrap();
        assert!(server.received.is_none());
        let retransmits = server.sent.unwrap().steps[0].retransmits;
        assert!(retransmits.is_some());
    }

    #[test]
    fn reads_a_udp_client_and_its_server() {
        let client = Sessions::parse(UDP_CLIENT).unwrap().sent.unwrap();
        assert_eq!((client.packets(), client.bytes()), (33_462, 33_462 * 1472));
        let server = Sessions::parse(UDP_SERVER).unwrap().received.unwrap();
        assert_eq!(
            (server.packets(), server.bytes()),
            (33_462, (33_462 - 869) * 1472)
        );
        assert_eq!(server.summary_bytes, Some(47_976_896));
        assert_eq!(server.jitter_ns, 88_585);
    }

    #[test]
    fn errors_of_iperf3_are_passed_on() {
        let said = [
            (
                include_str!("../tests/data/iperf3-3.12-refused.client.json"),
                "Connection refused",
            ),
            (
                include_str!("../tests/data/iperf3-3.12-buffer-refused.client.json"),
                "socket buffer size",
            ),
            (
                include_str!("../tests/data/iperf3-3.12-server-killed.client.json"),
                "server has terminated",
            ),
            (
                include_str!("../tests/data/iperf3-3.12-server-gone.client.json"),
                "Connection reset",
            ),
            (
                include_str!("../tests/data/iperf3-3.12-client-killed.server.json"),
                "client has terminated",
            ),
        ];
        for (output, expected) in said {
            assert!(reported(output).contains(expected), "{}", reported(output));
        }
    }

    #[test]
    fn a_missing_key_is_named_and_the_place_quoted() {
        let error = Sessions::parse(&TCP_CLIENT.replace("\"sum\":", "\"total\":"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("missing field `sum`"), "{error}");
        assert_eq!(Sessions::parse(" \n"), Err(Iperf3Error::Empty));
        let error = Sessions::parse("{\"end\": {}}").unwrap_err().to_string();
        assert!(
            error.contains("`intervals` is missing") && error.contains("{\"end\""),
            "{error}"
        );
        let error = Sessions::parse(&TCP_CLIENT.replace("\"test_start\":", "\"test\":"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`test_start` is missing"), "{error}");
        let error = Sessions::parse("Killed\n").unwrap_err().to_string();
        assert!(error.contains("at `Killed`"), "{error}");
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        for (from, to) in [
            ("\"bytes\":\t", "\"bytes\":\t-"),
            ("\"end\":\t1.0", "\"end\":\t1e99"),
        ] {
            assert!(TCP_SERVER.contains(from));
            let error = Sessions::parse(&TCP_SERVER.replace(from, to)).unwrap_err();
            assert!(matches!(error, Iperf3Error::Malformed { .. }), "{error}");
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        for output in [TCP_CLIENT, UDP_SERVER] {
            for end in 0..output.trim_end().len() {
                assert!(Sessions::parse(&output[..end]).is_err(), "cut at {end}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(at in 0..UDP_SERVER.len(), junk in "[-0-9eE.{}\\[\\],\":a-z]{0,6}") {
            let mut output = UDP_SERVER.to_owned();
            let end = (at + junk.len()).min(output.len());
            output.replace_range(at..end, &junk);
            // Whether it is still readable depends on the damage; this tests that it returns.
            let _ = Sessions::parse(&output);
        }
    }
}
