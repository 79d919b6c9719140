//! Another way past the encryptor: a default route of a gateway over the link between the gateways.
//!
//! Gateways in use have one. When an encryptor ends and its routes with it, the host sends its
//! packets there, in clear, unless something holds them back. The next hop is a neighbour with an
//! address that belongs to nobody: the frames cross the link, the filter counts them there, and no
//! station receives them.

use crate::on_node::{ip, ip_each};
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

    /// Sets it; does nothing if it is set. Nothing of it is left after an error.
    pub(crate) fn open(&self, node: &dyn Node, interface: &str, ipv6: bool) -> Result<()> {
        // Locked during the batch, so that the flag and the routes agree at any time.
        let mut open = lock(&self.open);
        if !*open {
            if let Err(error) = ip(node, setting(interface, ipv6)) {
                // Also fails for the command that has just failed: there is nothing to remove then.
                let _ = remove(node, interface, ipv6);
                return Err(error);
            }
            *open = true;
        }
        Ok(())
    }

    /// Removes it; does nothing if it is not set.
    pub(crate) fn close(&self, node: &dyn Node, interface: &str, ipv6: bool) -> Result<()> {
        let mut open = lock(&self.open);
        if *open {
            remove(node, interface, ipv6)?;
            *open = false;
        }
        Ok(())
    }
}

fn setting(interface: &str, ipv6: bool) -> String {
    let set = names(ipv6).map(|name| {
        format!(
            "neigh replace {name} lladdr {MAC} dev {interface} nud permanent\n\
             route replace default via {name} dev {interface} onlink metric {METRIC}\n"
        )
    });
    set.collect()
}

/// Removes both routes with their next hops, however many of them exist.
fn remove(node: &dyn Node, interface: &str, ipv6: bool) -> Result<()> {
    // Replacing first ensures that they exist: a removal that failed half-way can be repeated.
    let mut batch = setting(interface, ipv6);
    for name in names(ipv6) {
        batch += &format!(
            "route del default via {name} dev {interface} metric {METRIC}\n\
             neigh del {name} dev {interface}\n"
        );
    }
    ip_each(node, batch)
}

fn names(ipv6: bool) -> impl Iterator<Item = &'static str> {
    std::iter::once(ROUTER).chain(ipv6.then_some(ROUTER_V6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::FakeNode;
    use testbed::NodeId;

    #[test]
    fn nothing_is_left_of_one_that_could_be_opened_only_in_part() {
        let gateway = FakeNode::new(NodeId::Gw1);
        gateway.refuse("route replace default via 2001:db8:");
        let bypass = Bypass::default();
        let error = bypass.open(&gateway, "w0", true).unwrap_err().to_string();
        assert!(error.contains("2001:db8:"), "{error}");
        assert!(!bypass.is_open());
        assert_eq!(gateway.left(), [""; 0]);
        bypass.open(&gateway, "w0", false).unwrap();
        assert_eq!(gateway.left().len(), 2);
        bypass.close(&gateway, "w0", false).unwrap();
        assert_eq!(gateway.left(), [""; 0]);
    }

    #[test]
    fn a_removal_that_failed_is_repeated() {
        let gateway = FakeNode::new(NodeId::Gw1);
        let bypass = Bypass::default();
        bypass.open(&gateway, "w0", true).unwrap();
        gateway.refuse("neigh del 203.");
        bypass.close(&gateway, "w0", true).unwrap_err();
        assert!(bypass.is_open());
        gateway.refuse("nothing");
        bypass.close(&gateway, "w0", true).unwrap();
        assert!(!bypass.is_open());
        assert_eq!(gateway.left(), [""; 0]);
    }
}
