//! Trials of crypto devices: worker processes (`cipherbench device`), what they are told, and what
//! is made of what they say.
//!
//! ```text
//! DeviceTest ─► Spec ─► workers, one a device, or one for each that works at once ─► Lines ─► DeviceResult
//! ```
//!
//! A driver that crashes takes its worker with it and nothing else: that is a counted failure. No
//! privilege is needed, and nothing is built.
//!
//! What this deliberately does not do: look into a device. What it can do and how fast it is, is
//! what the workers say; whether they can be believed is in the evidence.

mod crew;
mod fatigue;
mod kat;
mod lives;
mod proof;
mod speed;

use crate::error::TrialError;
use crate::event::EventSink;
use crate::measurer::{Measurer, Trial, record};
use campaign::plan::{Adapter, Device, DeviceKind, DeviceTest, Devices, Measurement};
use device::Facts;
use device::spec::Spec;
use journal::record::{
    DeviceFacts, DeviceFound, DeviceResult, Figures, Measured, Outcome, TrialRecord,
};
use lab::{Interrupt, LabError};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Seed of all keys and inputs: every process and every run has the same, so that runs can be
/// compared.
const SEED: u64 = 1;

/// Measures crypto devices by worker processes.
#[derive(Debug, Clone)]
pub struct OnDevices {
    /// What starts a worker: a program and its arguments, for example `cipherbench device`.
    worker: Vec<OsString>,
    /// Instead of what each kind of trial waits for at most.
    silence: Option<Duration>,
    /// Tokens that did not take the PIN, and what was said of it. They are not opened again.
    refused: Vec<(Token, String)>,
}

/// Where a token is; which PIN it is tried with does not matter, since each wrong one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    module: PathBuf,
    slot: Option<u64>,
    label: Option<String>,
}

/// What every trial of devices needs.
struct Context<'a> {
    worker: &'a [OsString],
    silence: Option<Duration>,
    interrupt: &'a Interrupt,
    /// Tokens that did not take the PIN in this trial.
    refused: RefCell<Vec<(Token, String)>>,
}

impl OnDevices {
    /// With what starts a worker: a program and its arguments, for example `cipherbench device`.
    #[must_use]
    pub const fn new(worker: Vec<OsString>) -> Self {
        Self {
            worker,
            silence: None,
            refused: Vec::new(),
        }
    }

    /// The same, but a worker that makes no progress for so long is ended, whatever it does.
    /// Otherwise that is a minute or two.
    #[must_use]
    pub const fn with_patience(mut self, silence: Duration) -> Self {
        self.silence = Some(silence);
        self
    }

    /// Why no trial is made of these devices any more.
    fn why_not(&self, devices: &Devices) -> Option<String> {
        let tokens = devices
            .members
            .iter()
            .filter_map(|one| Token::of(&one.kind));
        let why = |token| self.refused.iter().find(|(refused, _)| *refused == token);
        let (_, text) = tokens.filter_map(why).next()?;
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
            worker: &self.worker,
            silence: self.silence,
            interrupt,
            refused: RefCell::default(),
        };
        let record = record(trial, |words| {
            let (Adapter::Device(devices), Measurement::Device(test)) =
                (&trial.cell.dut.adapter, &trial.cell.measurement)
            else {
                return Err(problem("this lab has crypto devices only, and no links"));
            };
            if let Some(why) = self.why_not(devices) {
                return Err(problem(why));
            }
            words.push(context.words());
            context.attempt(trial, devices, test, events)
        });
        let refused = context.refused.into_inner();
        self.refused.extend(refused);
        record
    }
}

impl Context<'_> {
    fn attempt(
        &self,
        trial: &Trial<'_>,
        devices: &Devices,
        test: &DeviceTest,
        events: EventSink<'_>,
    ) -> Result<Outcome, TrialError> {
        match test {
            DeviceTest::Kat(kat) => self.kat(devices, kat),
            DeviceTest::Speed(speed) => self.speed(devices, speed),
            DeviceTest::Fatigue(fatigue) => self.fatigue(trial, devices, fatigue, events),
        }
    }

    /// A device does not take the PIN: it is not opened again in this run.
    fn pin_refused(&self, device: &Device, text: &str) -> TrialError {
        let text = format!("`{}`: {text}", device.name);
        if let Some(token) = Token::of(&device.kind) {
            self.refused.borrow_mut().push((token, text.clone()));
        }
        problem(text)
    }

    fn words(&self) -> Vec<String> {
        let words = self.worker.iter();
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }
}

fn problem(text: impl Into<String>) -> TrialError {
    TrialError::Device {
        problem: text.into(),
    }
}

/// The spec of a worker.
fn spec(device: &Device, test: DeviceTest) -> Spec {
    Spec {
        device: device.kind.clone(),
        test,
        seed: SEED,
    }
}

fn facts(member: &Device, facts: Option<&Facts>) -> DeviceFacts {
    DeviceFacts {
        member: member.name.clone(),
        facts: facts.cloned().unwrap_or_default(),
    }
}

/// Measured, with neither CPU time nor evidence of the stations.
fn measured(devices: Vec<DeviceFacts>, found: DeviceFound) -> Outcome {
    let result = DeviceResult { devices, found };
    Outcome::Measured(Box::new(Measured {
        figures: Figures::Device(Box::new(result)),
        ..Measured::default()
    }))
}
