//! Devices that compute operations, their tests, and the reports of both: the same data in a plan,
//! in a journal, and between a trial and its worker processes.
//!
//! The JSON of these types is part of the journal's format.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use std::path::PathBuf;
use strum::{IntoStaticStr, VariantArray};

/// The kind of a crypto device, with the parameters to open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DeviceKind {
    /// Cipherbench's engines: the fastest one for each operation.
    Engine {
        /// GOST kernel: `portable`, `avx2` or `avx512`; `None`: the fastest on this host.
        kernel: Option<String>,
    },
    /// OpenSSL, with its default provider if neither provider nor engine is set.
    // In kebab case it would be `open-ssl`.
    #[serde(rename = "openssl")]
    OpenSsl {
        /// A provider by name.
        provider: Option<String>,
        /// An engine by name.
        engine: Option<String>,
        /// Path of its module; `None`: in OpenSSL's directory.
        module: Option<PathBuf>,
    },
    /// A PKCS#11 token.
    Pkcs11 {
        /// Path of the module.
        module: PathBuf,
        /// Slot by number; `None`: by the token's label, or the only one with a token.
        slot: Option<u64>,
        /// Label of the token.
        token: Option<String>,
        /// File with the user's PIN.
        pin_file: PathBuf,
    },
    /// A token of SoftHSM2, created for each trial and removed after it.
    // In kebab case it would be `soft-hsm`.
    #[serde(rename = "softhsm")]
    SoftHsm,
    /// A model of a coprocessor.
    Model(DeviceModel),
}

/// A modelled coprocessor: its results are real, its timing follows these parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceModel {
    /// Time from the end of processing until the result is back, in nanoseconds.
    pub latency_ns: u64,
    /// Rate of one unit, in bit/s of input.
    pub rate_bps: u64,
    /// Additional time of a unit per operation, in nanoseconds.
    pub operation_ns: u64,
    /// Units that work in parallel.
    pub parallel: u32,
    /// Maximum number of operations in the device.
    pub queue: u32,
    /// Share of faulty operations, in parts per million.
    pub errors_ppm: u32,
    /// The fault of these operations.
    pub fault: DeviceFault,
}

/// The effect of a faulty operation of a modelled coprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceFault {
    /// It reports a failure.
    Fails,
    /// One byte of its result is wrong, without an error.
    Wrong,
    /// The device stops: all later operations fail until it is restarted.
    Stops,
    /// It never returns.
    Hangs,
    /// Its driver crashes, together with the process that uses it.
    Crashes,
}

/// A trial of a crypto device.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "procedure")]
#[strum(serialize_all = "kebab-case")]
pub enum DeviceTest {
    /// The functional trial, which checks results.
    Kat(Kat),
    /// The speed of one operation.
    Speed(DeviceSpeed),
    /// The time without failure.
    Fatigue(Fatigue),
}

/// The functional trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kat {
    /// Algorithms by name, such as `aes-128-cbc`; at least one.
    pub algorithms: Vec<String>,
}

/// The speed trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpeed {
    /// Algorithm and action: `aes-128-cbc encrypt`, `ecdsa-p256 sign`, `sha-256`.
    pub operation: String,
    /// Bytes of input of one operation; `None` if the size does not matter: signatures, RSA, key
    /// encapsulation.
    pub bytes: Option<u32>,
    /// Number of concurrent workers over all devices, in equal shares.
    pub concurrency: u32,
    /// Kind of these workers.
    pub workers: Workers,
    /// Operations that each worker keeps in flight, if the device supports that.
    pub depth: u32,
    /// Measured time, in nanoseconds.
    pub duration_ns: u64,
    /// Number of equal slices of this time that are counted separately.
    pub slices: u32,
}

/// The kind of concurrent workers on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Workers {
    /// Threads of one process for each device.
    Threads,
    /// Processes with one thread.
    Processes,
}

/// The fatigue trial. Every result is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fatigue {
    /// Operations by name; each thread runs them in turn.
    pub operations: Vec<String>,
    /// Threads on each device, at most 1000.
    pub threads: u32,
    /// Rounds through the operations per thread; `None`: until the duration is over.
    pub loops: Option<u64>,
    /// Time under load, in nanoseconds; `None`: until the loops are complete. One of the two is
    /// set.
    pub duration_ns: Option<u64>,
    /// One in this many operations has an invalid input; 0: none.
    pub invalid_every: u32,
    /// Whether a failed device is reopened.
    pub restart: bool,
    /// Time between snapshots in the journal, in nanoseconds: the most that a killed run loses.
    pub snapshot_ns: u64,
}

/// Counts of a device in a fatigue trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FatigueCounts {
    /// Operations with a right result.
    pub right: u64,
    /// Operations with a wrong result.
    pub wrong: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Invalid inputs that it refused, as it must.
    pub refused: u64,
    /// Invalid inputs that it accepted.
    pub passed_invalid: u64,
    /// Times that it was reopened after a failure.
    pub restarts: u64,
}

impl FatigueCounts {
    /// Right results and refused invalid inputs.
    #[must_use]
    pub const fn good(&self) -> u64 {
        // Saturating, here and below: the counts may be of a damaged journal.
        self.right.saturating_add(self.refused)
    }

    /// Wrong results, failures and accepted invalid inputs.
    #[must_use]
    pub const fn bad(&self) -> u64 {
        let failed = self.failed.saturating_add(self.passed_invalid);
        self.wrong.saturating_add(failed)
    }

    /// Operations with any outcome.
    #[must_use]
    pub const fn tried(&self) -> u64 {
        self.good().saturating_add(self.bad())
    }
}

impl AddAssign for FatigueCounts {
    fn add_assign(&mut self, other: Self) {
        self.right = self.right.saturating_add(other.right);
        self.wrong = self.wrong.saturating_add(other.wrong);
        self.failed = self.failed.saturating_add(other.failed);
        self.refused = self.refused.saturating_add(other.refused);
        self.passed_invalid = self.passed_invalid.saturating_add(other.passed_invalid);
        self.restarts = self.restarts.saturating_add(other.restarts);
    }
}

/// A device's description of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the library, provider or token, as reported by the device.
    pub name: String,
    /// Its version, as reported by the device.
    pub version: String,
    /// Further properties: path of the module, slot, kernels in use.
    pub more: Vec<(String, String)>,
}

/// One algorithm and case of the functional trial on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KatRow {
    /// Index among the trial's devices. A worker process has one device and reports 0.
    pub device: usize,
    /// `aes-128-cbc`.
    pub algorithm: String,
    /// The case: `vectors`, `empty`, `sizes`, `device encrypts, cpu decrypts` …
    pub case: String,
    /// Inputs tried.
    pub tried: u32,
    /// The outcome.
    pub outcome: KatOutcome,
}

/// The outcome of a functional case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KatOutcome {
    /// All results are right.
    Pass,
    /// The first input with a wrong result.
    Wrong {
        /// The input: `vector 3`, `17 B`.
        input: String,
        /// Offset of the first differing byte; `None` if the length or the verdict is wrong.
        first_differing: Option<u32>,
        /// Expected and actual result, truncated.
        detail: String,
    },
    /// The device reported a failure, or its process died.
    Error(String),
    /// The device does not offer the algorithm.
    NotOffered(String),
    /// No official vectors are published. Nothing was tested, and the device has not failed.
    NonePublished,
}

impl KatOutcome {
    /// Whether the device has failed. Not offering an algorithm is not a failure.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        // An algorithm without published vectors is no fault of a device either.
        matches!(self, Self::Wrong { .. } | Self::Error(_))
    }
}

impl DeviceTest {
    /// Short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

impl Workers {
    /// Returns its name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl DeviceKind {
    /// Whether a device of this kind is expected to offload the CPU, unless the campaign specifies
    /// otherwise.
    #[must_use]
    pub const fn offloads(&self) -> bool {
        match self {
            // SoftHSM2 has the interface of a token, and computes on the CPU. A provider or an
            // engine of OpenSSL may lead to a device, which the campaign has to say.
            Self::Engine { .. } | Self::OpenSsl { .. } | Self::SoftHsm => false,
            Self::Pkcs11 { .. } | Self::Model(_) => true,
        }
    }
}
