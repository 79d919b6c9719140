//! Frames with their ends exchanged by a reflector.

use crate::packets;
use arbitrary::{Result, Unstructured};
use traffic::exchange_ends;

/// Arbitrary bytes, and frames that are nearly valid.
pub(crate) fn body(data: &[u8]) {
    check(data);
    // An exhausted input ends the run.
    let _ = describe(&mut Unstructured::new(data));
}

fn describe(u: &mut Unstructured<'_>) -> Result<()> {
    let ipv6 = u.arbitrary()?;
    let mut frame = [packets::link_header(u, ipv6)?, packets::ip_packet(u)?].concat();
    if u.ratio(1, 8)? {
        frame.truncate(u.int_in_range(0..=frame.len())?);
    }
    check(&frame);
    Ok(())
}

/// The exchange swaps exactly the fields that a slow parser finds. Frames without these are
/// unchanged.
fn check(frame: &[u8]) {
    let mut back = frame.to_vec();
    if !exchange_ends(&mut back) {
        assert_eq!(back, frame);
        return;
    }
    let tag = if frame[12..14] == [0x81, 0] { 4 } else { 0 };
    let ip = 14 + tag;
    let (source, address_bytes, udp) = match frame[ip] >> 4 {
        4 => (ip + 12, 4, ip + usize::from(frame[ip] & 15) * 4),
        _ => (ip + 8, 16, ip + 40),
    };
    let mut expected = frame.to_vec();
    // Link addresses, IP addresses and ports: each pair is adjacent.
    for (at, bytes) in [(0, 6), (source, address_bytes), (udp, 2)] {
        for byte in at..at + bytes {
            expected.swap(byte, byte + bytes);
        }
    }
    assert_eq!(back, expected);
}
