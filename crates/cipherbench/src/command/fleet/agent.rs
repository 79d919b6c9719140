//! `cipherbench fleet agent`.

use super::stop_channel;
use crate::cli::Agent as Arguments;
use crate::exit::{Exit, Failure};
use crate::output;
use fleet::{Access, Agent, AgentLab, Trust};
use guard::Writers;
use session::load_lab;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Offers labs, until a termination signal.
pub(super) fn agent(access: Access, arguments: &Arguments) -> Result<Exit, Failure> {
    let Arguments {
        labs,
        folder,
        labels,
        allow,
        trust,
        at_once,
    } = arguments;
    let labs = agent_labs(labs, labels, *at_once)?;
    fs::create_dir_all(folder).map_err(io(format!("cannot make {}", folder.display())))?;
    let folder = folder
        .canonicalize()
        .map_err(io(format!("cannot find {}", folder.display())))?;
    let program = std::env::current_exe().map_err(io("cannot find this program".to_owned()))?;
    let allow = allow.as_deref().map(|path| {
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
        trust: trust.as_deref().map(Trust::read).transpose()?,
    };
    // Until here a signal simply ends the program: nothing runs yet.
    let stopped = stop_channel()?;
    let say = |text: String| output::stderr(&format!("{text}\n"));
    fleet::run(agent.run(stopped, say))?;
    Ok(Exit::Done)
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
                // Without machines a lab waits for no other.
                (_, true) => BTreeSet::new(),
                // A lab without hosts is built on this machine, which has the empty name.
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

/// Turns a failed file operation into a failure with help; `what` names the operation and path.
fn io(what: String) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| {
        let text = format!("{what}: {error}\nhelp: check the path and its owner");
        Failure::new(Exit::Usage, text)
    }
}
