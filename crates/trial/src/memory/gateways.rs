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
//! Encryptors are the workers of the service, over rings instead of TUN and UDP.

use super::ends::{Entrance, Exit};
use super::threads::Thread;
use crate::error::TrialError;
use campaign::plan::{Adapter, Direction, Dut};
use encryptor::counters::{Counters, DropReason};
use encryptor::lane;
use encryptor::policy::Networks;
use encryptor::worker::Worker;
use esp::WindowSize;
use keying::StaticKeys;
use lab::StationEsp;
use port::{
    FrameClearPort, FrameReceiver as _, FrameSender as _, MemoryCipherPort, MemoryFrameReceiver,
    MemoryFrameSender, Stop, memory_cipher_pair, memory_frame_pair, wait_readable,
};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;
use wire::Suite;
use yaml::Prefix;

/// Frames that a ring holds: what a network card's ring does.
const RING_FRAMES: usize = 4096;
/// UDP port in the headers of ESP; nobody listens there.
const ESP_PORT: u16 = 4500;
/// Of nobody in particular.
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A device under test that is up, and the stations' ends of the path through it.
pub(super) struct Gateways {
    pub(super) entrance: Entrance,
    pub(super) exit: Exit,
    /// The source stands for gw1.
    pub(super) source_esp: Option<StationEsp>,
    /// The sink stands for gw2.
    pub(super) sink_esp: Option<StationEsp>,
    /// What it says of itself, by `gateway/key`.
    pub(super) facts: BTreeMap<String, String>,
    threads: Vec<Thread<io::Result<()>>>,
    counters: Vec<(&'static str, Arc<Counters>)>,
    /// Frames that `direct` could not hand on.
    copies_lost: Arc<AtomicU64>,
    stop: Stop,
    /// Key files of this one use.
    _keys: Option<Keys>,
}

impl Gateways {
    pub(super) fn start(dut: &Dut, direction: Direction) -> Result<Self, TrialError> {
        let builder = Builder {
            dut: &dut.name,
            direction,
            stop: Stop::new().map_err(|error| failed(&dut.name, error))?,
        };
        match &dut.adapter {
            Adapter::Straight => builder.straight(),
            Adapter::Direct => builder.direct(),
            Adapter::Cipherbench(encryptor) if encryptor.workers == 1 => {
                builder.encryptors(encryptor.suite, &encryptor.engine)
            }
            Adapter::Cipherbench(encryptor) => Err(failed(
                &dut.name,
                format!(
                    "runs one worker a gateway in memory, not {}: write `workers: 1`",
                    encryptor.workers
                ),
            )),
            _ => Err(failed(
                &dut.name,
                "needs a kernel: measure it with `--lab namespaces`",
            )),
        }
    }

    /// CPU time of its threads so far, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> u64 {
        self.threads.iter().map(Thread::cpu_ns).sum()
    }

    /// Its counters so far, by `gateway/counter`.
    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let gateways = self.counters.iter();
        let all = gateways.flat_map(|(gateway, counters)| {
            let named = counters.read().named();
            named.map(move |(name, value)| (format!("{gateway}/{name}"), value))
        });
        all.collect()
    }

    /// Frames so far that came through and found no room at the sink: its own loss, not the device's.
    pub(super) fn lost_at_sink(&self) -> u64 {
        let last = self.counters.last();
        let by_encryptor = last.map_or(0, |(_, counters)| {
            let dropped = counters.read().dropped;
            dropped[DropReason::WriteFailed as usize] + dropped[DropReason::SendFailed as usize]
        });
        by_encryptor + self.copies_lost.load(Relaxed)
    }

    /// Ends its threads, all of them.
    ///
    /// # Errors
    /// When one of them had ended before.
    pub(super) fn stop(mut self, dut: &Dut) -> Result<(), TrialError> {
        let mut ended = Ok(());
        for result in self.join() {
            let result = result.unwrap_or_else(|panic| resume_unwind(panic));
            ended = ended.and(result.map_err(|error| failed(&dut.name, error)));
        }
        ended
    }

    /// Tells all threads to end, and waits until each has.
    fn join(&mut self) -> Vec<thread::Result<io::Result<()>>> {
        self.stop.raise();
        self.threads.drain(..).map(Thread::join).collect()
    }
}

/// A device that is only half up, or whose measurement has failed, leaves no thread behind, and no key file in use.
impl Drop for Gateways {
    fn drop(&mut self) {
        self.join();
    }
}

struct Builder<'a> {
    dut: &'a str,
    direction: Direction,
    stop: Stop,
}

impl Builder<'_> {
    fn straight(self) -> Result<Gateways, TrialError> {
        let (near, far) = memory_frame_pair(RING_FRAMES);
        let mut gateways = self.gateways(Entrance::straight(near), Exit::Frames(far));
        if self.direction != Direction::Both {
            // The station's own sealing and opening is part of what is calibrated.
            let keys = self.keys()?;
            gateways.source_esp = Some(keys.station_esp(0, Suite::Aes256Gcm));
            gateways.sink_esp = Some(keys.station_esp(1, Suite::Aes256Gcm));
            gateways._keys = Some(keys);
        }
        Ok(gateways)
    }

    fn direct(self) -> Result<Gateways, TrialError> {
        let (near, entering) = memory_frame_pair(RING_FRAMES);
        let (leaving, far) = memory_frame_pair(RING_FRAMES);
        let mut gateways = self.gateways(Entrance::clear(near), Exit::Frames(far));
        let (stop, lost) = (self.stop.clone(), Arc::clone(&gateways.copies_lost));
        let copy = move || copy(entering, leaving, &lost, &stop);
        gateways.threads.push(self.thread("copies", copy)?);
        Ok(gateways)
    }

    fn encryptors(self, suite: Suite, engine: &str) -> Result<Gateways, TrialError> {
        let keys = self.keys()?;
        let (entrance, near_clear) = match self.direction {
            Direction::Decrypt => (None, None),
            Direction::Encrypt | Direction::Both => {
                let (station, entering) = memory_frame_pair(RING_FRAMES);
                // Nothing comes back out of the entrance.
                let (back, _) = memory_frame_pair(1);
                let clear = FrameClearPort::new(entering, back, MACS[0], MACS[1]);
                (Some(Entrance::clear(station)), Some(clear))
            }
        };
        let (exit, far_clear) = match self.direction {
            Direction::Encrypt => (None, None),
            Direction::Decrypt | Direction::Both => {
                let (leaving, station) = memory_frame_pair(RING_FRAMES);
                // Nothing goes in at the exit.
                let (_, nothing) = memory_frame_pair(1);
                let clear = FrameClearPort::new(nothing, leaving, MACS[0], MACS[1]);
                (Some(Exit::Frames(station)), Some(clear))
            }
        };
        // Where a gateway is missing, the station has its end of the cipher link.
        let (near_cipher, far_cipher) = memory_cipher_pair();
        let mut made = Vec::new();
        let mut spare = |clear: Option<FrameClearPort>, cipher, name| match clear {
            Some(clear) => {
                made.push((name, clear, cipher));
                None
            }
            None => Some(cipher),
        };
        let source = spare(near_clear, near_cipher, "gw1");
        let sink = spare(far_clear, far_cipher, "gw2");
        let source_esp = source.is_some().then(|| keys.station_esp(0, suite));
        let sink_esp = sink.is_some().then(|| keys.station_esp(1, suite));
        let entrance = entrance.or_else(|| source.map(Entrance::cipher));
        let exit = exit.or_else(|| sink.map(|port| Exit::cipher(port, ESP_PORT)));
        let (Some(entrance), Some(exit)) = (entrance, exit) else {
            unreachable!("every direction has two ends")
        };
        let mut gateways = self.gateways(entrance, exit);
        (gateways.source_esp, gateways.sink_esp) = (source_esp, sink_esp);
        for (name, clear, cipher) in made {
            self.add(&mut gateways, &keys, (suite, engine), (name, clear, cipher))?;
        }
        gateways._keys = Some(keys);
        Ok(gateways)
    }

    /// Starts one gateway.
    fn add(
        &self,
        gateways: &mut Gateways,
        keys: &Keys,
        (suite, engine): (Suite, &str),
        (name, clear, cipher): (&'static str, FrameClearPort, MemoryCipherPort),
    ) -> Result<(), TrialError> {
        let failed = |error: &dyn Display| failed(self.dut, error);
        let choice = engine.parse().map_err(|error| failed(&error))?;
        let selection = engine::select(&choice, suite).map_err(|error| failed(&error))?;
        let own = StaticKeys::open(&keys.path(usize::from(name == "gw2")));
        let own = Arc::new(Mutex::new(own.map_err(|error| failed(&error))?));
        let window = WindowSize::DEFAULT;
        let (outbound, inbound) = lane::halves(&own, &selection, 0, window, everything());
        let worker = Worker::new(clear, cipher, outbound, inbound);
        gateways.counters.push((name, worker.counters()));
        let facts = [
            ("suite", suite.to_string()),
            ("engine", selection.engine().to_owned()),
            ("engine_version", selection.version().to_owned()),
            ("lanes", "1".to_owned()),
        ];
        let facts = facts.map(|(key, value)| (format!("{name}/{key}"), value));
        gateways.facts.extend(facts);
        let stop = self.stop.clone();
        gateways
            .threads
            .push(self.thread(name, move || worker.run(&stop))?);
        Ok(())
    }

    fn gateways(&self, entrance: Entrance, exit: Exit) -> Gateways {
        Gateways {
            entrance,
            exit,
            source_esp: None,
            sink_esp: None,
            facts: BTreeMap::new(),
            threads: Vec::new(),
            counters: Vec::new(),
            copies_lost: Arc::default(),
            stop: self.stop.clone(),
            _keys: None,
        }
    }

    fn keys(&self) -> Result<Keys, TrialError> {
        Keys::make().map_err(|error| {
            let reason = format!(
                "got no keys: {error}; is {} a folder to write to? `TMPDIR` names another",
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

/// Hands every frame on: the device that does nothing.
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
            if !matches!(to.send(1, fill), Ok(1)) {
                lost.fetch_add(1, Relaxed);
            }
        });
        if taken.is_err() {
            let readable = from.readable();
            let fds: Vec<_> = readable.into_iter().chain([stop.as_fd()]).collect();
            wait_readable(&fds, None)?;
        }
    }
    Ok(())
}

/// Key files of a pair, which go with it.
struct Keys {
    folder: TempDir,
}

impl Keys {
    fn make() -> Result<Self, Box<dyn std::error::Error>> {
        let keys = Self {
            folder: tempfile::Builder::new().prefix("cipherbench-").tempdir()?,
        };
        keying::create_pair(&keys.path(0), &keys.path(1))?;
        Ok(keys)
    }

    fn path(&self, side: usize) -> PathBuf {
        self.folder.path().join(["gw1.key", "gw2.key"][side])
    }

    /// What a station needs to stand for a gateway.
    fn station_esp(&self, side: usize, suite: Suite) -> StationEsp {
        let hosts = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
        StationEsp {
            key_file: self.path(side).display().to_string(),
            suite,
            local: hosts[side],
            remote: hosts[1 - side],
            port: ESP_PORT,
            lanes: 1,
            tunnels: 1,
        }
    }
}

/// Inner packets may come from anywhere: the stations are the only ones there.
fn everything() -> Networks {
    let any = ["0.0.0.0", "::"].map(|address| address.parse().ok());
    Networks(
        any.into_iter()
            .flatten()
            .filter_map(|address| Prefix::new(address, 0))
            .collect(),
    )
}

fn failed(dut: &str, reason: impl Display) -> TrialError {
    lab::LabError::Dut {
        dut: dut.to_owned(),
        reason: reason.to_string(),
    }
    .into()
}

#[cfg(test)]
mod tests;
