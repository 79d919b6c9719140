//! Another way past the encryptor: a default route of a gateway over the link between the gateways.
//!
//! Gateways in use have one. When an encryptor ends and its routes with it, the host sends its
//! packets there, in clear, unless something holds them back. The next hop is a neighbour with an
//! address that belongs to nobody: the frames cross the link, the filter counts them there, and no
//! station receives them.

use crate::on_node::ip;
use crate::sync::lock;
use std::sync::Mutex;
use testbed::{Node, Result};

/// Names of the next hop (RFC 5737, RFC 3849), and its address on the link.
const ROUTER: &str = "203.0.113.254";
const ROUTER_V6: &str = "2001:db8:ffff::fe";
const MAC: &str = "02:cb:fe:00:00:fe";
/// After all routes of encryptors, and before the routes that they leave behind to hold packets
/// back.
const METRIC: u32 = 1 << 20;

/// The route, set or not.
#[derive(Debug, Default)]
pub(crate) struct Bypass {
    open: Mutex<bool>,
}

impl Bypass {
    pub(crate) fn is_open(&self) -> bool {
        *lock(&self.open)
    }

    /// Sets it; does nothing if it is set.
    pub(crate) fn open(&self, node: &dyn Node, interface: &str, ipv6: bool) -> Result<()> {
        let mut open = lock(&self.open);
        if !*open {
            // Set first: a batch that fails half-way is undone too.
            *open = true;
            let batch = names(ipv6).map(|name| {
                format!(
                    "neigh replace {name} lladdr {MAC} dev {interface} nud permanent\n\
                     route replace default via {name} dev {interface} onlink metric {METRIC}\n"
                )
            });
            ip(node, batch.collect::<String>())?;
        }
        Ok(())
    }

    /// Removes it; does nothing if it is not set.
    pub(crate) fn close(&self, node: &dyn Node, interface: &str, ipv6: bool) -> Result<()> {
        let mut open = lock(&self.open);
        if *open {
            let batch = names(ipv6).map(|name| {
                format!(
                    "route del default via {name} dev {interface} metric {METRIC}\n\
                     neigh del {name} dev {interface}\n"
                )
            });
            ip(node, batch.collect::<String>())?;
            *open = false;
        }
        Ok(())
    }
}

fn names(ipv6: bool) -> impl Iterator<Item = &'static str> {
    std::iter::once(ROUTER).chain(ipv6.then_some(ROUTER_V6))
}
