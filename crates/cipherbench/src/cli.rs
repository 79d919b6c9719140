//! The command line as people type it.

use crate::exit::EXIT_CODES;
use crate::version;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Measures encryptors and writes the report, with proof that each number is true.
#[derive(Debug, Parser)]
#[command(
    name = "cipherbench",
    version = version::short(),
    long_version = version::long(),
    after_help = EXIT_CODES,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a campaign and write its report
    Run(Run),
    /// Measure the tester itself: the frame tests of a campaign with nothing in the path
    ///
    /// For each: how many frames the generator makes and the analyser takes, what is lost, and how
    /// long a frame takes when there is no device. Campaigns with `calibrate: true` do the same
    /// beside their DUTs.
    Calibrate(Run),
    /// Check campaign and lab files; tells all mistakes at once
    ///
    /// Campaigns are checked as this host would run them, in every lab among the files and that of
    /// `--lab`; when there is none, in the built-in lab `namespaces`; those of crypto devices in
    /// `device`.
    Check(Check),
    /// Show every cell of a campaign, its commands and the time it will take
    Plan(Plan),
    /// Go on with a run that broke off
    Resume(Resume),
    /// Write a run's documents again, from its journal alone
    Report(Report),
    /// Tell what this host can measure, and what to tune
    Doctor(Doctor),
    /// Run the encryptor as a service, until SIGTERM
    Encrypt(Encrypt),
    /// Simulate the key management entities (KMEs) of a QKD network, until SIGTERM
    ///
    /// They serve ETSI GS QKD 014 with keys made of random numbers: for labs and tests. Faults can
    /// be switched on while they run.
    Kme(Kme),
    /// Measure the crypto engines by themselves, one core each; or crypto devices
    ///
    /// How fast each engine seals and opens ESP packets in memory, by suite and packet size:
    /// nothing is sent. With `--curves`, what the encryptor's choice of engine is made by. With
    /// `--device`, how fast a crypto device does an operation, by the size of its input and by how
    /// many ask at once: a run with a report, as `run` makes it.
    Speed(Box<Speed>),
    /// Try whether crypto devices compute what they should, against official vectors and the CPU
    Kat(Kat),
    /// Work on crypto devices without a pause, verify each result, and count failures and restarts
    Fatigue(Fatigue),
    /// Make keys
    #[command(subcommand)]
    Keys(Keys),
    /// Serve a run as one of its stations, on standard input and output
    ///
    /// A run starts its stations itself; this is for `ssh host cipherbench station` and the like.
    /// The protocol is one JSON object a line. At end of file every program that it started is
    /// killed.
    #[command(hide = true)]
    Station(Station),
    /// Send or check test frames, as the JSON on standard input says
    ///
    /// A run starts it on its stations. It prints `ready`, works, and prints what it did as one
    /// line of JSON; SIGTERM ends it early.
    #[command(hide = true)]
    Frames,
    /// Work on a crypto device, as the JSON on standard input says
    ///
    /// A run starts it, so that a driver that crashes takes nothing else with it. It says what
    /// comes of it as one JSON object a line; it begins on a line `go`, and a line `stop`, or the
    /// end of standard input, ends it.
    #[command(hide = true)]
    Device,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Campaign file; a built-in campaign when there is none
    pub(crate) campaign: Option<PathBuf>,
    /// Lab file, or a built-in lab: `namespaces` on this machine (the default), or `memory`
    #[arg(long, value_name = "FILE")]
    pub(crate) lab: Option<PathBuf>,
    /// Folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    /// Times that each cell is measured, in place of the campaign's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: Option<u32>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Print the result as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Campaign or lab files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Lab in which the campaigns are to run: a file, or a built-in lab (`namespaces`, `memory`)
    #[arg(long, value_name = "FILE")]
    pub(crate) lab: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Campaign file; a built-in campaign when there is none
    pub(crate) campaign: Option<PathBuf>,
    /// Lab file, or a built-in lab: `namespaces` on this machine (the default), or `memory`
    #[arg(long, value_name = "FILE")]
    pub(crate) lab: Option<PathBuf>,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Folder of the run
    pub(crate) run: PathBuf,
    /// Make trials again that were found invalid, too; the report says so
    #[arg(long)]
    pub(crate) invalid: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Folder of the run
    pub(crate) run: PathBuf,
    /// Print the result as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Set the sysctls that matter, and record the old values
    #[arg(long, conflicts_with = "revert")]
    pub(crate) apply: bool,
    /// Put back what `--apply` changed
    #[arg(long)]
    pub(crate) revert: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Encrypt {
    /// Configuration of this end
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Kme {
    /// Configuration of all KMEs
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Speed {
    /// Suite, or `all`
    #[arg(long, value_name = "NAME", default_value = "aes-256-gcm")]
    pub(crate) suite: String,
    /// Engine, or `all` that can be used here; the control `null` shows what measuring itself costs
    #[arg(long, value_name = "NAME", default_value = "all")]
    pub(crate) engine: String,
    /// Lengths of the inner packets in bytes, from 20 on, or of the inputs of a device; separated
    /// by commas [default: 64, 128, 256, 512, 1024, 1408, 1500, 8192; of devices 16, 64, 256, 1024,
    /// 8192]
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) sizes: Vec<u16>,
    /// What to measure: batches sealed in place, single packets sealed from elsewhere, batches
    /// opened in place
    #[arg(long, value_name = "WAY", default_value = "all")]
    #[arg(value_parser = ["all", "seal", "seal-from", "open"])]
    pub(crate) direction: String,
    /// Packets in a batch
    #[arg(long, value_name = "N", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) batch: u16,
    /// Measure so many at once too, each on a core of its own, and show how that scales
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: u16,
    /// Time of each figure, in a hundred parts; the best counts
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    #[arg(value_parser = duration)]
    pub(crate) duration: Duration,
    /// Measure curves in place of rates: what a batch costs on each engine, and where they take
    /// turns
    ///
    /// They are charted, too. Those of all engines replace the ones in the cache, which the
    /// encryptor chooses by; those of an engine that is named with `--engine` are not kept.
    #[arg(long, conflicts_with_all = ["sizes", "direction", "batch", "threads", "duration"])]
    pub(crate) curves: bool,
    /// Folder to write `speed.html` with charts, and `speed.json`, into; of devices, where the
    /// run's folder is made
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
    /// as campaigns have it; may be given several times
    #[arg(long = "device", value_name = "DEVICE")]
    #[arg(conflicts_with_all = ["suite", "engine", "direction", "batch", "threads", "curves"])]
    pub(crate) devices: Vec<String>,
    /// Operations of the device, as `sha-256`, `aes-128-cbc encrypt` or `rsa-2048-pss sign`,
    /// separated by commas
    #[arg(
        long = "operation",
        value_name = "NAME",
        value_delimiter = ',',
        requires = "devices"
    )]
    #[arg(default_values_t = ["aes-256-gcm encrypt".to_owned()])]
    pub(crate) operations: Vec<String>,
    /// How many threads, or processes, ask at once; separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "devices")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000), default_values_t = [1])]
    pub(crate) concurrency: Vec<u32>,
    /// Have processes ask, and not threads of one
    #[arg(long, requires = "devices")]
    pub(crate) processes: bool,
    /// Operations that each keeps in the device at once, where it takes that
    #[arg(long, value_name = "N", requires = "devices", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) depth: u32,
    /// Times that each figure is measured
    #[arg(long, value_name = "N", requires = "devices", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeats: u32,
}

#[derive(Debug, Args)]
pub(crate) struct DeviceNames {
    /// Crypto device: `engine` (our own), `openssl`, `openssl: { engine: gost }`, `softhsm`,
    /// `pkcs11: { … }` or `model: { … }`, as campaigns have it; may be given several times
    #[arg(long = "device", value_name = "DEVICE", default_values_t = ["engine".to_owned()])]
    pub(crate) devices: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Kat {
    #[command(flatten)]
    pub(crate) devices: DeviceNames,
    /// Algorithms, as `sha-256`, or classes, as `aes`; all if none is named; separated by commas
    #[arg(value_name = "NAME", value_delimiter = ',')]
    pub(crate) algorithms: Vec<String>,
    /// Folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Fatigue {
    #[command(flatten)]
    pub(crate) devices: DeviceNames,
    /// Operations, as `sha-256` or `aes-128-cbc encrypt`, or classes, as `rsa`; all if none is
    /// named; separated by commas
    #[arg(value_name = "NAME", value_delimiter = ',')]
    pub(crate) operations: Vec<String>,
    /// Threads on each device
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) threads: u32,
    /// Rounds through the operations that each thread makes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) loops: Option<u64>,
    /// Time, as `10 min` or `20 h`; a minute where no rounds are given either
    #[arg(long, value_name = "TIME", value_parser = long_duration)]
    pub(crate) duration: Option<Duration>,
    /// Of how many inputs one is invalid, and must be refused; 0: none
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) invalid_every: u32,
    /// Leave a device that failed as it is
    #[arg(long)]
    pub(crate) no_restart: bool,
    /// Folder in which the run's own folder is made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What the campaign allows is told there.
fn long_duration(text: &str) -> Result<Duration, String> {
    units::time::parse(text).map_err(|error| format!("{error}: {}", error.help()))
}

/// Long enough for a few rounds, short enough for a table of a hundred figures.
fn duration(text: &str) -> Result<Duration, String> {
    match units::time::parse(text) {
        Ok(duration)
            if (Duration::from_millis(1)..=Duration::from_secs(60)).contains(&duration) =>
        {
            Ok(duration)
        }
        Ok(_) => Err("take from 1 ms to 1 min".to_owned()),
        Err(error) => Err(format!("{error}: {}", error.help())),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a pair of static key files, one for each end of a tunnel
    ///
    /// For labs and tests: static keys give no forward secrecy. Both files are secret.
    Static {
        /// File of the one end
        a: PathBuf,
        /// File of the other end
        b: PathBuf,
    },
    /// Make a certificate authority: `ca.pem`, which every gateway needs, and `ca.key`
    ///
    /// Who has `ca.key` can be any gateway: keep it where no gateway is, and make certificates
    /// there.
    Authority {
        /// Folder to make both files in
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Make a gateway's certificate and key: `NAME.pem` and `NAME.key`
    ///
    /// Peers know the gateway by that name. There is no revocation: a certificate is trusted until
    /// it expires.
    Certificate {
        /// Name of the gateway: small letters, digits, `-` and `.`
        name: String,
        /// Folder of the authority, as `keys authority` made it
        #[arg(long, value_name = "DIR")]
        authority: PathBuf,
        /// Folder to make both files in
        #[arg(long, value_name = "DIR", default_value = ".")]
        out: PathBuf,
        /// Days until it expires
        #[arg(long, value_name = "N", default_value_t = control::certificates::CERTIFICATE_DAYS)]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(control::certificates::DAYS_MAX)))]
        days: u32,
    },
    /// Make a post-quantum pre-shared key (PPK, RFC 8784), for both ends of a tunnel
    ///
    /// It is mixed into all keys of the tunnel. Both files are secret, and the same.
    Ppk {
        /// File of the one end
        file: PathBuf,
        /// File of the other end; without it, bring a copy of the first to the peer
        other: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Station {
    /// Move into namespaces of its own first, as this place of the built-in lab: a, gw1, gw2 or b
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
}
