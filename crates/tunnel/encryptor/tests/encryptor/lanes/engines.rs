//! Engines that fail.

use crate::lanes::bench::*;
use encryptor::counters::DropReason;
use encryptor::payload::IpRules;
use engine::{EngineFailed, Packet, Transform};
use std::cell::Cell;
use wire::Suite;

thread_local! {
    /// Number of batches before the failure.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// A real engine that fails after some batches.
struct Failing(Box<dyn Transform>);

fn failing(suite: Suite, spi: u32) -> Box<dyn Transform> {
    Box::new(Failing(transform(suite, spi)))
}

fn spend() -> Result<(), EngineFailed> {
    LEFT.with(|left| match left.get().checked_sub(1) {
        Some(fewer) => {
            left.set(fewer);
            Ok(())
        }
        None => Err(EngineFailed {
            engine: "failing",
            reason: "it fails as planned".to_owned(),
        }),
    })
}

impl Transform for Failing {
    fn suite(&self) -> Suite {
        self.0.suite()
    }

    fn seal_from(&mut self, high: u32, text: &[u8], packet: &mut [u8]) -> Result<(), EngineFailed> {
        spend()?;
        self.0.seal_from(high, text, packet)
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        spend()?;
        self.0.seal(buffer, packets)
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        spend()?;
        self.0.open(buffer, packets, authentic)
    }
}

fn bench() -> Bench {
    Bench::new(&Setup {
        transform: failing,
        ..Setup::ip(IpRules::NONE)
    })
}

#[test]
fn packets_that_an_engine_did_not_seal_are_not_sent() {
    let mut bench = bench();
    // Short packets are sealed together, long ones singly.
    for (bytes, lost) in [(20, 5), (1000, 5)] {
        LEFT.set(0);
        for _ in 0..5 {
            bench.send(&udp([10, 0, 0, 1], &vec![1; bytes]));
        }
        let before = bench.left_tally().dropped[DropReason::SealFailed as usize];
        assert!(bench.seal().is_empty());
        let after = bench.left_tally().dropped[DropReason::SealFailed as usize];
        assert_eq!(after - before, lost);
        // The buffer's old content must not reappear with the next ones.
        LEFT.set(u32::MAX);
        bench.send(&udp([10, 0, 0, 1], b"next"));
        assert_eq!(bench.cross(), [udp([10, 0, 0, 1], b"next")]);
    }
}

#[test]
fn packets_that_an_engine_did_not_open_are_dropped_and_counted() {
    let mut bench = bench();
    LEFT.set(u32::MAX);
    let packet = udp([10, 0, 0, 1], b"first");
    bench.send(&packet);
    assert_eq!(bench.cross().len(), 1);
    for _ in 0..5 {
        bench.send(&packet);
    }
    let sealed = bench.seal();
    LEFT.set(0);
    assert!(bench.open(&sealed).is_empty());
    assert_eq!(
        bench.right_tally().dropped[DropReason::OpenFailed as usize],
        5
    );
}
