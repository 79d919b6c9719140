//! `cipherbench fleet …`: one queue of campaigns for many labs.

mod cache;
mod history;
mod pooled;
mod serve;
mod status;

pub(crate) use cache::{folder_of, journal_of};

use crate::cli::{Fleet as Arguments, FleetCommand};
use crate::exit::{Exit, Failure};
use crate::planning::load_lab;
use crate::{output, signals};
use campaign::HostFacts;
use fleet::{
    Access, Agent, AgentLab, Fleet, FleetError, Identity, Job, LEFT_AFTER, Selector, Server,
    ServerExtras, ServerOptions, ServerTls, State, Trust, fetch, leftovers_removed, new_id, submit,
    watch,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;

pub(crate) fn fleet(arguments: &Arguments) -> Result<Exit, Failure> {
    let access = Access {
        url: arguments.url.clone(),
        key: arguments.key.clone(),
        ca: arguments.ca.clone(),
    };
    match &arguments.command {
        FleetCommand::Server {
            existing: true,
            replicas,
            ..
        } => {
            let removed: Result<_, FleetError> = fleet::run(async {
                let fleet = Fleet::set_up(&access, replicas.map(usize::from)).await?;
                Ok(fleet.remove_leftovers(LEFT_AFTER).await)
            });
            let removed = removed.map_err(failure)?;
            output::stdout(&format!("the server at {} has a fleet\n", access.url))?;
            match removed {
                Ok(uploads) => {
                    if let Some(said) = leftovers_removed(uploads) {
                        output::stdout(&format!("{said}\n"))?;
                    }
                }
                // The fleet is there.
                Err(error) => output::warn(&[error]),
            }
            Ok(Exit::Done)
        }
        FleetCommand::Server {
            listen,
            store,
            users,
            tls_cert,
            tls_key,
            plain,
            store_max,
            ..
        } => {
            let options = ServerOptions {
                listen: *listen,
                folder: store.clone(),
                users: users.clone(),
            };
            let tls = tls_cert.clone().zip(tls_key.clone());
            serve(
                &options,
                &ServerExtras {
                    tls: tls.map(|(certificate, key)| ServerTls { certificate, key }),
                    is_plain: *plain,
                    store_bytes_max: *store_max,
                },
            )
        }
        FleetCommand::Agent {
            labs,
            folder,
            labels,
            allow,
            trust,
        } => agent(
            access,
            labs,
            folder,
            labels,
            allow.as_deref(),
            trust.as_deref(),
        ),
        FleetCommand::Key { file } => {
            let identity = Identity::create(file).map_err(failure)?;
            output::stdout(&format!("{}\n", identity.public()))?;
            Ok(Exit::Done)
        }
        FleetCommand::Submit {
            campaign,
            quick,
            lab,
            select,
            priority,
            matrix,
            every,
        } => {
            let job = Job {
                id: String::new(),
                name: campaign.display().to_string(),
                campaign: read(campaign)?,
                quick: *quick,
                selector: Selector {
                    lab: lab.clone(),
                    labels: select.iter().cloned().collect(),
                },
                priority: *priority,
                labels: BTreeMap::new(),
                by: std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned()),
                every: *every,
                period: None,
                signature: None,
            };
            queue(&access, &job, matrix.as_ref())
        }
        FleetCommand::Status { json, all } => status::status(&access, *json, *all),
        FleetCommand::Watch { until_done } => status::watch(&access, *until_done),
        FleetCommand::Records { job } => status::records(&access, job),
        FleetCommand::Serve { listen } => serve::serve(&access, *listen),
        FleetCommand::Cancel { job } => cancel(&access, job),
        FleetCommand::Release { job } => {
            let released = fleet::run(async { Fleet::connect(&access).await?.release(job).await });
            match released.map_err(failure)? {
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
        FleetCommand::History { cell, json } => history::history(&access, cell.as_deref(), *json),
        FleetCommand::Fetch { job, out } => {
            let (run, state) = fleet::run(async {
                let fleet = Fleet::connect(&access).await?;
                let run = fetch(&fleet, job, out).await?;
                Ok((run, fleet.state(job).await?))
            })
            .map_err(failure)?;
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
            output::stdout(&format!("{}\n", run.display()))?;
            Ok(Exit::Done)
        }
    }
}

/// Labels behind a lab's name.
fn labels(labels: &BTreeMap<String, String>) -> String {
    let labels = labels.iter();
    labels
        .map(|(key, value)| format!(" {key}={value}"))
        .collect()
}

fn failure(error: FleetError) -> Failure {
    let exit = match error {
        FleetError::Disk { .. } | FleetError::Mistake { .. } => Exit::Usage,
        _ => Exit::CannotBuild,
    };
    Failure::new(exit, error)
}

fn unknown(job: &str) -> Failure {
    let text = format!(
        "the fleet has no job {job}\nhelp: `cipherbench fleet status --all` lists jobs and their state"
    );
    Failure::new(Exit::Usage, text)
}

fn cancel(access: &Access, job: &str) -> Result<Exit, Failure> {
    let (repeated, before) = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        Ok((fleet.end_repeat(job).await?, fleet.cancel(job).await?))
    })
    .map_err(failure)?;
    let text = match before {
        _ if repeated => format!("job {job} is repeated no more; what it has queued stays\n"),
        None => return Err(unknown(job)),
        Some(state) if state.is_final() => format!("job {job} was {} already\n", state.word()),
        Some(state) => format!("job {job} is cancelled; it was {}\n", state.word()),
    };
    output::stdout(&text)?;
    Ok(Exit::Done)
}

/// A campaign's text, without mistakes as far as they do not depend on a lab.
fn read(path: &Path) -> Result<String, Failure> {
    // Each lab's agent checks it for its own machine.
    let host = HostFacts { cores: u16::MAX };
    campaign::load(path, &host)?;
    fs::read_to_string(path).map_err(|error| {
        let text = format!(
            "cannot read {}: {error}\nhelp: check the path",
            path.display()
        );
        Failure::new(Exit::Usage, text)
    })
}

fn serve(options: &ServerOptions, extras: &ServerExtras) -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    if options.users.is_none() && !options.listen.ip().is_loopback() {
        let text = "without --users, whoever reaches this server may do everything there";
        output::warn(&[text]);
    }
    let mut server = Server::start_with(options, extras).map_err(failure)?;
    fleet::run(server.set_up()).map_err(failure)?;
    // A service whose standard output is closed continues.
    let _ = output::stdout(&format!("ready url={}\n", server.access().url));
    while !stop.is_raised() {
        let limit = Some(std::time::Duration::from_millis(500));
        let _ = port::wait_readable(&[stop.as_fd()], limit);
        for text in server.tend() {
            output::stderr(&format!("{text}\n"));
        }
        if let Some(how) = server.ended() {
            let text = format!(
                "nats-server ended ({how})\nhelp: see {}",
                options.folder.join("server.log").display()
            );
            return Err(Failure::new(Exit::CannotBuild, text));
        }
    }
    Ok(Exit::Done)
}

fn agent(
    access: Access,
    labs: &[PathBuf],
    folder: &Path,
    labels: &[(String, String)],
    allow: Option<&Path>,
    trust: Option<&Path>,
) -> Result<Exit, Failure> {
    let io = |what: String| {
        move |error: std::io::Error| {
            let text = format!("{what}: {error}\nhelp: check the path and its owner");
            Failure::new(Exit::Usage, text)
        }
    };
    let labs = labs.iter().map(|path| {
        let name = load_lab(path)?.plan().name.clone();
        // Runs start in folders of their own.
        let file = match path.exists() {
            true => path
                .canonicalize()
                .map_err(io(format!("cannot find {}", path.display())))?,
            false => path.clone(),
        };
        Ok(AgentLab {
            name,
            file: file.display().to_string(),
            labels: labels.iter().cloned().collect(),
        })
    });
    let labs = labs.collect::<Result<Vec<_>, Failure>>()?;
    fs::create_dir_all(folder).map_err(io(format!("cannot make {}", folder.display())))?;
    let folder = folder
        .canonicalize()
        .map_err(io(format!("cannot find {}", folder.display())))?;
    let program = std::env::current_exe().map_err(io("cannot find this program".to_owned()))?;
    let allow = allow.map(|path| {
        let found = path.canonicalize();
        found.map_err(io(format!("cannot find {}", path.display())))
    });
    let agent = Agent {
        program,
        folder,
        access,
        labs,
        allow: allow.transpose()?,
        trust: trust.map(Trust::read).transpose().map_err(failure)?,
    };
    let stopped = stop_channel()?;
    fleet::run(agent.run(stopped, |text| output::stderr(&format!("{text}\n")))).map_err(failure)?;
    Ok(Exit::Done)
}

/// A channel that says when a signal asks the program to end.
fn stop_channel() -> Result<watch::Receiver<bool>, Failure> {
    let stop = signals::stop()?;
    let (sender, stopped) = watch::channel(false);
    thread::spawn(move || {
        // Without events it is stopped by SIGKILL only, and loses nothing.
        let _ = port::wait_readable(&[stop.as_fd()], None);
        let _ = sender.send(true);
    });
    Ok(stopped)
}

fn queue(access: &Access, job: &Job, matrix: Option<&(String, String)>) -> Result<Exit, Failure> {
    let mut jobs: Vec<Job> = match matrix {
        None => vec![Job {
            id: new_id(),
            ..job.clone()
        }],
        Some((key, values)) => {
            let of_value = |value: &str| {
                let mut job = Job {
                    id: new_id(),
                    ..job.clone()
                };
                job.selector.labels.insert(key.clone(), value.to_owned());
                job.labels.insert(key.clone(), value.to_owned());
                job
            };
            values.split(',').map(of_value).collect()
        }
    };
    if let Some(path) = &access.key {
        let identity = Identity::read(path).map_err(failure)?;
        for job in &mut jobs {
            job.sign(&identity);
        }
    }
    let sent = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        for job in &jobs {
            match job.every {
                Some(_) => fleet.repeat(job).await?,
                None => submit(&fleet, job).await?,
            }
        }
        Ok(())
    });
    sent.map_err(failure)?;
    let ids: String = jobs.iter().map(|job| format!("{}\n", job.id)).collect();
    output::stdout(&ids)?;
    Ok(Exit::Done)
}
