//! Both halves of an SA together: against golden packets, official vectors, faults and an independent peer.

mod hostile;
mod known;
mod round_trip;
mod scapy;

use crate::{InboundSa, OutboundSa, TRAILER_ROOM, WindowSize};
use engine::{Choice, Transform, engines, select};
use wire::Suite;

const SPI: u32 = 0x1001;
const SALT: [u8; 4] = *b"salt";
/// An IPv4 packet of 29 bytes, so that it needs padding: UDP from 1.2.3.4 to 5.6.7.8.
const INNER: &[u8; 29] =
    b"\x45\0\0\x1d\0\x01\0\0\x40\x11\0\0\x01\x02\x03\x04\x05\x06\x07\x08\0\x35\0\x35\0\x09\0\0!";

/// Key bytes 0, 1, 2 … of the suite's length, then the salt.
fn secret(suite: Suite) -> Vec<u8> {
    let key = 0..suite.key_bytes() as u8;
    key.chain(SALT).collect()
}

/// One key of every engine that this host can run, the same secret in each.
fn transforms(suite: Suite) -> Vec<Box<dyn Transform>> {
    let usable = engines().iter().filter(|info| info.version.is_ok());
    let choices = usable.map(|info| Choice::Named(info.name.to_owned()));
    choices
        .map(|choice| select(&choice, suite).unwrap().transform(&secret(suite)))
        .collect()
}

fn transform(suite: Suite) -> Box<dyn Transform> {
    select(&Choice::Auto, suite)
        .unwrap()
        .transform(&secret(suite))
}

/// The two halves of one SA.
fn pair(suite: Suite) -> (OutboundSa, InboundSa) {
    let outbound = OutboundSa::new(SPI, transform(suite));
    (
        outbound,
        InboundSa::new(SPI, transform(suite), WindowSize::DEFAULT),
    )
}

/// Seals `inner` from a buffer with just the room it needs.
fn seal(sa: &mut OutboundSa, inner: &[u8], next_header: u8) -> Vec<u8> {
    let mut src = inner.to_vec();
    src.resize(inner.len() + TRAILER_ROOM, 0xee);
    let mut dst = vec![0; sa.sealed_len(inner.len())];
    let length = sa
        .seal(&mut src, inner.len(), next_header, &mut dst)
        .unwrap();
    assert_eq!(length, dst.len());
    dst
}
