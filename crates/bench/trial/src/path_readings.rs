//! Readings of a path while traffic crosses it, as evidence of the trial.

use crate::counters::{Counters, Offloads};
use crate::evidence::{CipherTraffic, ObservedPath};
use crate::measurer::Trial;
use crate::watch::{WatchPoint, WatchResult};
use impair::Impaired;
use journal::record::{CipherWatch, Evidence, PathSettings};
use testbed::RunningDut;

/// Readings of links and DUT before, during and after the traffic.
pub(crate) struct PathReadings<'a> {
    /// The watched end of the cipher link; `None` if nothing is watched.
    pub(crate) look: Option<WatchPoint<'a>>,
    pub(crate) offloads: Offloads,
    pub(crate) before: Counters,
    pub(crate) after: Counters,
    pub(crate) seen: WatchResult,
    pub(crate) watch: Option<CipherWatch>,
    /// Changes of the path's settings; `None` if they were not watched.
    pub(crate) settings: Option<PathSettings>,
    /// The impaired path's counts; `None` without one.
    pub(crate) impaired: Option<Impaired>,
}

impl PathReadings<'_> {
    /// Returns the evidence, still without checks and lost packets.
    pub(crate) fn evidence(&self, dut: &RunningDut) -> Evidence {
        Evidence {
            checks: Vec::new(),
            cipher_link: self.seen.cipher_link.clone(),
            received_dscp: self.seen.received_dscp.clone(),
            watch: self.watch.clone(),
            interfaces: self.after.interfaces_since(&self.before),
            drivers: self.after.drivers_since(&self.before),
            offloads: self.offloads.clone(),
            dut_counters: self.after.dut_since(&self.before),
            dut_facts: dut.facts.clone(),
            settings: self.settings.clone(),
            impaired: self.impaired,
            lost_at: Vec::new(),
            taken_by: Vec::new(),
        }
    }

    /// Returns the input of the checks, with the `evidence` of [`Self::evidence`].
    pub(crate) fn observed<'e>(
        &'e self,
        trial: &'e Trial<'_>,
        link_ends: &'e [String],
        evidence: &'e Evidence,
    ) -> ObservedPath<'e> {
        let cipher = |look: WatchPoint<'e>| {
            let name = format!("{}/{}", look.gateway.name(), look.interface);
            Some(CipherTraffic {
                link: &evidence.cipher_link,
                watch: evidence.watch.as_ref()?,
                markers: look.markers,
                counters: evidence.interfaces.get(&name).copied().unwrap_or_default(),
                sampling_ns: self.seen.sampling_ns,
            })
        };
        ObservedPath {
            cell: trial.cell,
            links: trial.links,
            link_ends,
            counters: &evidence.interfaces,
            drivers: &evidence.drivers,
            offloads: &evidence.offloads,
            dut_counters: &evidence.dut_counters,
            resets: self.after.dut_resets_since(&self.before),
            dut_facts: &evidence.dut_facts,
            cipher: self.look.and_then(cipher),
            elapsed_ns: self.after.ns_since(&self.before),
            cpu: &self.seen.cpu,
            received_dscp: Some(&self.seen.received_dscp),
            settings: evidence.settings.as_ref(),
            impaired: evidence.impaired.as_ref(),
        }
    }
}
