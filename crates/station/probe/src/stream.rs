//! A TCP stream whose receiver compares every byte.

use crate::payload::{Payload, SLICE_BYTES_MAX};
use crate::spec::StreamCounts;
use port::is_timeout;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Time after the sender's for data that is under way.
const DRAIN: Duration = Duration::from_millis(1500);
/// Longest wait of one call.
const STEP: Duration = Duration::from_millis(100);

/// Sends for `time`, then ends the stream. Returns the bytes that the kernel accepted.
pub(crate) fn send(mut stream: &TcpStream, time: Duration, payload: &Payload) -> io::Result<u64> {
    stream.set_write_timeout(Some(STEP))?;
    let end = Instant::now() + time;
    let mut sent = 0;
    while Instant::now() < end {
        match stream.write(payload.slice(sent, SLICE_BYTES_MAX)) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if is_timeout(&error) => {}
            // The receiver's counts show how far the stream came.
            Err(_) => break,
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    Ok(sent)
}

/// Receives until the stream ends or its time is up. The caller fills
/// [`StreamCounts::sent_bytes`].
pub(crate) fn receive(
    mut stream: &TcpStream,
    time: Duration,
    payload: &Payload,
) -> io::Result<StreamCounts> {
    stream.set_read_timeout(Some(STEP))?;
    let limit = Instant::now() + time + DRAIN;
    let mut counts = StreamCounts::default();
    let mut buffer = vec![0; SLICE_BYTES_MAX];
    let mut first = None;
    while Instant::now() < limit {
        let bytes = match stream.read(&mut buffer) {
            Ok(0) => {
                counts.ended = true;
                break;
            }
            Ok(bytes) => bytes,
            Err(error) if is_timeout(&error) => continue,
            Err(_) => break,
        };
        let begin = *first.get_or_insert_with(Instant::now);
        let expected = payload.slice(counts.received_bytes, bytes);
        if buffer[..bytes] != *expected {
            let same = buffer.iter().zip(expected).take_while(|(a, b)| a == b);
            counts.received_bytes += same.count() as u64;
            counts.wrong_at = Some(counts.received_bytes);
            break;
        }
        counts.received_bytes += bytes as u64;
        counts.elapsed_ns = begin.elapsed().as_nanos() as u64;
    }
    Ok(counts)
}
