//! The command lines of measurements without a campaign file: of crypto engines and devices.

use super::value::{duration, length, long_duration, whole};
use super::{Output, Watching};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Speed {
    /// Suite, or `all`
    #[arg(long, value_name = "NAME", default_value = "aes-256-gcm")]
    pub(crate) suite: String,
    /// Engine, or `all` that work here; the control `null` shows the cost of measuring itself
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub(crate) engine: String,
    /// Lengths of the inner packets in bytes, at least 20, or of a device's inputs; separated by
    /// commas [default: 64, 128, 256, 512, 1024, 1408, 1500, 8192; of devices 16, 64, 256, 1024,
    /// 8192]
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        value_parser = length
    )]
    pub(crate) sizes: Vec<u16>,
    /// What to measure: batches sealed in place, single packets copied and sealed, batches opened
    /// in place
    #[arg(long, value_name = "WAY", default_value = "all")]
    #[arg(value_parser = ["all", "seal", "seal-from", "open"])]
    pub(crate) direction: String,
    /// Packets per batch
    #[arg(long, value_name = "N", default_value_t = 32)]
    #[arg(value_parser = whole::<u16>(1, 256))]
    pub(crate) batch: u16,
    /// Also run this many in parallel, each on its own core, and show the scaling
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole::<u16>(1, u16::MAX.into()))]
    pub(crate) threads: u16,
    /// Time per figure, in a hundred parts of which the best counts
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    #[arg(value_parser = duration)]
    pub(crate) duration: Duration,
    /// Measure curves instead of rates: the cost of a batch on each engine, and the lengths at
    /// which another engine becomes cheaper
    ///
    /// The curves are charted too. Those of all engines replace the cached ones, by which the
    /// encryptor chooses its engine; those of an engine named with `--engine` are not kept.
    #[arg(long, conflicts_with_all = ["sizes", "direction", "batch", "threads", "duration"])]
    pub(crate) curves: bool,
    /// Folder for `speed.html` with charts and `speed.json`; with `--device`, the folder in which
    /// the run's folder is created
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) of_devices: DeviceSpeed,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct DeviceSpeed {
    /// Measure this crypto device: `engine`, `openssl`, `openssl: { engine: gost }`, `softhsm` …,
    /// as in campaigns; may be repeated
    #[arg(long = "device", value_name = "DEVICE")]
    #[arg(conflicts_with_all = ["suite", "engine", "direction", "batch", "threads", "curves"])]
    pub(crate) devices: Vec<String>,
    /// Operations of the device, such as `sha-256`, `aes-128-cbc encrypt` or `rsa-2048-pss sign`,
    /// separated by commas
    #[arg(
        long = "operation",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "devices"
    )]
    #[arg(default_values_t = ["aes-256-gcm encrypt".to_owned()])]
    pub(crate) operations: Vec<String>,
    /// Numbers of threads, or processes, in parallel; separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "devices")]
    #[arg(value_parser = whole::<u32>(1, 1000), default_values_t = [1])]
    pub(crate) concurrency: Vec<u32>,
    /// Use processes instead of threads
    #[arg(long, requires = "devices")]
    pub(crate) processes: bool,
    /// Operations that each keeps in flight, where the device supports it
    #[arg(long, value_name = "N", requires = "devices", default_value_t = 1)]
    #[arg(value_parser = whole::<u32>(1, 1024))]
    pub(crate) depth: u32,
    /// Repeats of each figure
    #[arg(long, value_name = "N", requires = "devices", default_value_t = 3)]
    #[arg(value_parser = whole::<u32>(1, 1000))]
    pub(crate) repeats: u32,
}

#[derive(Debug, Args)]
pub(crate) struct DeviceNames {
    /// Crypto device: `engine` (our own), `openssl`, `openssl: { engine: gost }`, `softhsm`,
    /// `pkcs11: { … }` or `model: { … }`, as in campaigns; may be repeated
    #[arg(long = "device", value_name = "DEVICE", default_values_t = ["engine".to_owned()])]
    pub(crate) devices: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Kat {
    #[command(flatten)]
    pub(crate) devices: DeviceNames,
    /// Algorithms (`sha-256`) or classes (`aes`), separated by commas [default: all]
    #[arg(value_name = "NAME", value_delimiter = ',')]
    pub(crate) algorithms: Vec<String>,
    /// Folder in which the run's folder is created
    #[arg(long, value_name = "DIR", default_value = journal::DEFAULT_ROOT)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) watching: Watching,
}

#[derive(Debug, Args)]
pub(crate) struct Fatigue {
    #[command(flatten)]
    pub(crate) devices: DeviceNames,
    /// Operations (`sha-256`, `aes-128-cbc encrypt`) or classes (`rsa`), separated by commas
    /// [default: all]
    #[arg(value_name = "NAME", value_delimiter = ',')]
    pub(crate) operations: Vec<String>,
    /// Threads per device
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = whole::<u32>(1, 1000))]
    pub(crate) threads: u32,
    /// Rounds of the operations per thread
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    pub(crate) loops: Option<u64>,
    /// Time, such as `10 min` or `20 h` [default: 1 min, without `--loops`]
    #[arg(long, value_name = "TIME", value_parser = long_duration)]
    pub(crate) duration: Option<Duration>,
    /// Make one of this many inputs invalid, which the device must refuse; 0: none
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = whole::<u32>(0, 1_000_000))]
    pub(crate) invalid_every: u32,
    /// Do not restart a device that failed
    #[arg(long)]
    pub(crate) no_restart: bool,
    /// Folder in which the run's folder is created
    #[arg(long, value_name = "DIR", default_value = journal::DEFAULT_ROOT)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) watching: Watching,
}
