//! Values that the readers of the file's parts share.

use super::types::{InterfaceAddress, Kind, Peer};
use std::net::IpAddr;
use std::path::Path;
use wire::Suite;
use yaml::{Node, Reported};

/// The values outside `peers` that peers depend on.
pub(super) struct Context<'c, 'd> {
    pub(super) local: Result<IpAddr, Reported>,
    pub(super) port: Result<u16, Reported>,
    pub(super) workers: Result<u16, Reported>,
    pub(super) kind: Result<Kind, Reported>,
    /// Whether `identity` is given.
    pub(super) has_identity: bool,
    /// Whether `qkd` is given.
    pub(super) has_qkd: bool,
    /// `control_port`, if it is given: the peers use it too.
    pub(super) control_port: Option<u16>,
    pub(super) suite: Result<Suite, Reported>,
    pub(super) aggregate: Result<bool, Reported>,
    /// Without ESP there are no keys.
    pub(super) keyless: bool,
    /// Address of the TUN interface.
    pub(super) address: Option<InterfaceAddress>,
    /// `tunnel.routes`, which belongs to the short form.
    pub(super) routes: Option<Node<'d>>,
    pub(super) folder: &'c Path,
}

/// A peer with the nodes that checks across peers report.
pub(super) struct Entry<'d> {
    pub(super) peer: Peer,
    pub(super) node: Node<'d>,
    /// Node of each network in the peer's selectors.
    pub(super) routes: Vec<Node<'d>>,
}
