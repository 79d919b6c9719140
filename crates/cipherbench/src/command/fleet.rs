//! `cipherbench fleet …`: one queue of campaigns for many labs.

use crate::cli::{DEFAULT_URL, Fleet as Arguments, FleetCommand};
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use campaign::HostFacts;
use fleet::{
    Access, Agent, AgentLab, Change, FirstUsers, Fleet, FleetError, Identity, Job, LEFT_AFTER,
    LabOffer, Record, Role, Selector, Server, ServerExtras, ServerOptions, ServerTls, State, Terms,
    Trust, fetch, leftovers_removed, new_id, submit, watch,
};
use guard::{Writers, escaped, unescaped, visible};
use journal::Journal;
use session::load_lab;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use view::{Status, ViewError, labels, visible_json};

/// The largest campaign that `check` reads.
const CAMPAIGN_BYTES_MAX: usize = 1 << 20;

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
            let (removed, is_open) = fleet::run(async {
                let fleet = Fleet::set_up(&access, replicas.map(usize::from)).await?;
                let removed = fleet.remove_leftovers(LEFT_AFTER).await;
                Ok::<_, FleetError>((removed, fleet.is_open()))
            })?;
            if is_open {
                output::warn(&[
                    "that server accepts everybody who reaches it; agents there need `--trust FILE`",
                ]);
            }
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
            open,
            tls_cert,
            tls_key,
            plain,
            store_max,
            ..
        } => {
            let first = match users {
                None if !open => Some(FirstUsers::of(store)?),
                _ => None,
            };
            if let Some(first) = first.as_ref().filter(|first| first.is_new) {
                let scheme = if tls_cert.is_some() { "tls" } else { "nats" };
                let url = format!("{scheme}://{listen}");
                output::stderr(&introduction(first, &url));
            }
            let of_store = first.map(|first| first.users);
            let options = ServerOptions {
                listen: *listen,
                folder: store.clone(),
                users: users.clone().or(of_store),
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
            at_once,
        } => {
            let labs = agent_labs(labs, labels, *at_once)?;
            agent(access, labs, folder, allow.as_deref(), trust.as_deref())
        }
        FleetCommand::Key { file } => {
            let identity = Identity::create(file)?;
            output::stdout(&format!("{}\n", identity.public()))?;
            Ok(Exit::Done)
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
            output::stdout(&text)?;
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
            valid,
        } => {
            let (text, named) = read(campaign)?;
            let job = Job {
                id: String::new(),
                name: campaign.display().to_string(),
                campaign: text,
                quick: *quick,
                selector: Selector {
                    lab: lab.clone().or_else(|| named.map(str::to_owned)),
                    labels: select.iter().cloned().collect(),
                },
                priority: *priority,
                labels: BTreeMap::new(),
                by: std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned()),
                every: *every,
                period: None,
                signature: None,
            };
            let days = if every.is_some() { 365 } else { 30 };
            let valid = Duration::from_secs(valid.unwrap_or(days * 24 * 60 * 60));
            queue(&access, &job, matrix.as_ref(), valid)
        }
        FleetCommand::Status { json, all } => status(&access, *json, *all),
        FleetCommand::Watch { until_done } => watch_jobs(&access, *until_done),
        FleetCommand::Records { job } => records(&access, job),
        FleetCommand::Serve { listen, names } => serve_pages(&access, *listen, names),
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
        FleetCommand::History { cell, json } => history(&access, cell.as_deref(), *json),
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
            output::stdout(&format!("{}\n", run.display()))?;
            Ok(Exit::Done)
        }
    }
}

fn unknown(job: &str) -> Failure {
    ViewError::UnknownJob(job.to_owned()).into()
}

/// The journal of a run: a folder, or `fleet:JOB` of the fleet at $CIPHERBENCH_FLEET.
pub(crate) fn journal_of(run: &Path) -> Result<Journal, Failure> {
    Ok(journal::read(&folder_of(run)?)?)
}

/// The folder of a run: the given one, or for `fleet:JOB` the folder in the cache.
pub(crate) fn folder_of(run: &Path) -> Result<PathBuf, Failure> {
    let job = run.to_str().and_then(|run| run.strip_prefix("fleet:"));
    match job {
        Some(job) if !run.exists() => {
            let access = Access {
                url: set("CIPHERBENCH_FLEET").map_or_else(
                    || DEFAULT_URL.to_owned(),
                    |url| url.to_string_lossy().into_owned(),
                ),
                key: set("CIPHERBENCH_FLEET_KEY").map(PathBuf::from),
                ca: set("CIPHERBENCH_FLEET_CA").map(PathBuf::from),
            };
            Ok(view::cached(&access, job)?)
        }
        _ => Ok(run.to_owned()),
    }
}

fn set(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn status(access: &Access, json: bool, all: bool) -> Result<Exit, Failure> {
    let status = fleet::run(async { Status::of(&Fleet::connect(access).await?, all).await })?;
    output::warn(status.unreadable());
    output::stdout(&if json { status.json() } else { status.text() })?;
    Ok(Exit::Done)
}

fn watch_jobs(access: &Access, until_done: bool) -> Result<Exit, Failure> {
    let stop = stop_channel()?;
    let mut printed = Ok(());
    let see = |change: Change<'_>| {
        let line = match change {
            Change::Job(job, state) => view::job_line(job, state),
            Change::Progress(job, progress) => view::progress_line(job, progress),
            Change::Away(reason) => return output::stderr(&format!("{reason}\n")),
        };
        if printed.is_ok() {
            printed = output::stdout(&line);
        }
    };
    fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        fleet.watch(until_done, stop, see).await;
        Ok::<_, FleetError>(())
    })?;
    printed?;
    Ok(Exit::Done)
}

/// Prints each line of a job's journal when it arrives, until the job has ended.
fn records(access: &Access, job: &str) -> Result<Exit, Failure> {
    let mut printed = Ok(());
    let see = |record: Record| {
        if printed.is_ok() {
            printed = output::stdout(&format!("{}\n", visible_json(&record.text)));
        }
    };
    let is_known = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        fleet.follow_records(job, see).await
    })?;
    printed?;
    if is_known {
        Ok(Exit::Done)
    } else {
        Err(unknown(job))
    }
}

fn history(access: &Access, cell: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let text = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        match cell {
            Some(cell) => view::history(&fleet, cell, as_json).await,
            None => Ok(view::cells(&fleet).await?),
        }
    })?;
    output::stdout(&text)?;
    Ok(Exit::Done)
}

fn serve_pages(access: &Access, listen: SocketAddr, names: &[String]) -> Result<Exit, Failure> {
    let stop = stop_channel()?;
    let ready = |address| {
        // The service continues if standard output is closed.
        let _ = output::stdout(&format!("ready url=http://{address}/\n"));
    };
    fleet::run(view::serve(access, listen, names, stop, ready))?;
    Ok(Exit::Done)
}

fn cancel(access: &Access, job: &str) -> Result<Exit, Failure> {
    let (repeated, before) = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        Ok::<_, FleetError>((fleet.end_repeat(job).await?, fleet.cancel(job).await?))
    })?;
    let text = match before {
        _ if repeated => format!("job {job} is repeated no more; what it has queued stays\n"),
        None => return Err(unknown(job)),
        Some(state) if state.is_final() => format!("job {job} was {} already\n", state.word()),
        Some(state) => format!("job {job} is cancelled; it was {}\n", state.word()),
    };
    output::stdout(&text)?;
    Ok(Exit::Done)
}

fn discard(access: &Access, shown: &str) -> Result<Exit, Failure> {
    let entry = &*unescaped(shown);
    let (bucket, key) = entry.split_once('/').unwrap_or((entry, ""));
    let discarded = fleet::run(async { Fleet::connect(access).await?.discard(bucket, key).await });
    if discarded? {
        output::stdout(&format!("entry {} is removed\n", escaped(entry)))?;
        Ok(Exit::Done)
    } else {
        let text = format!(
            "the fleet has no entry {}\nhelp: `cipherbench fleet status` lists those that cannot be read",
            escaped(entry)
        );
        Err(Failure::new(Exit::Usage, text))
    }
}

/// A campaign's text, without mistakes as far as they do not depend on a lab, and the lab that it
/// names.
fn read(path: &Path) -> Result<(String, Option<&'static str>), Failure> {
    // Each lab's agent checks it for that lab's machine.
    let host = HostFacts { cores: u16::MAX };
    let named = campaign::load(path, &host)?.named_lab();
    let text = guard::read_text(path, CAMPAIGN_BYTES_MAX).map_err(|error| {
        let text = format!(
            "cannot read {}: {error}\nhelp: check the path",
            path.display()
        );
        Failure::new(Exit::Usage, text)
    });
    Ok((text?, named))
}

fn serve(options: &ServerOptions, extras: &ServerExtras) -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let mut server = Server::start_with(options, extras)?;
    fleet::run(server.set_up())?;
    if options.users.is_none() {
        let text = "without users, everybody on this machine may do everything on this server: read and change runs, \
                    and have agents that trust no keys run campaigns";
        output::warn(&[text]);
    }
    // The service continues if standard output is closed.
    let _ = output::stdout(&format!("ready url={}\n", server.access().url));
    while !stop.is_raised() {
        let limit = Some(Duration::from_millis(500));
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

/// Describes the files that the first start made, and the next commands.
fn introduction(first: &FirstUsers, url: &str) -> String {
    let key = |role| first.key(role).display().to_string();
    let at = match url {
        DEFAULT_URL => String::new(),
        url => format!(" --url {url}"),
    };
    let command = |role, words: &str| {
        let key = key(role);
        format!("  cipherbench fleet{at} --key {key} {words}\n")
    };
    let trust = first.trust.display();
    [
        format!(
            "first start: made {} with an agent, a submitter and a reader, their keys {}, {} and {}, and {trust}, by \
             which agents know the submitter. Next:\n",
            first.users.display(),
            key(Role::Agent),
            key(Role::Submitter),
            key(Role::Reader),
        ),
        command(Role::Agent, &format!("agent LAB --trust {trust}")),
        command(Role::Submitter, "submit CAMPAIGN"),
        command(Role::Reader, "status"),
    ]
    .concat()
}

/// Turns a failed file operation into a failure with help; `what` names the operation and path.
fn io(what: String) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| {
        let text = format!("{what}: {error}\nhelp: check the path and its owner");
        Failure::new(Exit::Usage, text)
    }
}

/// The labs of an agent, each with the machines on which it takes turns with other labs.
fn agent_labs(
    labs: &[PathBuf],
    labels: &[(String, String)],
    at_once: bool,
) -> Result<Vec<AgentLab>, Failure> {
    let labs = labs.iter().map(|path| {
        let lab = load_lab(path)?;
        let plan = lab.plan();
        // Runs start in other folders, so the path must be absolute.
        let file = if path.exists() {
            path.canonicalize()
                .map_err(io(format!("cannot find {}", path.display())))?
        } else {
            path.clone()
        };
        Ok(AgentLab {
            name: plan.name.clone(),
            file: file.display().to_string(),
            labels: labels.iter().cloned().collect(),
            machines: match (&plan.hosts, at_once) {
                (_, true) => BTreeSet::new(),
                (None, false) => BTreeSet::from([String::new()]),
                // This machine is reached by no words.
                (Some(hosts), false) => {
                    [&hosts.a, &hosts.b].map(|host| host.reach.join(" ")).into()
                }
            },
        })
    });
    labs.collect()
}

fn agent(
    access: Access,
    labs: Vec<AgentLab>,
    folder: &Path,
    allow: Option<&Path>,
    trust: Option<&Path>,
) -> Result<Exit, Failure> {
    fs::create_dir_all(folder).map_err(io(format!("cannot make {}", folder.display())))?;
    let folder = folder
        .canonicalize()
        .map_err(io(format!("cannot find {}", folder.display())))?;
    let program = std::env::current_exe().map_err(io("cannot find this program".to_owned()))?;
    let allow = allow.map(|path| {
        // The file decides which commands of others run here.
        Writers::of_process().check(path).map_err(|error| {
            let help = "keep it in a folder of one's own";
            Failure::new(
                Exit::Usage,
                format!("{}: {error}\nhelp: {help}", path.display()),
            )
        })
    });
    let agent = Agent {
        program,
        folder,
        turns: lab::state::folder_of_process()?.join("turns"),
        access,
        labs,
        allow: allow.transpose()?,
        trust: trust.map(Trust::read).transpose()?,
    };
    let stopped = stop_channel()?;
    let say = |text: String| output::stderr(&format!("{text}\n"));
    fleet::run(agent.run(stopped, say))?;
    Ok(Exit::Done)
}

/// A channel that reports a termination signal.
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

fn queue(
    access: &Access,
    job: &Job,
    matrix: Option<&(String, String)>,
    valid: Duration,
) -> Result<Exit, Failure> {
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
    let offers = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        if let Some(path) = &access.key {
            let identity = Identity::read(path)?;
            for job in &mut jobs {
                job.sign(&identity, Terms::now(fleet.id(), valid, job.every));
            }
        }
        for job in &jobs {
            match job.every {
                Some(_) => fleet.repeat(job).await?,
                None => submit(&fleet, job).await?,
            }
        }
        Ok::<_, FleetError>(fleet.offers().await)
    })?;
    let ids: String = jobs.iter().map(|job| format!("{}\n", job.id)).collect();
    output::stdout(&ids)?;
    match offers {
        Ok(offers) => {
            let waits = jobs.iter().filter_map(|job| without_a_lab(job, &offers));
            output::warn(&waits.collect::<Vec<_>>());
        }
        // They are queued.
        Err(error) => output::warn(&[format!("whether a lab on offer fits is not known: {error}")]),
    }
    Ok(Exit::Done)
}

/// A warning for a job that fits no lab on offer; `None` if it fits one.
fn without_a_lab(job: &Job, offers: &[LabOffer]) -> Option<String> {
    if offers
        .iter()
        .any(|offer| job.selector.misfit(offer).is_none())
    {
        return None;
    }
    let lab = match &job.selector.lab {
        Some(lab) => format!("the lab {}", visible(lab)),
        None => "a lab".to_owned(),
    };
    let labels = labels(&job.selector.labels);
    let with = if labels.is_empty() {
        String::new()
    } else {
        format!(" with{labels}")
    };
    let there = if offers.is_empty() {
        "no lab is on offer: `cipherbench fleet agent LAB` offers one".to_owned()
    } else {
        let labs = offers
            .iter()
            .map(|offer| format!("{}{}", visible(&offer.lab), self::labels(&offer.labels)));
        format!("on offer: {}", labs.collect::<Vec<_>>().join(", "))
    };
    Some(format!(
        "job {} waits: no agent offers {lab}{with}\nhelp: {there}; `cipherbench fleet cancel {}` withdraws the job",
        job.id, job.id
    ))
}
