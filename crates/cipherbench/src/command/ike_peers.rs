//! `cipherbench ike-peers`: simulated IKEv2 peers of a gateway.

mod given;

use crate::cli::IkePeers;
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use ::ike_peers::{Load, PeersError, Progress, Report, Spec, Triggers, play, run};
use port::Stop;
use std::io::{self, BufReader};
use std::path::Path;
use std::thread;

/// A spec has certificates of authorities at most.
const SPEC_BYTES_MAX: usize = 1 << 20;

pub(crate) fn ike_peers(arguments: &IkePeers) -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    if arguments.station {
        play(BufReader::new(io::stdin()), io::stdout(), &stop)?;
        return Ok(Exit::Done);
    }
    let spec = match &arguments.spec {
        Some(path) => read(path)?,
        None => given::spec(arguments)?,
    };
    let report = played(&spec, arguments, &stop)?;
    let document = serde_json::to_string_pretty(&report).map_err(PeersError::from)? + "\n";
    if let Some(path) = &arguments.out {
        output::file(path, &document)?;
    }
    output::stdout(&if arguments.json {
        document
    } else {
        report.answer(&spec)
    })?;
    Ok(if report.is_partial {
        Exit::Interrupted
    } else if report.has_failures() {
        Exit::CriterionFailed
    } else {
        Exit::Done
    })
}

fn read(path: &Path) -> Result<Spec, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        let help = "docs/ike.md has a spec with all loads, under `Simulated peers`";
        let text = format!("{}: {error}\nhelp: {help}", path.display());
        Failure::new(Exit::Usage, text)
    };
    let text = guard::read_text(path, SPEC_BYTES_MAX).map_err(|error| wrong(&error))?;
    serde_json::from_str(&text).map_err(|error| wrong(&error))
}

fn played(spec: &Spec, arguments: &IkePeers, stop: &Stop) -> Result<Report, Failure> {
    let storm = Stop::new().map_err(|error| {
        let text = format!("cannot make a flag: {error}\nhelp: see whether descriptors are left");
        Failure::new(Exit::CannotBuild, text)
    })?;
    let notice = |text: String| {
        if !arguments.quiet {
            output::stderr(&text);
        }
    };
    let waits = matches!(
        spec.load,
        Load::Storm {
            after_per_s: Some(_)
        }
    );
    if waits {
        let storm = storm.clone();
        // It ends with the process.
        thread::spawn(move || {
            _ = io::stdin().read_line(&mut String::new());
            storm.raise();
        });
    }
    let triggers = Triggers {
        stop,
        storm: &storm,
    };
    let report = run(spec, triggers, &mut |progress| match progress {
        Progress::Ready => {
            let peers = units::human::counted(spec.peers, "peer");
            notice(format!("{peers} of {}: the load begins\n", spec.gateway));
        }
        Progress::Up(count) => {
            let next = if waits {
                "; Enter begins the storm"
            } else {
                ""
            };
            notice(format!("{count} are up{next}\n"));
        }
    })?;
    Ok(report)
}

impl From<PeersError> for Failure {
    fn from(error: PeersError) -> Self {
        let exit = match error {
            PeersError::Spec(_)
            | PeersError::Value(_)
            | PeersError::Proposal { .. }
            | PeersError::Sources { .. }
            | PeersError::Certificate(_) => Exit::Usage,
            PeersError::Address { .. }
            | PeersError::Port { .. }
            | PeersError::Descriptors { .. }
            | PeersError::System { .. }
            | PeersError::Random => Exit::CannotBuild,
        };
        Self::new(exit, error)
    }
}
