//! The output of `ping` (iputils), parsed line by line.
//!
//! `ping` prints longer times with fewer digits: its resolution is 1 µs below 1 ms, 10 µs below
//! 10 ms, and so on. The times include the cost of two wake-ups of `ping` itself.

use journal::record::Latency;

/// Characters of the output that an error quotes.
const EXCERPT_CHARS: usize = 100;
/// `icmp_seq` is printed modulo this (RFC 792: 16 bits).
const SEQUENCE_MODULUS: u64 = 1 << 16;
/// Limit of times; a longer time is a misreading.
const MILLISECONDS_MAX: f64 = 1e9;

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
    #[error("a reply's payload is not what was sent: `{0}`")]
    Corrupted(String),
    /// A line that `ping` does not print.
    #[error("ping's output cannot be read: {problem}, at `{excerpt}`")]
    Malformed {
        /// What is wrong.
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
/// Where the path itself damages packets, an altered reply counts as none: every other program
/// drops it for its checksum, which `ping` does not look at.
///
/// # Errors
/// When it is truncated, reports an error, or contains altered replies that the path does not
/// explain.
pub fn parse(output: &str, path_damages: bool) -> Result<Latency, PingError> {
    if output.trim().is_empty() {
        return Err(PingError::Empty);
    }
    let mut replies: Vec<(u64, u64)> = Vec::new();
    let mut unreachable = None;
    let mut summary = None;
    let mut damaged = 0;
    let mut is_last_listed = false;
    for line in output.lines().map(str::trim_end) {
        if line.contains("wrong data byte") {
            // Of the reply on the line before; the bytes that follow it begin with `#`.
            if !path_damages {
                return Err(PingError::Corrupted(excerpt(line)));
            }
            if std::mem::take(&mut is_last_listed) {
                replies.pop();
                damaged += 1;
            }
        } else if line.contains(" bytes from ") {
            // A duplicate is no separate reply; the summary counts it separately, too.
            is_last_listed = !line.ends_with("(DUP!)");
            if is_last_listed {
                let expected = replies.last().map_or(1, |(sequence, _)| sequence + 1);
                let (sequence, ns) = reply(line)?;
                replies.push((unwrapped(sequence, expected), ns));
            }
        } else if line.contains("packets transmitted") {
            summary = Some(counts(line)?);
        } else if line.starts_with("From ") {
            unreachable.get_or_insert_with(|| excerpt(line));
        } else if let Some(words) = line.strip_prefix("ping: ") {
            return Err(PingError::Reported(words.to_owned()));
        } else if !(is_decoration(line) || path_damages && line.starts_with('#')) {
            return Err(malformed("a line that is none of ping's", line));
        }
    }
    let last = output.lines().next_back().unwrap_or_default();
    let (sent, received) = summary.ok_or_else(|| malformed("the summary is missing", last))?;
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
    replies.sort_by_key(|&(sequence, _)| sequence);
    Ok(Latency {
        sent,
        received,
        round_trips_ns: replies.into_iter().map(|(_, ns)| ns).collect(),
        ..Latency::default()
    })
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
        return Err(malformed("a reply whose time is not in ms", line));
    }
    let ms: f64 = time
        .parse()
        .map_err(|_| malformed("a time that is no number", line))?;
    if !(0.0..MILLISECONDS_MAX).contains(&ms) {
        return Err(malformed("a time that cannot be", line));
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PING: &str = include_str!("../tests/data/iputils-20221126-ping.txt");
    const LOSS: &str = include_str!("../tests/data/iputils-20221126-ping-loss.txt");

    #[test]
    fn reads_every_round_trip_in_order() {
        let latency = parse(PING, false).unwrap();
        assert_eq!((latency.sent, latency.received), (20, 20));
        assert_eq!(latency.round_trips_ns.len(), 20);
        assert_eq!(latency.round_trips_ns[19], 5_000);
        assert_eq!(latency.round_trips_ns.iter().max(), Some(&48_000));
    }

    #[test]
    fn lost_replies_are_counted() {
        let latency = parse(LOSS, false).unwrap();
        assert_eq!(
            (latency.sent, latency.received, latency.round_trips_ns.len()),
            (25, 21, 21)
        );
    }

    #[test]
    fn an_interrupted_ping_is_read_as_far_as_it_went() {
        let latency = parse(
            include_str!("../tests/data/iputils-20221126-ping-interrupted.txt"),
            false,
        )
        .unwrap();
        assert_eq!((latency.sent, latency.received), (5, 5));
    }

    #[test]
    fn replies_out_of_order_are_put_in_the_order_of_their_requests() {
        let text = "64 bytes from h: icmp_seq=2 ttl=64 time=2.00 ms\n\
                    64 bytes from h: icmp_seq=1 ttl=64 time=1000 ms\n\
                    64 bytes from h: icmp_seq=1 ttl=64 time=1001 ms (DUP!)\n\
                    2 packets transmitted, 2 received, +1 duplicates, 0% packet loss, time 1ms\n";
        assert_eq!(
            parse(text, false).unwrap().round_trips_ns,
            [1_000_000_000, 2_000_000]
        );
    }

    #[test]
    fn sequence_numbers_wrap_at_16_bits() {
        assert_eq!(unwrapped(0, 65_536), 65_536);
        assert_eq!(unwrapped(65_535, 65_536), 65_535);
        assert_eq!(unwrapped(3, 65_534), 65_539);
        assert_eq!(unwrapped(7, 1), 7);
    }

    #[test]
    fn failures_say_why() {
        let error = |text: &str| parse(text, false).unwrap_err().to_string();
        let unreachable = include_str!("../tests/data/iputils-20221126-ping-unreachable.txt");
        assert_eq!(
            error(unreachable),
            "ping says: none of 3 requests was answered"
        );
        let no_route = include_str!("../tests/data/iputils-20221126-ping-noroute.txt");
        assert!(error(no_route).contains("Network is unreachable"));
        let no_times = include_str!("../tests/data/iputils-20221126-ping-8.txt");
        assert!(
            error(no_times).contains("without `time`") && error(no_times).contains("icmp_seq=1")
        );
        let altered = "64 bytes from h: icmp_seq=1 ttl=64 time=1.0 ms\n\
                       wrong data byte #20 should be 0x30 but was 0x31\n";
        assert!(error(altered).contains("#20"));
        assert_eq!(
            error(&PING.replace("20 received", "19 received")),
            "ping's summary says 19 replies, but 20 are listed"
        );
        assert_eq!(parse("\n", false), Err(PingError::Empty));
    }

    #[test]
    fn altered_replies_count_as_lost_where_the_path_damages_packets() {
        let text = "PING h (h) 56(84) bytes of data.\n\
                    64 bytes from h: icmp_seq=1 ttl=64 time=1.0 ms\n\
                    64 bytes from h: icmp_seq=2 ttl=64 time=2.0 ms\n\
                    wrong data byte #33 should be 0x33 but was 0x73\n\
                    #16\t36 37 38 39 30 31 32 33 34 35 36 37 38 39 30 31 32 73 34 35 36 37 38 39 \n\
                    #48\t38 39 30 31 32 33 34 35 \n\
                    64 bytes from h: icmp_seq=1 ttl=64 time=3.0 ms (DUP!)\n\
                    wrong data byte #33 should be 0x33 but was 0x73\n\
                    64 bytes from h: icmp_seq=3 ttl=64 time=4.0 ms\n\
                    \n--- h ping statistics ---\n\
                    4 packets transmitted, 3 received, +1 duplicates, 25% packet loss, time 3ms\n";
        let found = parse(text, true).unwrap();
        assert_eq!((found.sent, found.received), (4, 2));
        assert_eq!(found.round_trips_ns, [1_000_000, 4_000_000]);
        assert!(parse(text, false).is_err());
    }

    #[test]
    fn a_cut_before_the_summary_is_an_error() {
        let summary =
            PING.find("20 packets").unwrap() + "20 packets transmitted, 20 received".len();
        for end in 0..summary {
            assert!(parse(&PING[..end], false).is_err(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(at in 0..PING.len(), junk in "[ -~\n]{0,12}") {
            let mut output = PING.to_owned();
            let end = (at + junk.len()).min(output.len());
            output.replace_range(at..end, &junk);
            if let Ok(latency) = parse(&output, false) {
                prop_assert_eq!(latency.received, latency.round_trips_ns.len() as u64);
            }
        }
    }
}
