//! The command line.

mod bisect;
mod complete;
mod crypto;
mod examples;
// The arguments are read all the same: a command that is not there says why.
#[cfg_attr(not(feature = "fleet"), allow(dead_code))]
mod fleet;
mod generate;
mod ike_peers;
mod init;
mod keys;
mod live;
mod runs;
mod schema;
mod signing;
mod tunnel_check;
mod value;

pub(crate) use bisect::Bisect;
pub(crate) use complete::{complete, script};
pub(crate) use crypto::{DeviceSpeed, Fatigue, Kat, Speed};
pub(crate) use examples::Examples;
pub(crate) use fleet::Fleet;
#[cfg(feature = "fleet")]
pub(crate) use fleet::{Agent, DEFAULT_URL, FleetCommand, Server, Submit};
pub(crate) use generate::Generate;
pub(crate) use ike_peers::{IkePeers, Peers, PeersLoad};
pub(crate) use init::{Init, InitCampaign, InitDevice, InitGateway, InitLab};
pub(crate) use keys::Keys;
pub(crate) use live::{Serve, Watching};
pub(crate) use runs::{Prune, Runs, RunsCommand};
pub(crate) use schema::{FileKind, Schema};
pub(crate) use signing::{Sign, Verify};
pub(crate) use tunnel_check::TunnelCheck;

use crate::exit::{EXIT_CODES, Exit, Failure};
use crate::{output, version};
use clap::{Args, Parser, Subcommand, ValueEnum};
use session::progress::Board;
use session::{Log, Reporter};
use std::path::PathBuf;
use std::time::Duration;
use value::{percent, whole};

/// Measures encryptors and writes a report, with proof that each number is true.
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
    /// Reports for each test the frames per second that the generator sends and the analyser
    /// receives, the loss, and the latency without a device. Campaigns with `calibrate: true` do
    /// the same in addition to their DUTs.
    Calibrate(Run),
    /// List the shipped campaigns and labs, print one, or make a file of it
    Examples(Examples),
    /// Write first files: a campaign, a lab, or both ends of an encrypted tunnel
    ///
    /// Asks a few questions on a terminal, or takes flags. Each file has a comment for each key,
    /// and passes `check`. docs/init.md shows what each command writes.
    #[command(subcommand)]
    Init(Init),
    /// Check campaigns, labs and configurations, and list all mistakes
    ///
    /// Campaigns are checked as this host would run them: in the lab of `--lab`, and in those among
    /// the files, of which one must fit; without a lab, in the built-in lab `namespaces`; campaigns
    /// of crypto devices in `device`. Programs that they need and this host lacks are a warning.
    /// Configurations of `encrypt` and `kme` are recognised by their keys; the files that they name
    /// are not read.
    Check(Check),
    /// Print the JSON Schema of a kind of file, with which editors complete and check it
    ///
    /// Begin the file with `# yaml-language-server: $schema=FILE`. A schema has no rules between
    /// keys; `check` has them all.
    Schema(Schema),
    /// Show every cell of a campaign, its commands and its estimated time
    Plan(Plan),
    /// List the runs of a folder, open their reports, delete old ones
    Runs(Runs),
    /// Show the runs of a folder in a browser, until SIGTERM
    ///
    /// A list of the runs, the report of each, a running one as it goes on, and two runs compared.
    /// The pages only read. docs/live.md describes them.
    Serve(Serve),
    /// Resume an interrupted run
    Resume(Resume),
    /// Rebuild a run's documents from its journal
    Report(Report),
    /// Sign a run: its journal, its documents and every other file of its folder
    ///
    /// Only if each document agrees with the journal. The signature has the format of minisign,
    /// and the list that it signs that of sha256sum; docs/signing.md describes both.
    Sign(Sign),
    /// Verify that a run's documents agree with its journal, and who signed it
    ///
    /// Computes every figure anew. With `--key`, the run must be signed by that key, and no file
    /// changed since. Ends with 1 if anything differs.
    Verify(Verify),
    /// Print a run's figures in a format of monitoring systems
    ///
    /// Each quantity of each repeat that has a valid figure; docs/compare.md describes the formats.
    Export(Export),
    /// Compare runs: what changed in machine and settings, and in the figures
    ///
    /// The first run is compared with each other one, cell by cell; repeats of different runs form
    /// no pairs. Of a single run, devices are compared (`--match`), in pairs of repeats. Intervals
    /// are simultaneous over all cells, or those of the run's ranking. docs/compare.md describes
    /// method and gates.
    ///
    /// Ends with 1 if a gate is violated, with 5 if one is undecided or nothing can be compared.
    Compare(Compare),
    /// Show how figures changed over many runs, and what else changed there
    ///
    /// Finds changes that last, and a last run that the ones before it do not explain; each run
    /// counts as one value, and intervals are simultaneous over all figures. docs/compare.md
    /// describes the method.
    History(History),
    /// Find the revision, program or setting that changed a figure of a campaign
    ///
    /// Measures versions in pairs, interleaved, and builds only those that it needs: `--good REV
    /// --bad REV --build COMMAND` over the first parents in a git repository, `--programs`, or
    /// `--settings` of the campaign. Goes on until it is decided, at a stated error; docs/bisect.md
    /// has the method.
    ///
    /// Ends with 0 if the change was found, with 1 if the ends do not differ as the gate has it, or
    /// an end does not build or run, with 5 if it is undecided.
    Bisect(Box<Bisect>),
    /// Check published tables of rates, and results of runs, for what cannot be true
    ///
    /// Reads tables as TOML (the format of `reference/`), CSV or Markdown, and the results.json of
    /// runs. Reports with the arithmetic what contradicts itself or the link, and what does not
    /// support the conclusions; docs/lint.md describes the rules. Rounding is allowed for. Ends
    /// with 1 if there is an error, with 2 if a file cannot be read.
    Lint(Lint),
    /// Show what this host can measure and what to tune, or which offload breaks a path
    ///
    /// With `--offloads`, sends TCP, UDP and test frames through a path of a lab with every pair of
    /// settings that the drivers allow (segmentation, receive offloads, checksums, MTU), checks
    /// each byte, and names the setting or pair that breaks or slows it, with the command that
    /// changes it. All settings are restored. docs/how-to/offloads.md describes it. Ends with 1 if
    /// something in force breaks or slows the path.
    Doctor(Doctor),
    /// Check a tunnel between two hosts: encryption, MTU, speed, round trips, what limits
    ///
    /// On one host `--listen`, on the other the line that it prints; or `HOST --ssh USER@HOST` on
    /// one alone. About 30 s, one screen. Whether packets are encrypted is seen where they leave a
    /// host, as root; docs/how-to/tunnel-check.md describes it.
    ///
    /// Ends with 1 if packets leave unencrypted, vanish by their length, TCP stalls, or an offload
    /// hurts, with 5 if a part of the answer is unknown, as without root, or the other end does not
    /// come or goes away.
    TunnelCheck(Box<TunnelCheck>),
    /// Set up, delete and rekey many IKEv2 peers of a gateway, at a rate
    ///
    /// Up to 100,000 simulated initiators, each with its identity, address, SPIs and keys. Reports
    /// completed set-ups per second, latency from the intended start and failures by the RFC's
    /// name. Ctrl-C ends the load, deletes the peers' SAs and prints the counts so far. Only for
    /// gateways that you may load: it is a denial of service to others. docs/ike.md describes it.
    ///
    /// Ends with 1 if a set-up, delete or rekeying failed, with 4 if it was ended early.
    IkePeers(Box<IkePeers>),
    /// Run the encryptor as a service, until SIGTERM
    ///
    /// Packets for the networks behind the peers do not leave in clear after it has ended, however
    /// that happens, until `--remove`; docs/encryptor.md describes it.
    Encrypt(Encrypt),
    /// Keep the tables of nftables on standard input in place
    ///
    /// An encryptor starts it before it drops its privileges. It loads the tables again when
    /// another program has removed or changed them, and ends with its encryptor.
    #[command(hide = true)]
    Hold,
    /// Simulate the key management entities (KMEs) of a QKD network, until SIGTERM
    ///
    /// They serve ETSI GS QKD 014 with random keys, for labs and tests. Faults can be switched on
    /// at run time.
    Kme(Kme),
    /// Measure crypto engines on one core, or crypto devices
    ///
    /// Measures how fast each engine seals and opens ESP packets in memory, by suite and packet
    /// size; nothing is sent. With `--curves`, measures the cost curves by which the encryptor
    /// chooses its engine. With `--device`, measures the operations of a crypto device by input
    /// size and concurrency, as a run with a report.
    Speed(Box<Speed>),
    /// Test the results of crypto devices against official vectors and the CPU
    Kat(Kat),
    /// Load crypto devices without a pause, verify each result, and count failures and restarts
    Fatigue(Fatigue),
    /// Make keys and certificates
    #[command(subcommand)]
    Keys(Keys),
    /// Queue campaigns for many labs, and keep their runs in one archive
    ///
    /// On NATS JetStream; docs/fleet.md describes it. Measuring is as with `run`, on the machine of
    /// the lab.
    Fleet(Fleet),
    /// Write manual pages, or the completions of a shell
    #[command(subcommand)]
    Generate(Generate),
    /// Print a run's figures by cell as JSON, for the archive of a fleet
    #[command(hide = true)]
    Figures(Figures),
    /// Serve a run as one of its stations, on standard input and output
    ///
    /// A run starts its stations itself; this is for `ssh host cipherbench station` and the like.
    /// The protocol is one JSON object per line. At end of input the station kills every program
    /// that it started.
    #[command(hide = true)]
    Station(Station),
    /// Send or check test frames as the JSON on standard input specifies
    ///
    /// A run starts it on its stations. It prints `ready`, works, and prints its counts as one line
    /// of JSON; SIGTERM ends it early.
    #[command(hide = true)]
    Frames,
    /// Serve or fetch objects over HTTP as the JSON on standard input specifies
    ///
    /// A run starts it on its stations. A server serves until it is stopped; a client prints its
    /// counts as one line of JSON.
    #[command(hide = true)]
    Http,
    /// Probe a path with TCP and UDP as the JSON on standard input specifies
    ///
    /// `doctor --offloads` starts it on its stations. A server prints `ready` and serves until it
    /// is stopped; a caller prints its counts as one line of JSON.
    #[command(hide = true)]
    Probe,
    /// Impair the path between two interfaces as the JSON on standard input specifies
    ///
    /// A run starts it on the element `impair` of its lab. It prints `ready` and carries frames;
    /// SIGTERM ends it, and it prints its counts as one line of JSON.
    #[command(hide = true)]
    Impair,
    /// Send or play video as the JSON on standard input specifies
    ///
    /// A run starts it on its stations. A server sends a clip; a player's station prints its counts
    /// of received and shown data as one line of JSON.
    #[command(hide = true)]
    Video,
    /// Capture frames of an interface as the JSON on standard input specifies
    ///
    /// A run starts it on the nodes of its lab. It prints `ready` and captures; SIGTERM ends it.
    /// Then it writes its file and prints its counts as one line of JSON.
    #[command(hide = true)]
    Capture,
    /// Use a crypto device as the JSON on standard input specifies
    ///
    /// A run starts it, so that a crash of a driver affects no other process. It prints its results
    /// as one JSON object per line. The line `go` starts the work; the line `stop`, or end of
    /// input, ends it.
    #[command(hide = true)]
    Device,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Campaign file, or one of `examples` [default: a built-in campaign]
    #[arg(add = complete::campaigns())]
    pub(crate) campaign: Option<PathBuf>,
    /// Lab file, or one of `examples`: `namespaces` on this machine (the default), `memory`
    #[arg(long, value_name = "FILE", add = complete::labs())]
    pub(crate) lab: Option<PathBuf>,
    /// Folder in which the run's folder is created
    #[arg(long, value_name = "DIR", default_value = journal::DEFAULT_ROOT)]
    pub(crate) out: PathBuf,
    /// Measure the campaign's short form, its key `quick`
    #[arg(long)]
    pub(crate) quick: bool,
    /// Repeats of each cell, instead of the campaign's number
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1000))]
    pub(crate) repeats: Option<u32>,
    /// Repeat the cells that leave a limit of the campaign undecided, for this time at most, such
    /// as `10 min`
    #[arg(long, value_name = "TIME", value_parser = value::long_duration)]
    pub(crate) until_decided: Option<Duration>,
    /// Go on without the cells that need a program which is not installed; they count as failed
    #[arg(long)]
    pub(crate) skip_missing: bool,
    #[command(flatten)]
    pub(crate) junit: Junit,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) watching: Watching,
}

#[derive(Debug, Args)]
pub(crate) struct Output {
    #[command(flatten)]
    pub(crate) form: Form,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Output {
    /// Opens the log of a run, if there is one.
    pub(crate) fn reporter(&self, watching: &Watching) -> Result<Reporter, Failure> {
        let open = |path: &PathBuf| {
            Log::open(path).map_err(|error| {
                let help = "check the path, its owner and the disk; nothing was run";
                let path = path.display();
                let text = format!("cannot open the log {path}: {error}\nhelp: {help}");
                Failure::new(Exit::Usage, text)
            })
        };
        Ok(Reporter {
            is_quiet: self.quiet,
            write: output::stderr,
            log: watching.log.as_ref().map(open).transpose()?,
            board: Board::default(),
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Campaigns, labs, and configurations of `encrypt` or `kme`
    #[arg(required = true, value_name = "FILE", add = complete::campaigns_and_labs())]
    pub(crate) files: Vec<PathBuf>,
    /// Lab for the campaigns: a file, or a built-in lab (`namespaces`, `memory`)
    #[arg(long, value_name = "FILE", add = complete::labs())]
    pub(crate) lab: Option<PathBuf>,
    /// Refuse campaigns that run, load or read what is not a line of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) allow: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Tables (.toml, .csv, .md), and results.json of runs
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print the findings as JSON
    #[arg(long, conflicts_with = "sarif")]
    pub(crate) json: bool,
    /// Print the findings as SARIF 2.1.0, which code hosts show beside the lines
    #[arg(long)]
    pub(crate) sarif: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Campaign file, or one of `examples` [default: a built-in campaign]
    #[arg(add = complete::campaigns())]
    pub(crate) campaign: Option<PathBuf>,
    /// Lab file, or one of `examples`: `namespaces` on this machine (the default), `memory`
    #[arg(long, value_name = "FILE", add = complete::labs())]
    pub(crate) lab: Option<PathBuf>,
    /// Plan the campaign's short form, its key `quick`
    #[arg(long)]
    pub(crate) quick: bool,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// Folder of the run
    #[arg(add = complete::runs())]
    pub(crate) run: PathBuf,
    /// Repeat invalid trials too; the report says so
    #[arg(long)]
    pub(crate) invalid: bool,
    /// Go on without the cells that need a program which is not installed; they count as failed
    #[arg(long)]
    pub(crate) skip_missing: bool,
    /// Run the commands in a journal that this user did not begin on this machine
    #[arg(long)]
    pub(crate) trust: bool,
    #[command(flatten)]
    pub(crate) junit: Junit,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) watching: Watching,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Folder of the run, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET
    #[arg(add = complete::runs())]
    pub(crate) run: PathBuf,
    /// Write the documents into this folder, for a run that cannot be written to
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) junit: Junit,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder of the run, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET
    #[arg(add = complete::runs())]
    pub(crate) run: PathBuf,
    /// Format
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// Write into this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ExportFormat {
    /// OpenMetrics text (Prometheus)
    #[value(name = "openmetrics")]
    OpenMetrics,
    /// InfluxDB line protocol
    Influx,
    /// Comma-separated values: one row per figure, as in results.csv
    Csv,
}

#[derive(Debug, Args)]
pub(crate) struct Figures {
    /// Folder of the run
    pub(crate) run: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Folders of runs, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET; the base first
    #[arg(required = true, value_name = "RUN", add = complete::runs())]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare device OLD of the base with device NEW of the others, or of the same single run; may
    /// be repeated
    ///
    /// Both may be versions of programs, which the campaign names in `program`. A single run with
    /// versions compares them without this option.
    #[arg(long = "match", value_name = "OLD=NEW", add = complete::matches())]
    pub(crate) matches: Vec<compare::Match>,
    /// Rule that the changes must keep, such as `tcp throughput drops > 5 %`; may be repeated
    ///
    /// Filters (a kind of trial, `dut=NAME`, an axis such as `mtu=1500`), a quantity (throughput,
    /// efficiency, p50, p99, transactions, set-ups, operations, burst, recovery, loss), and a
    /// limit: `drops > 5 %` or `rises > 5 %` from the base, or of each run alone a figure (`>= 5
    /// Gbit/s`, `<= 300 us`, `loss = 0`) or a share (`>= 50 % of baseline`).
    #[arg(long = "gate", value_name = "RULE", add = complete::gates())]
    pub(crate) gates: Vec<String>,
    /// Count changes that are surely smaller than this many per cent as none
    #[arg(long, value_name = "PERCENT", default_value_t = compare::MARGIN_PERCENT, value_parser = percent)]
    pub(crate) margin: f64,
    /// Write the gates into this file as JUnit XML
    #[arg(long, value_name = "FILE", requires = "gates")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the comparison into this file as Markdown, for a pull request
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Print everything that differs in machine, settings and devices, not the first of it
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Print the comparison as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// Folders of runs, `fleet:JOB`, or folders that contain runs
    #[arg(required = true, value_name = "RUN", add = complete::runs())]
    pub(crate) runs: Vec<PathBuf>,
    /// Print the history as JSON, with every figure
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Form {
    /// Print every table
    #[arg(long, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Print the result as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Default, Args)]
pub(crate) struct Junit {
    /// Write the outcomes of the campaign's limits as JUnit XML
    #[arg(long = "junit", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Set the sysctls that affect results, lengthen the receive rings of a lab's interfaces where
    /// the driver allows, and record the old values
    #[arg(long, conflicts_with = "revert")]
    pub(crate) apply: bool,
    /// Restore what `--apply` changed
    #[arg(long)]
    pub(crate) revert: bool,
    /// Look at (or tune) every host of a lab, and the interfaces that it uses there
    #[arg(long, value_name = "FILE", add = complete::labs())]
    pub(crate) lab: Option<PathBuf>,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Find the offloads and MTUs that break or slow a path of the lab
    #[arg(long, conflicts_with_all = ["apply", "revert", "interface"])]
    pub(crate) offloads: bool,
    /// The device that the path leads through; `direct`: none
    #[arg(long, value_name = "DUT", requires = "offloads", default_value = session::THROUGH[0])]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(session::THROUGH))]
    pub(crate) through: String,
    /// Time for it
    #[arg(
        long,
        value_name = "TIME",
        requires = "offloads",
        default_value = "10min"
    )]
    #[arg(value_parser = value::long_duration)]
    pub(crate) time: Duration,
    /// An interface that a lab uses on this host
    #[arg(long, hide = true, conflicts_with = "lab")]
    pub(crate) interface: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Encrypt {
    /// Configuration of this end
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Only install what keeps packets for the networks behind the peers from leaving in clear, and
    /// exit: before the network is up, or after a firewall's reload
    #[arg(long, conflicts_with = "remove")]
    pub(crate) protect: bool,
    /// Remove that, and exit: packets then follow the host's other routes, in clear
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Kme {
    /// Configuration of all KMEs
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Station {
    /// Enter new namespaces first, as this place of the built-in lab: a, gw1, gw2 or b
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Assign programs these CPUs only, by the kernel's numbers [default: all]
    #[arg(long, value_name = "CPU,CPU", value_delimiter = ',', requires = "node")]
    pub(crate) cpus: Vec<u16>,
    /// Serve a host: end when the caller is silent for some seconds
    #[arg(long, conflicts_with = "node")]
    pub(crate) host: bool,
    /// Remove this program's own file, which was sent here, and its folder, and serve only if the
    /// file has this SHA-256
    #[arg(long, value_name = "HASH", requires = "host")]
    pub(crate) sent: Option<String>,
}
