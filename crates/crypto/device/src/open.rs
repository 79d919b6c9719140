//! From what a spec says to an open device.

use crate::model::Modelled;
use crate::operation::device::DeviceKind;
use crate::{Device, DeviceError, cpu, openssl, pkcs11};

/// Opens a device.
///
/// # Errors
/// [`DeviceError::Unusable`], with what to do: no such module, token, engine or kernel, a wrong
/// PIN, a model that can do nothing. [`DeviceKind::SoftHsm`] too, which is not opened but made: see
/// [`crate::SoftHsm`].
pub fn open(spec: &DeviceKind) -> Result<Box<dyn Device>, DeviceError> {
    Ok(match spec {
        DeviceKind::Engine { kernel } => Box::new(cpu::open(kernel.as_deref())?),
        DeviceKind::OpenSsl {
            provider,
            engine,
            module,
        } => Box::new(openssl::open(
            provider.as_deref(),
            engine.as_deref(),
            module.as_deref(),
        )?),
        DeviceKind::Pkcs11 {
            module,
            slot,
            token,
            pin_file,
        } => Box::new(pkcs11::open(module, *slot, token.as_deref(), pin_file)?),
        DeviceKind::SoftHsm => {
            return Err(DeviceError::Unusable(
                "a token of SoftHSM2 has to be made before it is opened".to_owned(),
            ));
        }
        DeviceKind::Model(model) => Box::new(Modelled::open(model, Box::new(cpu::open(None)?))?),
    })
}
