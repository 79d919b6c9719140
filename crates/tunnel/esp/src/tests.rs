//! Tests of both halves of an SA together: golden packets, official vectors, faults and independent
//! peers.

mod batch;
mod budget;
mod hostile;
mod known;
mod peer;
mod round_trip;
mod scapy;
mod tshark;

use crate::{InboundSa, Limits, OutboundSa, TRAILER_ROOM, WindowSize};
use engine::{CpuChoice, EngineError, Selection, SequenceNumbers, Transform, engines, select};
use wire::{SALT_BYTES, Suite};

const SPI: u32 = 0x1001;
const SALT: [u8; SALT_BYTES] = *b"salt";
/// An IPv4 packet of 29 bytes, so that it needs padding: UDP from 1.2.3.4 to 5.6.7.8.
const INNER: &[u8; 29] =
    b"\x45\0\0\x1d\0\x01\0\0\x40\x11\0\0\x01\x02\x03\x04\x05\x06\x07\x08\0\x35\0\x35\0\x09\0\0!";

/// Key bytes 0, 1, 2 … of the suite's length; then the salt, or an HMAC key that counts from 128.
fn keymat(suite: Suite) -> Vec<u8> {
    let mut keymat: Vec<u8> = (0..suite.key_bytes() as u8).collect();
    if Suite::AEADS.contains(&suite) {
        keymat.extend(SALT);
    } else {
        keymat.extend((128..).take(suite.keymat_bytes() - suite.key_bytes()));
    }
    keymat
}

/// The suites that an engine of this host serves, in the order of [`Suite::ALL`].
fn suites() -> Vec<Suite> {
    let served = |suite: &Suite| !selections(*suite).is_empty();
    let suites: Vec<_> = Suite::ALL.into_iter().filter(served).collect();
    assert!(Suite::AEADS.iter().all(|suite| suites.contains(suite)));
    suites
}

/// Of these, those with sequence numbers beyond 32 bits: all but one.
fn extended() -> Vec<Suite> {
    let all = suites().into_iter();
    all.filter(|suite| Limits::packets_max(*suite) > 1 << 32)
        .collect()
}

/// Of these, those that detect forgeries.
fn authenticated() -> Vec<Suite> {
    let all = suites().into_iter();
    all.filter(|suite| suite.icv_bytes() > 0).collect()
}

/// Every engine of this host that serves the suite.
fn selections(suite: Suite) -> Vec<Selection> {
    let usable = engines().iter().filter(|info| info.version.is_ok());
    let choices = usable.map(|info| CpuChoice::Named(info.name.to_owned()));
    let served = choices.filter_map(|choice| match select(&choice, suite) {
        Ok(selection) => Some(selection),
        Err(EngineError::NotServed { .. }) => None,
        Err(error) => panic!("{error}"),
    });
    served.collect()
}

/// One transform of every engine of this host that serves the suite, the same keying material in
/// each.
fn transforms(suite: Suite) -> Vec<Box<dyn Transform>> {
    let selections = selections(suite);
    selections
        .iter()
        .map(|selection| selection.transform(&keymat(suite)))
        .collect()
}

fn transform(suite: Suite) -> Box<dyn Transform> {
    select(&CpuChoice::Auto, suite)
        .unwrap()
        .transform(&keymat(suite))
}

/// The two halves of one SA.
fn pair(suite: Suite) -> (OutboundSa, InboundSa) {
    (
        OutboundSa::new(SPI, transform(suite)),
        InboundSa::new(SPI, transform(suite), WindowSize::DEFAULT),
    )
}

/// Number of packets that an SA has used up.
fn sealed_packets(sa: &OutboundSa) -> u64 {
    sa.sealed().packets
}

/// Seals `inner` from a buffer with exactly the room required.
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
