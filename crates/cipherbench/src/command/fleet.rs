//! `cipherbench fleet …`: one queue of campaigns for many labs.

mod agent;
mod server;
mod submit;
mod views;

use crate::cli::{DEFAULT_URL, Fleet as Arguments, FleetCommand};
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use fleet::{Access, FirstUsers, Fleet, FleetError, Identity, State, fetch, watch};
use guard::{escaped, unescaped};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use view::ViewError;

pub(crate) fn fleet(arguments: &Arguments) -> Result<Exit, Failure> {
    let access = Access {
        url: arguments.url.clone(),
        key: arguments.key.clone(),
        ca: arguments.ca.clone(),
    };
    match &arguments.command {
        FleetCommand::Server(arguments) => server::server(&access, arguments),
        FleetCommand::Agent(arguments) => agent::agent(access, arguments),
        FleetCommand::Key { file } => {
            let identity = Identity::create(file)?;
            output::done(&format!("{}\n", identity.public()))
        }
        FleetCommand::Users { folder } => {
            let users = FirstUsers::of(folder)?;
            let path = folder.join("users.conf");
            output::file(&path, &users.config()?)?;
            let text = format!(
                "{} has the users of {}: include it in nats-server's configuration\n",
                path.display(),
                users.users.display()
            );
            output::done(&text)
        }
        FleetCommand::Submit(arguments) => submit::submit(&access, arguments),
        FleetCommand::Status { json, all } => views::status(&access, *json, *all),
        FleetCommand::Watch { until_done } => views::watch(&access, *until_done),
        FleetCommand::Records { job } => views::records(&access, job),
        FleetCommand::Serve { listen, names } => views::serve(&access, *listen, names),
        FleetCommand::Discard { entry } => discard(&access, entry),
        FleetCommand::Cancel { job } => cancel(&access, job),
        FleetCommand::Release { job } => {
            let released = fleet::run(async { Fleet::connect(&access).await?.release(job).await });
            match released? {
                Some(State::Running(_)) => {
                    output::stdout(&format!("job {job} is queued again\n"))?;
                }
                Some(state) => {
                    let text = format!(
                        "job {job} does not run: it is {}\nhelp: `cipherbench fleet status` lists what runs",
                        state.word()
                    );
                    return Err(Failure::new(Exit::Usage, text));
                }
                None => return Err(unknown(job)),
            }
            Ok(Exit::Done)
        }
        FleetCommand::History { cell, json } => views::history(&access, cell.as_deref(), *json),
        FleetCommand::Fetch { job, out } => {
            let (run, state) = fleet::run(async {
                let fleet = Fleet::connect(&access).await?;
                let run = fetch(&fleet, job, out).await?;
                Ok::<_, FleetError>((run, fleet.state(job).await?))
            })?;
            let run = match (run, state) {
                (Some(run), _) => run,
                (None, None) => return Err(unknown(job)),
                (None, Some(state)) => {
                    let text = format!(
                        "the fleet has no run of job {job}: it is {}\nhelp: `cipherbench fleet watch` shows when it is done",
                        state.word()
                    );
                    return Err(Failure::new(Exit::Usage, text));
                }
            };
            output::done(&format!("{}\n", run.display()))
        }
    }
}

fn unknown(job: &str) -> Failure {
    ViewError::UnknownJob(job.to_owned()).into()
}

/// The folder of a job's run in the cache, from the fleet at $CIPHERBENCH_FLEET.
pub(crate) fn cached(job: &str) -> Result<PathBuf, Failure> {
    let access = Access {
        url: set("CIPHERBENCH_FLEET").map_or_else(
            || DEFAULT_URL.to_owned(),
            |url| url.to_string_lossy().into_owned(),
        ),
        key: set("CIPHERBENCH_FLEET_KEY").map(PathBuf::from),
        ca: set("CIPHERBENCH_FLEET_CA").map(PathBuf::from),
    };
    // The archive never changes a run, so that one copy serves all later commands.
    Ok(view::cached(&access, job)?)
}

fn set(name: &str) -> Option<std::ffi::OsString> {
    // An empty variable counts as none: scripts clear one in that way.
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn cancel(access: &Access, job: &str) -> Result<Exit, Failure> {
    let (repeated, before) = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        // The id may be a repetition's or a job's: users need not know the difference.
        Ok::<_, FleetError>((fleet.end_repeat(job).await?, fleet.cancel(job).await?))
    })?;
    let text = match before {
        _ if repeated => format!("job {job} is repeated no more; what it has queued stays\n"),
        None => return Err(unknown(job)),
        Some(state) if state.is_final() => format!("job {job} was {} already\n", state.word()),
        Some(state) => format!("job {job} is cancelled; it was {}\n", state.word()),
    };
    output::done(&text)
}

fn discard(access: &Access, shown: &str) -> Result<Exit, Failure> {
    // `status` shows control characters escaped; what it printed can be pasted here.
    let entry = &*unescaped(shown);
    let (bucket, key) = entry.split_once('/').unwrap_or((entry, ""));
    let discarded = fleet::run(async { Fleet::connect(access).await?.discard(bucket, key).await });
    if discarded? {
        output::done(&format!("entry {} is removed\n", escaped(entry)))
    } else {
        let text = format!(
            "the fleet has no entry {}\nhelp: `cipherbench fleet status` lists those that cannot be read",
            escaped(entry)
        );
        Err(Failure::new(Exit::Usage, text))
    }
}

/// A channel that reports a termination signal.
fn stop_channel() -> Result<watch::Receiver<bool>, Failure> {
    let stop = signals::stop()?;
    let (sender, stopped) = watch::channel(false);
    // The flag is a file descriptor; the futures of a fleet wait for a channel.
    thread::spawn(move || {
        // Without events it is stopped by SIGKILL only, and loses nothing.
        let _ = port::wait_readable(&[stop.as_fd()], None);
        let _ = sender.send(true);
    });
    Ok(stopped)
}
