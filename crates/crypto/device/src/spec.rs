//! What a worker process is told: one line of JSON on standard input.

pub use crate::keys::Keys;

use serde::{Deserialize, Serialize};

/// One trial on one device, or the part of one process in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Spec {
    /// The device.
    pub device: DeviceSpec,
    /// What is done to it.
    pub work: Work,
    /// Seed of keys and inputs: the same ones in every process and run.
    pub seed: u64,
}

/// Which device, and how it is reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DeviceSpec {
    /// Our engines: the fastest of this program that have the operation; `kernel` for GOST: `portable`, `avx2`, `avx512`.
    Cpu {
        /// GOST kernel; `None`: the fastest.
        kernel: Option<String>,
    },
    /// OpenSSL: a provider or an engine (one of them; neither: the default provider).
    OpenSsl {
        /// Name of a provider (`default`, `legacy`, or one in a module).
        provider: Option<String>,
        /// Name of an engine.
        engine: Option<String>,
        /// Path of its module; `None`: where OpenSSL looks for it.
        module: Option<std::path::PathBuf>,
    },
    /// A PKCS#11 token.
    Pkcs11 {
        /// Path of the module.
        module: std::path::PathBuf,
        /// Slot by number; `None`: the one with the token named `token`, or the only one with a token.
        slot: Option<u64>,
        /// Label of the token.
        token: Option<String>,
        /// File with the user's PIN, so that it stands in no plan and no journal; mode 0600.
        pin_file: std::path::PathBuf,
    },
    /// A token of SoftHSM2, made for this trial in a folder of its own and thrown away after it.
    SoftHsm,
    /// A model of a coprocessor: real results, computed by our engines; the time of a device.
    Model(Model),
}

/// The modelled coprocessor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Model {
    /// From the end of processing until the result is back, in nanoseconds.
    pub latency_ns: u64,
    /// Of one unit, in bit/s of input.
    pub rate_bps: u64,
    /// Time that each operation takes a unit besides, in nanoseconds (signatures cost this, not their bytes).
    pub operation_ns: u64,
    /// Units that work side by side.
    pub parallel: u32,
    /// Operations that may be in the device at once; more wait.
    pub queue: u32,
    /// Share of operations that come back wrong or failed, in millionths, by `faults`.
    pub errors_ppm: u32,
    /// What an error is.
    pub fault: Fault,
}

/// What a faulty operation of the model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// It says that it failed.
    Fails,
    /// One byte of its result is wrong, and it says nothing.
    Wrong,
    /// The device stops: all that follows fails until it is restarted.
    Stops,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Work {
    /// Facts of the device, and which operations it offers.
    Probe,
    /// Functional trial.
    Kat {
        /// Operations' algorithms by name.
        algorithms: Vec<String>,
    },
    /// Speed of one operation.
    Speed {
        /// By name, as `aes-128-cbc encrypt`.
        operation: String,
        /// Bytes of input of each; ignored by signatures.
        bytes: u32,
        /// Threads in this process.
        threads: u32,
        /// Operations that a thread keeps in the device at once, where it takes that; 1 otherwise.
        depth: u32,
        /// Length of the measurement, in nanoseconds, cut into `slices`.
        duration_ns: u64,
        /// Equal parts, each with a count of its own.
        slices: u32,
    },
    /// Fatigue trial.
    Fatigue {
        /// By name; each thread does them in turn.
        operations: Vec<String>,
        /// Threads in this process, at most 1000.
        threads: u32,
        /// Rounds through the operations of each thread; `None`: until `duration_ns`.
        loops: Option<u64>,
        /// End, in nanoseconds after the start; `None`: until the loops are done.
        duration_ns: Option<u64>,
        /// Every how many operations one has an invalid input, which must be refused; 0: none.
        invalid_every: u32,
        /// Whether a device that failed is opened again and the trial goes on.
        restart: bool,
    },
}
