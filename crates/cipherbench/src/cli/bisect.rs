//! The command line of `bisect`.

use super::complete;
use super::value::long_duration;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Bisect {
    /// Campaign file, or one of `examples` [default: a built-in campaign]
    #[arg(add = complete::campaigns(), conflicts_with = "resume")]
    pub(crate) campaign: Option<PathBuf>,
    /// The change that is looked for, such as `tcp throughput drops > 2 %`; docs/compare.md has the
    /// language
    #[arg(
        long,
        value_name = "RULE",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub(crate) gate: Option<String>,
    /// A revision of the git repository without the change
    #[arg(long, value_name = "REV", requires = "bad", conflicts_with_all = ["programs", "settings", "resume"])]
    pub(crate) good: Option<String>,
    /// A later revision with it
    #[arg(long, value_name = "REV", requires = "good")]
    pub(crate) bad: Option<String>,
    /// The command that builds a revision, for a shell in the top folder of its work tree
    #[arg(long, value_name = "COMMAND", requires = "good")]
    pub(crate) build: Option<String>,
    /// The built program, from the top folder [default: the usual one of the device]
    #[arg(long, value_name = "PATH", requires = "good")]
    pub(crate) program: Option<String>,
    /// Longest time of a build
    #[arg(long, value_name = "TIME", default_value = "30 min", value_parser = long_duration)]
    pub(crate) build_limit: Duration,
    /// Build revisions again whose programs are in the cache
    #[arg(long, requires = "good")]
    pub(crate) rebuild: bool,
    /// Folder of built programs [default: the user's cache]
    #[arg(long, value_name = "DIR", requires = "good")]
    pub(crate) cache: Option<PathBuf>,
    /// The repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) repository: PathBuf,
    /// Programs instead of revisions: from the one without the change to one with it
    #[arg(
        long,
        value_name = "FILE,FILE",
        value_delimiter = ',',
        conflicts_with = "resume"
    )]
    #[arg(required_unless_present_any = ["good", "settings", "resume"])]
    pub(crate) programs: Vec<PathBuf>,
    /// Sets of the device's `settings` instead of revisions: from the one without the change to one
    /// with it
    #[arg(
        long,
        value_name = "SET,SET",
        value_delimiter = ',',
        conflicts_with_all = ["programs", "resume"]
    )]
    pub(crate) settings: Vec<String>,
    /// The device that has these versions [default: the only one with a program, or with these
    /// sets]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    pub(crate) dut: Option<String>,
    /// Lab file, or one of `examples`, on this machine
    #[arg(long, value_name = "FILE", add = complete::labs(), conflicts_with = "resume")]
    pub(crate) lab: Option<PathBuf>,
    /// Use the campaign's short form, its key `quick`
    #[arg(long, conflicts_with = "resume")]
    pub(crate) quick: bool,
    /// Most pairs of trials before it ends undecided
    #[arg(long, value_name = "N", default_value_t = 2000)]
    #[arg(value_parser = clap::value_parser!(u32).range(50..=100_000))]
    pub(crate) pairs: u32,
    /// Repeats of all cells of the device at the end, with and without the change, to see what else
    /// changed; 0: none [default: the campaign's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    #[arg(conflicts_with = "resume")]
    pub(crate) repeats: Option<u32>,
    /// Folder in which the bisection's folder is created
    #[arg(long, value_name = "DIR", default_value = journal::DEFAULT_ROOT)]
    pub(crate) out: PathBuf,
    /// Continue the bisection in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// With `--resume`: run what a journal asks for that this user did not begin on this machine
    #[arg(long, requires = "resume")]
    pub(crate) trust: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
