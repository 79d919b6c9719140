//! The settings and questions of a lab that is up.

use crate::examine::Subject;
use crate::observed::{Answer, Answers, DirectedQuestion, Question, answers};
use crate::setting::{FEATURES, Place, Setting};
use probe::{Direction, Findings};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use testbed::ethtool::{self, Feature};
use testbed::protocol::{Program, Ready, Request, Response, THIS_PROGRAM, millis};
use testbed::{Node, NodeId, Result};

/// TCP port of the probe's server on B.
const PORT: u16 = 5209;
/// Time of each check.
const CHECK_MS: u64 = 150;
/// Payload of long datagrams: with headers shorter than the smallest usual MTU of a tunnel.
const DATAGRAM_BYTES: u16 = 1380;
/// Time limits of programs, far beyond their need.
const TOOL_LIMIT: Duration = Duration::from_secs(10);
const PROBE_LIMIT: Duration = Duration::from_secs(120);
/// What the other level of a link's MTU has less.
const LESS_MTU_BYTES: u16 = 200;

/// The path to examine.
#[derive(Debug, Clone)]
pub struct PathUnderTest {
    /// B's address.
    pub target: Ipv4Addr,
    /// Interfaces of the lab's links that the path does not cross.
    pub beside: Vec<Place>,
    /// Both ends of links whose MTU is a setting: those of the stations, which packets of A and B
    /// can exceed while a gateway or a station knows it.
    pub links: Vec<[Place; 2]>,
}

/// A feature that the driver does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The interface.
    pub at: Place,
    /// The name of the feature.
    pub feature: &'static str,
    /// Whether it is on.
    pub on: bool,
    /// Why, in words.
    pub reason: String,
}

/// A lab as the subject of an examination.
pub struct OnNodes<'a> {
    nodes: Vec<&'a dyn Node>,
    path: PathUnderTest,
    settings: Vec<Setting>,
    refused: Vec<Refused>,
    /// Features by their full names, as found, that setting their group would change.
    members: BTreeMap<Place, Vec<(String, bool)>>,
    /// Levels in force.
    row: Vec<u8>,
}

impl<'a> OnNodes<'a> {
    /// The nodes are those of the path, from A to B. Reads all settings and tries which can be
    /// changed, starts the server of probes on B, and has every node restore its settings at its
    /// end, however that comes.
    ///
    /// # Errors
    /// When a node is gone, or lacks ethtool.
    ///
    /// # Panics
    /// If A or B is not among the nodes.
    pub fn new(nodes: Vec<&'a dyn Node>, path: PathUnderTest) -> Result<Self> {
        let mut on_nodes = Self {
            nodes,
            path,
            settings: Vec::new(),
            refused: Vec::new(),
            members: BTreeMap::new(),
            row: Vec::new(),
        };
        let places = on_nodes.places()?;
        let printed = on_nodes.printed(&places)?;
        on_nodes.members = printed
            .iter()
            .map(|(place, printed)| (place.clone(), members(printed)))
            .collect();
        // First of all: from here on settings are changed.
        on_nodes.restore_at_end(&places, &printed)?;
        for place in &places {
            on_nodes.try_features(place, &printed[place])?;
        }
        on_nodes.find_mtus()?;
        on_nodes.row = vec![0; on_nodes.settings.len()];
        let serve = serde_json::to_string(&probe::Spec::Serve { port: PORT });
        let serve = serve.expect("plain data has a JSON form");
        let server = Program {
            ready: Ready::Line(probe::READY.to_owned()),
            ..Program::new([THIS_PROGRAM, "probe"]).with_input(serve)
        };
        on_nodes.node(NodeId::B).start(server, TOOL_LIMIT)?;
        Ok(on_nodes)
    }

    /// The features that drivers do not change.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    fn node(&self, id: NodeId) -> &'a dyn Node {
        let found = self.nodes.iter().find(|node| node.id() == id);
        *found.unwrap_or_else(|| panic!("{} is not on the path", id.name()))
    }

    /// The interfaces of the path, in the order of the nodes.
    fn places(&self) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        for node in &self.nodes {
            let id = node.id();
            let interfaces = node.interface_counters()?;
            // The kernel makes tunnels that nobody uses in each namespace, if it has their modules.
            let used = interfaces
                .into_iter()
                .filter(|(_, counters)| counters.rx_packets + counters.tx_packets > 0);
            let each = used.map(|(interface, _)| Place {
                node: id,
                interface,
            });
            places.extend(each.filter(|place| !self.path.beside.contains(place)));
        }
        Ok(places)
    }

    /// What `ethtool -k` prints of each interface.
    fn printed(&self, places: &[Place]) -> Result<BTreeMap<Place, String>> {
        let read = |place: &Place| Ok((place.clone(), self.read(place)?));
        places.iter().map(read).collect()
    }

    /// Registers the commands that restore features and MTUs, once for each node. A node runs them
    /// when its caller goes away for any reason.
    fn restore_at_end(&self, places: &[Place], printed: &BTreeMap<Place, String>) -> Result<()> {
        let mut programs: BTreeMap<NodeId, Vec<Program>> = BTreeMap::new();
        for place in places {
            let mtu = self.mtu(place)?.to_string();
            let restore = programs.entry(place.node).or_default();
            restore.push(Program::new([
                "ip",
                "link",
                "set",
                &place.interface,
                "mtu",
                &mtu,
            ]));
            // One command for each feature: one that fails must not keep the others.
            let features = parse(&printed[place]);
            for feature in &FEATURES {
                if let Some(found) = features
                    .get(feature.printed)
                    .filter(|found| !found.is_fixed)
                {
                    let value = crate::setting::on_or_off(found.wanted);
                    let words = ["ethtool", "-K", &place.interface, feature.word, value];
                    restore.push(Program::new(words));
                }
            }
            for (name, on) in &self.members[place] {
                let value = crate::setting::on_or_off(*on);
                restore.push(Program::new([
                    "ethtool",
                    "-K",
                    &place.interface,
                    name,
                    value,
                ]));
            }
        }
        for (id, programs) in programs {
            let node = self.node(id);
            let limit_ms = millis(TOOL_LIMIT);
            match node.call(Request::AtEnd { programs, limit_ms })? {
                Response::Noted => {}
                other => return Err(node.unexpected(&other)),
            }
        }
        Ok(())
    }

    /// Tries each feature of an interface, and puts it back.
    fn try_features(&mut self, place: &Place, printed: &str) -> Result<()> {
        let found = parse(printed);
        let known = FEATURES.iter();
        let known = known.filter_map(|it| Some((it, *found.get(it.printed)?)));
        let known: Vec<_> = known.collect();
        let changeable = known.iter().filter(|(_, it)| !it.is_fixed);
        let as_found: Vec<_> = changeable
            .map(|(it, found)| (it.word, found.wanted))
            .collect();
        for (feature, found) in known {
            let refused = |reason: &str| Refused {
                at: place.clone(),
                feature: feature.word,
                on: found.on,
                reason: reason.to_owned(),
            };
            if found.is_fixed {
                self.refused.push(refused("fixed by the driver"));
                continue;
            }
            let is_on = |text: &str| parse(text).get(feature.printed).map(|it| it.on);
            let said = self.set(place, &[(feature.word, !found.on)])?;
            let changed = is_on(&self.read(place)?) == Some(!found.on);
            // What depends on it goes with it, and comes back with it.
            self.set(place, &[(feature.word, found.wanted)])?;
            self.set(place, &as_found)?;
            self.set_members(place)?;
            if changed {
                self.settings.push(Setting::Feature {
                    at: place.clone(),
                    feature,
                    found: found.on,
                });
            } else {
                let said = said.lines().next().unwrap_or("ethtool changes nothing");
                self.refused.push(refused(said));
            }
        }
        Ok(())
    }

    fn read(&self, place: &Place) -> Result<String> {
        self.node(place.node)
            .output(["ethtool", "-k", &place.interface])
    }

    /// Sets features; returns what ethtool says. What it achieves is read afterwards.
    fn set(&self, place: &Place, features: &[(&str, bool)]) -> Result<String> {
        let mut words = vec!["ethtool", "-K", &place.interface];
        for (word, on) in features {
            words.extend([*word, crate::setting::on_or_off(*on)]);
        }
        let ended = self.node(place.node).run(Program::new(words), TOOL_LIMIT)?;
        Ok(ended.stderr)
    }

    /// Sets the members of groups as they were found, after their groups: in one command with them
    /// they would have no effect.
    fn set_members(&self, place: &Place) -> Result<()> {
        let members = self.members.get(place).map_or(&[][..], Vec::as_slice);
        let members: Vec<(&str, bool)> =
            members.iter().map(|(it, on)| (it.as_str(), *on)).collect();
        if !members.is_empty() {
            self.set(place, &members)?;
        }
        Ok(())
    }

    fn find_mtus(&mut self) -> Result<()> {
        for ends in self.path.links.clone() {
            let found = self.mtu(&ends[0])?;
            if found <= DATAGRAM_BYTES {
                continue;
            }
            self.settings.push(Setting::Mtu {
                ends,
                found,
                other: found - LESS_MTU_BYTES,
            });
        }
        Ok(())
    }

    fn mtu(&self, place: &Place) -> Result<u16> {
        let node = self.node(place.node);
        let text = node.output(["ip", "-json", "link", "show", "dev", &place.interface])?;
        let shown: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let mtu = shown[0]["mtu"].as_u64();
        mtu.map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX))
            .ok_or_else(|| node.error(format!("cannot read the MTU of {}", place.interface)))
    }

    /// The levels in force, from all interfaces.
    fn in_force(&self, row: &[u8]) -> Result<Vec<u8>> {
        let mut places: Vec<Place> = Vec::new();
        for setting in &self.settings {
            if let Setting::Feature { at, .. } = setting
                && !places.contains(at)
            {
                places.push(at.clone());
            }
        }
        let printed = self.printed(&places)?;
        let level = |(setting, wanted): (&Setting, &u8)| match setting {
            Setting::Feature { at, feature, found } => {
                let features = parse(&printed[at]);
                let on = features.get(feature.printed).is_some_and(|it| it.on);
                u8::from(on != *found)
            }
            Setting::Mtu { .. } => *wanted,
        };
        Ok(self.settings.iter().zip(row).map(level).collect())
    }
}

/// The features that `ethtool -k` printed, by their names there.
fn parse(printed: &str) -> BTreeMap<&str, Feature> {
    ethtool::features(printed).collect()
}

/// The members of the groups that are set, as found, if setting the group would change them.
fn members(printed: &str) -> Vec<(String, bool)> {
    let found = ethtool::uneven_members(printed).into_iter();
    let set = found.filter(|(group, ..)| FEATURES.iter().any(|it| it.printed == *group));
    set.map(|(_, name, feature)| (name.to_owned(), feature.wanted))
        .collect()
}

fn is_at(setting: &Setting, place: &Place) -> bool {
    matches!(setting, Setting::Feature { at, .. } if at == place)
}

impl Subject for OnNodes<'_> {
    type Error = testbed::LabError;

    fn settings(&self) -> &[Setting] {
        &self.settings
    }

    fn apply(&mut self, row: &[u8]) -> Result<Vec<u8>> {
        let mut features: BTreeMap<Place, Vec<(&str, bool)>> = BTreeMap::new();
        let mut mtus = Vec::new();
        for (at, setting) in self.settings.iter().enumerate() {
            match setting {
                // All of an interface: the kernel may have turned off some with others.
                Setting::Feature {
                    at: place,
                    feature,
                    found,
                } => {
                    let on = *found == (row[at] == 0);
                    features
                        .entry(place.clone())
                        .or_default()
                        .push((feature.word, on));
                }
                Setting::Mtu { .. } if self.row[at] != row[at] => {
                    mtus.extend(setting.commands(row[at]))
                }
                Setting::Mtu { .. } => {}
            }
        }
        for (place, features) in &features {
            let changes = self.settings.iter().zip(self.row.iter().zip(row));
            let mut changes = changes.filter(|(setting, _)| is_at(setting, place));
            if changes.any(|(_, (now, wanted))| now != wanted) {
                self.set(place, features)?;
            }
            if row.iter().all(|level| *level == 0) {
                self.set_members(place)?;
            }
        }
        let learnt = !mtus.is_empty();
        for (id, words) in mtus {
            self.node(id).run(Program::new(words), TOOL_LIMIT)?;
        }
        if learnt {
            // A path MTU of another combination must not count.
            for node in &self.nodes {
                let flush = Program::new(["ip", "route", "flush", "cache"]);
                node.run(flush, TOOL_LIMIT)?;
            }
        }
        self.row = self.in_force(row)?;
        Ok(self.row.clone())
    }

    fn answers(&mut self, only: Option<DirectedQuestion>) -> Result<Answers> {
        let mut found = Answers::new();
        let checks = only.and_then(|only| match only.question {
            Question::Probe(check) => Some((only.direction, check)),
            _ => None,
        });
        let spec = probe::Spec::Call {
            target: self.path.target,
            port: PORT,
            check_ms: CHECK_MS,
            datagram_bytes: DATAGRAM_BYTES,
            checks: checks.into_iter().collect(),
        };
        let spec = serde_json::to_string(&spec).expect("plain data has a JSON form");
        let program = Program::new([THIS_PROGRAM, "probe"]).with_input(spec);
        let ended = self.node(NodeId::A).run(program, PROBE_LIMIT)?;
        match serde_json::from_str::<Findings>(&ended.stdout) {
            Ok(findings) => found.extend(answers(&findings)),
            // Not even the control connection passes.
            Err(_) => {
                let fault = format!("nothing passes: the probe fails{}", ended.last_words());
                for direction in Direction::BOTH {
                    for check in probe::Check::ALL {
                        let asked = DirectedQuestion {
                            question: Question::Probe(check),
                            direction,
                        };
                        let answer = Answer {
                            fault: Some(fault.clone()),
                            ..Default::default()
                        };
                        found.insert(asked, answer);
                    }
                }
            }
        }
        Ok(found)
    }
}
