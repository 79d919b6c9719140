//! The command line of `examples`.

use super::complete;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Examples {
    /// Campaign or lab to print, for example `quick` or `labs/switch`
    #[arg(add = complete::examples())]
    pub(crate) name: Option<String>,
    /// Write it into this file instead [default: its name in this folder]
    #[arg(long, value_name = "FILE", requires = "name")]
    pub(crate) write: Option<Option<PathBuf>>,
    /// Write over an existing file
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
}
