//! What the parts of the file take from one another.

use super::mode::Kind;
use super::types::{InterfaceAddress, Peer};
use std::net::IpAddr;
use std::path::Path;
use yaml::{Node, Reported};

/// What the rest of the file says that peers depend on.
pub(super) struct Context<'c, 'd> {
    pub(super) local: Result<IpAddr, Reported>,
    pub(super) port: Result<u16, Reported>,
    pub(super) workers: Result<u16, Reported>,
    pub(super) kind: Result<Kind, Reported>,
    /// `identity` is there.
    pub(super) has_identity: bool,
    /// `qkd` is there.
    pub(super) has_qkd: bool,
    /// `control_port`, if it is there: the peers' too.
    pub(super) control_port: Option<u16>,
    /// There is no ESP, so there are no keys.
    pub(super) keyless: bool,
    /// The TUN interface's.
    pub(super) address: Option<InterfaceAddress>,
    /// `tunnel.routes`: of the short form.
    pub(super) routes: Option<Node<'d>>,
    pub(super) folder: &'c Path,
}

/// A peer as it stands in the file, with the places that checks across peers tell.
pub(super) struct Entry<'d> {
    pub(super) peer: Peer,
    pub(super) node: Node<'d>,
    /// Where each network of the peer's selectors is told.
    pub(super) routes: Vec<Node<'d>>,
}
