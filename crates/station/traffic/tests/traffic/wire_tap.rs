//! Ports in memory under a test's control, and shared test data.

use port::{FRAME_SLOT_BYTES, FramePortStats, FrameReceiver, FrameSender, Stop};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use traffic::{Generator, Keys, Step};
use traffic_spec::{Addresses, Clock, KeySource, Part, Peer, Receive, Send};
use wire::Suite;
use wire::mix::{Contents, FRAME_BYTES_MAX, FrameMix, TestFrames};

/// A frame and its arrival time.
pub(crate) type Timed = (Vec<u8>, u64);

/// Keeps the frames sent, and has room for a limited number at once.
pub(crate) struct Tap {
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) room: usize,
}

impl Tap {
    pub(crate) fn new() -> Self {
        Self {
            frames: Vec::new(),
            room: usize::MAX,
        }
    }
}

impl FrameSender for Tap {
    fn send(
        &mut self,
        count: usize,
        mut fill: impl FnMut(&mut [u8]) -> usize,
    ) -> io::Result<usize> {
        let count = count.min(self.room);
        for _ in 0..count {
            // The content of a slot is undefined: none of it may reach a frame.
            let mut slot = vec![0xa5; FRAME_SLOT_BYTES];
            let length = fill(&mut slot);
            slot.truncate(length);
            self.frames.push(slot);
        }
        Ok(count)
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

/// Returns frames in batches, each at its time.
pub(crate) struct Player(pub(crate) VecDeque<Timed>);

impl FrameReceiver for Player {
    fn recv(&mut self, mut read: impl FnMut(&mut [u8])) -> io::Result<usize> {
        self.recv_timed(|frame, _| read(frame))
    }

    fn recv_timed(&mut self, mut read: impl FnMut(&mut [u8], Option<u64>)) -> io::Result<usize> {
        let batch: Vec<_> = (0..7).map_while(|_| self.0.pop_front()).collect();
        if batch.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = batch.len();
        for (mut frame, time_ns) in batch {
            read(&mut frame, Some(time_ns));
        }
        Ok(count)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

/// Time that advances only during waits.
#[derive(Default)]
pub(crate) struct Still(pub(crate) Cell<u64>);

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn wait_until(&self, time_ns: u64, _: &Stop) {
        self.0.set(self.0.get().max(time_ns));
    }
}

pub(crate) const SOURCE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const TARGET_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Test addresses of both versions.
pub(crate) fn addresses(ipv6: bool) -> (IpAddr, IpAddr) {
    if ipv6 {
        let address = |last| Ipv6Addr::new(0x2001, 0xdb8, last, 0, 0, 0, 0, 0xfffe).into();
        (address(1), address(2))
    } else {
        let address = |last| Ipv4Addr::new(10, last, 0, 254).into();
        (address(1), address(2))
    }
}

/// A thousand frames per second for a second, of one flow.
pub(crate) fn send(ipv6: bool, mix: FrameMix) -> Send {
    let (source, target) = addresses(ipv6);
    Send {
        addresses: Addresses {
            source_mac: SOURCE_MAC,
            target_mac: TARGET_MAC,
            source,
            target,
        },
        frames: TestFrames {
            mix,
            flows: 1,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        frames_per_s: Some(1000),
        duration_ns: 1_000_000_000,
        burst_ns: 0,
        peer: None,
        keep_rate: false,
        then: None,
        start_ns: None,
    }
}

/// A receiver of frames of any size.
pub(crate) fn receive(flows: u32) -> Receive {
    Receive::new(TestFrames {
        mix: FrameMix::fixed(FRAME_BYTES_MAX),
        flows,
        tunnels: 1,
        contents: Contents::Fixed,
    })
}

/// All frames that a generator sends on time, with their times.
pub(crate) fn all_frames(send: &Send, tag: u16, part: Part, keys: Option<&Keys>) -> Vec<Timed> {
    let mut generator = Generator::new(send, tag, part, keys).unwrap();
    let mut tap = Tap::new();
    let (mut now_ns, mut times) = (0, Vec::new());
    loop {
        match generator.step(&mut tap, now_ns).unwrap() {
            Step::Sent => times.resize(tap.frames.len(), now_ns),
            Step::Early(time_ns) => now_ns = time_ns,
            Step::Full => unreachable!("the tap has room"),
            Step::Done => return tap.frames.into_iter().zip(times).collect(),
        }
    }
}

/// A pair of key files in a temporary folder.
pub(crate) struct KeyPair {
    pub(crate) a: PathBuf,
    pub(crate) b: PathBuf,
    _folder: TempDir,
}

impl KeyPair {
    pub(crate) fn new() -> Self {
        let folder = testing::folder().unwrap();
        let [a, b] = ["a.key", "b.key"].map(|name| folder.path().join(name));
        keying::create_pair(&a, &b).unwrap();
        Self {
            a,
            b,
            _folder: folder,
        }
    }
}

pub(crate) fn esp(key_file: &Path, ipv6: bool, lanes: u16) -> Peer {
    let (local, remote) = if ipv6 {
        let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, last).into();
        (address(1), address(2))
    } else {
        let address = |last| Ipv4Addr::new(192, 0, 2, last).into();
        (address(1), address(2))
    };
    Peer {
        keys: KeySource::File(key_file.display().to_string()),
        suite: Suite::Aes256Gcm,
        engine: "auto".to_owned(),
        local,
        remote,
        port: Some(4500),
        lanes,
        tunnels: 1,
    }
}
