//! OpenSSL as a device: a provider (PROVIDER(7)) or an engine of libcrypto, by name and path.
//!
//! libcrypto is loaded when the first device is opened, and not needed otherwise.
//!
//! An operation that the provider or engine lacks is not offered, even if OpenSSL's default
//! provider has it: the named device computes every result. Two exceptions come from libcrypto
//! itself: the hash of a message that RSA or ECDSA signs, which these trials do not measure, and
//! with engines HMAC around an engine's hash.
//!
//! Each job reuses one context for every message, as a fast program would.

mod ecdsa;
mod ffi;
mod job;
mod names;

use crate::{Device, DeviceError, Job, Keys, Session};
use catalog::Operation;
use catalog::device::Facts;
use ffi::Library;
use std::path::Path;

/// A loaded provider or engine.
pub(crate) struct OpenSsl {
    library: Library,
    /// OpenSSL's default provider, for the hash of signed messages.
    own: Library,
    is_engine: bool,
    module: Option<String>,
    /// The version text of libcrypto.
    libcrypto: String,
}

/// Returns the version text of the libcrypto that devices of OpenSSL use. Loads it.
///
/// # Errors
/// [`DeviceError::Unusable`], with what to install: it is missing or too old.
pub fn libcrypto_version() -> Result<String, DeviceError> {
    ffi::version()
}

/// Loads the provider or the engine of this name, or OpenSSL's provider `default` if both are
/// `None`.
///
/// # Errors
/// [`DeviceError::Unusable`]: both are named, or loading them or libcrypto fails.
/// [`DeviceError::Failed`]: its self-test fails.
pub(crate) fn open(
    provider: Option<&str>,
    engine: Option<&str>,
    module: Option<&Path>,
) -> Result<OpenSsl, DeviceError> {
    if let Some(module) = module
        && !module.exists()
    {
        return Err(DeviceError::Unusable(format!(
            "there is no module {}; check the path of the device's module",
            module.display()
        )));
    }
    let library = match (provider, engine) {
        (Some(provider), Some(engine)) => {
            return Err(DeviceError::Unusable(format!(
                "a device of OpenSSL is a provider or an engine: name {provider:?} or {engine:?}, not both"
            )));
        }
        (None, Some(engine)) => Library::engine(engine, module)?,
        (provider, None) => Library::provider(provider.unwrap_or("default"), module)?,
    };
    // Only once, since it costs time: a later defect shows in operations.
    if !library.is_well() {
        return Err(DeviceError::Failed(format!(
            "the self-test of {} fails",
            library.name()
        )));
    }
    Ok(OpenSsl {
        library,
        own: Library::provider("default", None)?,
        is_engine: engine.is_some(),
        module: module.map(|module| module.display().to_string()),
        libcrypto: ffi::version()?,
    })
}

impl Device for OpenSsl {
    fn facts(&self) -> Facts {
        let kind = if self.is_engine { "engine" } else { "provider" };
        let mut more = vec![("kind".to_owned(), kind.to_owned())];
        more.extend(
            self.module
                .iter()
                .map(|module| ("module".to_owned(), module.clone())),
        );
        more.push(("library".to_owned(), self.libcrypto.clone()));
        Facts {
            name: self.library.name(),
            version: self
                .library
                .version()
                .unwrap_or_else(|| self.libcrypto.clone()),
            more,
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        Ok(Box::new(Thread(self)))
    }
}

/// A session needs no state: jobs have the contexts.
struct Thread<'a>(&'a OpenSsl);

impl Session for Thread<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        job::new(&self.0.library, &self.0.own, operation, keys)
    }
}
