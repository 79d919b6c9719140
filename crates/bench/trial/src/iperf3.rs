//! The report of one iperf3 process (`-J`), parsed strictly.
//!
//! Trials use the sums of intervals, on which all versions agree: a UDP server of version 3.12, for
//! example, reports `"bytes": 0` at its end. In JSON mode iperf3 exits with 0 after an error, so
//! the `error` key decides, not the exit code.

use serde::Deserialize;

/// Limit of times in seconds; a longer time is a misreading.
const SECONDS_MAX: f64 = 1e8;
/// Intervals follow each other; between two that are further apart one is missing.
const GAP_NS: u64 = 50_000_000;
/// Limit of counts: a petabyte in one interval is a misreading. Sums of smaller counts cannot
/// overflow.
const COUNT_MAX: f64 = 1e15;
/// Limit of bytes per write to a socket, `MAX_BLOCKSIZE` of iperf3.
const BLOCK_BYTES_MAX: f64 = 1_048_576.0;
/// Limit of a segment: IPv4 packets are no longer (RFC 791 §3.1).
const SEGMENT_BYTES_MAX: u64 = 65_535;
/// Characters of the output that an error quotes.
const EXCERPT_CHARS: usize = 80;
/// The remedy for faults of old versions.
const NEWER: &str = "install iperf3 3.11 or newer";

/// The counts of one tool process, client or server, by the way of the payload; at least one has a
/// value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sessions {
    /// The payload that it sent.
    pub sent: Option<Session>,
    /// The payload that it received.
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
        /// The problem and its location.
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
        let raw = read(output)?;
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
        // Without this a process without any sums would be a session without ways.
        if intervals.iter().all(|interval| interval.sum.is_none()) {
            return Err(malformed("no interval has a `sum`", output));
        }
        let mut sessions = Self::default();
        // A way is known by its key, and the role of this process in it by `sender`: with `-R` the
        // client receives under the key `sum`.
        for reverse in [false, true] {
            let sums = intervals.iter().map(|interval| interval.sum(reverse));
            let found: Vec<&RawSum> = sums.clone().flatten().collect();
            // Only duplex transfers have a second sum.
            if found.is_empty() {
                continue;
            }
            // A way that some intervals lack would have a hole in its timeline.
            if let Some(at) = sums.clone().position(|sum| sum.is_none()) {
                let key = if reverse { "sum_bidir_reverse" } else { "sum" };
                let count = intervals.len();
                let problem = format!("interval {} of {count} has no `{key}`", at + 1);
                return Err(malformed(&problem, output));
            }
            let sums = found;
            let sender = sums.first().is_some_and(|sum| sum.sender);
            let session = Session::assemble(&intervals, &sums, sender, &start, end.of(reverse));
            *sessions.of(sender) = Some(session?);
        }
        Ok(sessions)
    }

    /// The place of the payload that this process sent, or received.
    const fn of(&mut self, sender: bool) -> &mut Option<Session> {
        if sender {
            &mut self.sent
        } else {
            &mut self.received
        }
    }
}

impl Session {
    fn assemble(
        intervals: &[RawInterval],
        sums: &[&RawSum],
        sender: bool,
        start: &RawStart,
        end: DirectionalEnd<'_>,
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
            // Bytes of a missing interval would be missing from every sum, and nothing else would
            // show it.
            let gap_from = steps.last().map(|last| last.end_ns);
            if let Some(from) = gap_from.filter(|from| step.start_ns > from + GAP_NS) {
                let [from, to] = [from, step.start_ns].map(|ns| ns / 1_000_000);
                let problem = format!("the interval from {from} to {to} ms is missing");
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
        if block_bytes as f64 > BLOCK_BYTES_MAX {
            let problem = format!("{block_bytes} B are no length of a write");
            return Err(malformed(&problem, &format!("{:?}", sums.first())));
        }
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
                // 0 means unknown, and a longer one is a misreading. It is a fact without a check,
                // so it is left out.
                .filter(|bytes| (1..=SEGMENT_BYTES_MAX).contains(bytes)),
            // A receiver prints it too, as its peer reports it; only the sender's word counts.
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

/// Reads the one JSON document of an output. Errors name known faults of old versions.
fn read(output: &str) -> Result<RawOutput, Iperf3Error> {
    // One after the other, since old versions print two.
    let mut documents = serde_json::Deserializer::from_str(output).into_iter::<RawOutput>();
    let first = documents.next().unwrap_or_else(|| {
        // Not reached: an empty output was refused.
        serde_json::from_str(output)
    });
    let raw = first.map_err(|error| {
        let line = output.lines().nth(error.line().saturating_sub(1));
        malformed(
            &known_fault(&error.to_string(), output),
            line.unwrap_or_default(),
        )
    })?;
    let rest = output[documents.byte_offset()..].trim_start();
    if rest.is_empty() || raw.error.is_some() {
        return Ok(raw);
    }
    if !rest.starts_with('{') {
        return Err(malformed("text after its JSON document", rest));
    }
    // Old versions report a failure in a second document.
    let second = documents.next().and_then(Result::ok);
    Err(match second.and_then(|second| second.error) {
        Some(error) => Iperf3Error::Reported(error),
        None => malformed(
            &format!("it printed two JSON documents, as old versions do; {NEWER}"),
            rest,
        ),
    })
}

/// Describes a known fault of versions before 3.11, if the JSON's error shows it.
fn known_fault(error: &str, output: &str) -> String {
    let is_no_number = |line: &str| {
        let value = line.rsplit(':').next().unwrap_or_default();
        let value = value.trim().trim_end_matches(',');
        matches!(value.trim_start_matches('-'), "nan" | "inf")
    };
    if error.contains("duplicate field `sum") {
        return format!(
            "one interval has `sum` twice, as versions before 3.11 print both ways at once: {NEWER}, or ask for one \
             way"
        );
    }
    match output.lines().find(|line| is_no_number(line)) {
        Some(line) => format!(
            "`{}` is no number: no datagram arrived in that time, for which old versions divide by zero; look why \
             none arrived, and {NEWER}",
            line.trim().trim_end_matches(',')
        ),
        None => error.to_owned(),
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
    /// For TCP; 0 if the kernel does not report it.
    tcp_mss_default: Option<Count>,
}

#[derive(Deserialize)]
struct RawTest {
    num_streams: Count,
    blksize: Count,
}

#[derive(Deserialize)]
struct RawInterval {
    sum: Option<RawSum>,
    /// With `--bidir`: the streams from server to client.
    sum_bidir_reverse: Option<RawSum>,
    #[serde(default)]
    streams: Vec<RawPart>,
}

impl RawInterval {
    const fn sum(&self, reverse: bool) -> Option<&RawSum> {
        if reverse {
            self.sum_bidir_reverse.as_ref()
        } else {
            self.sum.as_ref()
        }
    }

    /// Mean over the streams that this process sends on.
    fn rtt_ns(&self, sender: bool) -> Option<u64> {
        let streams = self.streams.iter().filter(|part| sender && part.sender);
        // The kernel has none before the first acknowledgement: 0 us.
        let times: Vec<u64> = streams
            .map(|part| Some(part.rtt?.0).filter(|us| *us > 0))
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
    /// Of this process's end, if it sends.
    sender_tcp_congestion: Option<String>,
}

/// The part of [`RawEnd`] for one way.
struct DirectionalEnd<'a> {
    sent: Option<&'a RawSum>,
    received: Option<&'a RawSum>,
    /// Of both ways.
    streams: &'a [RawStream],
    congestion: Option<&'a str>,
}

impl RawEnd {
    fn of(&self, reverse: bool) -> DirectionalEnd<'_> {
        let (sent, received) = if reverse {
            (
                &self.sum_sent_bidir_reverse,
                &self.sum_received_bidir_reverse,
            )
        } else {
            (&self.sum_sent, &self.sum_received)
        };
        DirectionalEnd {
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
        // NaN is in no range, so it is refused here too.
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
mod tests;
