//! The start and the stop of a DUT, with the settings of its version around both.

use super::{NamespaceLab, Up};
use crate::dut::{self, Site};
use crate::overlay;
use crate::topology::Side;
use crate::version_settings::{Applied, Facts, Target, ToRestore, apply_all};
use plan::{Direction, Dut, NodeSettings, Overlay, VersionSettings};
use testbed::{Bench, DutAction, LabError, Links, NodeId, Result, RunningDut};

impl NamespaceLab {
    pub(super) fn start(
        &mut self,
        dut: &Dut,
        links: Links,
        direction: Direction,
    ) -> Result<RunningDut> {
        if !dut.adapter.profile().directions.contains(&direction) {
            let reason = format!("cannot be loaded in direction `{}`", direction.name());
            return Err(LabError::dut(&dut.name, reason));
        }
        if self.dut.is_some() {
            let reason = "cannot be started: another one is up";
            return Err(LabError::dut(&dut.name, reason));
        }
        let mut adapter = dut::adapter(dut)?;
        let site = self.site(dut, links, direction);
        let (applied, facts) = self.apply_settings(dut, &site);
        let started = facts.and_then(|facts| {
            let mut running = adapter.start(&site)?;
            running.facts.extend(facts);
            let Err(error) = adapter.await_ready(&site) else {
                return Ok(running);
            };
            // If the DUT died, report that rather than that it does not forward.
            adapter.stop(&site, running)?;
            Err(error)
        });
        if started.is_err() {
            // The earlier failure matters more; the next start shows a node that is not clear.
            let _ = site.clear();
            let _ = self.restore(dut, &applied);
        }
        let mut running = started?;
        // By the profile alone: nothing that the DUT reports about itself may excuse readable
        // packets.
        running.readable = dut.adapter.profile().is_readable;
        self.dut = Some(Up {
            adapter,
            dut: dut.clone(),
            links,
            direction,
            applied,
        });
        Ok(running)
    }

    /// Sets an overlay up on both stations and waits until A reaches B through it.
    pub(super) fn connect_overlay(&self, overlay: Overlay, links: Links) -> Result<()> {
        let sides = [(NodeId::A, Side::A), (NodeId::B, Side::B)];
        let made = sides.into_iter().try_for_each(|(id, side)| {
            overlay::start(self.station(id), (&self.map, side), overlay, links)
        });
        let reached = made.and_then(|()| overlay::unreached(self.station(NodeId::A)));
        let outcome = reached.and_then(|unreached| match (unreached, &self.dut) {
            (Some(reason), Some(up)) => {
                let port = overlay.port().unwrap_or_default();
                let reason = format!(
                    "does not carry {}: {reason}\nhelp: UDP to port {port} must pass it both ways; \
                     in clear no element may translate its addresses",
                    overlay.title()
                );
                Err(LabError::dut(&up.dut.name, reason))
            }
            _ => Ok(()),
        });
        if outcome.is_err() {
            // The first failure says more; the next start removes what is left.
            let _ = self.disconnect_overlay();
        }
        outcome
    }

    /// Removes the interfaces of an overlay from both stations, even if one fails.
    pub(super) fn disconnect_overlay(&self) -> Result<()> {
        let stations = [NodeId::A, NodeId::B].map(|id| self.station(id));
        dut::all(stations.map(overlay::stop).into())
    }

    pub(super) fn stop(&mut self, mut dut: RunningDut) -> Result<()> {
        // Restores the links for the next DUT.
        let mut undo = |is_left: bool, action| {
            if is_left {
                self.act(&mut dut, action)
            } else {
                Ok(())
            }
        };
        let joined = undo(self.cut.is_cut(), DutAction::JoinLink);
        let closed = undo(self.bypass.is_open(), DutAction::CloseBypass);
        // Only now: rejoining the link and closing the bypass need the links of the running DUT.
        let Some(mut up) = self.dut.take() else {
            return Ok(());
        };
        let site = self.site(&up.dut, up.links, up.direction);
        let stopped = up.adapter.stop(&site, dut).and(joined).and(closed);
        if stopped.is_err() {
            // As after a start that failed.
            let _ = site.clear();
        }
        // In any case, for the next DUT.
        let restored = self.restore(&up.dut, &up.applied);
        stopped.and(restored)
    }

    /// Applies the settings of a DUT's version. Returns what must be restored in any case, and the
    /// settings as facts about the nodes.
    fn apply_settings(&self, dut: &Dut, site: &Site<'_>) -> (ToRestore, Result<Facts>) {
        let Some(settings) = &dut.software.settings else {
            return (Vec::new(), Ok(Facts::new()));
        };
        let (applied, outcome) = apply_all(&self.targets(dut, settings, site));
        let facts = outcome.and_then(|found| {
            found.map_err(|refusal| {
                let version = dut.software.version.as_deref().unwrap_or_default();
                let reason = format!("cannot have its settings `{version}`: {refusal}");
                LabError::dut(&dut.name, reason)
            })
        });
        (applied, facts)
    }

    /// The nodes that a version may change: the stations, and the gateways that the DUT runs on.
    fn targets<'a>(
        &'a self,
        dut: &Dut,
        settings: &'a VersionSettings,
        site: &Site<'_>,
    ) -> Vec<Target<'a>> {
        let outside = self.outside.as_ref();
        let outside = outside.filter(|_| dut.adapter.external().is_some());
        let target = |id: NodeId, settings: &'a NodeSettings| Target {
            node: self.station(id),
            interfaces: match outside {
                Some(outside) => outside.interfaces(id).collect(),
                None => self.map.interfaces(id).collect(),
            },
            settings,
        };
        let stations = [NodeId::A, NodeId::B].map(|id| target(id, &settings.stations));
        let gateways = site.loaded().iter();
        let gateways = gateways.map(|node| target(node.id(), &settings.gateways));
        stations.into_iter().chain(gateways).collect()
    }

    /// Restores the settings that a version replaced, on all nodes even if one fails.
    fn restore(&self, dut: &Dut, applied: &[(NodeId, Applied)]) -> Result<()> {
        let mut wrong = Vec::new();
        for (id, applied) in applied.iter().rev() {
            match applied.restore(self.station(*id)) {
                Ok(found) => wrong.extend(found),
                // The stations of an interrupted run are about to end, with their settings.
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => wrong.push(error.to_string()),
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let version = dut.software.version.as_deref().unwrap_or_default();
        let reason = format!(
            "was not measured with the settings `{version}` alone: {}",
            wrong.join("; ")
        );
        Err(LabError::dut(&dut.name, reason))
    }
}
