//! The command line of `tunnel-check`.

use super::value::{long_duration, whole};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use tunnelcheck::Token;

#[derive(Debug, Args)]
pub(crate) struct TunnelCheck {
    /// The other end's address in the tunnel, with a port if `--listen` has another
    #[arg(value_name = "HOST", conflicts_with = "listen")]
    pub(crate) host: Option<String>,
    /// The token that `--listen` printed
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["listen", "ssh"])]
    pub(crate) token: Option<Token>,
    /// Start the other end by ssh, as USER@HOST or a name of ~/.ssh/config; the program is sent
    /// there if it is missing, and nothing is left
    #[arg(long, value_name = "USER@HOST", conflicts_with = "listen")]
    pub(crate) ssh: Option<String>,
    /// Be the end that waits, on this address of the tunnel [default: the only tunnel's], and print
    /// the command for the other host; port 8423 unless another is given
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1)]
    pub(crate) listen: Option<Option<String>>,
    /// With `--listen`: how long to wait for the other end
    #[arg(long, value_name = "TIME", default_value = "10 min", value_parser = long_duration)]
    pub(crate) wait: Duration,
    /// Seconds of TCP in each direction
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<u32>(2, 30))]
    pub(crate) seconds: u32,
    /// Also search the offload that breaks or slows the tunnel, up to 60 s more: needs root at both
    /// ends, changes offloads of the tunnel's interfaces, and restores them
    #[arg(long, conflicts_with = "listen")]
    pub(crate) offloads: bool,
    /// Print the answer as JSON
    #[arg(long, conflicts_with = "listen")]
    pub(crate) json: bool,
    /// Also write the answer as JSON into this file
    #[arg(long, value_name = "FILE", conflicts_with = "listen")]
    pub(crate) out: Option<PathBuf>,
    /// Do not show progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// With `--listen`: read the token from standard input, instead of making one
    #[arg(long, hide = true, requires = "listen")]
    pub(crate) token_on_stdin: bool,
}
