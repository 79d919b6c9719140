//! Trials of crypto devices in worker processes (`cipherbench device`).
//!
//! ```text
//! DeviceTest ─► Spec ─► workers, one per device or per parallel process ─► Lines ─► DeviceResult
//! ```
//!
//! A driver that crashes ends only its worker, which counts as a failure. Trials need no privilege
//! and build no network.
//!
//! This module does not inspect devices: workers report their operations and speed, and the
//! evidence says whether that can be believed.

mod fatigue;
mod kat;
mod lifetimes;
mod patience;
mod pool;
mod proof;
mod speed;

use crate::error::TrialError;
use crate::event::EventSink;
use crate::measurer::{Measurer, Trial, record};
use catalog::device::Facts;
use catalog::worker::{Line, Spec};
use journal::record::{
    DeviceFacts, DeviceRecord, DeviceResult, Figures, Measured, Outcome, TrialRecord,
};
use plan::{Adapter, Device, DeviceKind, DeviceTest, Devices, Measurement};
use pool::WorkerMessage;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use testbed::{Interrupt, LabError};

/// Seed of all keys and inputs: the same in every process and run, so that runs can be compared.
const SEED: u64 = 1;

/// Measures crypto devices by worker processes.
#[derive(Debug, Clone)]
pub struct OnDevices {
    /// Command line of a worker: a program and its arguments, for example `cipherbench device`.
    worker: Vec<OsString>,
    /// `PATH` of a worker, which starts the tools of a software token.
    path: OsString,
    /// Overrides the longest time without progress of every kind of trial.
    silence: Option<Duration>,
    /// Tokens that rejected the PIN, with their errors. They are not opened again.
    refused: RefCell<Vec<(Token, String)>>,
}

/// Identifies a token without its PIN: every wrong one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    module: PathBuf,
    slot: Option<u64>,
    label: Option<String>,
}

/// The environment of one trial.
struct Context<'a> {
    devices: &'a OnDevices,
    interrupt: &'a Interrupt,
}

impl OnDevices {
    /// Measures by workers with this command line, for example `cipherbench device`, and this
    /// `PATH`.
    #[must_use]
    pub const fn new(worker: Vec<OsString>, path: OsString) -> Self {
        Self {
            worker,
            path,
            silence: None,
            refused: RefCell::new(Vec::new()),
        }
    }

    /// Ends a worker that makes no progress for this long, in any kind of trial. The default is ten
    /// seconds to two minutes.
    #[must_use]
    pub const fn with_patience(mut self, silence: Duration) -> Self {
        self.silence = Some(silence);
        self
    }

    /// Returns why these devices are not measured again in this run.
    fn why_not(&self, devices: &Devices) -> Option<String> {
        let refused = self.refused.borrow();
        // One refusal counts for every later trial that uses the token, since each further attempt
        // could lock it.
        let mut tokens = devices
            .members
            .iter()
            .filter_map(|one| Token::of(&one.kind));
        let (_, text) =
            tokens.find_map(|token| refused.iter().find(|(refused, _)| *refused == token))?;
        Some(format!(
            "skipped, since a token locks itself after a few wrong PINs: {text}"
        ))
    }
}

impl Token {
    fn of(kind: &DeviceKind) -> Option<Self> {
        match kind {
            DeviceKind::Pkcs11 {
                module,
                slot,
                token,
                ..
            } => Some(Self {
                module: module.clone(),
                slot: *slot,
                label: token.clone(),
            }),
            _ => None,
        }
    }
}

impl Measurer for OnDevices {
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        events: EventSink<'_>,
        interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError> {
        let context = Context {
            devices: self,
            interrupt,
        };
        record(trial, |commands| {
            let (Adapter::Device(devices), Measurement::Device(test)) =
                (&trial.cell.dut.adapter, &trial.cell.measurement)
            else {
                return Err(problem("this lab has crypto devices only, and no links"));
            };
            // Before any worker starts, since opening the device is already an attempt.
            if let Some(why) = self.why_not(devices) {
                return Err(problem(why));
            }
            let words = self.worker.iter().map(|word| word.to_string_lossy());
            // Without the spec, which each worker reads from standard input.
            commands.push(words.map(Cow::into_owned).collect());
            match test {
                DeviceTest::Kat(kat) => context.kat(devices, kat),
                DeviceTest::Speed(speed) => context.speed(devices, speed),
                DeviceTest::Fatigue(fatigue) => context.fatigue(trial, devices, fatigue, events),
            }
        })
    }
}

impl Context<'_> {
    /// Records that a device rejected the PIN, so that this run does not open it again.
    fn pin_refused(&self, device: &Device, text: &str) -> TrialError {
        let text = format!("`{}`: {text}", device.name);
        if let Some(token) = Token::of(&device.kind) {
            let mut refused = self.devices.refused.borrow_mut();
            refused.push((token, text.clone()));
        }
        problem(text)
    }

    /// Returns the line of a device's worker.
    ///
    /// # Errors
    /// When the device cannot be used or rejected the PIN, or the worker died.
    fn line(&self, device: &Device, message: WorkerMessage) -> Result<Line, TrialError> {
        match message {
            WorkerMessage::Line(Line::PinRefused(text)) => Err(self.pin_refused(device, &text)),
            WorkerMessage::Line(Line::Failed(text)) | WorkerMessage::Died(text) => {
                Err(problem(format!("`{}`: {text}", device.name)))
            }
            WorkerMessage::Line(line) => Ok(line),
        }
    }
}

fn problem(text: impl Into<String>) -> TrialError {
    TrialError::Device {
        problem: text.into(),
    }
}

fn spec(device: &Device, test: DeviceTest) -> Spec {
    Spec {
        device: device.kind.clone(),
        test,
        processes: 1,
        seed: SEED,
    }
}

fn facts(member: &Device, facts: Option<&Facts>) -> DeviceFacts {
    DeviceFacts {
        member: member.name.clone(),
        facts: facts.cloned().unwrap_or_default(),
    }
}

/// The outcome of a trial without CPU time and evidence.
fn measured(devices: Vec<DeviceFacts>, found: DeviceRecord) -> Outcome {
    let result = DeviceResult { devices, found };
    Outcome::Measured(Box::new(Measured {
        figures: Figures::Device(Box::new(result)),
        ..Measured::default()
    }))
}
