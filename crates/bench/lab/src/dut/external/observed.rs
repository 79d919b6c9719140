//! Values of boxes read by SNMP or from pages, and periodic readings.

use super::{External, answers};
use crate::dut::Site;
use crate::monitor::{BoxCommand, Count, DevicePoller, Queries, Reader};
use plan::{ExternalBox, ReadingKind, Source};
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::{LabError, NodeId, Result};

/// Counters of one box that no command prints.
pub(super) struct QueriedCounters {
    gateway: NodeId,
    names: Vec<String>,
    queries: Queries,
    /// Counts of 32-bit counters continue past a wrap.
    counts: Vec<Count>,
}

impl QueriedCounters {
    /// Prepares the counters of a box.
    pub(super) fn of(site: &Site<'_>, gateway: NodeId, its: &ExternalBox) -> Result<Self> {
        let counters = &its.observed.counters;
        let sources = counters.values().enumerate();
        let queries = Queries::prepare(sources.map(|(number, source)| (number, source, true)));
        Ok(Self {
            gateway,
            names: counters.keys().cloned().collect(),
            queries: queries.map_err(|error| cannot_read(site, gateway, &error))?,
            counts: vec![Count::default(); counters.len()],
        })
    }

    /// Reads them and adds them by `gateway/counter`.
    pub(super) fn read(
        &mut self,
        site: &Site<'_>,
        counters: &mut BTreeMap<String, u64>,
    ) -> Result<()> {
        let gateway = self.gateway.name();
        let failed = |(number, why): (usize, String)| {
            let name = &self.names[number];
            site.error(format!("shows no counter `{name}` on {gateway}: {why}"))
        };
        for (number, answer) in self.queries.all().map_err(failed)? {
            let counted = answer.count().map(|(count, range)| {
                // A counter that was reset starts again, as with counters that a command prints.
                let _ = self.counts[number].advance(count, range);
                self.counts[number].total()
            });
            let total = counted.map_err(|why| failed((number, why)))?;
            counters.insert(format!("{gateway}/{}", self.names[number]), total);
        }
        Ok(())
    }
}

/// Reads a box's model and software if no command prints them.
pub(super) fn version(site: &Site<'_>, gateway: NodeId, source: &Source) -> Result<String> {
    let failed = |why: String| cannot_read(site, gateway, &why);
    let queries = Queries::prepare([(0, source, false)].into_iter()).map_err(failed)?;
    let answers = queries.all().map_err(|(_, why)| failed(why))?;
    // One source gives one answer.
    let text: Vec<_> = answers.values().map(|answer| answer.text()).collect();
    Ok(answers::fact(&text.concat()))
}

/// Prepares the readings of boxes at an interval.
pub(super) fn pollers<'a>(external: &External, site: &Site<'a>) -> Result<Vec<DevicePoller<'a>>> {
    let mut pollers = Vec::new();
    for (gateway, its) in external.boxes() {
        let (Some(monitor), Some(outside)) = (&its.observed.monitor, site.outside) else {
            continue;
        };
        let runner = external.runner(site)?;
        // Commands are run one by one, while values of an agent or a page come by one request.
        let (mut readers, mut sources) = (Vec::new(), Vec::new());
        for (number, reading) in monitor.readings.iter().enumerate() {
            if let Source::Command(command) = &reading.source {
                let command = BoxCommand {
                    host: &outside.host,
                    program: runner.program(&its.via, command)?,
                    limit: runner.limit(),
                };
                readers.push(Reader::Command(number, command));
            } else {
                let is_counter = reading.kind == ReadingKind::Counter;
                sources.push((number, &reading.source, is_counter));
            }
        }
        let queries = Queries::prepare(sources.into_iter());
        let queries = queries.map_err(|error| cannot_read(site, gateway, &error))?;
        readers.push(Reader::Queries(queries));
        pollers.push(DevicePoller::of_box(
            gateway.name().to_owned(),
            Duration::from_nanos(monitor.interval_ns),
            monitor.readings.clone(),
            readers,
        ));
    }
    Ok(pollers)
}

fn cannot_read(site: &Site<'_>, gateway: NodeId, why: &str) -> LabError {
    site.error(format!("cannot be read on {}: {why}", gateway.name()))
}
