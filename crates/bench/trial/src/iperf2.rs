//! The report of one iperf2 process (`-y C -i …`): lines of comma-separated numbers, parsed
//! strictly.
//!
//! ```text
//! time,address,port,address,port,id,from-to,bytes,bit/s[,jitter ms,lost,datagrams,%,out of order]
//! ```
//!
//! Each stream has one line per interval and one for its whole time, which includes the last
//! datagrams. The sender's address comes first, so the port of the server shows which way a line
//! counts: with `--full-duplex` both ways use one connection and one ID. The human-readable format
//! (`-e`) rounds bytes to three digits and changes between versions, and is not used. Sums over
//! streams, which have a negative ID, and a client's copy of its server's report are skipped.

use crate::iperf3::{Session, Sessions, Step};
use std::collections::BTreeMap;

/// Limit of times in seconds; a longer time is a misreading.
const SECONDS_MAX: f64 = 1e8;
/// Limit of counts: a petabyte in one interval is a misreading. Sums of smaller counts cannot
/// overflow.
const COUNT_MAX: u64 = 1_000_000_000_000_000;
/// Characters of the output that an error quotes.
const EXCERPT_CHARS: usize = 80;
/// Fields of a line, of TCP and of UDP.
const TCP_FIELDS: usize = 9;
const UDP_FIELDS: usize = 14;
/// Resolution of printed times.
const PRINTED_NS: u64 = 100_000_000;
/// Digits of the time at the beginning of each line.
const TIME_DIGITS: usize = 14;

/// Why an output is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Iperf2Error {
    /// Nothing was printed: it could not connect, was killed, or could not start.
    #[error("iperf printed nothing")]
    Empty,
    /// Not the output of iperf2, or truncated.
    #[error("iperf's output cannot be read: {problem}, at `{excerpt}`")]
    Malformed {
        /// The problem.
        problem: String,
        /// The line.
        excerpt: String,
    },
}

/// The process that printed an output, which lacks all of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Whether it is the server.
    pub is_server: bool,
    /// The server's port (`-p`).
    pub port: u16,
    /// Bytes per write to a socket (`-l`).
    pub block_bytes: u64,
}

/// One line.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Whether the server sent the counted data.
    is_from_server: bool,
    start_ns: u64,
    end_ns: u64,
    bytes: u64,
    /// Bit/s over the exact time, which is printed in tenths of a second only.
    rate_bps: u64,
    udp: Option<Udp>,
}

#[derive(Debug, Clone, Copy)]
struct Udp {
    jitter_ns: u64,
    /// Datagrams sent by a client, or the increase of a server's highest sequence number. `None` in
    /// a client's last line.
    packets: Option<u64>,
    out_of_order: u64,
}

/// The lines of one stream: its intervals, and the whole.
#[derive(Debug, Default)]
struct Stream {
    intervals: Vec<Line>,
    whole: Option<Line>,
}

/// Parses the output of an iperf2 client or server with `-y C` and `-i`.
///
/// # Errors
/// When it is truncated or lacks data that a trial needs.
pub fn parse(output: &str, process: Process) -> Result<Sessions, Iperf2Error> {
    let mut streams: BTreeMap<(bool, u64), Stream> = BTreeMap::new();
    // Kept for the error: the line after which the output breaks off.
    let mut last = "";
    for text in output.lines().filter(|text| !text.trim().is_empty()) {
        last = text;
        let read = read_line(text, process.port).map_err(|problem| malformed(problem, text))?;
        let Some((id, line)) = read else { continue };
        let stream = streams.entry((line.is_from_server, id)).or_default();
        stream
            .take(line)
            .map_err(|problem| malformed(problem, text))?;
    }
    if streams.is_empty() {
        return Err(match last {
            "" => Iperf2Error::Empty,
            text => malformed("no line of a stream", text),
        });
    }
    // A process that was killed has intervals only.
    let unfinished = streams.values().any(|stream| stream.whole.is_none());
    if unfinished {
        return Err(malformed("it ended before its last line", last));
    }
    let of = |sent: bool| {
        let is_from_server = sent == process.is_server;
        let found = streams
            .iter()
            .filter(|((from, _), _)| *from == is_from_server);
        let found: Vec<&Stream> = found.map(|(_, stream)| stream).collect();
        (!found.is_empty()).then(|| session(&found, process.block_bytes))
    };
    Ok(Sessions {
        sent: of(true),
        received: of(false),
    })
}

impl Line {
    /// Returns the end by bytes and rate if that agrees with the printed end, else the printed end.
    fn exact_end_ns(&self) -> u64 {
        // The rate was computed over the exact time, so the time can be worked out from it.
        let took_ns = u128::from(self.bytes) * 8_000_000_000 / u128::from(self.rate_bps.max(1));
        let end_ns = u128::from(self.start_ns) + took_ns;
        match u64::try_from(end_ns) {
            Ok(end_ns) if end_ns.abs_diff(self.end_ns) <= PRINTED_NS => end_ns,
            _ => self.end_ns,
        }
    }
}

impl Stream {
    /// Adds a line. Intervals follow each other; a line with the start of the first one covers the
    /// whole time.
    fn take(&mut self, line: Line) -> Result<(), &'static str> {
        if self.whole.is_some() {
            // A client's copy of its server's report.
            return Ok(());
        }
        match (self.intervals.first(), self.intervals.last()) {
            (Some(first), Some(_)) if line.start_ns == first.start_ns => self.whole = Some(line),
            (Some(_), Some(before)) if line.start_ns < before.end_ns => {
                return Err("an interval that runs backwards in time");
            }
            (Some(_), Some(before)) if line.start_ns > before.end_ns => {
                return Err("an interval is missing before this one");
            }
            _ => self.intervals.push(line),
        }
        Ok(())
    }
}

/// Returns the line's stream ID and counts; `None` for a sum over streams.
fn read_line(text: &str, server_port: u16) -> Result<Option<(u64, Line)>, &'static str> {
    let fields: Vec<&str> = text.trim().split(',').collect();
    // Messages of the tool and truncated lines do not begin like this. `split` yields at least one
    // field.
    let is_time = fields[0].len() == TIME_DIGITS && fields[0].bytes().all(|b| b.is_ascii_digit());
    if !is_time || !matches!(fields.len(), TCP_FIELDS | UDP_FIELDS) {
        return Err("not a line of numbers that begins with a time");
    }
    let id: i64 = fields[5].parse().map_err(|_| "no stream's id")?;
    // A negative ID is of a sum over streams.
    let Ok(id) = u64::try_from(id) else {
        return Ok(None);
    };
    let (start, end) = fields[6].split_once('-').ok_or("no interval")?;
    let (start_ns, end_ns) = (seconds(start)?, seconds(end)?);
    if end_ns < start_ns {
        return Err("an interval that ends before it begins");
    }
    let udp = if fields.len() == UDP_FIELDS {
        let jitter_ms: f64 = fields[9].parse().map_err(|_| "no jitter")?;
        if !(0.0..SECONDS_MAX).contains(&jitter_ms) {
            return Err("a jitter that cannot be");
        }
        Some(Udp {
            jitter_ns: (jitter_ms * 1e6) as u64,
            packets: match fields[11] {
                "-1" => None,
                packets => Some(count(packets)?),
            },
            out_of_order: count(fields[13])?,
        })
    } else {
        None
    };
    let line = Line {
        is_from_server: fields[2].parse() == Ok(server_port),
        start_ns,
        end_ns,
        bytes: count(fields[7])?,
        rate_bps: count(fields[8])?,
        udp,
    };
    Ok(Some((id, line)))
}

fn count(field: &str) -> Result<u64, &'static str> {
    let count = field.parse().map_err(|_| "not a count")?;
    if count > COUNT_MAX {
        return Err("a count that cannot be");
    }
    Ok(count)
}

fn seconds(field: &str) -> Result<u64, &'static str> {
    let seconds: f64 = field.parse().map_err(|_| "not a time")?;
    if !(0.0..SECONDS_MAX).contains(&seconds) {
        return Err("a time that cannot be");
    }
    Ok((seconds * 1e9).round() as u64)
}

/// Counts after the last interval, which only the lines of the whole time include.
#[derive(Debug, Default)]
struct Rest {
    bytes: u64,
    packets: Option<u64>,
    end_ns: u64,
}

impl Rest {
    fn add(&mut self, stream: &Stream, whole: Line, block_bytes: u64) {
        let counted: u64 = stream.intervals.iter().map(|line| line.bytes).sum();
        let bytes = whole.bytes.saturating_sub(counted);
        self.bytes += bytes;
        self.end_ns = self.end_ns.max(whole.exact_end_ns());
        let packets = |line: &Line| line.udp.and_then(|udp| udp.packets);
        if whole.udp.is_some() {
            let counted: u64 = stream.intervals.iter().filter_map(packets).sum();
            // A client's last line does not count datagrams.
            let rest = packets(&whole).map_or(bytes / block_bytes.max(1), |all| {
                all.saturating_sub(counted)
            });
            *self.packets.get_or_insert(0) += rest;
        }
    }

    /// Returns the step after `last`; `None` without counts.
    fn step(&self, last: Option<&Step>) -> Option<Step> {
        let start_ns = last.map_or(0, |step| step.end_ns);
        let has_counts = self.bytes > 0 || self.packets.is_some_and(|packets| packets > 0);
        has_counts.then(|| Step {
            start_ns,
            end_ns: self.end_ns.max(start_ns),
            bytes: self.bytes,
            packets: self.packets,
            retransmits: None,
            rtt_ns: None,
        })
    }
}

/// Sums up all streams of a process.
fn session(streams: &[&Stream], block_bytes: u64) -> Session {
    let mut session = Session {
        streams: streams.len() as u64,
        block_bytes,
        summary_bytes: Some(0),
        ..Session::default()
    };
    let mut rest = Rest::default();
    for stream in streams {
        for (at, line) in stream.intervals.iter().enumerate() {
            let packets = line.udp.and_then(|udp| udp.packets);
            // Streams of a process print their intervals at the same times, so the n-th of each are
            // one step.
            if let Some(step) = session.steps.get_mut(at) {
                step.start_ns = step.start_ns.min(line.start_ns);
                step.end_ns = step.end_ns.max(line.end_ns);
                step.bytes += line.bytes;
                // One stream without a count leaves the sum unknown.
                step.packets = step.packets.zip(packets).map(|(sum, more)| sum + more);
            } else {
                session.steps.push(Step {
                    start_ns: line.start_ns,
                    end_ns: line.end_ns,
                    bytes: line.bytes,
                    packets,
                    retransmits: None,
                    rtt_ns: None,
                });
            }
        }
        if let Some(whole) = stream.whole {
            rest.add(stream, whole, block_bytes);
            session.summary_bytes = session.summary_bytes.map(|sum| sum + whole.bytes);
            let udp = whole
                .udp
                .map_or((0, 0), |udp| (udp.jitter_ns, udp.out_of_order));
            session.jitter_ns += udp.0;
            session.out_of_order += udp.1;
        }
    }
    session.jitter_ns /= session.streams.max(1);
    // Without this step the last datagrams would be missing: their interval was not over when the
    // process ended.
    session.steps.extend(rest.step(session.steps.last()));
    session
}

fn malformed(problem: &str, text: &str) -> Iperf2Error {
    Iperf2Error::Malformed {
        problem: problem.to_owned(),
        excerpt: text.trim().chars().take(EXCERPT_CHARS).collect(),
    }
}

#[cfg(test)]
mod tests;
