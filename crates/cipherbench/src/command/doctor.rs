//! `cipherbench doctor`: what this host, or every host of a lab, can measure, and which settings to
//! tune.

use crate::cli::Doctor;
use crate::exit::{Exit, Failure};
use crate::{output, signals};
use plan::Cables;
use session::progress::Board;
use session::{Action, Reporter};
use std::path::Path;

pub(crate) fn doctor(arguments: &Doctor) -> Result<Exit, Failure> {
    if arguments.offloads {
        return of_offloads(arguments);
    }
    match &arguments.lab {
        Some(lab) => of_lab(lab, arguments),
        None => of_this_host(arguments, &arguments.interface),
    }
}

fn of_offloads(arguments: &Doctor) -> Result<Exit, Failure> {
    let reporter = Reporter {
        is_quiet: false,
        // Standard output has the result alone, which may be JSON.
        write: output::stderr,
        log: None,
        board: Board::default(),
    };
    let path = (arguments.lab.as_deref(), &*arguments.through);
    let found = session::examine_offloads(path, arguments.time, &signals::interrupt()?, &reporter)?;
    output::stdout(if arguments.json {
        &found.json
    } else {
        &found.text
    })?;
    Ok(if found.is_fit {
        Exit::Done
    } else {
        Exit::CriterionFailed
    })
}

fn of_this_host(arguments: &Doctor, interfaces: &[String]) -> Result<Exit, Failure> {
    let answer = session::ask_this_host(action(arguments), interfaces)?;
    output::stdout(&if arguments.json {
        answer.json()
    } else {
        answer.text()
    })?;
    Ok(exit(answer.is_fit()))
}

fn of_lab(lab: &Path, arguments: &Doctor) -> Result<Exit, Failure> {
    let lab = session::load_lab(lab)?;
    let plan = lab.plan();
    // The lab is built on this machine, so that only its cabled interfaces are of interest.
    if plan.hosts.is_none() {
        let cables = plan.external.iter().flat_map(Cables::interfaces);
        let interfaces: Vec<_> = cables.map(|(_, name)| name.to_owned()).collect();
        return of_this_host(arguments, &interfaces);
    }
    // A host that does not answer can be waited for long; Ctrl-C must end that.
    let answers = session::ask_hosts(plan, action(arguments), &signals::interrupt()?)?;
    output::stdout(&if arguments.json {
        answers.json()
    } else {
        answers.text()
    })?;
    Ok(exit(answers.are_fit()))
}

// Clap has refused both together.
const fn action(arguments: &Doctor) -> Action {
    match arguments {
        Doctor { apply: true, .. } => Action::Apply,
        Doctor { revert: true, .. } => Action::Revert,
        _ => Action::Look,
    }
}

const fn exit(is_fit: bool) -> Exit {
    if is_fit {
        Exit::Done
    } else {
        Exit::CannotBuild
    }
}
