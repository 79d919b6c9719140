//! The output of `ping` (iputils), parsed line by line.
//!
//! `ping` prints longer times with fewer digits: its resolution is 1 µs below 1 ms, 10 µs below 10
//! ms, and so on. The times include the cost of two wake-ups of `ping` itself, so that none is
//! below the resolution: `ping` prints 0 if the clock was set back between request and reply. None
//! is longer than `ping` ran.

use journal::record::Latency;

/// Characters of the output that an error quotes.
const EXCERPT_CHARS: usize = 100;
/// `icmp_seq` is printed modulo this (RFC 792: 16 bits).
const SEQUENCE_MODULUS: u64 = 1 << 16;
/// Limit of times; a longer time is a misreading.
const MILLISECONDS_MAX: f64 = 1e9;
/// Marks that `ping` adds to a wrong reply, and their meanings.
const FAULTS: [(&str, &str); 3] = [
    (
        "(BAD CHECKSUM!)",
        "its ICMP checksum is wrong: something on the path damages packets",
    ),
    (
        "(DIFFERENT ADDRESS!)",
        "another address answered than was asked: an address translator or another host on the path; look what \
         answers in station B's place",
    ),
    (
        "(truncated)",
        "it is shorter than the request: something on the path cuts packets",
    ),
];

/// Why an output is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PingError {
    /// Nothing was printed: it was killed, or could not start.
    #[error("ping printed nothing")]
    Empty,
    /// An error that `ping` reports.
    #[error("ping says: {0}")]
    Reported(String),
    /// A reply came back altered: the path corrupts packets.
    #[error("a reply's payload differs from the request's: `{0}`")]
    Corrupted(String),
    /// A reply that `ping` itself marks as wrong.
    #[error("a reply is wrong: {fault}; ping says `{line}`")]
    Wrong {
        /// Its meaning.
        fault: &'static str,
        /// The line.
        line: String,
    },
    /// A round trip below the resolution.
    #[error(
        "a round trip of 0 ns is below ping's resolution of 1 us: the time of day was set back during it \
         (stop what sets this machine's clock and repeat the trial), at `{0}`"
    )]
    NoTime(String),
    /// A round trip longer than `ping` ran.
    #[error(
        "a round trip of {ms} ms is longer than the {ran_ms} ms that ping ran: its report is wrong"
    )]
    TooLong {
        /// The round trip.
        ms: u64,
        /// From start to end.
        ran_ms: u64,
    },
    /// A line that `ping` does not print.
    #[error("ping's output cannot be read: {problem}, at `{excerpt}`")]
    Malformed {
        /// The problem.
        problem: &'static str,
        /// The line.
        excerpt: String,
    },
    /// Replies and summary do not agree.
    #[error("ping's summary says {summary} replies, but {listed} are listed")]
    Disagrees {
        /// In the summary.
        summary: u64,
        /// Reply lines.
        listed: u64,
    },
}

/// Parses the standard output of `ping`.
///
/// If the path itself damages packets, an altered reply counts as none: every other program drops
/// it for its checksum, which `ping` does not look at.
///
/// # Errors
/// When it is truncated, reports an error, or contains replies that `ping` marks as wrong, altered
/// ones that the path does not explain, or times that cannot be.
pub fn parse(output: &str, path_damages: bool, ran_ns: u64) -> Result<Latency, PingError> {
    if output.trim().is_empty() {
        return Err(PingError::Empty);
    }
    let mut replies: Vec<(u64, u64)> = Vec::new();
    let mut unreachable = None;
    let mut summary = None;
    let mut damaged = 0;
    // Whether the line before is a reply that counts: a line about wrong bytes takes it back.
    let mut is_last_listed = false;
    for line in output.lines().map(str::trim_end) {
        if line.contains("wrong data byte") {
            // About the reply on the line before; the bytes that follow it begin with `#`.
            if !path_damages {
                return Err(PingError::Corrupted(excerpt(line)));
            }
            if std::mem::take(&mut is_last_listed) {
                replies.pop();
                damaged += 1;
            }
        } else if line.contains(" bytes from ") {
            let (text, counts) = marks(line, path_damages)?;
            is_last_listed = counts;
            if is_last_listed {
                let expected = replies.last().map_or(1, |(sequence, _)| sequence + 1);
                let (sequence, ns) = reply(text)?;
                if ns > ran_ns {
                    let [ms, ran_ms] = [ns, ran_ns].map(|ns| ns / 1_000_000);
                    return Err(PingError::TooLong { ms, ran_ms });
                }
                replies.push((unwrapped(sequence, expected), ns));
            }
        } else if line.contains("packets transmitted") {
            summary = Some(counts(line)?);
        } else if line.starts_with("From ") {
            unreachable.get_or_insert_with(|| excerpt(line));
        } else if let Some(words) = line.strip_prefix("ping: ") {
            return Err(PingError::Reported(words.to_owned()));
        // Unknown lines are refused, since a new version may say something there that makes the
        // times wrong.
        } else if !(is_decoration(line) || path_damages && line.starts_with('#')) {
            return Err(malformed("a line that is none of ping's", line));
        }
    }
    let last = output.lines().next_back().unwrap_or_default();
    let (sent, received) = summary.ok_or_else(|| malformed("the summary is missing", last))?;
    // `ping` counts damaged replies as received, so they are taken off only after this comparison.
    let listed = replies.len() as u64 + damaged;
    if received != listed {
        return Err(PingError::Disagrees {
            summary: received,
            listed,
        });
    }
    let received = received - damaged;
    if received == 0 {
        let why = unreachable.unwrap_or_else(|| format!("none of {sent} requests was answered"));
        return Err(PingError::Reported(why));
    }
    // In the order of the requests, as the record has them.
    replies.sort_by_key(|&(sequence, _)| sequence);
    Ok(Latency {
        sent,
        received,
        round_trips_ns: replies.into_iter().map(|(_, ns)| ns).collect(),
        ..Latency::default()
    })
}

/// Returns a reply's line without the marks at its end, and whether it counts as one: the summary
/// has duplicates and those with a wrong checksum apart.
fn marks(line: &str, path_damages: bool) -> Result<(&str, bool), PingError> {
    let (mut text, mut counts) = (line, true);
    // A reply may have several marks, one after the other.
    while text.ends_with(')') {
        let Some((before, mark)) = text.rfind(" (").map(|at| text.split_at(at)) else {
            break;
        };
        let mark = mark.trim();
        let fault = FAULTS.iter().find(|(known, _)| *known == mark);
        let is_damage = fault.is_some_and(|(known, _)| *known == FAULTS[0].0);
        match fault {
            Some((_, fault)) if !(is_damage && path_damages) => {
                let line = excerpt(line);
                return Err(PingError::Wrong { fault, line });
            }
            None if mark != "(DUP!)" => {
                return Err(malformed("a reply with a mark that is unknown", line));
            }
            Some(_) | None => counts = false,
        }
        text = before.trim_end();
    }
    Ok((text, counts))
}

/// Parses `64 bytes from 10.1.0.3: icmp_seq=5 ttl=64 time=0.016 ms` to sequence and nanoseconds.
fn reply(line: &str) -> Result<(u64, u64), PingError> {
    let value = |key: &str| {
        line.split_whitespace()
            .find_map(|word| word.strip_prefix(key))
    };
    let sequence = value("icmp_seq=").and_then(|text| text.parse().ok());
    let sequence = sequence.ok_or_else(|| malformed("a reply without `icmp_seq`", line))?;
    let time = value("time=").ok_or_else(|| malformed("a reply without `time`", line))?;
    if !line.ends_with(" ms") {
        return Err(malformed("a reply with a time that is not in ms", line));
    }
    let ms: f64 = time
        .parse()
        .map_err(|_| malformed("a time that is no number", line))?;
    if !(0.0..MILLISECONDS_MAX).contains(&ms) {
        return Err(malformed("a time that cannot be", line));
    }
    if ms == 0.0 {
        return Err(PingError::NoTime(excerpt(line)));
    }
    Ok((sequence, (ms * 1e6).round() as u64))
}

/// Returns the number near `expected` that is printed as `sequence`.
fn unwrapped(sequence: u64, expected: u64) -> u64 {
    let base = expected - expected % SEQUENCE_MODULUS + sequence;
    // The nearest of the three candidates; a reply is never 32768 requests out of place.
    if base + SEQUENCE_MODULUS / 2 < expected {
        base + SEQUENCE_MODULUS
    } else if base > expected + SEQUENCE_MODULUS / 2 {
        base.saturating_sub(SEQUENCE_MODULUS)
    } else {
        base
    }
}

/// Parses `25 packets transmitted, 21 received, 16% packet loss, time 578ms` to sent and received.
fn counts(line: &str) -> Result<(u64, u64), PingError> {
    let count = |what: &str| {
        line.split(", ")
            .find_map(|part| part.strip_suffix(what))
            .and_then(|n| n.trim().parse().ok())
    };
    match (count(" packets transmitted"), count(" received")) {
        (Some(sent), Some(received)) if received <= sent => Ok((sent, received)),
        _ => Err(malformed(
            "a summary without sent and received counts",
            line,
        )),
    }
}

/// Whether a line has no data to use: the heading, the summary's rule and its averages.
fn is_decoration(line: &str) -> bool {
    line.is_empty()
        || ["PATTERN: ", "PING ", "--- ", "rtt "]
            .iter()
            .any(|prefix| line.starts_with(prefix))
        || line.starts_with("pipe ")
}

fn malformed(problem: &'static str, line: &str) -> PingError {
    PingError::Malformed {
        problem,
        excerpt: excerpt(line),
    }
}

fn excerpt(line: &str) -> String {
    line.trim().chars().take(EXCERPT_CHARS).collect()
}

#[cfg(test)]
mod tests;
