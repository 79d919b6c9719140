//! SAs are replaced before they are used up, and no packet is lost.

use crate::clear_link::{MemoryClearPort, memory_clear_pair};
use dispatch::{Choice, Dispatch};
use encryptor::counters::DropReason;
use encryptor::lane::{self, LaneSettings, LaneTunnel, SharedKeys};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::renewal::Renewer;
use encryptor::worker::Worker;
use esp::{Limits, WindowSize};
use keying::StaticKeys;
use port::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort, MemoryCipherPort, memory_cipher_pair};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;
use wire::{Cipher, Hmac, Suite};
use yaml::Prefix;

/// Its SAs seal 8 MiB, so that a test can use some of them up.
const SUITE: Suite = Suite::EncryptThenMac(Cipher::DesCbc, Hmac::Sha1);
/// Length of each packet.
const BYTES: usize = 1400;
const LANES: u16 = 2;
/// Longer than any disk takes.
const PATIENCE: Duration = Duration::from_secs(30);
const SINGLE: Joinable = Joinable::NONE;

type TestWorker = Worker<MemoryClearPort, MemoryCipherPort, lane::LaneKeys>;

/// One side: its lanes share a key file.
struct Side {
    keys: SharedKeys,
    dispatch: Dispatch,
    renewer: Renewer,
}

impl Side {
    fn new(key_file: &Path) -> Self {
        let dispatch = Dispatch::prepare(&Choice::Auto, SUITE).unwrap();
        Self {
            keys: Arc::new(Mutex::new(StaticKeys::open(key_file).unwrap().into())),
            renewer: Renewer::start(&dispatch).unwrap(),
            dispatch,
        }
    }

    fn lane(&self, lane: u16, clear: MemoryClearPort, cipher: MemoryCipherPort) -> TestWorker {
        let tunnel = LaneTunnel {
            id: 0,
            peer: 0,
            keys: Some(Arc::clone(&self.keys)),
            lifetime: Limits::NONE,
            inner_bytes_max: 1500,
            payload_bytes_max: 1500,
            mss_max: [u16::MAX; 2],
        };
        let everything = Prefix::new([0, 0, 0, 0].into(), 0).unwrap();
        let (outbound, inbound) = lane::halves(&LaneSettings {
            lane,
            lanes: LANES,
            tunnels: &[tunnel],
            payload: &Payload::Ip(IpRules::NONE),
            policy: Arc::new(Policy::new(&[Selectors::to(vec![everything])])),
            selection: &self.dispatch,
            window: WindowSize::DEFAULT,
            ike: None,
            renewer: Some(&self.renewer),
        });
        Worker::new(clear, cipher, outbound, inbound)
    }
}

/// A lane of both sides, and its stations.
struct Lane {
    a: MemoryClearPort,
    b: MemoryClearPort,
    left: TestWorker,
    right: TestWorker,
    buffer: Vec<u8>,
}

impl Lane {
    fn new(number: u16, left: &Side, right: &Side) -> Self {
        let (a, left_clear) = memory_clear_pair(SINGLE);
        let (right_clear, b) = memory_clear_pair(SINGLE);
        let (left_cipher, right_cipher) = memory_cipher_pair();
        Self {
            a,
            b,
            left: left.lane(number, left_clear, left_cipher),
            right: right.lane(number, right_clear, right_cipher),
            buffer: vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES],
        }
    }

    /// Sends a packet of [`BYTES`], and returns how many came out.
    fn cross(&mut self) -> u64 {
        let mut packet = [0; BYTES];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(BYTES as u16).to_be_bytes());
        self.a.send(&VnetHeader::PLAIN, &packet, &[]).unwrap();
        self.left.step().unwrap();
        self.right.step().unwrap();
        let mut received = 0;
        while self.b.recv(&mut self.buffer).is_ok() {
            received += 1;
        }
        received
    }
}

#[test]
fn tunnels_outlive_their_sas_without_loss_on_busy_and_idle_lanes() {
    // More than three SAs can seal.
    const PACKETS: u64 = (28 << 20) / BYTES as u64;
    let folder = testing::folder().unwrap();
    let files = ["a.key", "b.key"].map(|name| folder.path().join(name));
    keying::create_pair(&files[0], &files[1]).unwrap();
    let (left, right) = (Side::new(&files[0]), Side::new(&files[1]));
    let mut busy = Lane::new(0, &left, &right);
    let mut idle = Lane::new(1, &left, &right);
    let mut received = 0;
    let (mut epoch, mut sealed) = (epoch_in(folder.path()), 0);
    for _ in 0..PACKETS {
        received += busy.cross();
        sealed += BYTES;
        // More than half of the SA's limit: a new one is being created. A real link leaves time for
        // that.
        if sealed > 5 << 20 {
            let start = Instant::now();
            while epoch_in(folder.path()) == epoch {
                assert!(start.elapsed() < PATIENCE, "no new epoch after {epoch}");
                thread::yield_now();
            }
            (epoch, sealed) = (epoch + 1, 0);
        }
    }
    let tally = busy.left.counters().read();
    assert_eq!(tally.dropped[DropReason::SequenceExhausted as usize], 0);
    assert_eq!(received, PACKETS);
    assert!(epoch > 4, "{epoch}");
    // The other lane has sent nothing yet, and the peer has only the newest epoch.
    for _ in 0..3 {
        assert_eq!(idle.cross(), 1);
    }
    assert_eq!(busy.cross(), 1);
}

#[test]
fn renewal_on_demand_loses_no_packet_and_completes_when_all_lanes_use_it() {
    let folder = testing::folder().unwrap();
    let files = ["a.key", "b.key"].map(|name| folder.path().join(name));
    keying::create_pair(&files[0], &files[1]).unwrap();
    let (left, right) = (Side::new(&files[0]), Side::new(&files[1]));
    let mut lanes = [0, 1].map(|number| Lane::new(number, &left, &right));
    let rekeyer = left.renewer.rekeyer();
    for rekeys in 1..=3 {
        let epoch = epoch_in(folder.path());
        rekeyer.ask();
        let start = Instant::now();
        while epoch_in(folder.path()) == epoch {
            assert!(start.elapsed() < PATIENCE, "no new epoch after {epoch}");
            assert_eq!(lanes[0].cross(), 1);
        }
        // The other lane has none of it yet.
        assert_eq!(rekeyer.rekeys(), rekeys - 1);
        assert_eq!(lanes[1].cross(), 1);
        while rekeyer.rekeys() < rekeys {
            assert!(start.elapsed() < PATIENCE, "not all lanes are done");
            assert_eq!(lanes.each_mut().map(Lane::cross), [1, 1]);
        }
        assert_eq!(epoch_in(folder.path()), epoch + 1);
        assert_eq!(lanes.each_mut().map(Lane::cross), [1, 1]);
    }
    drop((lanes, left));
    // The renewer is gone, and no lane waits for it.
    rekeyer.ask();
    assert_eq!(rekeyer.rekeys(), 3);
}

/// The epoch that A drew last.
fn epoch_in(folder: &Path) -> u32 {
    let text = std::fs::read_to_string(folder.join("a.key.epoch")).unwrap();
    let line = text.lines().find(|line| line.contains("outbound")).unwrap();
    let digits = line.rsplit(|letter: char| !letter.is_ascii_digit());
    digits.into_iter().next().unwrap().parse().unwrap()
}
