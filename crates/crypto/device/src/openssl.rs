//! OpenSSL as a device: a provider (PROVIDER(7)) or an engine of libcrypto, by name and path.
//!
//! What a provider or engine has not itself is not offered, even where OpenSSL's own code could
//! stand in for it: whatever has a result here was computed by the device that was named. Two
//! things come from libcrypto itself: the hash of a message that RSA or ECDSA signs, which is not
//! what these are tried for, and with engines HMAC around an engine's hash.
//!
//! Each job has one context, which is used again for every message, as a program that is in a hurry
//! would.

mod ecdsa;
mod ffi;
mod job;
mod names;

use crate::{Device, DeviceError, Facts, Job, Keys, Operation, Session};
use ffi::Library;
use std::path::Path;

/// A provider or an engine, loaded.
pub(crate) struct OpenSsl {
    library: Library,
    /// OpenSSL's own provider, for the hash of what is signed.
    own: Library,
    is_engine: bool,
    module: Option<String>,
}

/// Loads the provider or the engine of this name; without either OpenSSL's own provider, `default`.
///
/// # Errors
/// [`DeviceError::Unusable`]: both are named, or it cannot be loaded. [`DeviceError::Failed`]: it
/// fails its self-test.
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
    // Once, as it costs the device time: one that fails later fails at operations.
    if !library.is_well() {
        return Err(DeviceError::Failed(format!(
            "{} fails its self-test",
            library.name()
        )));
    }
    Ok(OpenSsl {
        library,
        own: Library::provider("default", None)?,
        is_engine: engine.is_some(),
        module: module.map(|module| module.display().to_string()),
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
        more.push(("library".to_owned(), ffi::version()));
        Facts {
            name: self.library.name(),
            version: self.library.version().unwrap_or_else(ffi::version),
            more,
        }
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        Ok(Box::new(Thread(self)))
    }
}

/// Nothing but the device: contexts are the jobs'.
struct Thread<'a>(&'a OpenSsl);

impl Session for Thread<'_> {
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError> {
        job::new(&self.0.library, &self.0.own, operation, keys)
    }
}
