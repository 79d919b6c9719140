//! The command line of `cipherbench fleet`.

use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Fleet {
    /// The server
    #[arg(long, global = true, value_name = "URL", env = "CIPHERBENCH_FLEET")]
    #[arg(default_value = "nats://127.0.0.1:4222")]
    pub(crate) url: String,
    /// File of credentials: a user's JWT and NKey
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// Certificates of who signed the server's (PEM)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Run a server for a fleet, until SIGTERM; with `--existing`, prepare one that runs
    ///
    /// Starts the packaged nats-server with file storage, each message on the disk before it is
    /// acknowledged.
    Server {
        /// Where it listens
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4222")]
        listen: SocketAddr,
        /// Folder of its store
        #[arg(long, value_name = "DIR", default_value = "fleet")]
        store: PathBuf,
        /// Start none: make the fleet on the server at `--url`
        #[arg(long)]
        existing: bool,
        /// Copies of everything, on a cluster
        #[arg(long, value_name = "N", default_value_t = 1, requires = "existing")]
        #[arg(value_parser = clap::value_parser!(u8).range(1..=5))]
        replicas: u8,
    },
    /// Offer labs of this machine, and run what is queued for them, until SIGTERM
    ///
    /// One run per lab at a time. After a crash the run goes on where it ended.
    Agent {
        /// Lab files, or built-in labs (`namespaces`, `memory`)
        #[arg(required = true, value_name = "LAB")]
        labs: Vec<PathBuf>,
        /// What this agent keeps: its identity, and runs until they are in the archive
        #[arg(long, value_name = "DIR", default_value = "fleet-agent")]
        folder: PathBuf,
        /// What submitters may ask for, such as `firmware=2.1`
        #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
    },
    /// Queue a campaign; prints the jobs' ids
    Submit {
        /// Campaign file
        campaign: PathBuf,
        /// The campaign's short form
        #[arg(long)]
        quick: bool,
        /// In this lab only
        #[arg(long, value_name = "NAME")]
        lab: Option<String>,
        /// In labs with this label only
        #[arg(long = "select", value_name = "KEY=VALUE", value_parser = label)]
        select: Vec<(String, String)>,
        /// Before jobs of a lower one
        #[arg(
            long,
            value_name = "N",
            default_value_t = 0,
            allow_negative_numbers = true
        )]
        priority: i32,
        /// One job for each value, in labs with that label
        #[arg(long, value_name = "KEY=VALUE,VALUE", value_parser = label)]
        matrix: Option<(String, String)>,
    },
    /// List labs and jobs
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Cancel a job; a run of it is ended
    Cancel {
        /// Its id
        job: String,
    },
    /// Queue a job again whose lab will not come back
    ///
    /// Only when its agent is gone for good: otherwise it would be measured twice.
    Release {
        /// Its id
        job: String,
    },
    /// Copy a job's run from the archive, each file verified by its hash
    Fetch {
        /// Its id
        job: String,
        /// Folder for the run's folder
        #[arg(long, value_name = "DIR", default_value = "runs")]
        out: PathBuf,
    },
}

/// `key=value`.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("write KEY=VALUE, such as `firmware=2.1`".to_owned()),
    }
}
