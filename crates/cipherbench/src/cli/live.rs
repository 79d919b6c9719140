//! The options of a run about how it is watched, and the command line of `serve`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The address of the pages; 8422 is that of a fleet's.
pub(crate) const PAGES_ADDRESS: &str = "127.0.0.1:8421";

#[derive(Debug, Default, Args)]
pub(crate) struct Watching {
    /// Also add the lines of progress and all warnings to the end of this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Show the run in a browser while it goes on, with the other runs of its folder, at this
    /// address [default: 127.0.0.1:8421]; without an address write it last (docs/live.md)
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1)]
    #[arg(default_missing_value = PAGES_ADDRESS, value_parser = address)]
    pub(crate) live: Option<SocketAddr>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Folder of the runs
    #[arg(value_name = "RUNS", default_value = journal::DEFAULT_ROOT)]
    pub(crate) folder: PathBuf,
    /// Address of the pages; other machines reach it only if it is not of the loopback interface
    #[arg(long, value_name = "ADDRESS:PORT", default_value = PAGES_ADDRESS)]
    pub(crate) listen: SocketAddr,
    /// Host name that browsers may use, besides addresses and `localhost`
    #[arg(long = "name", value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "no address with a port, such as `{PAGES_ADDRESS}`; a campaign goes before `--live`"
        )
    })
}
