//! The link between the gateways, cut and rejoined.
//!
//! A host keeps its routes and neighbours when a cable is pulled; the kernel drops them when an
//! interface is set down. So they are saved before and restored after.

use crate::on_node::{ask, ip, ip_each};
use crate::sync::lock;
use std::sync::Mutex;
use testbed::{LabError, Node, Result};

/// Marks the routes that the kernel sets by itself when an interface comes up.
const OWN: &str = "proto kernel";

/// A link that may be cut.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// What to restore, as a batch of `ip`; `None` while the link is up.
    kept: Mutex<Option<String>>,
}

impl Cut {
    /// Sets an interface down; does nothing if the link is already cut.
    pub(crate) fn cut(&self, node: &dyn Node, interface: &str) -> Result<()> {
        let mut kept = lock(&self.kept);
        if kept.is_none() {
            // Kept first: an interface that is half-way down is set up again too.
            let batch = keep(node, interface)?;
            *kept = Some(batch);
            ip(node, format!("link set {interface} down\n"))?;
        }
        Ok(())
    }

    pub(crate) fn is_cut(&self) -> bool {
        lock(&self.kept).is_some()
    }

    /// Sets it up and restores the routes and neighbours that the kernel dropped; does nothing if
    /// the link is up.
    pub(crate) fn join(&self, node: &dyn Node, interface: &str) -> Result<()> {
        let mut kept = lock(&self.kept);
        if let Some(batch) = &*kept {
            // A route that cannot be restored does not stop the others; the error names it.
            ip_each(node, format!("link set {interface} up\n{batch}"))?;
            *kept = None;
        }
        Ok(())
    }
}

/// Returns an interface's neighbours and routes as commands that set them.
fn keep(node: &dyn Node, interface: &str) -> Result<String> {
    let show = |words: &[&str]| {
        let what = ["show", "dev", interface];
        let argv = ["ip"].iter().chain(words).chain(&what);
        Ok::<_, LabError>(ask(node, argv.copied())?.stdout)
    };
    let mut batch = String::new();
    // A route's next hop is a neighbour.
    let neighbours = show(&["-4", "neigh"])? + &show(&["-6", "neigh"])?;
    for neighbour in neighbours.lines() {
        if let Some(neighbour) = neighbour.trim().strip_suffix("PERMANENT") {
            batch += &format!("neigh replace {neighbour} dev {interface} nud permanent\n");
        }
    }
    let routes = show(&["-4", "route"])? + &show(&["-6", "route"])?;
    // The kernel sets the others again by itself when the interface comes up.
    for route in routes.lines().filter(|route| !route.contains(OWN)) {
        batch += &format!("route replace {route} dev {interface}\n");
    }
    Ok(batch)
}
