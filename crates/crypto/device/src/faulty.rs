//! Faulty devices for tests: our engines with altered results.

use crate::cpu::{self, Cpu};
use crate::{Device, DeviceError, Job, Keys, Session};
use catalog::Operation;
use catalog::device::Facts;
use std::sync::atomic::{AtomicBool, Ordering};

/// The fault of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Reports a failure if an input is invalid.
    RefusesByErrors,
    /// Fails at everything from the first invalid input on.
    DiesOfInvalid,
    /// Fails once, at an invalid input.
    FailsOnce,
    /// Does not offer inputs longer than this many bytes.
    NotOfferedAbove(usize),
}

/// Our engines with a fault.
pub(crate) struct Faulty {
    cpu: Cpu,
    how: How,
    /// Whether it has seen an invalid input.
    seen_invalid: AtomicBool,
}

impl Faulty {
    pub(crate) fn new(how: How) -> Self {
        Self {
            cpu: cpu::open(None).expect("our own engines"),
            how,
            seen_invalid: AtomicBool::new(false),
        }
    }
}

impl Device for Faulty {
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

struct Thread<'a>(&'a Faulty, Box<dyn Session + 'a>);

impl Session for Thread<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        Ok(Box::new(FaultyJob(self.0, self.1.job(operation, keys)?)))
    }
}

struct FaultyJob<'a>(&'a Faulty, Box<dyn Job + 'a>);

impl Job for FaultyJob<'_> {
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError> {
        let Self(device, job) = self;
        let authentic = job.run(input, output)?;
        let failed = || Err(DeviceError::Failed("CKR_FUNCTION_FAILED".to_owned()));
        let met = if authentic {
            device.seen_invalid.load(Ordering::Relaxed)
        } else {
            device.seen_invalid.swap(true, Ordering::Relaxed)
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
