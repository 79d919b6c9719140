//! ESP ingress: an inbound SA under all possible changes by a network.

use arbitrary::{Result, Unstructured};
use engine::Selection;
use esp::{InboundSa, OpenError, Opened, OutboundSa, TRAILER_ROOM, WindowSize};
use std::collections::BTreeSet;
use std::sync::OnceLock;
use wire::Suite;
use wire::headers::be32;

const SPI: u32 = 0x1234_5678;
/// Maximum number of packets per run: well within the smallest window, so that none is too old.
const PACKETS_MAX: usize = 64;
const INNER_BYTES_MAX: usize = 300;

pub(crate) fn body(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An exhausted input ends the run.
    let _ = deliver(&mut u);
}

/// The suites that an engine of this host serves, with their engines.
fn selections() -> &'static [(Suite, Selection)] {
    // Once: to select an engine takes its known-answer tests.
    static SELECTIONS: OnceLock<Vec<(Suite, Selection)>> = OnceLock::new();
    SELECTIONS.get_or_init(|| {
        let select = |suite| Some((suite, engine::select(&engine::CpuChoice::Auto, suite).ok()?));
        // Unauthenticated suites open forgeries as well.
        let authenticated = Suite::ALL.into_iter().filter(|suite| suite.icv_bytes() > 0);
        let selections: Vec<_> = authenticated.filter_map(select).collect();
        assert!(!selections.is_empty(), "no engine serves any suite");
        selections
    })
}

/// A sealed packet and its content.
struct Sealed {
    sequence: u64,
    packet: Vec<u8>,
    inner: Vec<u8>,
    next_header: u8,
}

fn deliver(u: &mut Unstructured<'_>) -> Result<()> {
    let (suite, selection) = u.choose(selections())?;
    // More than any suite takes.
    let keymat = [0x5a; 128];
    let transform = || selection.transform(&keymat[..suite.keymat_bytes()]);
    let mut outbound = OutboundSa::new(SPI, transform());
    let mut inbound = InboundSa::new(SPI, transform(), WindowSize::MIN);
    let mut sealed = Vec::new();
    for _ in 0..u.int_in_range(1..=PACKETS_MAX)? {
        sealed.push(seal(u, &mut outbound)?);
    }
    let mut seen = BTreeSet::new();
    while !u.is_empty() {
        let original = u.choose(&sealed)?;
        let mut packet = original.packet.clone();
        mutate(u, &mut packet)?;
        // A mutation may change nothing, or undo itself.
        let is_intact = packet == original.packet;
        let result = inbound.open(&mut packet);
        if is_intact && seen.insert(original.sequence) {
            expect_opened(&result, original, &packet);
        } else if is_intact {
            assert_eq!(result, Err(OpenError::Replayed));
        } else {
            assert!(result.is_err(), "a forged packet was opened");
        }
    }
    // After all attempts, packets that have not arrived yet are still accepted.
    for original in sealed
        .iter()
        .filter(|sealed| !seen.contains(&sealed.sequence))
    {
        let mut packet = original.packet.clone();
        let result = inbound.open(&mut packet);
        expect_opened(&result, original, &packet);
    }
    Ok(())
}

fn expect_opened(
    result: &std::result::Result<Opened, OpenError>,
    original: &Sealed,
    packet: &[u8],
) {
    let opened = result.as_ref().expect("an intact packet");
    assert_eq!(packet[opened.inner.clone()], original.inner);
    assert_eq!(opened.next_header, original.next_header);
}

fn seal(u: &mut Unstructured<'_>, outbound: &mut OutboundSa) -> Result<Sealed> {
    let inner_bytes = u.int_in_range(0..=INNER_BYTES_MAX)?;
    let next_header = u.arbitrary()?;
    let inner: Vec<u8> = (0..inner_bytes).map(|at| at as u8).collect();
    let mut buffer = inner.clone();
    buffer.resize(inner_bytes + TRAILER_ROOM, 0);
    let mut packet = vec![0; outbound.sealed_len(inner_bytes)];
    let length = outbound
        .seal(&mut buffer, inner_bytes, next_header, &mut packet)
        .expect("there is room, and the SA is new");
    assert_eq!(length, packet.len());
    Ok(Sealed {
        // The low half is the full number: the SA is new.
        sequence: u64::from(be32(&packet, 4)),
        packet,
        inner,
        next_header,
    })
}

/// Leaves the packet unchanged, damages, truncates, extends or replaces it.
fn mutate(u: &mut Unstructured<'_>, packet: &mut Vec<u8>) -> Result<()> {
    match u.int_in_range(0..=7)? {
        0..=2 => {}
        3 => {
            let at = u.choose_index(packet.len())?;
            packet[at] ^= u.arbitrary::<u8>()?;
        }
        // Header and IV: SPI, sequence number.
        4 => {
            let at = u.choose_index(16.min(packet.len()))?;
            packet[at] ^= u.arbitrary::<u8>()?;
        }
        5 => packet.truncate(u.int_in_range(0..=packet.len())?),
        6 => packet.extend(u.bytes(4.min(u.len()))?),
        _ => {
            let length = u.int_in_range(0..=64)?;
            *packet = u.bytes(length.min(u.len()))?.to_vec();
        }
    }
    Ok(())
}
