//! Devices for tests: our own engines, with answers that are meddled with.

use crate::cpu::{self, Cpu};
use crate::{Device, DeviceError, Facts, Job, Keys, Operation, Session};
use std::sync::atomic::{AtomicBool, Ordering};

/// What such a device does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It says that it failed where an input is invalid.
    RefusesByErrors,
    /// It fails at everything from the first invalid input on.
    DiesOfInvalid,
    /// It fails once, at an invalid input.
    FailsOnce,
    /// It does not have what is longer than so many bytes.
    NotOfferedAbove(usize),
}

/// Our own engines, and what they are made to do.
pub(crate) struct Meddled {
    cpu: Cpu,
    how: How,
    /// It has seen an invalid input.
    met: AtomicBool,
}

impl Meddled {
    pub(crate) fn new(how: How) -> Self {
        Self {
            cpu: cpu::open(None).expect("our own engines"),
            how,
            met: AtomicBool::new(false),
        }
    }
}

impl Device for Meddled {
    fn facts(&self) -> Facts {
        Facts {
            name: format!("{:?}", self.how),
            ..self.cpu.facts()
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        Ok(Box::new(Thread(self, self.cpu.session()?)))
    }
}

struct Thread<'a>(&'a Meddled, Box<dyn Session + 'a>);

impl Session for Thread<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        Ok(Box::new(Meddling(self.0, self.1.job(operation, keys)?)))
    }
}

struct Meddling<'a>(&'a Meddled, Box<dyn Job + 'a>);

impl Job for Meddling<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        let Self(device, job) = self;
        let authentic = job.run(input, output)?;
        let failed = || Err(DeviceError::Failed("CKR_FUNCTION_FAILED".to_owned()));
        let met = match authentic {
            true => device.met.load(Ordering::Relaxed),
            false => device.met.swap(true, Ordering::Relaxed),
        };
        match device.how {
            How::RefusesByErrors if !authentic => failed(),
            How::DiesOfInvalid if met || !authentic => failed(),
            How::FailsOnce if !met && !authentic => failed(),
            How::NotOfferedAbove(bytes) if input.len() > bytes => {
                Err(DeviceError::NotOffered(format!("more than {bytes} B")))
            }
            _ => Ok(authentic),
        }
    }
}
