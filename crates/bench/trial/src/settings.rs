//! The watch on the settings of all nodes of a path over a trial.

use crate::counters::{Offloads, nodes};
use journal::record::{PathSettings, SettingChange};
use std::collections::{BTreeMap, VecDeque};
use testbed::protocol::{Request, Response};
use testbed::{Bench, LabError, Node, NodeId};

/// A watch on every node, from its start to [`Self::end`]; ended without a result on drop.
pub(crate) struct SettingsWatch<'a> {
    watches: VecDeque<(NodeId, &'a dyn Node, u64)>,
}

impl<'a> SettingsWatch<'a> {
    /// Starts to watch; with `neighbours` frames of ARP, neighbour and group discovery are counted
    /// too.
    pub(crate) fn start(bench: &'a dyn Bench, neighbours: bool) -> Result<Self, LabError> {
        let mut all = Self {
            watches: VecDeque::new(),
        };
        // Watches that were started before one fails are ended on drop.
        for id in nodes(bench) {
            let node = bench.node(id);
            match node.call(Request::SettingsWatch { neighbours })? {
                Response::Watching { watch } => all.watches.push_back((id, node, watch)),
                other => return Err(node.unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// As [`Self::end`] for frame tests: a port that uses XDP changes the offloads that an
    /// interface reports while a program is attached, so those reports are left out.
    pub(crate) fn end_of_frames(
        self,
        before: &Offloads,
        after: &Offloads,
    ) -> Result<PathSettings, LabError> {
        let mut found = self.end(before, after)?;
        found.changes.retain(|change| !change.is_offloads());
        Ok(found)
    }

    /// Ends the watch. Returns what changed, offloads included, by the readings before and after.
    pub(crate) fn end(
        mut self,
        before: &Offloads,
        after: &Offloads,
    ) -> Result<PathSettings, LabError> {
        let mut all = PathSettings::default();
        // Each leaves the list before its call, so that drop ends the remaining ones after an
        // error, and none twice.
        while let Some((id, node, watch)) = self.watches.pop_front() {
            match node.call(Request::SettingsWatchEnd { watch })? {
                Response::SettingsWatched(found) => add(&mut all, id.name(), found),
                other => return Err(node.unexpected(&other)),
            }
        }
        // Offloads have no notification: they are compared at both ends.
        all.changes.extend(offload_changes(before, after));
        Ok(all)
    }
}

/// Tunnels that the device ended by itself over the trial: its kernel is not watched, but its peer,
/// a station, has the SAs that are left.
pub(crate) fn lost_tunnels(bench: &dyn Bench) -> Result<Vec<SettingChange>, LabError> {
    let lost = bench.lost_tunnels()?.into_iter();
    let change = |networks: String| SettingChange::lost_tunnel(NodeId::B.name(), &networks);
    Ok(lost.map(change).collect())
}

impl Drop for SettingsWatch<'_> {
    fn drop(&mut self) {
        for &(_, node, watch) in &self.watches {
            // The trial has failed already; a lost station has no watch either.
            let _ = node.call(Request::SettingsWatchEnd { watch });
        }
    }
}

/// Adds a node's findings, with its name.
fn add(all: &mut PathSettings, node: &str, found: PathSettings) {
    // A node does not know its name in the lab.
    let named = |counters: BTreeMap<String, u64>| {
        let named = counters.into_iter();
        named.map(|(name, count)| (format!("{node}/{name}"), count))
    };
    all.queue_drops.extend(named(found.queue_drops));
    all.stack.extend(named(found.stack));
    let frames = found.neighbour_frames.into_values();
    all.neighbour_frames
        .extend(frames.map(|frames| (node.to_owned(), frames)));
    all.changes
        .extend(found.changes.into_iter().map(|change| SettingChange {
            node: node.to_owned(),
            ..change
        }));
}

/// Offloads that changed. An interface that came or went is a change of links.
fn offload_changes(before: &Offloads, after: &Offloads) -> Vec<SettingChange> {
    let both = before
        .iter()
        .filter_map(|(name, was)| Some((name, was, after.get(name)?)));
    both.flat_map(|(name, was, is)| {
        let (node, interface) = name.split_once('/').unwrap_or(("", name));
        is.iter().filter_map(move |(feature, is)| {
            let was = was.get(feature).filter(|was| *was != is)?;
            Some(SettingChange {
                node: node.to_owned(),
                at_ns: None,
                what: format!("{feature} of {interface}: {is}, was {was}"),
            })
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offloads(state: &str) -> Offloads {
        let features = [("gro", "off"), ("tso", state)];
        let features = features.map(|(name, state)| (name.to_owned(), state.to_owned()));
        [("gw1/w0".to_owned(), features.into())].into()
    }

    #[test]
    fn offloads_that_differ_are_named_with_both_states() {
        assert_eq!(offload_changes(&offloads("on"), &offloads("on")), []);
        let changes = offload_changes(&offloads("on"), &offloads("off"));
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].node, "gw1");
        assert_eq!(changes[0].what, "tso of w0: off, was on");
        assert_eq!(offload_changes(&offloads("on"), &Offloads::new()), []);
    }

    #[test]
    fn what_a_node_found_gets_its_name() {
        let mut all = PathSettings::default();
        let found = PathSettings {
            changes: vec![SettingChange {
                at_ns: Some(5),
                what: "link w0 removed".to_owned(),
                ..SettingChange::default()
            }],
            queue_drops: [("w0".to_owned(), 3)].into(),
            stack: [("RetransSegs".to_owned(), 4)].into(),
            neighbour_frames: [(String::new(), 6)].into(),
        };
        add(&mut all, "gw1", found);
        assert_eq!(all.changes[0].node, "gw1");
        assert_eq!(all.queue_drops["gw1/w0"], 3);
        assert_eq!(all.stack["gw1/RetransSegs"], 4);
        assert_eq!(all.neighbour_frames["gw1"], 6);
    }
}
