//! Crypto devices.

use super::profile::{DutProfile, Role};
use crate::words::time;
use crate::{Device, DeviceFault, DeviceKind, DeviceModel, Devices};
use units::human::counted;
use units::{BitRate, Layer};

pub(super) fn profile(devices: &Devices) -> DutProfile {
    DutProfile {
        // At least: the number of workers is a setting of the trial.
        gateway_cores: 1,
        // No frame passes through them, and their trials act on them directly.
        directions: &[],
        ..DutProfile::clear(Role::Device, devices_in_words(devices))
    }
}

/// One device, or several that work in parallel.
fn devices_in_words(devices: &Devices) -> String {
    let mut pairs = devices.members.windows(2);
    let is_of_one_kind = pairs.all(|pair| pair[0].kind == pair[1].kind);
    let mut words = match (&*devices.members, is_of_one_kind) {
        ([], _) => "no device".to_owned(),
        ([only], _) => device_in_words(only),
        ([first, ..], true) => {
            format!("{} of {}", devices.members.len(), device_in_words(first))
        }
        (several, false) => {
            let each: Vec<_> = several.iter().map(device_in_words).collect();
            each.join("; ")
        }
    };
    if devices.offloads {
        words.push_str(", to take work off the CPU");
    }
    words
}

fn device_in_words(device: &Device) -> String {
    match &device.kind {
        DeviceKind::Engine { kernel: None } => "our own engines".to_owned(),
        DeviceKind::Engine {
            kernel: Some(kernel),
        } => format!("our own engines, GOST by {kernel}"),
        DeviceKind::OpenSsl {
            provider,
            engine,
            module,
        } => {
            let part = match (provider, engine) {
                // A campaign has one of the two; of a changed journal the engine is named.
                (_, Some(engine)) => format!("engine {engine}"),
                (Some(provider), None) => format!("provider {provider}"),
                (None, None) => "default provider".to_owned(),
            };
            let module = module
                .as_ref()
                .map_or_else(String::new, |path| format!(" from {}", path.display()));
            format!("OpenSSL, {part}{module}")
        }
        DeviceKind::Pkcs11 {
            module,
            slot,
            token,
            ..
        } => {
            let place = match (slot, token) {
                (Some(slot), _) => format!(", slot {slot}"),
                (None, Some(token)) => format!(", token `{token}`"),
                (None, None) => String::new(),
            };
            format!("PKCS#11 by {}{place}", module.display())
        }
        DeviceKind::SoftHsm => "a token of SoftHSM2 made for it".to_owned(),
        DeviceKind::Model(model) => model_in_words(model),
    }
}

fn model_in_words(model: &DeviceModel) -> String {
    let mut words = format!(
        "a model of {} of {}, {} an operation, {} of latency, queue of {}",
        counted(model.parallel, "unit"),
        BitRate::new(model.rate_bps, Layer::Payload),
        time(model.operation_ns),
        time(model.latency_ns),
        model.queue,
    );
    if model.errors_ppm > 0 {
        let fault = match model.fault {
            DeviceFault::Fails => "fail",
            DeviceFault::Wrong => "are wrong",
            DeviceFault::Stops => "stop it",
            DeviceFault::Hangs => "never return",
            DeviceFault::Crashes => "crash the process",
        };
        words.push_str(&format!(", {} ppm {fault}", model.errors_ppm));
    }
    words
}
