//! The device under test as threads of this process.
//!
//! ```text
//! station ─ring─ gw1 ═ring═ gw2 ─ring─ station        both
//! station ─ring─ gw1 ═ring═ station                   encrypt
//!                station ═ring═ gw2 ─ring─ station    decrypt
//! station ─ring─ copies ─ring─ station                direct
//! station ─ring─ station                              straight
//! ```
//!
//! Encryptors are the service's workers, on rings instead of TUN and UDP.

use crate::ends::{Entrance, Exit, Target};
use crate::threads::Thread;
use dispatch::Dispatch;
use encryptor::counters::{Counters, DropReason};
use encryptor::lane::{self, LaneSettings, LaneTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::renewal::Renewer;
use encryptor::worker::Worker;
use esp::{Limits, WindowSize};
use keying::StaticKeys;
use plan::{Adapter, Direction, Dut, Encryptor, Mode};
use port::{
    FrameClearPort, FrameReceiver as _, FrameSender as _, MemoryCipherPort, MemoryFrameReceiver,
    MemoryFrameSender, Stop, memory_cipher_pair, memory_frame_pair, wait_readable,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::Permissions;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;
use testbed::{StationKeys, StationPeer};
use trial::TrialError;
use trial::evidence::REPLACED_SAS;
use wire::Suite;
use wire::aggfrag::HEADER_BYTES;
use wire::overhead::{Outer, inner_mtu};
use yaml::Prefix;

/// Capacity of the rings of all lanes in frames, as of a network card's ring.
const RING_FRAMES: usize = 4096;
/// Minimum capacity of a lane's ring.
const RING_FRAMES_MIN: usize = 256;
/// IP MTU of an Ethernet link.
const ETHERNET_MTU: u16 = 1500;
/// UDP port in the headers of ESP; no socket is bound to it.
const ESP_PORT: u16 = 4500;
/// Arbitrary addresses of the two ends.
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A running device under test, and the stations' ends of the path through it.
pub(crate) struct Gateways {
    pub(crate) entrance: Entrance,
    pub(crate) exit: Exit,
    /// The peer for a source in gw1's place.
    pub(crate) source_peer: Option<StationPeer>,
    /// The peer for a sink in gw2's place.
    pub(crate) sink_peer: Option<StationPeer>,
    /// The device's facts, by `gateway/key`.
    pub(crate) facts: BTreeMap<String, String>,
    threads: Vec<Thread<io::Result<()>>>,
    counters: Vec<(&'static str, Arc<Counters>)>,
    /// Frames that `direct` could not forward.
    copies_lost: Arc<AtomicU64>,
    stop: Stop,
    /// The engines of each gateway.
    dispatches: Vec<(&'static str, Dispatch)>,
    /// Give the lanes new keys; dropped after the lanes.
    renewers: Vec<Renewer>,
    /// Key files of this device.
    _keys: Option<Keys>,
}

impl Gateways {
    /// Starts a device for packets of up to `mtu` bytes.
    pub(crate) fn start(dut: &Dut, direction: Direction, mtu: u16) -> Result<Self, TrialError> {
        let builder = Builder {
            dut: &dut.name,
            direction,
            stop: Stop::new().map_err(|error| failed(&dut.name, error))?,
        };
        match &dut.adapter {
            Adapter::Straight { suite } => builder.straight(*suite),
            Adapter::Direct => builder.direct(),
            // Rings carry IP packets between the clear sides. Bridging needs the TAP devices of a
            // kernel.
            Adapter::Cipherbench(encryptor) if encryptor.mode == Mode::L3 => {
                builder.encryptors(encryptor, mtu)
            }
            _ => Err(failed(
                &dut.name,
                "needs a kernel: measure it with `--lab namespaces`",
            )),
        }
    }

    /// Returns the CPU time of its threads so far, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.threads.iter().map(Thread::cpu_ns).sum()
    }

    /// Returns its counters so far, by `gateway/counter`, with the names of the service's metrics.
    pub(crate) fn counters(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (gateway, dispatch) in &self.dispatches {
            for replaced in dispatch.replaced() {
                let name = format!("{gateway}/{REPLACED_SAS}.{}", replaced.engine);
                *sums.entry(name).or_default() += replaced.sas;
            }
        }
        for (gateway, lane) in &self.counters {
            for (name, value) in lane.read().named() {
                *sums.entry(format!("{gateway}/{name}")).or_default() += value;
            }
        }
        sums
    }

    /// Returns the frames so far that the device forwarded and the sink had no room for: the sink's
    /// loss, not the device's.
    pub(crate) fn lost_at_sink(&self) -> u64 {
        // The last gateway in the direction of traffic sends to the sink only, by its clear side
        // or, to a sink in gw2's place, by its cipher side. So both kinds of failed sends are
        // frames without room at the sink.
        let last = self.counters.last().map(|(gateway, _)| *gateway);
        let lanes = self.counters.iter();
        let lanes = lanes.filter(|(gateway, _)| Some(*gateway) == last);
        let by_encryptor = lanes.map(|(_, lane)| {
            let dropped = lane.read().dropped;
            dropped[DropReason::WriteFailed as usize] + dropped[DropReason::SendFailed as usize]
        });
        by_encryptor.sum::<u64>() + self.copies_lost.load(Relaxed)
    }

    /// Ends all its threads.
    ///
    /// # Errors
    /// When one of them had failed.
    pub(crate) fn stop(mut self, dut: &Dut) -> Result<(), TrialError> {
        let mut ended = Ok(());
        // All threads have ended before the first failure is returned.
        for result in self.join() {
            let result = result.unwrap_or_else(|panic| resume_unwind(panic));
            ended = ended.and(result.map_err(|error| failed(&dut.name, error)));
        }
        ended
    }

    /// Stops all threads and waits until they have ended.
    fn join(&mut self) -> Vec<thread::Result<io::Result<()>>> {
        self.stop.raise();
        self.threads.drain(..).map(Thread::join).collect()
    }
}

/// No thread and no key file remains after a failed start or a failed measurement.
impl Drop for Gateways {
    fn drop(&mut self) {
        self.join();
    }
}

/// A lane's ports: frames in, frames out, and the cipher side.
type LanePorts = (MemoryFrameReceiver, MemoryFrameSender, MemoryCipherPort);

struct Builder<'a> {
    dut: &'a str,
    direction: Direction,
    stop: Stop,
}

impl Builder<'_> {
    fn straight(self, suite: Suite) -> Result<Gateways, TrialError> {
        let (near, far) = memory_frame_pair(RING_FRAMES);
        let mut gateways = self.gateways(Target::Straight(near), Exit::Frames(vec![far]));
        if self.direction != Direction::Both {
            // The calibration includes the stations' sealing and opening.
            let (keys, alone) = (self.keys()?, Encryptor::new(suite));
            gateways.source_peer = Some(keys.station_peer(0, &alone));
            gateways.sink_peer = Some(keys.station_peer(1, &alone));
            gateways._keys = Some(keys);
        }
        Ok(gateways)
    }

    fn direct(self) -> Result<Gateways, TrialError> {
        let (near, entering) = memory_frame_pair(RING_FRAMES);
        let (leaving, far) = memory_frame_pair(RING_FRAMES);
        let mut gateways = self.gateways(Target::Clear(vec![near]), Exit::Frames(vec![far]));
        let (stop, lost) = (self.stop.clone(), Arc::clone(&gateways.copies_lost));
        let copy = move || copy(entering, leaving, &lost, &stop);
        gateways.threads.push(self.thread("copies", copy)?);
        Ok(gateways)
    }

    fn encryptors(self, encryptor: &Encryptor, mtu: u16) -> Result<Gateways, TrialError> {
        let keys = self.keys()?;
        let lanes = usize::from(encryptor.workers);
        // The lanes share the capacity, so that a gateway with more lanes does not have longer
        // queues.
        let room = (RING_FRAMES / lanes).max(RING_FRAMES_MIN);
        let (mut entering, mut near) = (Vec::new(), Vec::new());
        let (mut leaving, mut far) = (Vec::new(), Vec::new());
        // A station in a gateway's place has that end of the cipher link.
        let (mut source, mut sink) = (Vec::new(), Vec::new());
        // Each lane is a chain of rings. Its ends that no gateway has go to the stations.
        for _ in 0..lanes {
            let (near_cipher, far_cipher) = memory_cipher_pair();
            if self.direction == Direction::Decrypt {
                source.push(near_cipher);
            } else {
                let (station, clear) = memory_frame_pair(room);
                // Unused: the entrance has no return path.
                let (back, _) = memory_frame_pair(1);
                entering.push(station);
                near.push((clear, back, near_cipher));
            }
            if self.direction == Direction::Encrypt {
                sink.push(far_cipher);
            } else {
                let (clear, station) = memory_frame_pair(room);
                // Unused: the exit has no return path.
                let (_, nothing) = memory_frame_pair(1);
                leaving.push(station);
                far.push((nothing, clear, far_cipher));
            }
        }
        let source_peer = (!source.is_empty()).then(|| keys.station_peer(0, encryptor));
        let sink_peer = (!sink.is_empty()).then(|| keys.station_peer(1, encryptor));
        let entrance = if source.is_empty() {
            Target::Clear(entering)
        } else {
            Target::Cipher(source, ESP_PORT)
        };
        let exit = if sink.is_empty() {
            Exit::Frames(leaving)
        } else {
            Exit::cipher(sink, ESP_PORT)
        };
        let mut gateways = self.gateways(entrance, exit);
        (gateways.source_peer, gateways.sink_peer) = (source_peer, sink_peer);
        for (side, lanes) in [(0, near), (1, far)] {
            if !lanes.is_empty() {
                self.add(&mut gateways, &keys, encryptor, mtu, side, lanes)?;
            }
        }
        gateways._keys = Some(keys);
        Ok(gateways)
    }

    /// Starts one gateway (gw1 is side 0) with one thread per lane.
    fn add(
        &self,
        gateways: &mut Gateways,
        keys: &Keys,
        encryptor: &Encryptor,
        mtu: u16,
        side: usize,
        lanes: Vec<LanePorts>,
    ) -> Result<(), TrialError> {
        let failed = |error: &dyn Display| failed(self.dut, error);
        let name = ["gw1", "gw2"][side];
        let suite = encryptor.suite;
        let selection = Dispatch::prepare(&encryptor.engine, suite);
        let selection = selection.map_err(|error| failed(&error))?;
        // One for all lanes of a gateway, as in the service: they share the epoch of their key
        // file.
        let renewer = Renewer::start(&selection).map_err(|error| failed(&error))?;
        let own = StaticKeys::open(&keys.path(side));
        let own = own.map_err(|error| failed(&error))?;
        let own = Arc::new(Mutex::new(keying::Keys::from(own)));
        let tunnels: Vec<_> = (0..encryptor.tunnels)
            .map(|id| LaneTunnel {
                id,
                peer: 0,
                keys: Some(Arc::clone(&own)),
                // No rekeying by time or bytes: this lab has no key exchange.
                lifetime: Limits::NONE,
                inner_bytes_max: inner_bytes_max(encryptor, mtu),
                payload_bytes_max: inner_bytes_max(encryptor, mtu) + HEADER_BYTES,
                // Test frames have no TCP handshake to clamp.
                mss_max: [u16::MAX; 2],
            })
            .collect();
        // A gateway selects tunnels by the addresses on the other side.
        let policy = Arc::new(Policy::new(&selectors(encryptor.tunnels, 1 - side)));
        let payload = Payload::Ip(IpRules {
            aggregate: encryptor.aggregate,
            ..IpRules::NONE
        });
        let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
        // With the service's names, except for blanks, and read from the built parts if possible.
        let facts = [
            ("suite", selection.suite().to_string()),
            ("engine", selection.engine().to_owned()),
            ("engine_version", selection.version().to_owned()),
            ("lanes", lanes.len().to_string()),
            ("tunnels", tunnels.len().to_string()),
            ("mode", Mode::L3.name().to_owned()),
            ("aggregate", on(encryptor.aggregate)),
            ("busy_poll", on(encryptor.busy_poll)),
            ("keys", encryptor.keys.name().to_owned()),
        ];
        let facts = facts.map(|(key, value)| (format!("{name}/{key}"), value));
        gateways.facts.extend(facts);
        // As in the service, a lane is one thread with both halves, and shares nothing with other
        // lanes on its data path.
        for (lane, (from, to, cipher)) in (0..).zip(lanes) {
            let (outbound, inbound) = lane::halves(&LaneSettings {
                lane,
                lanes: encryptor.workers,
                tunnels: &tunnels,
                payload: &payload,
                policy: Arc::clone(&policy),
                selection: &selection,
                window: WindowSize::DEFAULT,
                ike: None,
                renewer: Some(&renewer),
            });
            let clear = FrameClearPort::new(from, to, MACS[0], MACS[1]);
            let worker =
                Worker::new(clear, cipher, outbound, inbound).with_busy_poll(encryptor.busy_poll);
            gateways.counters.push((name, worker.counters()));
            let stop = self.stop.clone();
            let thread = self.thread(&format!("{name}-{lane}"), move || worker.run(&stop))?;
            gateways.threads.push(thread);
        }
        gateways.renewers.push(renewer);
        gateways.dispatches.push((name, selection));
        Ok(())
    }

    fn gateways(&self, entrance: Target, exit: Exit) -> Gateways {
        Gateways {
            entrance: Entrance::new(entrance),
            exit,
            source_peer: None,
            sink_peer: None,
            facts: BTreeMap::new(),
            threads: Vec::new(),
            counters: Vec::new(),
            copies_lost: Arc::default(),
            stop: self.stop.clone(),
            dispatches: Vec::new(),
            renewers: Vec::new(),
            _keys: None,
        }
    }

    fn keys(&self) -> Result<Keys, TrialError> {
        Keys::make().map_err(|error| {
            let reason = format!(
                "cannot create keys: {error}; check that {} is writable, or set `TMPDIR`",
                std::env::temp_dir().display()
            );
            failed(self.dut, reason)
        })
    }

    fn thread(
        &self,
        name: &str,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<Thread<io::Result<()>>, TrialError> {
        Thread::start(name, work).map_err(|error| failed(self.dut, error))
    }
}

/// Forwards every frame unchanged.
fn copy(
    mut from: MemoryFrameReceiver,
    mut to: MemoryFrameSender,
    lost: &AtomicU64,
    stop: &Stop,
) -> io::Result<()> {
    while !stop.is_raised() {
        let taken = from.recv(|frame| {
            let fill = |slot: &mut [u8]| {
                slot[..frame.len()].copy_from_slice(frame);
                frame.len()
            };
            // `send` does not call `fill` without room: the frame stays behind and is lost, as at a
            // full queue.
            if !matches!(to.send(1, fill), Ok(1)) {
                lost.fetch_add(1, Relaxed);
            }
        });
        // The ring is empty. The thread sleeps until a frame or the end, so that an idle copy takes
        // no CPU time from the stations.
        if taken.is_err() {
            let readable = from.readable();
            let fds: Vec<_> = readable.into_iter().chain([stop.as_fd()]).collect();
            wait_readable(&fds, None)?;
        }
    }
    Ok(())
}

/// Key files of a pair of gateways, removed on drop.
struct Keys {
    folder: TempDir,
}

impl Keys {
    fn make() -> Result<Self, Box<dyn std::error::Error>> {
        let keys = Self {
            // For this user alone, with any umask.
            folder: tempfile::Builder::new()
                .prefix("cipherbench-")
                .permissions(Permissions::from_mode(0o700))
                .tempdir()?,
        };
        keying::create_pair(&keys.path(0), &keys.path(1))?;
        Ok(keys)
    }

    fn path(&self, side: usize) -> PathBuf {
        self.folder.path().join(["gw1.key", "gw2.key"][side])
    }

    /// Returns the peer for a station in a gateway's place.
    fn station_peer(&self, side: usize, encryptor: &Encryptor) -> StationPeer {
        let hosts = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        StationPeer {
            keys: StationKeys::File(self.path(side).display().to_string()),
            suite: encryptor.suite,
            local: hosts[side],
            remote: hosts[1 - side],
            port: Some(ESP_PORT),
            lanes: encryptor.workers,
            tunnels: encryptor.tunnels,
        }
    }
}

/// Returns the longest packet that a tunnel carries.
fn inner_bytes_max(encryptor: &Encryptor, mtu: u16) -> usize {
    let on_ethernet = inner_mtu(encryptor.suite, Outer::UDP_IPV4, ETHERNET_MTU.into()).unwrap_or(0);
    usize::from(mtu).max(on_ethernet)
}

/// Returns the selectors of the tunnels to a side: any address for a single tunnel, since only the
/// stations are there; one test address each for several tunnels.
fn selectors(tunnels: u16, side: usize) -> Vec<Selectors> {
    let networks = |addresses: [IpAddr; 2], length: [u8; 2]| {
        let networks = addresses.into_iter().zip(length);
        let networks = networks.filter_map(|(address, length)| Prefix::new(address, length));
        Selectors::to(networks.collect())
    };
    // A prefix of length 0 of both families selects every packet.
    if tunnels == 1 {
        let any = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        return vec![networks(any, [0, 0])];
    }
    let (ipv4, ipv6) = test_addresses(side);
    let tunnels = 0..tunnels;
    tunnels
        .map(|tunnel| {
            let ipv4 = Ipv4Addr::from(u32::from(ipv4) + u32::from(tunnel));
            let ipv6 = Ipv6Addr::from(u128::from(ipv6) + u128::from(tunnel));
            networks([ipv4.into(), ipv6.into()], [32, 128])
        })
        .collect()
}

/// Returns the addresses of the first tunnel's frames on a side (0 is the source's), which no
/// interface has.
pub(crate) fn test_addresses(side: usize) -> (Ipv4Addr, Ipv6Addr) {
    let [ipv4, ipv6] = [[18, 0x18], [19, 0x19]][side];
    (
        Ipv4Addr::new(198, ipv4, 0, 1),
        Ipv6Addr::new(0x2001, 2, 0, ipv6.into(), 0, 0, 0, 1),
    )
}

fn failed(dut: &str, reason: impl Display) -> TrialError {
    testbed::LabError::Dut {
        dut: dut.to_owned(),
        reason: reason.to_string(),
    }
    .into()
}

#[cfg(test)]
mod tests;
