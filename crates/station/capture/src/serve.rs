//! Runs the capture as a program.

use crate::count::count;
use crate::dissect::EspFlow;
use crate::pcapng::{self, Interface};
use crate::store::Store;
use journal::record::CaptureContents;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::sys::time::TimeValLike;
use plan::Keep;
use port::{Stop, Tap, TapSettings, run_when_idle};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// Longest wait before the stop flag is checked.
const STEP: Duration = Duration::from_millis(20);
/// After the last copy, the kernel hands over its block within a millisecond.
const LAST: Duration = Duration::from_millis(5);

/// The parameters of `cipherbench capture`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSpec {
    /// Interface name.
    pub interface: String,
    /// The interface's name in the file.
    pub name: String,
    /// Which frames are kept.
    pub keep: Keep,
    /// Upper limit of the bytes kept.
    pub bytes_max: u64,
    /// Upper limit of the bytes of one frame.
    pub snap_bytes: u32,
    /// UDP ports that carry ESP.
    pub esp_ports: Vec<u16>,
    /// The file, which is replaced if it exists.
    pub file: PathBuf,
}

/// The report of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// Counts of the kept frames.
    pub contents: CaptureContents,
    /// The SAs of their ESP packets.
    pub flows: Vec<EspFlow>,
    /// Why the file could not be written; `None` if it was.
    pub problem: Option<String>,
}

/// Why capturing failed.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The specification is invalid.
    #[error("the specification cannot be read: {0}")]
    Spec(#[from] serde_json::Error),
    /// The kernel refuses the tap.
    #[error("cannot capture on `{interface}`: {error}")]
    Tap {
        /// Interface name.
        interface: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The report cannot be printed.
    #[error("cannot report: {0}")]
    Output(#[from] io::Error),
}

/// Captures as the [`CaptureSpec`] in `input` (JSON) specifies: prints `ready` on a separate line
/// once frames are being copied, captures until `stop` is raised, writes the file, and prints the
/// [`CaptureReport`] on one line of JSON. The report includes a failure to write the file.
///
/// # Errors
/// [`CaptureError`].
pub fn serve(
    input: &str,
    ready: &str,
    mut output: impl Write,
    stop: &Stop,
) -> Result<(), CaptureError> {
    let spec: CaptureSpec = serde_json::from_str(input)?;
    let refused = |error| CaptureError::Tap {
        interface: spec.interface.clone(),
        error,
    };
    let one_in = match spec.keep {
        Keep::Sampled { one_in } => one_in,
        Keep::First | Keep::Ring => 1,
    };
    let mut tap = Tap::open(TapSettings {
        interface: &spec.interface,
        snap_bytes: spec.snap_bytes,
        one_in,
    })
    .map_err(refused)?;
    // The capture must not take a core from the device under test. Without this right, it competes.
    let _ = run_when_idle();
    writeln!(output, "{ready}")?;
    output.flush()?;
    let mut store = Store::new(spec.keep, spec.bytes_max);
    let mut seen = 0;
    let mut takes_more = true;
    while takes_more {
        // Raised before the read, so that the last read begins after the stop.
        let limit = if stop.is_raised() { LAST } else { STEP };
        let read = tap.read(limit, |frame| {
            seen += 1;
            // The frames of the last block are still counted, though the store is full.
            takes_more &= store.add(&frame);
        });
        match read {
            Ok(0) if stop.is_raised() => break,
            Ok(_) => {}
            // An interface that goes down may come up again, as in trials with a failing link.
            Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ENETDOWN as i32) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    let dropped = tap.stats().receive_dropped;
    let ended = SystemTime::now();
    // From here on the kernel copies no frames, so they cost nothing.
    drop(tap);
    while !stop.is_raised() {
        port::wait_readable(&[std::os::fd::AsFd::as_fd(stop)], None)?;
    }
    let report = conclude(&spec, &store, (seen, dropped), ended);
    writeln!(output, "{}", serde_json::to_string(&report)?)?;
    Ok(output.flush()?)
}

/// Writes the file and counts its contents.
fn conclude(
    spec: &CaptureSpec,
    store: &Store,
    (seen, dropped): (u64, u64),
    ended: SystemTime,
) -> CaptureReport {
    let (contents, flows) = count(store.frames().iter(), &spec.esp_ports);
    let since = ended.duration_since(UNIX_EPOCH).unwrap_or_default();
    // The kernel selects before it drops.
    let selected = seen + dropped;
    let description = match store.one_in() {
        1 => "every frame".to_owned(),
        one_in => format!("1 in {one_in} frames at random"),
    };
    let interface = Interface {
        name: &spec.name,
        description: &description,
        snap_bytes: spec.snap_bytes,
        selected,
        dropped,
        // Nanoseconds of 1970 fit into 64 bits until 2554.
        ended_unix_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
    };
    let written = pcapng::write(&spec.file, interface, store.frames().iter());
    CaptureReport {
        contents: CaptureContents {
            selected,
            dropped,
            one_in: store.one_in(),
            cpu_ns: cpu_ns(),
            ..contents
        },
        flows: flows.into_iter().collect(),
        problem: written.err().map(|error| error.to_string()),
    }
}

/// Returns the CPU time of this process so far.
fn cpu_ns() -> u64 {
    let ns = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0) * 1000;
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(0, |usage| ns(usage.user_time()) + ns(usage.system_time()))
}
