//! Opening a device from its spec.

use crate::model::Modelled;
use crate::{Device, DeviceError, cpu, openssl, pkcs11};
use catalog::device::DeviceKind;

/// Opens a device.
///
/// # Errors
/// [`DeviceError::Unusable`], with what to do: the module, token, engine or kernel is missing, or a
/// parameter of a model is out of range; also for [`DeviceKind::SoftHsm`], because its token must
/// be created first (see [`crate::SoftHsm`]). [`DeviceError::PinRefused`]: a wrong PIN.
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
                "a token of SoftHSM2 must be created before it is opened".to_owned(),
            ));
        }
        // With the fastest kernel: the model cannot be faster than what computes.
        DeviceKind::Model(model) => Box::new(Modelled::open(model, Box::new(cpu::open(None)?))?),
    })
}
