//! The command line of `runs`.

use super::complete;
use super::value::age;
use clap::{ArgGroup, Args, Subcommand};
use session::runs::Rule;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,
    /// Folder of the runs
    #[arg(value_name = "DIR", default_value = journal::DEFAULT_ROOT)]
    pub(crate) folder: PathBuf,
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Open a run's report in the browser, and print its address
    ///
    /// Without a desktop (`DISPLAY` or `WAYLAND_DISPLAY`), or without `xdg-open`, only prints it.
    Open {
        /// Folder of the run, or its name in `runs`
        #[arg(add = complete::runs())]
        run: PathBuf,
    },
    /// Delete old runs, after a question
    ///
    /// Lists what it would delete. Never deletes a run that is running, or a folder that is no run.
    Prune(Prune),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("rule").required(true))]
pub(crate) struct Prune {
    /// Folder of the runs
    #[arg(value_name = "DIR", default_value = journal::DEFAULT_ROOT)]
    pub(crate) folder: PathBuf,
    /// Delete the runs that began longer ago, such as `30d` or `12h`
    #[arg(long, value_name = "AGE", group = "rule", value_parser = age)]
    older_than: Option<Duration>,
    /// Delete all runs but this many of the newest
    #[arg(long, value_name = "N", group = "rule")]
    keep: Option<usize>,
    /// Delete without a question
    #[arg(long, short)]
    pub(crate) yes: bool,
}

impl Prune {
    /// Clap requires one of both.
    pub(crate) fn rule(&self) -> Rule {
        match self.older_than {
            Some(age) => Rule::OlderThan(age),
            None => Rule::Keep(self.keep.unwrap_or(usize::MAX)),
        }
    }
}
