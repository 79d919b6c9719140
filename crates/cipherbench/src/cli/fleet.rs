//! The command line of `cipherbench fleet`.

use super::complete;
use super::value::whole;
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Default URL: a server that `fleet server` starts.
pub(crate) const DEFAULT_URL: &str = "nats://127.0.0.1:4222";

#[derive(Debug, Args)]
pub(crate) struct Fleet {
    /// The server, or several of a cluster, separated by commas
    #[arg(long, global = true, value_name = "URL", env = "CIPHERBENCH_FLEET")]
    #[arg(default_value = DEFAULT_URL)]
    pub(crate) url: String,
    /// The user's NKey (`fleet key`), or credentials of NATS (.creds); signs submitted jobs
    #[arg(long, alias = "credentials", global = true, value_name = "FILE")]
    #[arg(env = "CIPHERBENCH_FLEET_KEY")]
    pub(crate) key: Option<PathBuf>,
    /// CA certificates that signed the server's certificate (PEM); requires TLS
    #[arg(long, global = true, value_name = "FILE", env = "CIPHERBENCH_FLEET_CA")]
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
    Server(Server),
    /// Offer labs of this machine, and run the jobs queued for them, until SIGTERM
    ///
    /// Labs of one machine take turns, also over several agents of one user. After a crash the run
    /// is resumed.
    Agent(Agent),
    /// Make a user's key; prints the public one
    Key {
        /// File for it, which must not exist
        file: PathBuf,
    },
    /// Make users, for a server that another program starts
    ///
    /// One of each role and an administrator, with their keys, as the first start of `fleet server`
    /// does; and `users.conf`, the part of nats-server's configuration with these users. Existing
    /// files are kept.
    Users {
        /// Folder for them
        folder: PathBuf,
    },
    /// Queue a campaign; prints the jobs' ids
    Submit(Submit),
    /// List labs and jobs
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// All jobs, not only those under way and the last 20 that ended
        #[arg(long)]
        all: bool,
    },
    /// Print jobs under way and each change of a job, until Ctrl-C
    Watch {
        /// End when every job has ended
        #[arg(long)]
        until_done: bool,
    },
    /// Print each line of a job's journal as its run writes it, until the job has ended
    ///
    /// The server keeps them for a week. The run in the archive (`fetch`) is complete.
    Records {
        /// The job's id
        job: String,
    },
    /// Show the fleet in a browser, until SIGTERM: labs, queue, progress, reports, courses of cells
    ///
    /// The page is read-only and has no login: everybody who reaches the address sees it.
    Serve {
        /// Listening address
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8422")]
        listen: SocketAddr,
        /// Host name that browsers may use, besides addresses and `localhost`
        #[arg(long = "name", value_name = "NAME")]
        names: Vec<String>,
    },
    /// Cancel a job: end its run, and stop its repetition
    Cancel {
        /// Its id
        job: String,
    },
    /// Requeue a job of a lab that will not come back
    ///
    /// Only when its agent is gone for good: otherwise it would be measured twice.
    Release {
        /// Its id
        job: String,
    },
    /// Remove an entry of the server that cannot be read (`status` lists them)
    Discard {
        /// The entry
        #[arg(value_name = "BUCKET/KEY")]
        entry: String,
    },
    /// Copy a job's run from the archive, each file verified by its hash
    Fetch {
        /// Its id
        job: String,
        /// Folder for the run's folder
        #[arg(long, value_name = "DIR", default_value = "runs")]
        out: PathBuf,
    },
    /// Print a cell's figures in all runs, their changes, and other changes at the same runs
    ///
    /// Without a cell, lists the cells.
    History {
        /// The cell's id, as in a run's results.json
        cell: Option<String>,
        /// As JSON
        #[arg(long, requires = "cell")]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Server {
    /// Listening address
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4222")]
    pub(crate) listen: SocketAddr,
    /// Folder of its store
    #[arg(long, value_name = "DIR", default_value = "fleet")]
    pub(crate) store: PathBuf,
    /// Users and their roles: lines `ROLE KEY NAME` with the roles reader, submitter and agent
    ///
    /// Without it they are in the store's folder: the first start makes one user of each role.
    /// A changed file takes effect within seconds; a file with a mistake is reported and
    /// ignored.
    #[arg(long, value_name = "FILE", conflicts_with = "existing")]
    pub(crate) users: Option<PathBuf>,
    /// Have no users: everybody on this machine may do everything; on a loopback address only
    #[arg(long, conflicts_with_all = ["existing", "users"])]
    pub(crate) open: bool,
    /// The server's certificate (PEM), reloaded when it changes
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "existing",
        requires = "tls_key"
    )]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond this machine without TLS: the network itself is encrypted
    #[arg(long, conflicts_with_all = ["existing", "tls_cert"])]
    pub(crate) plain: bool,
    /// Maximum size of its store [default: its current size and 90 % of the free space there]
    #[arg(long, value_name = "SIZE", conflicts_with = "existing", value_parser = size)]
    pub(crate) store_max: Option<u64>,
    /// Start no server: make the fleet on the server at `--url`
    #[arg(long)]
    pub(crate) existing: bool,
    /// Copies of all data, on a cluster [default: the existing number, or one]
    #[arg(long, value_name = "N", requires = "existing")]
    #[arg(value_parser = whole::<u8>(1, 5))]
    pub(crate) replicas: Option<u8>,
}

#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// Lab files, or built-in labs (`namespaces`, `memory`)
    #[arg(required = true, value_name = "LAB", add = complete::labs())]
    pub(crate) labs: Vec<PathBuf>,
    /// Folder for this agent's identity, and for runs until they are in the archive
    #[arg(long, value_name = "DIR", default_value = "fleet-agent")]
    pub(crate) folder: PathBuf,
    /// Label that submitters can select, such as `firmware=2.1`
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Permissions of campaigns here, in the format of `check --allow`
    ///
    /// Without it, campaigns of `external` boxes and of devices that load code do not fit.
    #[arg(long, value_name = "FILE")]
    pub(crate) allow: Option<PathBuf>,
    /// Run only jobs signed by these keys: lines `KEY NAME`
    #[arg(long, value_name = "FILE")]
    pub(crate) trust: Option<PathBuf>,
    /// Do not wait while another lab of the machine is measured: each disturbs the other
    #[arg(long)]
    pub(crate) at_once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Campaign file
    #[arg(add = complete::campaigns())]
    pub(crate) campaign: PathBuf,
    /// Submit the campaign's short form
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run in this lab only [default: the lab that the campaign names (`lab:`), or any]
    #[arg(long, value_name = "NAME")]
    pub(crate) lab: Option<String>,
    /// Run in labs with this label only
    #[arg(long = "select", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) select: Vec<(String, String)>,
    /// Priority: jobs with a higher one run first
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    pub(crate) priority: i32,
    /// Submit one job for each value, in labs with that label
    #[arg(long, value_name = "KEY=VALUE,VALUE", value_parser = label)]
    pub(crate) matrix: Option<(String, String)>,
    /// Repeat once in each period until cancelled: `1 day`, `6 h`
    #[arg(long, value_name = "PERIOD", value_parser = period)]
    pub(crate) every: Option<u64>,
    /// How long its signature is valid: agents with `--trust` run it until then
    ///
    /// At most 400 days. By default 30 days, or 365 days with `--every`.
    #[arg(long, value_name = "PERIOD", value_parser = validity)]
    pub(crate) valid: Option<u64>,
}

/// `key=value`.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        // Only the first `=` separates: values may have more.
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("write KEY=VALUE, such as `firmware=2.1`".to_owned()),
    }
}

/// A number of bytes.
fn size(text: &str) -> Result<u64, String> {
    let size = units::Bytes::parse(text).map_err(|error| error.to_string())?;
    Ok(size.get())
}

/// A period in seconds.
fn period(text: &str) -> Result<u64, String> {
    let days = ["days", "day", "d"]
        .iter()
        .find_map(|unit| text.trim().strip_suffix(unit));
    let seconds = match days.map(|number| number.trim().parse::<u32>()) {
        // At most 2^32 days: the product cannot overflow.
        Some(Ok(days)) => u64::from(days) * 24 * 60 * 60,
        Some(Err(_)) => return Err("write a whole number of days, such as `1 day`".to_owned()),
        None => {
            let period = units::time::parse(text).map_err(|error| error.to_string())?;
            // Periods are counted in whole seconds on the server.
            if period.subsec_nanos() != 0 {
                return Err("write a whole number of seconds".to_owned());
            }
            period.as_secs()
        }
    };
    match seconds {
        0 => Err("a period has at least 1 s".to_owned()),
        seconds => Ok(seconds),
    }
}

/// A validity in seconds.
fn validity(text: &str) -> Result<u64, String> {
    const DAYS_MAX: u64 = 400;
    match period(text)? {
        seconds if seconds > DAYS_MAX * 24 * 60 * 60 => Err(format!(
            "agents remember signed jobs for {DAYS_MAX} days at most"
        )),
        seconds => Ok(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::{period, validity};

    #[test]
    fn a_validity_is_at_most_what_agents_remember() {
        assert_eq!(validity("400 days"), Ok(400 * 86_400));
        for text in ["401 days", "0 s"] {
            assert!(validity(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_period_is_a_whole_number_of_seconds() {
        for (text, seconds) in [
            ("1 day", 86_400),
            ("2 d", 172_800),
            ("6 h", 21_600),
            ("1s", 1),
        ] {
            assert_eq!(period(text), Ok(seconds), "{text}");
        }
        for text in ["", "day", "0 s", "500 ms", "-1 day", "1.5 days", "soon"] {
            assert!(period(text).is_err(), "{text}");
        }
    }
}
