//! The reference for our engines: OpenSSL, or our engines for operations that OpenSSL does not
//! offer.

use super::Cpu;
use crate::openssl::{self, OpenSsl};
use crate::{Device, DeviceError, Job, Keys, Session};
use catalog::Operation;
use catalog::device::Facts;

/// OpenSSL's default provider, with our engines as fallback.
pub(crate) struct Peer {
    openssl: OpenSsl,
    cpu: Cpu,
}

impl Peer {
    /// Opens both.
    ///
    /// # Errors
    /// [`DeviceError::Unusable`]: OpenSSL's default provider cannot be loaded.
    pub(crate) fn open() -> Result<Self, DeviceError> {
        Ok(Self {
            openssl: openssl::open(None, None, None)?,
            cpu: super::open(None)?,
        })
    }
}

impl Device for Peer {
    fn facts(&self) -> Facts {
        self.openssl.facts()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        Ok(Box::new(Thread {
            openssl: self.openssl.session()?,
            cpu: self.cpu.session()?,
        }))
    }
}

struct Thread<'a> {
    openssl: Box<dyn Session + 'a>,
    cpu: Box<dyn Session + 'a>,
}

impl Session for Thread<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        match self.openssl.job(operation, keys) {
            Err(DeviceError::NotOffered(_)) => self.cpu.job(operation, keys),
            other => other,
        }
    }
}
