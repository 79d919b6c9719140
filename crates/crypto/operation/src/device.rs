//! Devices that compute operations, the tests made on them, and what both report: the same data in
//! a plan, in a journal and between a trial and its worker processes.
//!
//! The JSON of these types is part of the journal's format.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a crypto device is and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DeviceKind {
    /// Our own engines: the fastest that have the operation.
    Engine {
        /// For GOST, `portable`, `avx2` or `avx512`; `None`: the fastest here.
        kernel: Option<String>,
    },
    /// OpenSSL; with neither provider nor engine: its default provider.
    #[serde(rename = "openssl")]
    OpenSsl {
        /// A provider by name.
        provider: Option<String>,
        /// An engine by name.
        engine: Option<String>,
        /// Path of its module; `None`: where OpenSSL looks for it.
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
    /// A token of SoftHSM2, made for each trial and thrown away.
    #[serde(rename = "softhsm")]
    SoftHsm,
    /// A model of a coprocessor.
    Model(DeviceModel),
}

/// A modelled coprocessor: its results are real, its times are these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceModel {
    /// From the end of processing until the result is back, in nanoseconds.
    pub latency_ns: u64,
    /// Of one unit, in bit/s of input.
    pub rate_bps: u64,
    /// Time that each operation takes a unit besides, in nanoseconds.
    pub operation_ns: u64,
    /// Units that work side by side.
    pub parallel: u32,
    /// Operations that may be in the device at once.
    pub queue: u32,
    /// Share of operations that go wrong, in parts per million.
    pub errors_ppm: u32,
    /// What an error is.
    pub fault: DeviceFault,
}

/// What a faulty operation of a modelled coprocessor does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceFault {
    /// It says that it failed.
    Fails,
    /// One byte of its result is wrong, and it says nothing.
    Wrong,
    /// The device stops: all that follows fails until it is restarted.
    Stops,
}

/// What is measured on a crypto device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "procedure")]
pub enum DeviceTest {
    /// Whether its results are right.
    Kat(Kat),
    /// How fast it is at one operation.
    Speed(DeviceSpeed),
    /// How long it works without a failure.
    Fatigue(Fatigue),
}

/// The functional trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kat {
    /// Algorithms by name, as `aes-128-cbc`; at least one.
    pub algorithms: Vec<String>,
}

/// The speed trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSpeed {
    /// Algorithm and action: `aes-128-cbc encrypt`, `ecdsa-p256 sign`, `sha-256`.
    pub operation: String,
    /// Bytes of input of one operation; `None` where its size means nothing: signatures, RSA, key
    /// encapsulation.
    pub bytes: Option<u32>,
    /// How many work at once, over all devices together; these get equal shares.
    pub concurrency: u32,
    /// What they are.
    pub workers: Workers,
    /// Operations that each of them keeps in the device at once, where it takes that.
    pub depth: u32,
    /// Measured time, in nanoseconds.
    pub duration_ns: u64,
    /// Equal parts of it that are counted apart.
    pub slices: u32,
}

/// What works at once on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workers {
    /// Threads of one process for each device.
    Threads,
    /// Processes with one thread.
    Processes,
}

/// The fatigue trial. Every result is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fatigue {
    /// Operations by name; each thread does them in turn.
    pub operations: Vec<String>,
    /// Threads on each device, at most 1000.
    pub threads: u32,
    /// Rounds through the operations of each thread; `None`: until the time is up.
    pub loops: Option<u64>,
    /// Time under load, in nanoseconds; `None`: until the loops are done. One of the two is set.
    pub duration_ns: Option<u64>,
    /// Every how many operations one has an invalid input; 0: none.
    pub invalid_every: u32,
    /// Whether a device that failed is opened again.
    pub restart: bool,
    /// Time between snapshots in the journal, in nanoseconds: what a run that is killed loses at
    /// most.
    pub snapshot_ns: u64,
}

/// What a device says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Library, provider or token, as it names itself.
    pub name: String,
    /// Its version, as it reports it.
    pub version: String,
    /// Anything else: path of the module, slot, kernels in use.
    pub more: Vec<(String, String)>,
}

/// One algorithm and case of the functional trial on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KatRow {
    /// Index among the trial's devices. A worker process, which has one device, reports 0.
    pub device: usize,
    /// `aes-128-cbc`.
    pub algorithm: String,
    /// `vectors`, `empty`, `sizes`, `device encrypts, cpu decrypts` …: what was tried.
    pub case: String,
    /// Inputs tried.
    pub tried: u32,
    /// What came of it.
    pub outcome: KatOutcome,
}

/// What came of a functional case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KatOutcome {
    /// All right.
    Pass,
    /// The first input with a wrong result.
    Wrong {
        /// Which: `vector 3`, `17 B`.
        input: String,
        /// Offset of the first differing byte; `None` where the result has another length or an
        /// answer is wrong.
        first_differing: Option<u32>,
        /// What should have come, and what came, shortened.
        detail: String,
    },
    /// The device said that it failed, or its process died of it.
    Error(String),
    /// The device does not have it.
    NotOffered(String),
    /// Official vectors that nobody has published: nothing was tried, and nothing speaks against
    /// the device.
    NonePublished,
}

impl KatOutcome {
    /// Whether the device has failed. One that is not offered has not.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        matches!(self, Self::Wrong { .. } | Self::Error(_))
    }
}

impl DeviceTest {
    /// Short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Kat(_) => "kat",
            Self::Speed(_) => "speed",
            Self::Fatigue(_) => "fatigue",
        }
    }
}

impl Workers {
    /// As campaigns have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

impl DeviceKind {
    /// Whether such a device is taken to spare the CPU unless the campaign says otherwise.
    #[must_use]
    pub const fn offloads(&self) -> bool {
        match self {
            Self::Engine { .. } | Self::OpenSsl { .. } | Self::SoftHsm => false,
            Self::Pkcs11 { .. } | Self::Model(_) => true,
        }
    }
}
