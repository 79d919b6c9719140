//! The steps of a batch: reordered, duplicated, across 2^32, and with an engine that fails.

use super::*;
use crate::{OpenError, Opened, SealError};
use engine::{EngineFailed, Packet};
use proptest::prelude::*;
use std::collections::HashSet;

/// A batch as a worker builds it: packets in a row, each accepted by `expect` or refused with a
/// reason.
struct Batch {
    buffer: Vec<u8>,
    packets: Vec<Packet>,
    sequences: Vec<u64>,
    refused: Vec<OpenError>,
}

impl Batch {
    fn of<'a>(inbound: &InboundSa, sealed: impl IntoIterator<Item = &'a Vec<u8>>) -> Self {
        let mut batch = Self {
            buffer: Vec::new(),
            packets: Vec::new(),
            sequences: Vec::new(),
            refused: Vec::new(),
        };
        for packet in sealed {
            match inbound.expect(packet) {
                Ok(sequence) => {
                    batch.packets.push(Packet {
                        at: batch.buffer.len(),
                        bytes: packet.len(),
                        sequence_high: (sequence >> 32) as u32,
                    });
                    batch.sequences.push(sequence);
                    batch.buffer.extend(packet);
                }
                Err(reason) => batch.refused.push(reason),
            }
        }
        batch
    }

    /// Opens the packets, and returns each result in order.
    fn open(&mut self, inbound: &mut InboundSa) -> Vec<Result<(u64, Vec<u8>), OpenError>> {
        let mut authentic = vec![false; self.packets.len()];
        inbound
            .open_staged(&mut self.buffer, &self.packets, &mut authentic)
            .unwrap();
        // In the order of arrival: the window moves while the batch is accepted.
        let of_each = self.packets.iter().zip(&self.sequences).zip(&authentic);
        of_each
            .map(|((packet, &sequence), &authentic)| {
                let bytes = &self.buffer[packet.at..packet.at + packet.bytes];
                let Opened { inner, .. } = inbound.accept(bytes, sequence, authentic)?;
                Ok((sequence, bytes[inner].to_vec()))
            })
            .collect()
    }
}

/// Packets in the window.
const SIZE: u64 = 8192;

/// Distance of the next packet's number from the highest so far.
fn step() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 1i64..4,
        4 => -20i64..=0,
        1 => 1i64..9000,
        1 => -9000i64..0,
        1 => -(SIZE as i64) - 2..-(SIZE as i64) + 2,
    ]
}

/// The inner packet of a number, with unique content and an arbitrary length.
fn inner_of(sequence: u64) -> Vec<u8> {
    let bytes = sequence.to_le_bytes();
    bytes
        .into_iter()
        .cycle()
        .take((sequence % 61) as usize)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn batches_in_any_order_with_repeats_open_each_packet_once(
        suite in prop::sample::select(extended()),
        first in prop_oneof![
            Just(1u64),
            // Around the first numbers that the header does not show in full.
            (1u64 << 32) - 100..(1 << 32) + 2,
            (7u64 << 32) - 100..(7 << 32) + 2,
        ],
        arrivals in prop::collection::vec(prop::collection::vec(0u64..120, 1..40), 1..12),
    ) {
        let (mut outbound, mut inbound) = pair(suite);
        outbound.skip_to(first);
        inbound.skip_to(first);
        let sealed: Vec<_> =
            (first..first + 120).map(|number| seal(&mut outbound, &inner_of(number), 4)).collect();
        let mut seen = HashSet::new();
        for arrivals in arrivals {
            let mut batch = Batch::of(&inbound, arrivals.iter().map(|&at| &sealed[at as usize]));
            // Packets of an earlier batch are refused before they reach the engine.
            let replays = arrivals.iter().filter(|&&at| seen.contains(&(first + at)));
            prop_assert_eq!(&batch.refused, &vec![OpenError::Replayed; replays.count()]);
            let mut fresh = arrivals.iter().map(|at| first + at).filter(|at| !seen.contains(at));
            let mut in_this_batch = HashSet::new();
            for opened in batch.open(&mut inbound) {
                let number = fresh.next().unwrap();
                if in_this_batch.insert(number) {
                    prop_assert_eq!(opened, Ok((number, inner_of(number))));
                } else {
                    prop_assert_eq!(opened, Err(OpenError::Replayed));
                }
            }
            prop_assert_eq!(fresh.next(), None);
            seen.extend(in_this_batch);
        }
    }

    /// Far beyond the window on both sides, against an unlimited set.
    #[test]
    fn replay_detection_equals_an_unlimited_set(
        start in prop_oneof![Just(1u64), Just((1u64 << 32) - 9000), Just((3u64 << 32) + 4000)],
        steps in prop::collection::vec(prop::collection::vec(step(), 1..20), 1..20),
    ) {
        let suite = Suite::Aes256Gcm;
        let (mut outbound, mut inbound) = pair(suite);
        // The sender jumps to each number; only the receiver has a history.
        inbound.skip_to(start);
        let mut seen = HashSet::from([start - 1]);
        let mut top = start - 1;
        for steps in steps {
            let numbers: Vec<u64> =
                steps.iter().map(|step| top.saturating_add_signed(*step).max(start)).collect();
            let sealed: Vec<_> = numbers
                .iter()
                .map(|&number| {
                    outbound.skip_to(number);
                    seal(&mut outbound, &inner_of(number), 4)
                })
                .collect();
            let mut batch = Batch::of(&inbound, &sealed);
            // A batch is checked as a whole first, and then packet by packet.
            let (seen_then, top_then) = (seen.clone(), top);
            let mut expected = Vec::new();
            for number in numbers {
                expected.push(if number + SIZE <= top_then {
                    // Left of the window when the batch arrived: interpreted as 2^32 ahead.
                    Err(OpenError::IntegrityFailed)
                } else if seen_then.contains(&number) {
                    continue; // refused before it was opened
                } else if number + SIZE <= top {
                    Err(OpenError::TooOld)
                } else if !seen.insert(number) {
                    Err(OpenError::Replayed)
                } else {
                    top = top.max(number);
                    Ok((number, inner_of(number)))
                });
            }
            let replays = vec![OpenError::Replayed; sealed.len() - expected.len()];
            prop_assert_eq!(&batch.refused, &replays);
            prop_assert_eq!(batch.open(&mut inbound), expected);
        }
    }
}

#[test]
fn a_batch_may_span_2_to_the_32() {
    for suite in extended() {
        for boundary in [1u64 << 32, 5 << 32] {
            let (mut outbound, mut inbound) = pair(suite);
            outbound.skip_to(boundary - 8);
            inbound.skip_to(boundary - 8);
            // Slots of 200 bytes are longer than any of these packets.
            let mut buffer = vec![0; 16 * 200];
            let mut staged = Vec::new();
            for number in 0..16 {
                let at = number * 200;
                staged.push(outbound.stage(INNER, 4, &mut buffer, at).unwrap());
            }
            let high = (boundary >> 32) as u32;
            let highs: Vec<_> = staged.iter().map(|packet| packet.sequence_high).collect();
            assert_eq!(highs, [[high - 1; 8], [high; 8]].concat());
            outbound.seal_staged(&mut buffer, &staged).unwrap();
            let sealed: Vec<_> = staged
                .iter()
                .map(|packet| buffer[packet.at..packet.at + packet.bytes].to_vec())
                .collect();
            // In reverse order, so that the window has advanced when the others are accepted.
            let mut batch = Batch::of(&inbound, sealed.iter().rev());
            assert_eq!(batch.packets.len(), 16);
            let numbers: Vec<_> = batch
                .open(&mut inbound)
                .into_iter()
                .map(|opened| opened.unwrap().0)
                .collect();
            assert!(numbers.into_iter().eq((boundary - 8..boundary + 8).rev()));
        }
    }
}

#[test]
fn a_forged_duplicate_in_a_batch_does_not_displace_the_genuine_packet() {
    for suite in authenticated() {
        let (mut outbound, mut inbound) = pair(suite);
        let genuine = seal(&mut outbound, INNER, 4);
        let mut forged = genuine.clone();
        *forged.last_mut().unwrap() ^= 1;
        // All four pass the first check: nothing is marked before authentication.
        let opened = Batch::of(&inbound, [&forged, &genuine, &genuine, &forged]).open(&mut inbound);
        assert_eq!(opened[0], Err(OpenError::IntegrityFailed));
        assert_eq!(opened[1], Ok((1, INNER.to_vec())));
        assert_eq!(opened[2], Err(OpenError::Replayed));
        assert_eq!(opened[3], Err(OpenError::IntegrityFailed));
    }
}

/// An engine that fails after some calls, as a removed device does.
struct Failing {
    inner: Box<dyn Transform>,
    calls_left: u32,
}

impl Failing {
    fn after(calls: u32, suite: Suite) -> Box<Self> {
        Box::new(Self {
            inner: transform(suite),
            calls_left: calls,
        })
    }

    fn call(&mut self) -> Result<&mut dyn Transform, EngineFailed> {
        match self.calls_left.checked_sub(1) {
            Some(left) => {
                self.calls_left = left;
                Ok(&mut *self.inner)
            }
            None => Err(EngineFailed {
                engine: "failing",
                reason: "it was removed".to_owned(),
            }),
        }
    }
}

impl Transform for Failing {
    fn suite(&self) -> Suite {
        self.inner.suite()
    }

    fn seal_from(&mut self, high: u32, text: &[u8], packet: &mut [u8]) -> Result<(), EngineFailed> {
        self.call()?.seal_from(high, text, packet)
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        self.call()?.seal(buffer, packets)
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        self.call()?.open(buffer, packets, authentic)
    }
}

#[test]
fn a_failed_seal_uses_its_sequence_number_and_restores_the_source() {
    for suite in suites() {
        let mut outbound = OutboundSa::new(SPI, Failing::after(1, suite));
        // The one call that works.
        seal(&mut outbound, INNER, 4);
        let mut src = [7; 100];
        let result = outbound.seal(&mut src, 30, 4, &mut [0; 200]);
        assert!(matches!(result, Err(SealError::Engine(_))), "{result:?}");
        assert_eq!(src, [7; 100]);
        assert_eq!(sealed_packets(&outbound), 2);
    }
}

#[test]
fn an_authenticated_packet_can_still_be_opened_once() {
    for suite in authenticated() {
        let (mut outbound, mut inbound) = pair(suite);
        let sealed = seal(&mut outbound, INNER, 4);
        for _ in 0..2 {
            assert_eq!(inbound.authenticate(&mut sealed.clone()), Ok(1));
        }
        let mut forged = sealed.clone();
        *forged.last_mut().unwrap() ^= 1;
        let refused = inbound.authenticate(&mut forged);
        assert_eq!(refused, Err(OpenError::IntegrityFailed));
        let mut packet = sealed.clone();
        let opened = inbound.open(&mut packet).unwrap();
        assert_eq!(packet[opened.inner], *INNER);
        let replayed = inbound.authenticate(&mut sealed.clone());
        assert_eq!(replayed, Err(OpenError::Replayed));
    }
}

#[test]
fn a_failed_open_is_reported_as_such_and_leaves_the_window_unchanged() {
    for suite in suites() {
        let (mut outbound, mut working) = pair(suite);
        let sealed = seal(&mut outbound, INNER, 4);
        let mut inbound = InboundSa::new(SPI, Failing::after(0, suite), WindowSize::DEFAULT);
        for _ in 0..2 {
            let mut packet = sealed.clone();
            assert_eq!(inbound.open(&mut packet), Err(OpenError::EngineFailed));
            assert_eq!(inbound.expect(&packet), Ok(1));
            // Unchanged: another engine can process it.
            assert_eq!(packet, sealed);
        }
        working.open(&mut sealed.clone()).unwrap();
    }
}
