//! Crypto devices: combined results of the repeats of functional, speed and fatigue trials.
//!
//! To add a trial: a module here, and its variant of [`DeviceOutcome`].

mod fatigue;
mod kat;
mod speed;
mod survival;

pub use fatigue::{FatigueDevice, FatigueResult};
pub use kat::{KatAlgorithm, KatCase, KatResult, KatVerdict, family};
pub use speed::{DeviceSpeedResult, FOUND_MIN, MemberSpeed};
pub use survival::{SURVIVAL_STEPS_MAX, Survival, SurvivalStep};

pub(crate) use speed::TOGETHER_MIN_RATIO;
pub(crate) use survival::Life;

use journal::record::{DeviceRecord, DeviceResult, Measured};
use plan::{DeviceKind, DeviceTest, Devices};
use schemars::JsonSchema;
use serde::Serialize;

/// The operation and the devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceTestInfo {
    /// Names of the devices that work in parallel.
    pub members: Vec<String>,
    /// Whether they are declared to take work off the CPU.
    pub offloads: bool,
    /// Whether they are the CPU itself: our engines, or OpenSSL's software implementation.
    pub is_cpu: bool,
    /// For a speed trial: algorithm and action.
    pub operation: Option<String>,
    /// For a speed trial: input bytes of one operation; `null` if its size is meaningless.
    pub input_bytes: Option<u32>,
    /// Concurrency: over all devices for a speed trial, threads on each device for a fatigue trial.
    pub concurrency: Option<u32>,
    /// For a speed trial: `threads` or `processes`.
    pub workers: Option<String>,
    /// For a speed trial: queue depth, the outstanding operations per worker.
    pub depth: Option<u32>,
}

/// A trial of crypto devices: the test, and its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceCell {
    /// The operation and the devices.
    pub test: DeviceTestInfo,
    /// Figures; `None` when the cell has none.
    pub figures: Option<DeviceFigures>,
}

/// Figures of a trial on crypto devices.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceFigures {
    /// The devices' reports about themselves, from the last repeat.
    pub members: Vec<DeviceMember>,
    /// Why there is no figure though nothing failed: the device does not offer the operation.
    pub not_offered: Option<String>,
    /// The trial's findings; `None` when no repeat has them.
    pub found: Option<DeviceOutcome>,
}

/// Findings of a trial on crypto devices, by its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceOutcome {
    /// For `kat`.
    Kat(KatResult),
    /// For `speed`.
    Speed(Box<DeviceSpeedResult>),
    /// For `fatigue`.
    Fatigue(Box<FatigueResult>),
}

/// A device's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceMember {
    /// Its name in the plan.
    pub member: String,
    /// Library, provider or token, as the device reports it.
    pub name: String,
    /// Its version, as it reports it.
    pub version: String,
    /// Anything else, name and value.
    pub more: Vec<(String, String)>,
}

/// A repeat's number and its record.
type Repeats<'a> = [(u32, &'a DeviceResult)];

impl DeviceTestInfo {
    fn of(test: &DeviceTest, devices: &Devices) -> Self {
        let speed = match test {
            DeviceTest::Speed(speed) => Some(speed),
            DeviceTest::Kat(_) | DeviceTest::Fatigue(_) => None,
        };
        Self {
            members: devices
                .members
                .iter()
                .map(|member| member.name.clone())
                .collect(),
            offloads: devices.offloads,
            is_cpu: devices.members.iter().all(|member| is_cpu(&member.kind)),
            operation: speed.map(|speed| speed.operation.clone()),
            input_bytes: speed.and_then(|speed| speed.bytes),
            concurrency: match test {
                DeviceTest::Speed(speed) => Some(speed.concurrency),
                DeviceTest::Fatigue(fatigue) => Some(fatigue.threads),
                DeviceTest::Kat(_) => None,
            },
            workers: speed.map(|speed| speed.workers.name().to_owned()),
            depth: speed.map(|speed| speed.depth),
        }
    }

    /// Names of its devices, if the DUT's name does not identify them.
    #[must_use]
    pub fn member(&self, device: usize) -> &str {
        self.members.get(device).map_or("", String::as_str)
    }
}

/// Whether it computes on the CPU with code that is available everywhere: the reference for other
/// devices.
fn is_cpu(kind: &DeviceKind) -> bool {
    match kind {
        DeviceKind::Engine { .. } => true,
        DeviceKind::OpenSsl {
            provider,
            engine,
            module,
        } => {
            // OpenSSL's software, if no module replaces its code.
            let own = ["default", "legacy"];
            engine.is_none()
                && module.is_none()
                && provider.as_deref().is_none_or(|name| own.contains(&name))
        }
        _ => false,
    }
}

impl DeviceCell {
    pub(crate) fn of(asked: &DeviceTest, devices: &Devices, measured: &[(u32, &Measured)]) -> Self {
        let test = DeviceTestInfo::of(asked, devices);
        let figures = DeviceFigures::of(asked, &test, measured);
        Self { test, figures }
    }
}

impl DeviceFigures {
    /// Sums up the repeats; `None` without repeats.
    fn of(test: &DeviceTest, info: &DeviceTestInfo, measured: &[(u32, &Measured)]) -> Option<Self> {
        let repeats: Vec<(u32, &DeviceResult)> = measured
            .iter()
            .filter_map(|&(repeat, found)| Some((repeat, found.device()?)))
            .collect();
        // Names and versions are the same in all repeats of a valid cell; the last one's are shown.
        let last = repeats.last()?.1;
        let members = last.devices.iter().map(|device| DeviceMember {
            member: device.member.clone(),
            name: device.facts.name.clone(),
            version: device.facts.version.clone(),
            more: device.facts.more.clone(),
        });
        let not_offered = repeats.iter().find_map(|(_, found)| found.not_offered());
        Some(Self {
            members: members.collect(),
            not_offered: not_offered.map(str::to_owned),
            found: match test {
                DeviceTest::Kat(kat) => {
                    let found = KatResult::of(&kat.algorithms, info, &repeats);
                    Some(DeviceOutcome::Kat(found))
                }
                DeviceTest::Speed(_) => DeviceSpeedResult::of(info, &repeats)
                    .map(|found| DeviceOutcome::Speed(Box::new(found))),
                DeviceTest::Fatigue(_) => FatigueResult::of(info, &repeats)
                    .map(|found| DeviceOutcome::Fatigue(Box::new(found))),
            },
        })
    }

    /// The figures of `kat`.
    #[must_use]
    pub const fn kat(&self) -> Option<&KatResult> {
        match &self.found {
            Some(DeviceOutcome::Kat(found)) => Some(found),
            _ => None,
        }
    }

    /// The figures of `speed`.
    #[must_use]
    pub fn speed(&self) -> Option<&DeviceSpeedResult> {
        match &self.found {
            Some(DeviceOutcome::Speed(found)) => Some(found),
            _ => None,
        }
    }

    /// The figures of `fatigue`.
    #[must_use]
    pub fn fatigue(&self) -> Option<&FatigueResult> {
        match &self.found {
            Some(DeviceOutcome::Fatigue(found)) => Some(found),
            _ => None,
        }
    }
}

/// Why a trial that counts as measured has no figure.
pub(crate) fn missing(test: &DeviceTest, measured: &Measured) -> Option<&'static str> {
    let Some(result) = measured.device() else {
        return Some("the record holds no device");
    };
    match (test, &result.found) {
        (_, DeviceRecord::NotOffered(_)) => None,
        (DeviceTest::Kat(_), DeviceRecord::Kat(rows)) if !rows.is_empty() => None,
        (DeviceTest::Kat(_), _) => Some("the record holds no known answer"),
        (DeviceTest::Speed(_), DeviceRecord::Speed(speed)) if speed.span_ns > 0 => None,
        (DeviceTest::Speed(_), DeviceRecord::Speed(_)) => {
            Some("the record's measured time is zero")
        }
        (DeviceTest::Speed(_), _) => Some("the record holds no speed"),
        (DeviceTest::Fatigue(_), DeviceRecord::Fatigue(segments)) if !segments.is_empty() => None,
        (DeviceTest::Fatigue(_), _) => Some("the record holds no fatigue"),
    }
}
