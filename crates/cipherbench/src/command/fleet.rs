//! `cipherbench fleet …`: one queue of campaigns for many labs.

use crate::cli::{Fleet as Arguments, FleetCommand};
use crate::exit::{Exit, Failure};
use crate::planning::load_lab;
use crate::{output, signals};
use campaign::HostFacts;
use fleet::{
    Access, Agent, AgentLab, Fleet, FleetError, Job, LabOffer, Row, Selector, Server,
    ServerOptions, State, fetch, new_id, submit, watch,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;

pub(crate) fn fleet(arguments: &Arguments) -> Result<Exit, Failure> {
    let access = Access {
        url: arguments.url.clone(),
        credentials: arguments.credentials.clone(),
        ca: arguments.ca.clone(),
    };
    match &arguments.command {
        FleetCommand::Server {
            existing: true,
            replicas,
            ..
        } => {
            fleet::run(Fleet::set_up(&access, usize::from(*replicas))).map_err(failure)?;
            output::stdout(&format!("the server at {} has a fleet\n", access.url))?;
            Ok(Exit::Done)
        }
        FleetCommand::Server { listen, store, .. } => serve(&ServerOptions {
            listen: *listen,
            folder: store.clone(),
        }),
        FleetCommand::Agent {
            labs,
            folder,
            labels,
        } => agent(access, labs, folder, labels),
        FleetCommand::Submit {
            campaign,
            quick,
            lab,
            select,
            priority,
            matrix,
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
            };
            queue(&access, &job, matrix.as_ref())
        }
        FleetCommand::Status { json } => status(&access, *json),
        FleetCommand::Cancel { job } => {
            let before = fleet::run(async { Fleet::connect(&access).await?.cancel(job).await });
            match before.map_err(failure)? {
                None => Err(unknown(job)),
                Some(state) if state.is_final() => {
                    output::stdout(&format!("job {job} was {} already\n", state.word()))?;
                    Ok(Exit::Done)
                }
                Some(state) => {
                    output::stdout(&format!(
                        "job {job} is cancelled; it was {}\n",
                        state.word()
                    ))?;
                    Ok(Exit::Done)
                }
            }
        }
        FleetCommand::Release { job } => {
            let released = fleet::run(async { Fleet::connect(&access).await?.release(job).await });
            match released.map_err(failure)? {
                true => output::stdout(&format!("job {job} is queued again\n"))?,
                false => {
                    let text = format!(
                        "job {job} does not run\nhelp: `cipherbench fleet status` lists what does"
                    );
                    return Err(Failure::new(Exit::Usage, text));
                }
            }
            Ok(Exit::Done)
        }
        FleetCommand::Fetch { job, out } => {
            let run = fleet::run(async { fetch(&Fleet::connect(&access).await?, job, out).await });
            let Some(run) = run.map_err(failure)? else {
                return Err(unknown(job));
            };
            output::stdout(&format!("{}\n", run.display()))?;
            Ok(Exit::Done)
        }
    }
}

fn failure(error: FleetError) -> Failure {
    let exit = match error {
        FleetError::Disk { .. } => Exit::Usage,
        _ => Exit::CannotBuild,
    };
    Failure::new(exit, error)
}

fn unknown(job: &str) -> Failure {
    let text = format!(
        "the fleet has no run of job {job}\nhelp: `cipherbench fleet status` lists jobs and their state"
    );
    Failure::new(Exit::Usage, text)
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

fn serve(options: &ServerOptions) -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let mut server = Server::start(options).map_err(failure)?;
    fleet::run(server.set_up()).map_err(failure)?;
    // A service whose standard output is closed continues.
    let _ = output::stdout(&format!("ready url={}\n", server.access().url));
    while !stop.is_raised() {
        let limit = Some(std::time::Duration::from_millis(500));
        let _ = port::wait_readable(&[stop.as_fd()], limit);
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
    let stop = signals::stop()?;
    let (sender, stopped) = watch::channel(false);
    thread::spawn(move || {
        // Without events it is stopped by SIGKILL only, and loses nothing.
        let _ = port::wait_readable(&[stop.as_fd()], None);
        let _ = sender.send(true);
    });
    let agent = Agent {
        program,
        folder,
        access,
        labs,
    };
    fleet::run(agent.run(stopped, |text| output::stderr(&format!("{text}\n")))).map_err(failure)?;
    Ok(Exit::Done)
}

fn queue(access: &Access, job: &Job, matrix: Option<&(String, String)>) -> Result<Exit, Failure> {
    let jobs: Vec<Job> = match matrix {
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
    let sent = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        for job in &jobs {
            submit(&fleet, job).await?;
        }
        Ok(())
    });
    sent.map_err(failure)?;
    let ids: String = jobs.iter().map(|job| format!("{}\n", job.id)).collect();
    output::stdout(&ids)?;
    Ok(Exit::Done)
}

fn status(access: &Access, json: bool) -> Result<Exit, Failure> {
    let found = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        Ok((fleet.offers().await?, fleet.rows().await?))
    });
    let (offers, rows): (Vec<LabOffer>, Vec<Row>) = found.map_err(failure)?;
    let text = match json {
        true => {
            let jobs: Vec<_> = rows
                .iter()
                .map(|row| serde_json::json!({ "job": row.job.id, "campaign": row.job.name, "by": row.job.by, "priority": row.job.priority, "labels": row.job.labels, "progress": row.state, "misfits": row.misfits }))
                .collect();
            format!("{}\n", serde_json::json!({ "labs": offers, "jobs": jobs }))
        }
        false => in_words(&offers, &rows),
    };
    output::stdout(&text)?;
    Ok(Exit::Done)
}

fn in_words(offers: &[LabOffer], rows: &[Row]) -> String {
    let mut text = String::new();
    if offers.is_empty() {
        text.push_str("No lab is on offer: `cipherbench fleet agent LAB` offers one\n");
    }
    for offer in offers {
        let labels: String = offer
            .labels
            .iter()
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        let job = offer
            .job
            .as_ref()
            .map_or_else(|| "idle".to_owned(), |job| format!("runs {job}"));
        let _ = writeln!(text, "lab {} ({}{labels}): {job}", offer.lab, offer.agent);
    }
    for Row {
        job,
        state,
        misfits,
    } in rows
    {
        let more = match state {
            State::Running(held) => format!(" in {}, attempt {}", held.lab, held.attempt),
            State::Done { held, exit } => format!(" in {}, exit code {exit}", held.lab),
            State::Parked { reason } => format!(": {reason}"),
            State::Queued { .. } if !misfits.is_empty() => {
                let reasons: Vec<_> = misfits
                    .iter()
                    .map(|(lab, reason)| format!("not in {lab}: {reason}"))
                    .collect();
                format!("; {}", reasons.join("; "))
            }
            State::Queued { .. } | State::Cancelled => String::new(),
        };
        let _ = writeln!(text, "{} {} {}{more}", job.id, job.name, state.word());
    }
    text
}
