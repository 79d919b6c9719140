use super::*;
use crate::pace;
use std::sync::atomic::AtomicUsize;
use wire::overhead::{ESP_HEADER_BYTES, esp_bytes};

const SUITE: Suite = Suite::Aes256Gcm;

fn plain() -> Box<dyn Transform> {
    let choice = engine::CpuChoice::Named("aws-lc".to_owned());
    engine::select(&choice, SUITE)
        .unwrap()
        .transform(&pace::keymat(SUITE))
}

/// A real engine that counts its packets and fails some calls, which are numbered from 0.
struct Faulty {
    inside: Box<dyn Transform>,
    call: usize,
    fails: Fails,
    packets: Arc<AtomicUsize>,
}

impl Faulty {
    fn next(&mut self, packets: usize) -> Result<(), EngineFailed> {
        self.call += 1;
        if (self.fails)(self.call - 1) {
            return Err(EngineFailed {
                engine: "faulty",
                reason: format!("call {}", self.call - 1),
            });
        }
        self.packets.fetch_add(packets, Ordering::Relaxed);
        Ok(())
    }
}

impl Transform for Faulty {
    fn suite(&self) -> Suite {
        self.inside.suite()
    }

    fn seal_from(&mut self, high: u32, text: &[u8], packet: &mut [u8]) -> Result<(), EngineFailed> {
        if let Err(error) = self.next(1) {
            // It may leave any bytes behind header and IV.
            packet[ESP_HEADER_BYTES + SUITE.iv_bytes()..].fill(0xee);
            return Err(error);
        }
        self.inside.seal_from(high, text, packet)
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        self.next(packets.len())?;
        self.inside.seal(buffer, packets)
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        if let Err(error) = self.next(packets.len()) {
            authentic.fill(true);
            return Err(error);
        }
        self.inside.open(buffer, packets, authentic)
    }
}

/// Selects the calls that fail.
type Fails = fn(usize) -> bool;

/// Routes with given curves and failing calls, and the packets that each has processed.
struct Bench {
    routed: Routed,
    done: Vec<Arc<AtomicUsize>>,
    failures: Arc<Failures>,
}

impl Bench {
    fn new(policy: Policy, routes: &[(Curve, Fails)]) -> Self {
        let done: Vec<_> = routes
            .iter()
            .map(|_| Arc::new(AtomicUsize::new(0)))
            .collect();
        let failures = Arc::new(Failures::of(routes.len()));
        let route = |(contender, &(curve, fails))| Route {
            contender,
            transform: Box::new(Faulty {
                inside: plain(),
                call: 0,
                fails,
                packets: Arc::clone(&done[contender]),
            }) as Box<dyn Transform>,
            predictor: Predictor::Curves([curve; 3]),
        };
        let all = routes.iter().enumerate().map(route).collect();
        Self {
            routed: Routed::new(SUITE, all, policy, Arc::clone(&failures)),
            done,
            failures,
        }
    }

    fn done(&self) -> Vec<usize> {
        self.done
            .iter()
            .map(|done| done.load(Ordering::Relaxed))
            .collect()
    }

    fn failed(&self) -> Vec<u64> {
        self.failures.list().map(|(sas, _)| sas).collect()
    }
}

fn never(_: usize) -> bool {
    false
}

fn always(_: usize) -> bool {
    true
}

fn line(per_packet_ps: u64, per_byte_ps: u64) -> Curve {
    Curve {
        per_packet_ps,
        per_byte_ps,
        ..Curve::default()
    }
}

/// Contiguous packets of these inner lengths, ready for sealing, with sequence numbers from `first`
/// on.
fn batch(first: u64, inner: &[usize]) -> (Vec<u8>, Vec<Packet>) {
    let (mut buffer, mut packets) = (Vec::new(), Vec::new());
    for (&inner, sequence) in inner.iter().zip(first..) {
        let (at, bytes) = (buffer.len(), esp_bytes(SUITE, inner));
        buffer.extend((0..bytes).map(|byte| (byte as u64 ^ sequence) as u8));
        buffer[at..at + 4].copy_from_slice(&7u32.to_be_bytes());
        buffer[at + 4..at + 8].copy_from_slice(&(sequence as u32).to_be_bytes());
        buffer[at + 8..at + 16].copy_from_slice(&sequence.to_be_bytes());
        packets.push(Packet {
            at,
            bytes,
            sequence_high: 0,
        });
    }
    (buffer, packets)
}

/// Seals batches in both ways and by a single engine, and opens them.
fn assert_nothing_is_lost(routed: &mut Routed, batches: usize, inner: &[usize]) {
    let mut plain = plain();
    for number in 0..batches {
        let first = 1 + (number * inner.len()) as u64;
        let (text, packets) = batch(first, inner);
        let (mut expected, mut sealed) = (text.clone(), text.clone());
        plain.seal(&mut expected, &packets).unwrap();
        routed.seal(&mut sealed, &packets).unwrap();
        assert_eq!(sealed, expected, "batch {number}");

        // The last packet is forged: verdicts stay with their packets.
        *sealed.last_mut().unwrap() ^= 1;
        let mut authentic = vec![false; packets.len()];
        routed.open(&mut sealed, &packets, &mut authentic).unwrap();
        let forged = packets.len() - 1;
        for (index, packet) in packets.iter().enumerate() {
            assert_eq!(
                authentic[index],
                index != forged,
                "packet {index} of batch {number}"
            );
            let text_end = packet.at + packet.bytes - SUITE.icv_bytes();
            if index != forged {
                assert_eq!(sealed[packet.at..text_end], text[packet.at..text_end]);
            }
        }

        let Packet { at, bytes, .. } = packets[0];
        let inside = at + 16..at + bytes - SUITE.icv_bytes();
        let mut single = text[at..at + bytes].to_vec();
        routed.seal_from(0, &text[inside], &mut single).unwrap();
        assert_eq!(
            single,
            expected[at..at + bytes],
            "single packet of batch {number}"
        );
    }
}

#[test]
fn each_batch_goes_to_the_fastest_engine() {
    let mut bench = Bench::new(
        Policy::Soonest,
        &[(line(40_000, 75), never), (line(10_000, 250), never)],
    );
    let (mut short, packets) = batch(1, &[40; 32]);
    bench.routed.seal(&mut short, &packets).unwrap();
    assert_eq!(bench.done(), [0, 32]);
    let (mut long, packets) = batch(1, &[1400; 32]);
    bench.routed.seal(&mut long, &packets).unwrap();
    assert_eq!(bench.done(), [32, 32]);
    // A mixed batch goes as a whole to the engine with the smaller sum: 4 long packets outweigh 28
    // short ones.
    let mixed: Vec<_> = [40; 28].into_iter().chain([1400; 4]).collect();
    let (mut mixed, packets) = batch(1, &mixed);
    bench.routed.seal(&mut mixed, &packets).unwrap();
    assert_eq!(bench.done(), [64, 32]);
    assert_nothing_is_lost(&mut bench.routed, 3, &[40, 1400, 60]);
}

#[test]
fn near_a_crossover_batches_stay_on_their_engine() {
    // The curves cross between 135 and 134 inner bytes.
    let mut bench = Bench::new(
        Policy::Soonest,
        &[(line(40_000, 75), never), (line(10_000, 250), never)],
    );
    let mut seal = |inner: usize| {
        let (mut buffer, packets) = batch(1, &[inner; 8]);
        bench.routed.seal(&mut buffer, &packets).unwrap();
        bench
            .done
            .iter()
            .map(|done| done.swap(0, Ordering::Relaxed))
            .collect::<Vec<_>>()
    };
    for inner in [130, 140, 126, 150, 122, 160] {
        assert_eq!(seal(inner), [8, 0], "{inner} B after long packets");
    }
    assert_eq!(seal(40), [0, 8]);
    for inner in [130, 140, 126, 150, 122, 145] {
        assert_eq!(seal(inner), [0, 8], "{inner} B after short packets");
    }
    assert_eq!(seal(400), [8, 0]);
}

#[test]
fn a_threshold_splits_a_batch_and_keeps_its_order() {
    let below = Policy::Below(esp_bytes(SUITE, 128));
    let mut bench = Bench::new(below, &[(line(0, 0), never), (line(0, 0), never)]);
    let sizes = [40, 127, 128, 1400, 60, 124, 9000];
    let (mut buffer, packets) = batch(1, &sizes);
    bench.routed.seal(&mut buffer, &packets).unwrap();
    // 127 and 128 bytes are padded to the same length, so they share an engine.
    assert_eq!(bench.done(), [3, 4]);
    assert_nothing_is_lost(&mut bench.routed, 2, &sizes);
}

#[test]
fn a_failed_engine_is_replaced_by_the_next() {
    let fast = line(1_000, 10);
    let slow = line(40_000, 75);
    let fails: [(Fails, usize); 4] = [
        (always, 0),
        (|call| call == 1, 1),
        (|call| call == 7, 7),
        (|call| call % 2 == 0, 0),
    ];
    for (fails, done_before) in fails {
        let mut bench = Bench::new(Policy::Soonest, &[(fast, fails), (slow, never)]);
        assert_nothing_is_lost(&mut bench.routed, 6, &[40, 1400, 90]);
        assert_eq!(bench.failed(), [1], "reported once");
        // A batch of three is sealed, opened, and one packet sealed by itself: 7 packets in 3
        // calls.
        let before = done_before / 3 * 7 + [0, 3, 6][done_before % 3];
        assert_eq!(bench.done(), [before, 6 * 7 - before]);
    }
}

#[test]
fn either_side_of_a_threshold_replaces_the_other() {
    let below = Policy::Below(esp_bytes(SUITE, 128));
    let routes: [[(Curve, Fails); 2]; 2] = [
        [(line(0, 0), |call| call == 2), (line(0, 0), never)],
        [(line(0, 0), never), (line(0, 0), |call| call == 3)],
    ];
    for routes in routes {
        let mut bench = Bench::new(below, &routes);
        assert_nothing_is_lost(&mut bench.routed, 5, &[40, 1400, 60, 700]);
        assert_eq!(bench.failed(), [1]);
    }
}

#[test]
fn two_of_three_may_fail() {
    let mut bench = Bench::new(
        Policy::Soonest,
        &[
            (line(1_000, 30), |call| call == 5),
            (line(1_000, 10), |call| call == 2),
            (line(1_000, 20), never),
        ],
    );
    assert_nothing_is_lost(&mut bench.routed, 8, &[40, 1400]);
    // The third was second to the one that failed first, and the first is no longer needed.
    assert_eq!(bench.failed(), [1]);
    assert_eq!(bench.done()[0], 0);
    let mut bench = Bench::new(
        Policy::Soonest,
        &[
            (line(1_000, 30), never),
            (line(1_000, 10), |call| call == 2),
            (line(1_000, 20), |call| call == 2),
        ],
    );
    assert_nothing_is_lost(&mut bench.routed, 8, &[40, 1400]);
    assert_eq!(bench.failed(), [1, 1]);
}

#[test]
fn the_last_failure_is_returned_with_an_unchanged_batch() {
    let mut bench = Bench::new(
        Policy::Soonest,
        &[(line(1, 1), |call| call == 1), (line(2, 2), always)],
    );
    assert_nothing_is_lost(&mut bench.routed, 0, &[]);
    let (mut buffer, packets) = batch(1, &[100; 4]);
    bench.routed.seal(&mut buffer, &packets).unwrap();
    let (before, packets) = batch(5, &[100; 4]);
    let mut buffer = before.clone();
    for _ in 0..2 {
        let error = bench.routed.seal(&mut buffer, &packets).unwrap_err();
        assert_eq!(error.engine, "faulty");
        assert_eq!(buffer, before);
    }
    let mut authentic = [false; 4];
    bench
        .routed
        .open(&mut buffer, &packets, &mut authentic)
        .unwrap_err();
    assert_eq!(bench.failed(), [1, 1]);
}

#[test]
fn an_empty_batch_calls_no_engine() {
    let mut bench = Bench::new(
        Policy::Soonest,
        &[(line(1, 1), always), (line(2, 2), always)],
    );
    bench.routed.seal(&mut [], &[]).unwrap();
    bench.routed.open(&mut [], &[], &mut []).unwrap();
    assert_eq!(bench.failed(), [0; 0]);
}
