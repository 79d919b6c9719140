//! Trials of crypto devices: worker processes (`cipherbench device`), what they are told, and what is made of what they say.
//!
//! ```text
//! DeviceTest ─► Spec ─► workers, one a device, or one for each that works at once ─► Lines ─► DeviceResult
//! ```
//!
//! A driver that crashes takes its worker with it and nothing else: that is a counted failure. No privilege is needed, and
//! nothing is built.
//!
//! What this deliberately does not do: look into a device. What it can do and how fast it is, is what the workers say;
//! whether they can be believed is in the evidence.

mod crew;
mod fatigue;
mod kat;
mod lives;
mod proof;
mod speed;

pub use fatigue::FatigueStep;

use crate::error::TrialError;
use crate::measurer::{Measurer, Tell, Trial, record};
use campaign::plan::{
    Adapter, Device, DeviceFault, DeviceKind, DeviceModel, DeviceTest, Devices, Measurement,
};
use device::Facts;
use device::spec::{DeviceSpec, Fault, Model, Spec, Work};
use journal::record::{DeviceFacts, Measured, Outcome, TrialRecord};
use lab::{Interrupt, LabError};
use std::ffi::OsString;

/// Seed of all keys and inputs: every process and every run has the same.
const SEED: u64 = 1;

/// Measures crypto devices by worker processes.
#[derive(Debug, Clone)]
pub struct OnDevices {
    /// What starts a worker: a program and its arguments, for example `cipherbench device`.
    pub worker: Vec<OsString>,
}

/// What every trial of devices needs.
struct Context<'a> {
    worker: &'a [OsString],
    interrupt: &'a Interrupt,
}

impl Measurer for OnDevices {
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        tell: Tell<'_>,
        interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError> {
        let context = Context {
            worker: &self.worker,
            interrupt,
        };
        record(trial, |words| {
            let (Adapter::Device(devices), Measurement::Device(test)) =
                (&trial.cell.dut.adapter, &trial.cell.measurement)
            else {
                return Err(problem("this lab has crypto devices only, and no links"));
            };
            words.push(context.words());
            context.attempt(trial, devices, test, tell)
        })
    }
}

impl Context<'_> {
    fn attempt(
        &self,
        trial: &Trial<'_>,
        devices: &Devices,
        test: &DeviceTest,
        tell: Tell<'_>,
    ) -> Result<Outcome, TrialError> {
        match test {
            DeviceTest::Kat(kat) => self.kat(devices, kat),
            DeviceTest::Speed(speed) => self.speed(devices, speed),
            DeviceTest::Fatigue(fatigue) => self.fatigue(trial, devices, fatigue, tell),
        }
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

/// What a worker is told of a device and its work.
fn spec(device: &Device, work: Work) -> Spec {
    Spec {
        device: device_spec(&device.kind),
        work,
        seed: SEED,
    }
}

fn device_spec(kind: &DeviceKind) -> DeviceSpec {
    match kind.clone() {
        DeviceKind::OpenSsl {
            provider,
            engine,
            module,
        } => DeviceSpec::OpenSsl {
            provider,
            engine,
            module,
        },
        DeviceKind::Pkcs11 {
            module,
            slot,
            token,
            pin_file,
        } => DeviceSpec::Pkcs11 {
            module,
            slot,
            token,
            pin_file,
        },
        DeviceKind::SoftHsm => DeviceSpec::SoftHsm,
        DeviceKind::Model(model) => DeviceSpec::Model(model_spec(&model)),
        DeviceKind::Engine { kernel } => DeviceSpec::Cpu { kernel },
        // A plan of a later version never gets here: its journal has another format.
        _ => DeviceSpec::Cpu { kernel: None },
    }
}

const fn model_spec(model: &DeviceModel) -> Model {
    Model {
        latency_ns: model.latency_ns,
        rate_bps: model.rate_bps,
        operation_ns: model.operation_ns,
        parallel: model.parallel,
        queue: model.queue,
        errors_ppm: model.errors_ppm,
        fault: match model.fault {
            DeviceFault::Fails => Fault::Fails,
            DeviceFault::Wrong => Fault::Wrong,
            DeviceFault::Stops => Fault::Stops,
        },
    }
}

fn facts(member: &Device, facts: Option<&Facts>) -> DeviceFacts {
    DeviceFacts {
        member: member.name.clone(),
        name: facts.map_or_else(String::new, |facts| facts.name.clone()),
        version: facts.map_or_else(String::new, |facts| facts.version.clone()),
        more: facts.map_or_else(Vec::new, |facts| facts.more.clone()),
    }
}

/// A trial whose devices do not have the operation: nothing failed, and there is no figure.
fn not_offered(devices: Vec<DeviceFacts>, why: String) -> Outcome {
    let result = journal::record::DeviceResult {
        devices,
        not_offered: Some(why),
        ..journal::record::DeviceResult::default()
    };
    Outcome::Measured(Box::new(Measured {
        device: Some(Box::new(result)),
        ..Measured::default()
    }))
}
