//! The command lines of `sign` and `verify`.

use super::complete;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// Folder of the run, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET
    #[arg(add = complete::runs())]
    pub(crate) run: PathBuf,
    /// Secret key, of `cipherbench keys signing` or `minisign -G`
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// Replace a signature
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Folder of the run, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET
    #[arg(add = complete::runs())]
    pub(crate) run: PathBuf,
    /// The signer's public key: its file, or its text, which begins with `RW`
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
}
