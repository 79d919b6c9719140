//! `cipherbench encrypt --config FILE`: the encryptor as a service, and the barrier that holds
//! packets back while it does not run.

use crate::cli::Encrypt;
use crate::exit::{Exit, Failure};
use crate::notify::Notify;
use crate::{output, signals, version};
use encryptor::{Config, Program, ServiceError, barrier};
use signal_hook::consts::{SIGHUP, SIGUSR1, SIGUSR2};
use std::path::Path;
use std::process::Command;

/// Runs until a termination signal, unless only the barrier is to be changed. SIGUSR1 renews its
/// keys, SIGUSR2 injects the fault configured by `faults`, and SIGHUP reads the certificate again
/// if keys are negotiated. Prints one line that begins with `ready` when it forwards.
pub(crate) fn encrypt(arguments: &Encrypt) -> Result<Exit, Failure> {
    let config = load(&arguments.config)?;
    // Neither starts an encryptor: units of systemd call these before the network is up.
    if arguments.protect || arguments.remove {
        let changed = if arguments.remove {
            barrier::remove(&config)
        } else {
            barrier::protect(&config)
        };
        return changed
            .map(|()| Exit::Done)
            .map_err(|error| Failure::new(Exit::CannotBuild, error));
    }
    let fault = config.fault;
    let mut asked = vec![SIGUSR1];
    // Without a meaning here SIGHUP ends the program, as a terminal that closes expects.
    asked.extend(fault.map(|_| SIGUSR2));
    asked.extend(config.identity.as_ref().map(|_| SIGHUP));
    let (stop, watch) = signals::stop_later(&asked)?;
    let mut watching = Ok(());
    let notify = Notify::connect();
    // Also if the file has been replaced by a newer version.
    let mut holder = Command::new("/proc/self/exe");
    holder.arg("hold");
    let version = version::word();
    let program = Program {
        version: &version,
        holder: Some(holder),
    };
    encryptor::run(&config, program, &stop, |facts, rekeyer| {
        // The encryptor has dropped its privileges by now; a thread started earlier would keep
        // them.
        watching = watch.start(move |signal| match fault {
            Some(fault) if signal == SIGUSR2 => rekeyer.inject(fault),
            _ if signal == SIGHUP => rekeyer.reload(),
            _ => rekeyer.ask(),
        });
        // Without the watch no signal could end the service: better end it here.
        if watching.is_err() {
            stop.raise();
        }
        let facts: Vec<_> = facts
            .iter()
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        // The service continues if standard output is closed.
        let _ = output::stdout(&format!("ready{}\n", facts.concat()));
        notify.ready();
    })
    .map_err(|error| Failure::new(exit(&error), error))?;
    watching?;
    Ok(Exit::Done)
}

/// Reads the configuration. A gateway without one was perhaps never configured.
fn load(path: &Path) -> Result<Config, Failure> {
    if path.try_exists().is_ok_and(|exists| !exists) {
        let text = format!(
            "there is no configuration {}\n\
             help: `cipherbench init gateway --peer ADDRESS` writes both ends of a tunnel, with their keys; copy the \
             files of this end there",
            path.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(Config::load(path)?)
}

/// Keeps an encryptor's tables in place, until it has ended.
pub(crate) fn hold() -> Result<Exit, Failure> {
    barrier::hold()
        .map(|()| Exit::Done)
        .map_err(|error| Failure::new(Exit::CannotBuild, error))
}

/// Returns the exit code: either the configuration is at fault or the host.
const fn exit(error: &ServiceError) -> Exit {
    match error {
        ServiceError::Engine(_)
        | ServiceError::Keys(_)
        | ServiceError::Identity(_)
        | ServiceError::Kme(_)
        | ServiceError::Control(_) => Exit::Usage,
        _ => Exit::CannotBuild,
    }
}
