//! A TCP stream in one direction: goodput is counted at the receiver, second by second.

use crate::cpu::CpuTimes;
use crate::findings::{Received, SendReport};
use port::{TcpReading, is_timeout};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use testbed::Interrupt;

/// Longest wait of one call.
const STEP: Duration = Duration::from_millis(50);
const WRITE_BYTES: usize = 1 << 17;
const READ_BYTES: usize = 1 << 18;

/// Sends for `time`. The connection then ends abruptly: nothing is sent again afterwards.
pub(crate) fn send(
    mut stream: TcpStream,
    time: Duration,
    interrupt: &Interrupt,
) -> io::Result<SendReport> {
    stream.set_write_timeout(Some(STEP))?;
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    let data = noise();
    let cpu = CpuTimes::now();
    let end = Instant::now() + time;
    while Instant::now() < end && !interrupt.is_set() {
        match stream.write(&data) {
            Ok(_) => {}
            Err(error) if is_timeout(&error) => {}
            // The receiver's count shows how far the stream came.
            Err(_) => break,
        }
    }
    let reading = TcpReading::of(&stream)?;
    Ok(SendReport {
        segments: reading.segments,
        retransmitted: reading.retransmitted,
        busy_us: reading.busy_us,
        receiver_limited_us: reading.receiver_limited_us,
        buffer_limited_us: reading.buffer_limited_us,
        cpu: cpu.busiest(),
    })
}

/// Receives for `time`.
pub(crate) fn receive(
    mut stream: TcpStream,
    time: Duration,
    interrupt: &Interrupt,
) -> io::Result<Received> {
    stream.set_read_timeout(Some(STEP))?;
    let mut second_bytes = vec![0; time.as_secs() as usize];
    let mut buffer = vec![0; READ_BYTES];
    let cpu = CpuTimes::now();
    let begun = Instant::now();
    while !interrupt.is_set() {
        let read = stream.read(&mut buffer);
        let second = begun.elapsed().as_secs() as usize;
        // Beyond the last whole second.
        let Some(bytes) = second_bytes.get_mut(second) else {
            break;
        };
        match read {
            Ok(0) => break,
            Ok(read) => *bytes += read as u64,
            Err(error) if is_timeout(&error) => {}
            // The sender ends the connection abruptly.
            Err(_) => break,
        }
    }
    Ok(Received {
        second_bytes,
        cpu: cpu.busiest(),
    })
}

/// Bytes that no tunnel can compress.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut data = Vec::with_capacity(WRITE_BYTES);
    while data.len() < WRITE_BYTES {
        // xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data.extend(state.to_le_bytes());
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn bytes_are_counted_by_second_at_the_receiver() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        let time = Duration::from_secs(2);
        let sending = std::thread::spawn(move || send(sender, time, &Interrupt::new()));
        let received = receive(receiver, time, &Interrupt::new()).unwrap();
        let sent = sending.join().unwrap().unwrap();
        assert_eq!(received.second_bytes.len(), 2);
        assert!(received.second_bytes[0] > 0 && received.cpu.is_some());
        assert!(sent.segments > 0 && sent.busy_us > 0, "{sent:?}");
    }
}
