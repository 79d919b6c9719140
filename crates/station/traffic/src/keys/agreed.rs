//! Keys that an IKE daemon on the station has agreed on with the DUT: the daemon's log has them,
//! and is followed while frames are sent and received, so a rekey needs no pause.

use super::charon::Log;
use crate::error::TrafficError;
use engine::{Selection, SequenceNumbers};
use esp::{InboundSa, Limits, OutboundSa, WindowSize};
use guard::read_text;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Sequence number that is set aside for a running sender: the last. One that was killed has used
/// an unknown part of them, so nothing may be sealed with these keys again.
const ALL: u64 = u32::MAX as u64;

/// How long a sender waits for its first SA: a device that authenticates itself anew has none for a
/// moment (RFC 7296 §2.8.3). Less than a sender may take to be ready.
const SA_LIMIT: Duration = Duration::from_secs(4);
/// Interval of looking for it.
const SA_STEP: Duration = Duration::from_millis(5);

/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 14;
/// Longest line that is read whole; lines with keys have 80.
const LINE_BYTES_MAX: usize = 1 << 14;
/// The sequence numbers of 100 000 SAs.
const SEQUENCES_BYTES_MAX: usize = 2 << 20;

/// The SAs of a station's IKE daemon.
pub(crate) struct AgreedKeys {
    selection: Selection,
    log_path: PathBuf,
    /// The last sequence number used with each outbound SPI, in lines of SPI and number. Senders of
    /// one DUT follow one another, and none repeats a number.
    sequences: PathBuf,
    state: Mutex<State>,
}

struct State {
    file: File,
    /// The start of an incomplete line.
    rest: Zeroizing<Vec<u8>>,
    log: Log,
    /// Reads that found whole lines.
    version: u64,
}

impl AgreedKeys {
    /// Reads a daemon's log.
    ///
    /// # Errors
    /// [`TrafficError::Log`].
    pub(crate) fn open(
        selection: Selection,
        log: &str,
        sequences: &str,
    ) -> Result<Self, TrafficError> {
        let log_path = PathBuf::from(log);
        let opened = File::open(&log_path);
        let file = opened.map_err(|error| unreadable(&log_path, error))?;
        let keys = Self {
            selection,
            log_path,
            sequences: sequences.into(),
            state: Mutex::new(State {
                file,
                rest: Zeroizing::new(Vec::with_capacity(LINE_BYTES_MAX)),
                log: Log::default(),
                version: 0,
            }),
        };
        // Errors of the log show here, before the station reports that it is ready.
        keys.look()?;
        Ok(keys)
    }

    /// Reads the lines that the daemon has written since the last call; returns the new
    /// [version](Self::version). Several threads call this, and each compares the version with the
    /// last one it saw.
    ///
    /// # Errors
    /// [`TrafficError::Log`].
    pub(crate) fn look(&self) -> Result<u64, TrafficError> {
        let mut state = self.lock();
        let read = state.read_more();
        read.map_err(|error| unreadable(&self.log_path, error))?;
        Ok(state.version)
    }

    /// A number that changes when the SAs may have changed.
    pub(crate) fn version(&self) -> u64 {
        self.lock().version
    }

    /// SPI of the SA that seals packets between these addresses now.
    pub(crate) fn outbound_spi(&self, source: IpAddr, target: IpAddr) -> Option<u32> {
        let state = self.lock();
        state.log.sealing(source, target).map(|sa| sa.outbound)
    }

    /// As [`Self::outbound`], but waits for an SA if there is none yet.
    ///
    /// # Errors
    /// [`TrafficError`].
    pub(crate) fn first_outbound(
        &self,
        source: IpAddr,
        target: IpAddr,
    ) -> Result<OutboundSa, TrafficError> {
        let begun = Instant::now();
        loop {
            match self.outbound(source, target) {
                // Negotiation and this program start together: the SA may appear a moment later.
                Err(TrafficError::NoSa { .. }) if begun.elapsed() < SA_LIMIT => {
                    thread::sleep(SA_STEP);
                    self.look()?;
                }
                other => return other,
            }
        }
    }

    /// The SA that seals packets between these addresses now, behind every number used before. It
    /// must be [given back](Self::give_back).
    ///
    /// # Errors
    /// [`TrafficError`].
    pub(crate) fn outbound(
        &self,
        source: IpAddr,
        target: IpAddr,
    ) -> Result<OutboundSa, TrafficError> {
        let state = self.lock();
        let sa = state.log.sealing(source, target);
        let sa = sa.ok_or(TrafficError::NoSa {
            source_address: source,
            target_address: target,
        })?;
        let mut used = self.used()?;
        // Keys that are gone seal no more.
        used.retain(|spi, _| state.log.has_outbound(*spi));
        // On the disk before the first packet: if this program is killed, no number is used twice.
        let last = used.insert(sa.outbound, ALL).unwrap_or(0);
        // Also the mark of a sender that was killed.
        if last >= ALL {
            return Err(TrafficError::Exhausted { spi: sa.outbound });
        }
        self.write(&used)?;
        let transform = self.transform(&sa.outbound_keymat)?;
        // Test frames hold no secrets: a trial may exceed a weak cipher's limit.
        let limits = Limits {
            packets: ALL,
            bytes: u64::MAX,
        };
        let outbound = OutboundSa::new(sa.outbound, transform);
        Ok(outbound.with_limits(limits).after(last))
    }

    /// Notes the last sequence number that each of these SAs has used.
    ///
    /// # Errors
    /// [`TrafficError::Log`]: then none of them can be used again.
    pub(crate) fn give_back<'s>(
        &self,
        sas: impl Iterator<Item = &'s OutboundSa>,
    ) -> Result<(), TrafficError> {
        let _one_by_one = self.lock();
        let mut used = self.used()?;
        // Replaces the mark, so that the next sender continues behind the last number.
        used.extend(sas.map(|sa| (sa.spi(), sa.sealed().packets)));
        self.write(&used)
    }

    /// The SA of an inbound SPI, if the daemon has it; reads the log if the SPI is unknown.
    pub(crate) fn inbound(&self, spi: u32) -> Option<InboundSa> {
        let mut state = self.lock();
        if state.log.opening(spi).is_none() {
            // An unreadable log shows in packets that are not opened.
            state.read_more().ok()?;
        }
        let sa = state.log.opening(spi)?;
        let transform = self.transform(&sa.inbound_keymat).ok()?;
        Some(InboundSa::new(spi, transform, WindowSize::DEFAULT))
    }

    fn transform(&self, keymat: &[u8]) -> Result<Box<dyn engine::Transform>, TrafficError> {
        let suite = self.selection.suite();
        if keymat.len() != suite.keymat_bytes() {
            return Err(TrafficError::KeyLength {
                suite,
                expected: suite.keymat_bytes(),
                bytes: keymat.len(),
            });
        }
        // IKE's default: extended ones must be proposed (RFC 7296 §3.3.2).
        Ok(self
            .selection
            .transform_with(keymat, SequenceNumbers::Short))
    }

    fn used(&self) -> Result<BTreeMap<u32, u64>, TrafficError> {
        let text = match read_text(&self.sequences, SEQUENCES_BYTES_MAX) {
            Ok(text) => text,
            // The first run has used no number yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(unreadable(&self.sequences, error)),
        };
        let pair = |line: &str| {
            let (spi, last) = line.split_once(' ')?;
            Some((u32::from_str_radix(spi, 16).ok()?, last.parse().ok()?))
        };
        let used: Option<_> = text.lines().map(pair).collect();
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it is damaged");
        used.ok_or_else(|| unreadable(&self.sequences, damaged()))
    }

    /// Whole or not at all. It need not survive the host's end: the SAs do not either.
    fn write(&self, used: &BTreeMap<u32, u64>) -> Result<(), TrafficError> {
        let mut text = String::new();
        for (spi, last) in used {
            // Writing to a string succeeds.
            let _ = writeln!(text, "{spi:08x} {last}");
        }
        // By a rename: half a file would forget numbers that were used.
        let new = self.sequences.with_extension("new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.sequences));
        written.map_err(|error| unreadable(&self.sequences, error))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn read_more(&mut self) -> io::Result<()> {
        let mut chunk = Zeroizing::new([0; CHUNK_BYTES]);
        loop {
            let bytes = self.file.read(&mut *chunk)?;
            if bytes == 0 {
                return Ok(());
            }
            self.version += u64::from(self.take(&chunk[..bytes]));
        }
    }

    /// Takes the lines that end in a chunk; returns whether one does.
    fn take(&mut self, chunk: &[u8]) -> bool {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.put(&rest[..end]);
            // A daemon's names may be of any bytes; those lines have no keys.
            if let Ok(line) = std::str::from_utf8(&self.rest) {
                self.log.read_line(line);
            }
            self.rest.clear();
            rest = &rest[end + 1..];
        }
        self.put(rest);
        // Any line ended if the remainder is shorter than the chunk.
        rest.len() < chunk.len()
    }

    /// Adds a part of a line. One that is longer than any with keys is cut, so that the buffer
    /// never moves and leaves no keys behind.
    fn put(&mut self, part: &[u8]) {
        let room = self.rest.capacity() - self.rest.len();
        self.rest.extend_from_slice(&part[..part.len().min(room)]);
    }
}

fn unreadable(path: &Path, error: io::Error) -> TrafficError {
    TrafficError::Log {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests;
