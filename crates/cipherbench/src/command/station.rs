//! `cipherbench station`: serves one place of a lab on standard input and output.

use crate::cli::Station;
use crate::exit::{Exit, Failure};
use lab::NodeId;
use std::io;

/// Serves until end of file. Termination signals have their default action: the kernel then kills
/// everything that it started.
pub(crate) fn station(arguments: &Station) -> Result<Exit, Failure> {
    let node = arguments.node.as_deref().map(node).transpose()?;
    lab::station::serve(node, io::stdin(), io::stdout())?;
    Ok(Exit::Done)
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
