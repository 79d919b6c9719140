//! Throughput of one core of the encryptor without a kernel, compared with that of its engine
//! alone.
//!
//! `make bench-lane`. Packets are read from memory, pass through the actual lane code, and end in
//! memory. Only the lane's time counts: neither filling its input nor emptying its output. The
//! engine seals or opens packets of the same length in the same process, alternately; the best of
//! several short turns counts for each. With arguments such as `seal 1500 1` (direction, bytes,
//! tunnels), it measures that case alone for a profiler.

use arrayvec::ArrayVec;
use encryptor::counters::Tally;
use encryptor::inbound::{Inbound, InboundKeys};
use encryptor::outbound::{Outbound, OutboundTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use engine::{CpuChoice, Packet, Selection, Transform};
use esp::{InboundSa, OutboundSa, WindowSize};
use port::{Batch, CLEAR_ROOM_BYTES, CipherPort, ClearPort, Sent, TRAINS_MAX, Train};
use std::collections::VecDeque;
use std::hint::black_box;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use wire::Suite;
use wire::coalesce::Joinable;
use wire::overhead::{ESP_HEADER_BYTES, esp_bytes};
use wire::vnet::{VNET_HEADER_BYTES, VnetHeader};

/// Number of packets in memory, too many for the first cache.
const PACKETS: usize = 64;
/// Measurements per figure; the best counts.
const TURNS: usize = 30;
const TURN: Duration = Duration::from_millis(20);
/// Lengths of the IP packets; 46 is a frame of 64 bytes.
const SIZES: [usize; 7] = [46, 64, 128, 256, 512, 1024, 1500];
const SUITE: Suite = Suite::Aes256Gcm;

fn main() {
    let selection = engine::select(&CpuChoice::Auto, SUITE).expect("an engine");
    println!(
        "{SUITE}, {}, best of {TURNS} turns of {} ms; M packets/s (Gbit/s of inner packets)",
        selection.version(),
        TURN.as_millis()
    );
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if let [direction, bytes, tunnels] = &arguments[..] {
        let (bytes, tunnels) = (
            bytes.parse().expect("bytes"),
            tunnels.parse().expect("tunnels"),
        );
        let rates = if direction == "open" {
            let raw = &mut Raw::open(&selection, bytes);
            best([raw, &mut Opening::new(&selection, bytes, tunnels)])
        } else {
            let raw = &mut Raw::seal(&selection, bytes);
            best([raw, &mut Sealing::new(&selection, bytes, tunnels)])
        };
        return row(direction, tunnels, bytes, rates);
    }
    println!("direction  tunnels  bytes  engine          lane            share");
    for tunnels in [1, 1000] {
        for bytes in SIZES {
            let raw = &mut Raw::seal(&selection, bytes);
            let lane = &mut Sealing::new(&selection, bytes, tunnels);
            row("seal", tunnels, bytes, best([raw, lane]));
        }
        for bytes in SIZES {
            let raw = &mut Raw::open(&selection, bytes);
            let lane = &mut Opening::new(&selection, bytes, tunnels);
            row("open", tunnels, bytes, best([raw, lane]));
        }
    }
    println!();
    println!("workers at once, each on its own core: sum of all, M packets/s");
    for (name, make) in [("seal", sealing as Make), ("open", opening as Make)] {
        for bytes in [64, 1500] {
            let one = together(&selection, make, bytes, 1);
            let two = together(&selection, make, bytes, 2);
            println!(
                "{name}  {bytes:>4} B  1: {one:.2}  2: {two:.2}  ratio {:.2}",
                two / one
            );
        }
    }
}

type Make = fn(&Selection, usize) -> Box<dyn Turn>;

fn sealing(selection: &Selection, bytes: usize) -> Box<dyn Turn> {
    Box::new(Sealing::new(selection, bytes, 1))
}

fn opening(selection: &Selection, bytes: usize) -> Box<dyn Turn> {
    Box::new(Opening::new(selection, bytes, 1))
}

fn row(direction: &str, tunnels: usize, bytes: usize, [engine, lane]: [f64; 2]) {
    let gbits = |rate: f64| rate * bytes as f64 * 8.0 / 1e9;
    println!(
        "{direction:<9}  {tunnels:>7}  {bytes:>5}  {:>6.2} ({:>6.2})  {:>6.2} ({:>6.2})  {:>4.0} %",
        engine / 1e6,
        gbits(engine),
        lane / 1e6,
        gbits(lane),
        100.0 * lane / engine
    );
}

/// A benchmark that carries packets for a while.
trait Turn {
    /// Packets carried, and the time taken.
    fn turn(&mut self) -> (u64, Duration);

    /// Packets per second in one turn of [`TURN`].
    fn rate(&mut self) -> f64 {
        let (mut packets, mut time) = (0, Duration::ZERO);
        while time < TURN {
            let (more, took) = self.turn();
            packets += more;
            time += took;
        }
        packets as f64 / time.as_secs_f64()
    }
}

/// The best rate of each, measured alternately.
fn best(mut contenders: [&mut dyn Turn; 2]) -> [f64; 2] {
    let mut best = [0.0; 2];
    for _ in 0..TURNS {
        for (contender, best) in contenders.iter_mut().zip(&mut best) {
            *best = contender.rate().max(*best);
        }
    }
    best
}

/// The sum of the rates of `workers` concurrent threads, in M packets/s: the best of several.
fn together(selection: &Selection, make: Make, bytes: usize, workers: usize) -> f64 {
    let mut best = 0.0f64;
    for _ in 0..TURNS {
        let barrier = Barrier::new(workers);
        let sum: f64 = std::thread::scope(|scope| {
            let work = || {
                let mut turn = make(selection, bytes);
                turn.turn();
                barrier.wait();
                turn.rate()
            };
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        best = best.max(sum);
    }
    best / 1e6
}

/// Keying material of a tunnel.
fn keymat(tunnel: usize) -> Vec<u8> {
    let bytes = (tunnel as u32).to_be_bytes();
    bytes
        .iter()
        .copied()
        .cycle()
        .take(SUITE.keymat_bytes())
        .collect()
}

/// The engine alone, on batches as large as the lane's.
struct Raw {
    transform: Box<dyn Transform>,
    sealed: Batch,
    scratch: Box<[u8]>,
    packets: ArrayVec<Packet, PACKETS>,
    authentic: [bool; PACKETS],
    text: Vec<u8>,
    open: bool,
}

impl Raw {
    fn seal(selection: &Selection, bytes: usize) -> Self {
        Self::new(selection, bytes, false)
    }

    fn open(selection: &Selection, bytes: usize) -> Self {
        Self::new(selection, bytes, true)
    }

    fn new(selection: &Selection, bytes: usize, open: bool) -> Self {
        let sealed_bytes = esp_bytes(SUITE, bytes);
        let packets: ArrayVec<_, PACKETS> = (0..PACKETS)
            .map(|index| Packet {
                at: index * sealed_bytes,
                bytes: sealed_bytes,
                sequence_high: 0,
            })
            .collect();
        let mut transform = selection.transform(&keymat(0));
        let mut sealed = Batch::new(PACKETS * sealed_bytes);
        transform.seal(&mut sealed.buffer, &packets).unwrap();
        let prefix = ESP_HEADER_BYTES + SUITE.iv_bytes();
        Self {
            transform,
            scratch: sealed.buffer.clone(),
            sealed,
            packets,
            authentic: [false; PACKETS],
            text: vec![7; sealed_bytes - prefix - SUITE.icv_bytes()],
            open,
        }
    }
}

impl Turn for Raw {
    fn turn(&mut self) -> (u64, Duration) {
        self.scratch.copy_from_slice(&self.sealed.buffer);
        let begin = Instant::now();
        if self.open {
            self.transform
                .open(&mut self.scratch, &self.packets, &mut self.authentic)
                .unwrap();
        } else if self.text.len() >= 512 {
            for packet in &self.packets {
                let room = &mut self.scratch[packet.at..packet.at + packet.bytes];
                self.transform.seal_from(0, &self.text, room).unwrap();
            }
        } else {
            self.transform
                .seal(&mut self.scratch, &self.packets)
                .unwrap();
        }
        let took = begin.elapsed();
        assert!(!self.open || self.authentic.iter().all(|authentic| *authentic));
        (PACKETS as u64, took)
    }
}

/// Returns packets in memory, to each tunnel's network in turn; ends after one round.
struct Source {
    packets: Vec<Box<[u8]>>,
    bytes: usize,
    tunnels: usize,
    tunnel: usize,
    left: usize,
}

impl Source {
    fn new(bytes: usize, tunnels: usize) -> Self {
        let mut packet = vec![0; VNET_HEADER_BYTES + bytes + CLEAR_ROOM_BYTES];
        packet[..VNET_HEADER_BYTES].copy_from_slice(&VnetHeader::PLAIN.to_bytes());
        let ip = &mut packet[VNET_HEADER_BYTES..];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
        ip[8] = 64;
        ip[9] = 17;
        Self {
            packets: vec![packet.into_boxed_slice(); PACKETS],
            bytes: VNET_HEADER_BYTES + bytes,
            tunnels,
            tunnel: 0,
            left: PACKETS,
        }
    }
}

/// A host in the network of a tunnel.
fn host(tunnel: usize) -> [u8; 4] {
    [10, (tunnel >> 8) as u8, tunnel as u8, 1]
}

impl ClearPort for Source {
    #[inline]
    fn recv<'a>(&'a mut self, _: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        if self.left == 0 {
            self.left = PACKETS;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.left -= 1;
        self.tunnel = (self.tunnel + 1) % self.tunnels;
        let packet = &mut self.packets[self.left];
        let ip = &mut packet[VNET_HEADER_BYTES..];
        ip[12..16].copy_from_slice(&host(self.tunnel));
        ip[16..20].copy_from_slice(&host(self.tunnel));
        Ok((packet, self.bytes))
    }

    fn send(&mut self, _: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        black_box((headers, payload));
        Ok(())
    }

    fn joinable(&self) -> Joinable {
        Joinable::NONE
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Keeps sent batches for one receiver, by exchange of buffers, without a copy.
struct Link {
    held: VecDeque<Batch>,
    spare: Vec<Batch>,
    keep: bool,
}

impl CipherPort for Link {
    fn send(&mut self, batch: &mut Batch) -> Sent {
        let sent = Sent {
            datagrams: batch.trains.iter().map(Train::datagrams).sum(),
            bytes: batch.trains.iter().map(|train| train.bytes as u64).sum(),
            ..Sent::default()
        };
        if self.keep {
            let fresh = self.spare.pop();
            let fresh = fresh.unwrap_or_else(|| Batch::new(batch.buffer.len()));
            self.held.push_back(std::mem::replace(batch, fresh));
        } else {
            black_box(&batch.buffer);
            batch.trains.clear();
        }
        sent
    }

    fn recv(&mut self, batch: &mut Batch) -> io::Result<()> {
        let received = self.held.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
        let mut spent = std::mem::replace(batch, received);
        if spent.buffer.len() == batch.buffer.len() {
            spent.trains.clear();
            self.spare.push(spent);
        }
        Ok(())
    }

    fn train_max(&self) -> usize {
        TRAINS_MAX
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

struct Keys(Selection);

impl InboundKeys for Keys {
    fn tunnel(&self, spi: u32) -> Option<u16> {
        Some((spi & 0xfff) as u16)
    }

    fn candidate(&mut self, tunnel: u16, spi: u32) -> Option<InboundSa> {
        let transform = self.0.transform(&keymat(usize::from(tunnel)));
        Some(InboundSa::new(spi, transform, WindowSize::DEFAULT))
    }

    fn confirmed(&mut self, _: u16, _: u32) {}
}

fn policy(tunnels: usize) -> Arc<Policy> {
    let network = |tunnel| {
        let prefix = yaml::Prefix::around(host(tunnel).into(), 24).unwrap();
        Selectors::to(vec![prefix])
    };
    let selectors: Vec<_> = (0..tunnels).map(network).collect();
    Arc::new(Policy::new(&selectors))
}

fn outbound(selection: &Selection, tunnels: usize) -> Outbound {
    let tunnel = |tunnel| OutboundTunnel {
        sa: Some(OutboundSa::new(
            0x1000 + tunnel as u32,
            selection.transform(&keymat(tunnel)),
        )),
        peer: 0,
        inner_bytes_max: 1500,
        payload_bytes_max: 1500,
        mss_max: [u16::MAX; 2],
    };
    let tunnels_made = (0..tunnels).map(tunnel).collect();
    Outbound::new(
        tunnels_made,
        Payload::Ip(IpRules::NONE),
        policy(tunnels),
        engine::checksum::fastest(),
    )
}

struct Sealing {
    source: Source,
    outbound: Outbound,
    link: Link,
}

impl Sealing {
    fn new(selection: &Selection, bytes: usize, tunnels: usize) -> Self {
        Self {
            source: Source::new(bytes, tunnels),
            outbound: outbound(selection, tunnels),
            link: Link {
                held: VecDeque::new(),
                spare: Vec::new(),
                keep: false,
            },
        }
    }
}

impl Turn for Sealing {
    fn turn(&mut self) -> (u64, Duration) {
        let mut tally = Tally::default();
        let begin = Instant::now();
        self.outbound
            .run(&mut self.source, &mut self.link, &mut tally)
            .unwrap();
        let took = begin.elapsed();
        assert_eq!(tally.cipher_tx.packets, PACKETS as u64);
        // The end of the round.
        self.source.left = PACKETS;
        (PACKETS as u64, took)
    }
}

struct Opening {
    sealing: Sealing,
    inbound: Inbound<Keys>,
}

impl Opening {
    fn new(selection: &Selection, bytes: usize, tunnels: usize) -> Self {
        let mut sealing = Sealing::new(selection, bytes, tunnels);
        sealing.link.keep = true;
        let sum = engine::checksum::fastest();
        let inbound = Inbound::new(
            Keys(selection.clone()),
            tunnels,
            Payload::Ip(IpRules::NONE),
            policy(tunnels),
            sum,
        );
        let mut opening = Self { sealing, inbound };
        // Until each tunnel's epoch is proven.
        for _ in 0..2 * tunnels {
            opening.carry();
        }
        opening
    }

    fn carry(&mut self) -> (u64, Duration) {
        self.sealing.turn();
        let mut tally = Tally::default();
        let Sealing { source, link, .. } = &mut self.sealing;
        let begin = Instant::now();
        while self.inbound.run(source, link, &mut tally).unwrap() {}
        (tally.clear_tx.packets, begin.elapsed())
    }
}

impl Turn for Opening {
    fn turn(&mut self) -> (u64, Duration) {
        let (packets, took) = self.carry();
        assert_eq!(packets, PACKETS as u64);
        (packets, took)
    }
}
