//! A device under test that is up.

use crate::protocol::{ControlPort, SealedPort};
use crate::{FramePath, NodeId, TunnelKeys};
use plan::{Desync, Reset};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A DUT that is up.
#[derive(Debug, Clone, Default)]
pub struct RunningDut {
    /// Its processes: node, and handle in the station's protocol.
    pub processes: Vec<(NodeId, u64)>,
    /// Processes of the tester on its path, which must run while the DUT does.
    pub beside: Vec<(NodeId, u64)>,
    /// Facts that it reports about itself, by `gateway/key` (`gw1/engine`).
    pub facts: BTreeMap<String, String>,
    /// UDP ports of its sealed packets; empty when it does not encrypt, or its ESP is bare.
    pub sealed_ports: Vec<SealedPort>,
    /// TCP ports over which its gateways agree on keys; empty if they use UDP or do not agree on
    /// keys.
    pub control_ports: Vec<ControlPort>,
    /// The ends of the test frames' path, from A's side to B's; `None` if the DUT cannot be loaded
    /// with frames.
    pub frame_path: Option<FramePath>,
    /// Whether it runs on external machines, so that its CPU time cannot be measured.
    pub elsewhere: bool,
    /// Whether its payload is readable by design: then clear text inside its packets is no finding.
    pub readable: bool,
    /// Keys to open its sealed packets; `None` if only the DUT has them.
    pub tunnel_keys: Option<Arc<dyn TunnelKeys>>,
}

impl RunningDut {
    /// Every process on the path.
    pub fn path_processes(&self) -> impl Iterator<Item = &(NodeId, u64)> + Clone {
        // Without the programs of the tester the path carries nothing either.
        self.processes.iter().chain(&self.beside)
    }
}

/// An action on a running DUT. [`plan::DutProfile::abilities`] lists which DUT supports
/// which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DutAction {
    /// Rekeys all tunnels together; done when the new keys are in use in both directions.
    Rekey,
    /// Kills the encryptor on that gateway: SIGKILL to its processes.
    Kill(NodeId),
    /// Restarts it there as at first; done when it reports ready, possibly before traffic passes.
    Restart(NodeId),
    /// Restarts it there immediately, by that kind of reset; done when it reports ready or, for a
    /// box, has accepted the command.
    Reset(NodeId, Reset),
    /// Takes all tunnels down in order. `docs/encryptors.md` says which processes keep running.
    TakeDown,
    /// Sets all tunnels up again; done when all are up.
    SetUp,
    /// Desynchronises its keys, which it must detect and repair itself; done when it has received
    /// the command.
    Desync(Desync),
    /// Takes the link between the gateways down at gw1's end. The lab does this for every DUT.
    CutLink,
    /// Takes the link up again.
    JoinLink,
    /// Gives gw1 a default route over the link between the gateways, past the encryptor, to a
    /// router that does not exist. The lab does this for every DUT.
    OpenBypass,
    /// Removes that route.
    CloseBypass,
}
