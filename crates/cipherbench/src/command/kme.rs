//! `cipherbench kme --config FILE`: simulates the KMEs of a QKD network.

use crate::cli::Kme;
use crate::exit::{Exit, Failure};
use crate::notify::Notify;
use crate::{output, signals, version};
use qkd::kme::{Config, StartError, start};
use std::os::fd::AsFd;

/// Runs until a termination signal. Prints one line that begins with `ready` when all KMEs serve,
/// with their addresses.
pub(crate) fn kme(arguments: &Kme) -> Result<Exit, Failure> {
    let path = &arguments.config;
    if path.try_exists().is_ok_and(|exists| !exists) {
        let text = format!(
            "there is no configuration {}\n\
             help: docs/kme.md has one for two KMEs; `cipherbench schema kme` prints all keys",
            path.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    let config = Config::load(path)?;
    let notify = Notify::connect();
    let stop = signals::stop()?;
    let simulator = start(&config).map_err(|error| Failure::new(exit(&error), error))?;
    let kmes = simulator
        .kmes()
        .iter()
        .map(|(name, address)| (name.as_str(), address));
    // The port may have been chosen by the kernel, so that only this line has the addresses.
    let faults = simulator.faults();
    let faults = faults.iter().map(|address| ("faults", address));
    let facts: String = kmes
        .chain(faults)
        .map(|(key, address)| format!(" {key}={address}"))
        .collect();
    // The service continues if standard output is closed.
    let _ = output::stdout(&format!("ready version={}{facts}\n", version::word()));
    notify.ready();
    while !stop.is_raised() {
        // All work is done by the threads of the KMEs.
        let raised = port::wait_readable(&[stop.as_fd()], None);
        raised.map_err(|error| {
            Failure::new(
                Exit::CannotBuild,
                format!("cannot wait for signals: {error}"),
            )
        })?;
    }
    Ok(Exit::Done)
}

/// Returns the exit code: either a file is at fault or the host.
const fn exit(error: &StartError) -> Exit {
    match error {
        StartError::Files { .. } => Exit::Usage,
        StartError::Listen { .. } | StartError::Thread(_) => Exit::CannotBuild,
    }
}
