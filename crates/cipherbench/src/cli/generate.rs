//! The command line of `generate`.

use super::complete::Shell;
use clap::{Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Write the manual pages: one for each command
    ///
    /// Their date is SOURCE_DATE_EPOCH, if that is set, and otherwise today.
    Man {
        /// Folder for them
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        output: PathBuf,
    },
    /// Print the completions of a shell
    ///
    /// For bash, in ~/.bashrc: `source <(cipherbench generate completions bash)`; for zsh the
    /// same in ~/.zshrc, after `compinit`; for fish, in ~/.config/fish/config.fish: `cipherbench
    /// generate completions fish | source`. The packages have them. The script calls the program,
    /// which knows shipped campaigns and labs, and the runs in `runs`.
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
}
