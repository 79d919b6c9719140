//! Lanes with negotiated keys: between two encryptors in memory, with the test as the control
//! channel and the network.

use crate::clear_link::{MemoryClearPort, memory_clear_pair};
use dispatch::{Choice, Dispatch};
use encryptor::config::Fault;
use encryptor::counters::{DropReason, Tally};
use encryptor::lane::{self, LaneKeys, LaneSettings, LaneTunnel, SharedKeys};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::renewal::{Renewer, Switchboard};
use encryptor::status::{Status, Tunnel};
use encryptor::worker::Worker;
use esp::{Limits, WindowSize};
use keying::chain::{self, Context, EpochSecret, Secret};
use keying::message::Cause;
use keying::{KeyRing, Keys, Side};
use port::{
    Batch, CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, CipherPort, ClearPort, MemoryCipherPort, Train,
    memory_cipher_pair,
};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use wire::Suite;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;
use yaml::Prefix;

const SUITE: Suite = Suite::Aes256Gcm;
const SINGLE: Joinable = Joinable::NONE;
const BYTES: usize = 100;
/// Longer than any step here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

type TestWorker = Worker<MemoryClearPort, MemoryCipherPort, LaneKeys>;

/// One encryptor with one lane and one tunnel.
struct Gateway {
    keys: SharedKeys,
    worker: TestWorker,
    lanes: Switchboard,
    status: Arc<Status>,
    /// Requests to the control channel.
    asked: Receiver<(Option<u16>, Cause)>,
    renewer: Renewer,
}

impl Gateway {
    fn new(side: Side, lifetime: Limits, clear: MemoryClearPort, cipher: MemoryCipherPort) -> Self {
        let dispatch = Dispatch::prepare(&Choice::Named("aws-lc".to_owned()), SUITE).unwrap();
        let peer = Tunnel::new(0, 0, "peer".to_owned(), chain::Policy::Pqc);
        let status = Arc::new(Status::new(vec![peer]));
        let renewer = Renewer::start_with(&dispatch, Arc::clone(&status)).unwrap();
        let (ask, asked) = mpsc::channel();
        renewer.set_control(Box::new(move |tunnel, cause| {
            ask.send((tunnel, cause)).unwrap()
        }));
        let keys: SharedKeys = Arc::new(Mutex::new(Keys::from(KeyRing::new(side))));
        let everything = Prefix::new([0, 0, 0, 0].into(), 0).unwrap();
        let (outbound, inbound) = lane::halves(&LaneSettings {
            lane: 0,
            lanes: 1,
            tunnels: &[LaneTunnel {
                id: 0,
                peer: 0,
                keys: Some(Arc::clone(&keys)),
                lifetime,
                inner_bytes_max: 1500,
                payload_bytes_max: 1500,
                mss_max: [u16::MAX; 2],
            }],
            payload: &Payload::Ip(IpRules::NONE),
            policy: Arc::new(Policy::new(&[Selectors::to(vec![everything])])),
            selection: &dispatch,
            window: WindowSize::DEFAULT,
            ike: None,
            renewer: Some(&renewer),
        });
        Self {
            keys,
            worker: Worker::new(clear, cipher, outbound, inbound),
            lanes: renewer.switchboard(),
            status,
            asked,
            renewer,
        }
    }

    fn ring(&self, change: impl FnOnce(&mut KeyRing)) {
        change(self.keys.lock().unwrap().as_ring().unwrap());
    }

    /// Installs an epoch, as the control channel does.
    fn install(&self, secret: &Arc<EpochSecret>) {
        self.ring(|ring| ring.install_inbound(Arc::clone(secret)));
    }

    fn switch(&self, secret: &Arc<EpochSecret>) {
        self.ring(|ring| ring.switch_outbound(Arc::clone(secret)));
        self.lanes.switched(0);
    }

    fn retire(&self, epoch: u32) {
        self.ring(|ring| ring.retire_inbound(epoch));
        self.lanes.retired(0);
    }

    fn expire(&self, epoch: u32) {
        self.ring(|ring| {
            ring.retire_inbound(epoch);
            ring.expire_outbound(epoch);
        });
        self.lanes.expired(0);
    }

    fn tally(&self) -> Tally {
        let tally = self.worker.counters().read();
        assert!(tally.balances(), "{tally:?}");
        tally
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        self.tally().dropped[reason as usize]
    }
}

/// Station a, two gateways, station b; the test controls the link between the gateways.
struct Bench {
    a: MemoryClearPort,
    b: MemoryClearPort,
    left: Gateway,
    right: Gateway,
    from_left: MemoryCipherPort,
    to_right: MemoryCipherPort,
    buffer: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        Self::with_lifetime(Limits::NONE)
    }

    fn with_lifetime(lifetime: Limits) -> Self {
        let (a, left_clear) = memory_clear_pair(SINGLE);
        let (right_clear, b) = memory_clear_pair(SINGLE);
        let (left_cipher, from_left) = memory_cipher_pair();
        let (to_right, right_cipher) = memory_cipher_pair();
        Self {
            a,
            b,
            left: Gateway::new(Side::A, lifetime, left_clear, left_cipher),
            right: Gateway::new(Side::B, lifetime, right_clear, right_cipher),
            from_left,
            to_right,
            buffer: vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES],
        }
    }

    /// A new epoch that both open with and neither seals with yet.
    fn agree(&self, epoch: u32) -> Arc<EpochSecret> {
        let secret = Arc::new(secret(epoch));
        for gateway in [&self.left, &self.right] {
            gateway.install(&secret);
        }
        secret
    }

    /// Seals this many packets of A's; returns the datagrams.
    fn seal(&mut self, packets: u8) -> Vec<Vec<u8>> {
        for number in 0..packets {
            let mut packet = [number; BYTES];
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&(BYTES as u16).to_be_bytes());
            self.a.send(&VnetHeader::PLAIN, &packet, &[]).unwrap();
        }
        while self.left.worker.step().unwrap() {}
        let mut batch = Batch::for_trains(64);
        let mut datagrams = Vec::new();
        while self.from_left.recv(&mut batch).is_ok() {
            let ranges = batch.trains.iter().flat_map(Train::ranges);
            datagrams.extend(ranges.map(|range| batch.buffer[range].to_vec()));
        }
        datagrams
    }

    /// Passes datagrams to the right gateway in one batch; returns the number of packets that come
    /// out.
    fn open(&mut self, datagrams: &[Vec<u8>]) -> usize {
        for some in datagrams.chunks(port::TRAINS_MAX) {
            let mut batch = Batch::for_trains(4);
            let mut start = 0;
            for bytes in some {
                batch.buffer[start..start + bytes.len()].copy_from_slice(bytes);
                batch.trains.push(Train {
                    start,
                    bytes: bytes.len(),
                    datagram_bytes: bytes.len(),
                    peer: 0,
                    tos: 0,
                });
                start += bytes.len();
            }
            let sent = self.to_right.send(&mut batch).datagrams;
            assert_eq!(sent, some.len() as u64, "the link has room");
        }
        while self.right.worker.step().unwrap() {}
        let mut received = 0;
        while self.b.recv(&mut self.buffer).is_ok() {
            received += 1;
        }
        received
    }

    /// Seals one packet after the other until one is of this epoch, and passes all to the other
    /// side; returns their number, which equals the number that came out.
    fn cross_until(&mut self, epoch: u32) -> usize {
        let start = Instant::now();
        let mut crossed = 0;
        loop {
            assert!(start.elapsed() < PATIENCE, "no packet of epoch {epoch}");
            let sealed = self.seal(1);
            let datagram = sealed.first().expect("there are keys");
            let spi = u32::from_be_bytes(*datagram.first_chunk().unwrap());
            assert_eq!(self.open(&sealed), 1);
            crossed += 1;
            if keying::epoch_of(spi) == epoch {
                return crossed;
            }
            thread::yield_now();
        }
    }
}

/// The secret of an epoch, as from a handshake.
fn secret(epoch: u32) -> EpochSecret {
    let context = Context {
        connector: "gw1".to_owned(),
        listener: "gw2".to_owned(),
        tunnel: 0,
        lanes: 1,
        suite: SUITE,
        policy: chain::Policy::Pqc,
        epoch,
    };
    let mut exporter = Secret::new([0; chain::CHAIN_BYTES]);
    exporter[0] = epoch as u8;
    EpochSecret::derive(context, &exporter, &[])
}

#[test]
fn a_tunnel_without_keys_drops_its_packets() {
    let mut bench = Bench::new();
    assert!(bench.seal(3).is_empty());
    assert_eq!(bench.left.dropped(DropReason::NoKeys), 3);
    let first = bench.agree(1);
    // Neither side has proven yet that it has the epoch.
    assert!(bench.seal(1).is_empty());
    bench.left.switch(&first);
    assert_eq!(bench.seal(1).len(), 1);
}

/// The control channel reports the end of a switch to the peer, which may answer at once.
#[test]
fn a_lane_seals_when_the_switch_of_its_keys_is_done() {
    for _ in 0..20 {
        let mut bench = Bench::new();
        for epoch in 1..4 {
            let secret = bench.agree(epoch);
            bench.left.switch(&secret);
            let sealed = bench.seal(5);
            assert_eq!(sealed.len(), 5);
            for datagram in &sealed {
                let spi = u32::from_be_bytes(*datagram.first_chunk().unwrap());
                assert_eq!(keying::epoch_of(spi), epoch);
            }
        }
        assert_eq!(bench.left.dropped(DropReason::NoKeys), 0);
    }
}

#[test]
fn packets_after_the_hard_lifetime_are_dropped_and_counted_on_both_sides() {
    let mut bench = Bench::new();
    let first = bench.agree(1);
    bench.left.switch(&first);
    let sealed = bench.seal(10);
    assert_eq!(bench.open(&sealed[..5]), 5);
    bench.left.expire(1);
    bench.right.expire(1);
    // The lanes see it at the latest with their next batches.
    let start = Instant::now();
    while bench.left.dropped(DropReason::KeysExpired) == 0 {
        assert!(start.elapsed() < PATIENCE, "the lane seals");
        bench.seal(1);
    }
    assert!(bench.seal(3).is_empty());
    assert_eq!(bench.left.dropped(DropReason::NoKeys), 0);
    await_drop(&mut bench, &sealed[4], DropReason::SaExpired);
    assert_eq!(bench.open(&sealed[5..]), 0, "packets in transit");
    assert_eq!(bench.right.dropped(DropReason::NoSa), 0);
    // No other keys are at fault.
    for _ in 0..10 {
        bench.open(&sealed);
    }
    assert!(bench.right.asked.try_recv().is_err());
    let second = bench.agree(2);
    bench.left.switch(&second);
    bench.cross_until(2);
    await_drop(&mut bench, &sealed[9], DropReason::NoSa);
}

#[test]
fn a_rollover_loses_no_packet_in_any_order() {
    let mut bench = Bench::new();
    let first = bench.agree(1);
    bench.left.switch(&first);
    while bench.seal(1).is_empty() {}
    bench.cross_until(1);
    let old = bench.seal(40);
    let second = bench.agree(2);
    bench.left.switch(&second);
    bench.cross_until(2);
    let new = bench.seal(40);
    // Both in one batch, alternately, each in reverse order.
    let pairs = old.iter().rev().zip(new.iter().rev());
    let mixed: Vec<_> = pairs
        .flat_map(|(old, new)| [old.clone(), new.clone()])
        .collect();
    assert_eq!(bench.open(&mixed), 80);
    // Each window has its own history, including that of the previous epoch.
    assert_eq!(bench.open(&mixed), 0);
    assert_eq!(bench.right.dropped(DropReason::Replayed), 80);
    let late = old[0].clone();
    bench.right.retire(1);
    await_drop(&mut bench, &late, DropReason::NoSa);
    assert_eq!(bench.open(&new), 0, "the newest SA keeps its window");
    assert_eq!(bench.seal(1).len(), 1);
}

/// Passes in a known packet repeatedly, until it is dropped for this reason.
fn await_drop(bench: &mut Bench, datagram: &[u8], reason: DropReason) {
    let start = Instant::now();
    let before = bench.right.dropped(reason);
    while bench.right.dropped(reason) == before {
        assert!(
            start.elapsed() < PATIENCE,
            "never dropped as {}",
            reason.name()
        );
        assert_eq!(bench.open(&[datagram.to_vec()]), 0);
        thread::yield_now();
    }
}

#[test]
fn an_unused_epoch_does_no_harm() {
    let mut bench = Bench::new();
    let first = bench.agree(1);
    bench.left.switch(&first);
    while bench.seal(1).is_empty() {}
    bench.cross_until(1);
    // An abandoned attempt.
    bench.agree(2);
    let third = bench.agree(3);
    bench.left.switch(&third);
    bench.cross_until(3);
    for epoch in [1, 2] {
        bench.right.retire(epoch);
    }
    assert_eq!(bench.cross_until(3), 1);
    assert_eq!(bench.right.tally().dropped.iter().sum::<u64>(), 0);
}

#[test]
fn new_keys_are_requested_once_at_the_volume_limit() {
    let packets = Limits {
        packets: 10,
        bytes: u64::MAX,
    };
    let bytes = Limits {
        packets: u64::MAX,
        bytes: 10 * BYTES as u64,
    };
    for (lifetime, cause) in [(packets, Cause::Packets), (bytes, Cause::Bytes)] {
        let mut bench = Bench::with_lifetime(lifetime);
        let mut epoch = 1;
        let first = bench.agree(epoch);
        bench.left.switch(&first);
        while bench.seal(1).is_empty() {}
        for _ in 0..3 {
            bench.cross_until(epoch);
            assert!(bench.left.asked.try_recv().is_err(), "too early");
            assert_eq!(bench.seal(30).len(), 30, "sealing continues meanwhile");
            let asked = bench.left.asked.recv_timeout(PATIENCE);
            assert_eq!(asked, Ok((Some(0), cause)));
            bench.seal(30);
            epoch += 1;
            let next = bench.agree(epoch);
            bench.left.switch(&next);
            bench.cross_until(epoch);
        }
        assert!(bench.left.asked.try_recv().is_err(), "asked twice");
    }
}

#[test]
fn a_renewal_counts_when_all_lanes_seal_with_new_keys() {
    let mut bench = Bench::new();
    let rekeyer = bench.left.renewer.rekeyer();
    let first = bench.agree(1);
    bench.left.switch(&first);
    while bench.seal(1).is_empty() {}
    bench.cross_until(1);
    rekeyer.ask();
    let asked = bench.left.asked.recv_timeout(PATIENCE);
    assert_eq!(asked, Ok((None, Cause::Demand)));
    let second = bench.agree(2);
    bench.cross_until(1);
    assert_eq!(rekeyer.rekeys(), 0);
    bench.left.switch(&second);
    let start = Instant::now();
    while rekeyer.rekeys() == 0 {
        assert!(start.elapsed() < PATIENCE, "never counted");
        let sealed = bench.seal(1);
        assert_eq!(bench.open(&sealed), 1);
    }
    assert_eq!(bench.cross_until(2), 1, "all are of the new epoch");
}

#[test]
fn a_key_mismatch_is_detected_repaired_and_counted() {
    for fault in [Fault::WrongKeys, Fault::MissedRollover] {
        let mut bench = Bench::new();
        let first = bench.agree(1);
        bench.left.switch(&first);
        bench.right.switch(&first);
        while bench.seal(1).is_empty() {}
        bench.cross_until(1);
        bench.right.renewer.rekeyer().inject(fault);
        // Before the fault, packets pass.
        let start = Instant::now();
        let mut lost = 0;
        while bench.right.asked.try_recv() != Ok((Some(0), Cause::Desync)) {
            assert!(start.elapsed() < PATIENCE, "{fault:?} is not noticed");
            let sealed = bench.seal(10);
            lost += 10 - bench.open(&sealed) as u64;
            thread::yield_now();
        }
        assert!(lost >= 32, "{fault:?}: reported after {lost}");
        let second = bench.agree(2);
        bench.left.switch(&second);
        let sealed = loop {
            let sealed = bench.seal(1);
            let spi = u32::from_be_bytes(*sealed[0].first_chunk().unwrap());
            if keying::epoch_of(spi) == 2 {
                break sealed;
            }
            lost += 1;
            assert_eq!(bench.open(&sealed), 0);
        };
        assert_eq!(bench.open(&sealed), 1);
        let start = Instant::now();
        let counted = |name| {
            let counters = bench.right.status.counters();
            let found = counters.iter().find(|(known, _, _)| *known == name);
            found.unwrap().2
        };
        // The outage is counted last.
        while bench.right.status.desync_outage() == Duration::ZERO {
            assert!(start.elapsed() < PATIENCE, "its end is not reported");
            thread::yield_now();
        }
        assert_eq!(counted("desyncs"), 1);
        assert_eq!(counted("desync_lost_packets"), lost, "{fault:?}");
        let dropped = &bench.right.tally().dropped;
        assert_eq!(dropped.iter().sum::<u64>(), lost);
    }
}

#[test]
fn forged_packets_between_authentic_ones_are_no_desync() {
    let mut bench = Bench::new();
    let first = bench.agree(1);
    bench.left.switch(&first);
    bench.right.switch(&first);
    while bench.seal(1).is_empty() {}
    bench.cross_until(1);
    for _ in 0..20 {
        let sealed = bench.seal(10);
        let mut mixed = Vec::new();
        for datagram in &sealed {
            let mut forged = datagram.clone();
            *forged.last_mut().unwrap() ^= 1;
            mixed.extend([forged.clone(), forged, datagram.clone()]);
        }
        assert_eq!(bench.open(&mixed), 10);
    }
    assert_eq!(bench.right.dropped(DropReason::IntegrityFailed), 400);
    assert!(bench.right.asked.try_recv().is_err());
}
