//! `cipherbench station`: serves one place of a lab on standard input and output.

use crate::cli::Station;
use crate::exit::{Exit, Failure};
use std::{env, fs, io};
use testbed::NodeId;

/// Serves until end of file. Termination signals have their default action: the kernel then kills
/// everything that it started.
pub(crate) fn station(arguments: &Station) -> Result<Exit, Failure> {
    if let Some(hash) = &arguments.sent {
        let is_whole = lab::expect_whole(hash);
        // Also if the file is not whole: a broken copy is of no use to anybody.
        remove_own_file();
        is_whole?;
    }
    if arguments.host {
        lab::station::serve_host(io::stdin(), io::stdout())?;
        return Ok(Exit::Done);
    }
    let node = arguments.node.as_deref().map(node).transpose()?;
    lab::station::serve(node, &arguments.cpus, io::stdin(), io::stdout())?;
    Ok(Exit::Done)
}

/// Removes the file of this program and its folder at the start, so that they do not remain however
/// the process ends. A running program keeps its file's content.
fn remove_own_file() {
    if let Ok(program) = env::current_exe()
        && let Some(folder) = program.parent()
        && fs::remove_file(&program).is_ok()
    {
        // If it cannot be removed, something else is in it.
        let _ = fs::remove_dir(folder);
    }
}

fn node(name: &str) -> Result<NodeId, Failure> {
    NodeId::from_name(name).ok_or_else(|| {
        let known = NodeId::ALL.map(NodeId::name).join(", ");
        Failure::new(
            Exit::Usage,
            format!("there is no place `{name}` in a lab\nhelp: known places are {known}"),
        )
    })
}
