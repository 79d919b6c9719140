//! Periodic readings of the lab's machines and of the running DUT.

use super::NamespaceLab;
use crate::monitor::DevicePoller;
use plan::HostName;
use testbed::{LabError, Monitor, NodeId, Poller, Result};

impl NamespaceLab {
    /// Reads the energy counters from another folder with the layout of `/sys/class/powercap`.
    pub fn set_powercap(&mut self, folder: impl Into<String>) {
        self.powercap = folder.into();
    }

    /// Prepares the readings of boxes and machines, on CPUs other than `busy`.
    pub(super) fn monitor_beside(&self, busy: &[u16]) -> Result<Monitor<'_>> {
        let mut pollers = Vec::new();
        if let Some(up) = &self.dut {
            // A value that cannot be read is an error before the traffic, and a gap after it has
            // begun.
            for mut poller in up.adapter.pollers(&self.site_of(up))? {
                poller.check().map_err(|(name, why)| {
                    let box_name = poller.name();
                    let reason = format!("shows no `{name}` on {box_name}: {why}");
                    LabError::dut(&up.dut.name, reason)
                })?;
                pollers.push(poller.beside(busy));
            }
        }
        // Without a check: `of_machine` has read the counters already, to see which there are.
        pollers.extend(self.machines()?.into_iter().map(|it| it.beside(busy)));
        let pollers = pollers.into_iter();
        let pollers = pollers.map(|poller| -> Box<dyn Poller + '_> { Box::new(poller) });
        Ok(Monitor::new(pollers.collect()))
    }

    /// The machines that count their energy.
    fn machines(&self) -> Result<Vec<DevicePoller<'_>>> {
        // All nodes of one machine share its energy counters, so any of them can read them.
        let machine = [("machine".to_owned(), self.station(NodeId::A))];
        let names = HostName::ALL.map(|name| format!("host {}", name.name()));
        let hosts = names
            .into_iter()
            .zip(self.hosts.iter().map(|host| host.node()));
        let machines: Vec<_> = if self.hosts.is_empty() {
            machine.into()
        } else {
            hosts.collect()
        };
        let pollers = machines
            .into_iter()
            .map(|(name, node)| DevicePoller::of_machine(name, node, &self.powercap));
        let pollers: Result<Vec<_>> = pollers.collect();
        Ok(pollers?.into_iter().flatten().collect())
    }
}
