//! The command line of `schema`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// Kind of file
    #[arg(value_enum)]
    pub(crate) kind: FileKind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum FileKind {
    /// Campaigns
    Campaign,
    /// Labs
    Lab,
    /// Configurations of `encrypt`
    Encryptor,
    /// Configurations of `kme`
    Kme,
}
