//! The settings of a group in words, for rankings and suites, which show one group each.

use super::frames::direction_in_words;
use super::{Protocol, Run, payload_name};
use units::human::counted;

/// The words of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GroupWords {
    /// The settings that distinguish it from the others: `TCP, MTU 1400 B, 1 core`.
    pub(crate) name: String,
    /// Its other settings: `4 streams, offloads on, 3 × 10 s`.
    pub(crate) common: String,
}

impl Run<'_> {
    /// Returns every group with a figure to compare, with its words.
    pub(crate) fn group_words(&self) -> Vec<(&str, GroupWords)> {
        let mut found: Vec<(&str, GroupWords)> = Vec::new();
        let sets = self.sets();
        for set in &sets {
            // Words are compared within a protocol, as the protocol is part of each name.
            let alike = sets.iter().filter(|other| other.protocol == set.protocol);
            let alike: Vec<_> = alike.collect();
            for point in &set.points {
                // All cells of a point are in one group, so any of them identifies it.
                let Some(cell) = point.cells.first() else {
                    continue;
                };
                let mut name = vec![set.protocol.name().to_owned()];
                if set.protocol != Protocol::Tcp {
                    name.push(format!("payload {}", payload_name(point.payload)));
                }
                name.push(format!("MTU {} B", point.mtu));
                name.push(counted(point.cores, "core"));
                name.extend(set.own_words(&alike).map(str::to_owned));
                let words = GroupWords {
                    name: name.join(", "),
                    common: set.common.clone(),
                };
                found.push((self.group_of(&cell.id), words));
            }
        }
        for set in self.frame_sets() {
            let load = set.load();
            for point in &set.points {
                let Some(cell) = point.cells.first() else {
                    continue;
                };
                let direction = direction_in_words(set.test.traffic.direction);
                let words = GroupWords {
                    name: format!(
                        "{}, frames of {}, {direction}",
                        set.kind.title(),
                        point.name()
                    ),
                    common: match &load {
                        Some(load) => format!("{load}, {}", set.common),
                        None => set.common.clone(),
                    },
                };
                found.push((self.group_of(&cell.id), words));
            }
        }
        found
    }

    fn group_of(&self, id: &str) -> &str {
        self.cell(id).map_or("", |cell| &cell.group)
    }
}

/// The words of a group; its id if it has none.
pub(crate) fn words_of(all: &[(&str, GroupWords)], group: &str) -> GroupWords {
    let found = all.iter().find(|(known, _)| *known == group);
    let own_name = || GroupWords {
        name: group.to_owned(),
        ..GroupWords::default()
    };
    found.map_or_else(own_name, |(_, words)| words.clone())
}
