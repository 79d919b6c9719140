//! SAs that are used up are replaced in time, and nothing is lost.

use dispatch::{Choice, Dispatch};
use encryptor::counters::DropReason;
use encryptor::lane::{self, LaneSettings, LaneTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::renewal::Renewer;
use encryptor::worker::Worker;
use esp::WindowSize;
use keying::StaticKeys;
use port::{
    CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort, MemoryCipherPort, MemoryClearPort,
    memory_cipher_pair, memory_clear_pair,
};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;
use wire::{Cipher, Hmac, Suite};
use yaml::Prefix;

/// Its SAs seal 8 MiB, so that a test can use some of them up.
const SUITE: Suite = Suite::EncryptThenMac(Cipher::DesCbc, Hmac::Sha1);
const SINGLE: Joinable = Joinable {
    tcp: false,
    udp: false,
};

fn worker(
    key_file: &Path,
    clear: MemoryClearPort,
    cipher: MemoryCipherPort,
    renewer: &Renewer,
) -> Worker<MemoryClearPort, MemoryCipherPort, lane::LaneKeys> {
    let keys = StaticKeys::open(key_file).unwrap();
    let tunnel = LaneTunnel {
        id: 0,
        peer: 0,
        keys: Some(Arc::new(Mutex::new(keys))),
        inner_bytes_max: 1500,
        mss_max: [u16::MAX; 2],
    };
    let everything = Prefix::new([0, 0, 0, 0].into(), 0).unwrap();
    let (outbound, inbound) = lane::halves(&LaneSettings {
        lane: 0,
        lanes: 1,
        tunnels: &[tunnel],
        payload: &Payload::Ip(IpRules::NONE),
        policy: Arc::new(Policy::new(&[Selectors::to(vec![everything])])),
        selection: &Dispatch::prepare(&Choice::Auto, SUITE).unwrap(),
        window: WindowSize::DEFAULT,
        renewer: Some(renewer),
    });
    Worker::new(clear, cipher, outbound, inbound)
}

#[test]
fn a_tunnel_outlives_its_sas_without_a_loss() {
    const BYTES: usize = 1400;
    // More than three SAs can seal.
    const PACKETS: u64 = (28 << 20) / BYTES as u64;
    let folder = tempfile::tempdir().unwrap();
    let files = ["a.key", "b.key"].map(|name| folder.path().join(name));
    keying::create_pair(&files[0], &files[1]).unwrap();
    let dispatch = Dispatch::prepare(&Choice::Auto, SUITE).unwrap();
    let renewer = Renewer::start(&dispatch).unwrap();
    let (mut a, left_clear) = memory_clear_pair(SINGLE);
    let (right_clear, mut b) = memory_clear_pair(SINGLE);
    let (left_cipher, right_cipher) = memory_cipher_pair();
    let mut left = worker(&files[0], left_clear, left_cipher, &renewer);
    let mut right = worker(&files[1], right_clear, right_cipher, &renewer);
    let mut packet = vec![0; BYTES];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(BYTES as u16).to_be_bytes());
    let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
    let mut received = 0;
    let (mut epoch, mut sealed) = (epoch_in(folder.path()), 0);
    for _ in 0..PACKETS {
        a.send(&VnetHeader::PLAIN, &packet, &[]).unwrap();
        left.step().unwrap();
        right.step().unwrap();
        while b.recv(&mut buffer).is_ok() {
            received += 1;
        }
        sealed += BYTES;
        // More than half of what the SA may seal: a new one is on its way. A real link leaves it the time.
        if sealed > 5 << 20 {
            while epoch_in(folder.path()) == epoch {
                thread::yield_now();
            }
            (epoch, sealed) = (epoch + 1, 0);
        }
    }
    let tally = left.counters().read();
    assert_eq!(tally.dropped[DropReason::SequenceExhausted as usize], 0);
    assert_eq!(received, PACKETS);
    assert!(epoch > 4, "{epoch}");
}

/// The epoch that A has drawn last.
fn epoch_in(folder: &Path) -> u32 {
    let text = std::fs::read_to_string(folder.join("a.key.epoch")).unwrap();
    let line = text.lines().find(|line| line.contains("outbound")).unwrap();
    let digits = line.rsplit(|letter: char| !letter.is_ascii_digit());
    digits.into_iter().next().unwrap().parse().unwrap()
}
