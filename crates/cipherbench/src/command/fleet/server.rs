//! `cipherbench fleet server`.

use crate::cli::{DEFAULT_URL, Server as Arguments};
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use fleet::{
    Access, FirstUsers, Fleet, FleetError, LEFT_AFTER, Role, Server, ServerExtras, ServerOptions,
    ServerTls, leftovers_removed,
};
use std::os::fd::AsFd;
use std::time::Duration;

/// Starts a server, or prepares the one at `access`.
pub(super) fn server(access: &Access, arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.existing {
        return prepare(access, arguments);
    }
    // Users in a given file are kept by its author; here only a fleet without any gets its first.
    let first = match &arguments.users {
        None if !arguments.open => Some(FirstUsers::of(&arguments.store)?),
        _ => None,
    };
    if let Some(first) = first.as_ref().filter(|first| first.is_new) {
        // The introduction is printed before the server listens, but its commands work only after
        // `ready`.
        let scheme = if arguments.tls_cert.is_some() {
            "tls"
        } else {
            "nats"
        };
        let url = format!("{scheme}://{}", arguments.listen);
        output::stderr(&introduction(first, &url));
    }
    let of_store = first.map(|first| first.users);
    let options = ServerOptions {
        listen: arguments.listen,
        folder: arguments.store.clone(),
        users: arguments.users.clone().or(of_store),
    };
    let tls = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
    serve(
        &options,
        &ServerExtras {
            tls: tls.map(|(certificate, key)| ServerTls { certificate, key }),
            is_plain: arguments.plain,
            store_bytes_max: arguments.store_max,
        },
    )
}

fn prepare(access: &Access, arguments: &Arguments) -> Result<Exit, Failure> {
    let (removed, is_open) = fleet::run(async {
        let fleet = Fleet::set_up(access, arguments.replicas.map(usize::from)).await?;
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

fn serve(options: &ServerOptions, extras: &ServerExtras) -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let mut server = Server::start_with(options, extras)?;
    // Before `ready`: a client that sees the line finds all streams and buckets.
    fleet::run(server.set_up())?;
    if options.users.is_none() {
        let text = "without users, everybody on this machine may do everything on this server: read and change runs, \
                    and have agents that trust no keys run campaigns";
        output::warn(&[text]);
    }
    // The service continues if standard output is closed.
    let _ = output::stdout(&format!("ready url={}\n", server.access().url));
    while !stop.is_raised() {
        // Users and certificates are looked at twice a second; a signal ends the wait early.
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
