//! `cipherbench encrypt --config FILE`: the encryptor as a service.

use crate::cli::Encrypt;
use crate::exit::{Exit, Failure};
use crate::{output, signals, version};
use encryptor::{Config, ServiceError};
use signal_hook::consts::{SIGUSR1, SIGUSR2};

/// Runs until a signal asks it to end; SIGUSR1 asks it to renew its keys, SIGUSR2 to make them fail
/// where the configuration has `faults`. Prints one line that begins with `ready` when it forwards.
pub(crate) fn encrypt(arguments: &Encrypt) -> Result<Exit, Failure> {
    let config = Config::load(&arguments.config)?;
    let fault = config.fault;
    let asked = [SIGUSR1, SIGUSR2];
    let asked = &asked[..if fault.is_some() { 2 } else { 1 }];
    let (stop, watch) = signals::stop_later(asked)?;
    let mut watching = Ok(());
    encryptor::run(&config, &version::word(), &stop, |facts, rekeyer| {
        // By now the encryptor has given up its privileges; a thread from before would keep them.
        watching = watch.start(move |signal| match fault {
            Some(fault) if signal == SIGUSR2 => rekeyer.inject(fault),
            _ => rekeyer.ask(),
        });
        if watching.is_err() {
            stop.raise();
        }
        let facts: Vec<_> = facts
            .iter()
            .map(|(key, value)| format!(" {key}={value}"))
            .collect();
        // A service whose standard output was closed runs on.
        let _ = output::stdout(&format!("ready{}\n", facts.concat()));
    })
    .map_err(|error| Failure::new(exit(&error), error))?;
    watching?;
    Ok(Exit::Done)
}

/// Whether the configuration is at fault, or the host.
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
