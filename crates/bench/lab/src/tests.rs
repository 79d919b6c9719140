//! Nodes without a kernel: their `ip` keeps routes, neighbours and links by name, and refuses the
//! commands that a test names.

use crate::dut::{Adapter, Site, adapter};
use crate::topology::Map;
use journal::record::InterfaceCounters;
use plan::{Direction, Dut, LabPlan, Software, WireGuard, WireGuardProgram};
use std::collections::BTreeSet;
use std::sync::Mutex;
use testbed::protocol::{Ended, Program, Request, Response};
use testbed::{Links, Node, NodeId, Result};

/// A node that only notes what it is to do.
pub(crate) struct FakeNode {
    id: NodeId,
    /// Beginning of the commands that fail.
    refused: Mutex<&'static str>,
    /// Present routes, neighbours, addresses, links and files.
    present: Mutex<BTreeSet<String>>,
    /// The programs that ran, each on a line.
    ran: Mutex<Vec<String>>,
    last: Mutex<Ended>,
    /// The settings of WireGuard.
    settings: Mutex<String>,
}

impl FakeNode {
    pub(crate) fn new(id: NodeId) -> Self {
        Self {
            id,
            refused: Mutex::new("nothing"),
            present: Mutex::default(),
            ran: Mutex::default(),
            last: Mutex::default(),
            settings: Mutex::default(),
        }
    }

    /// Commands that begin so fail from now on, in place of those named before.
    pub(crate) fn refuse(&self, begin: &'static str) {
        *self.refused.lock().unwrap() = begin;
    }

    pub(crate) fn add(&self, what: &str) {
        self.present.lock().unwrap().insert(what.to_owned());
    }

    /// What was made and is still there.
    pub(crate) fn left(&self) -> Vec<String> {
        self.present.lock().unwrap().iter().cloned().collect()
    }

    pub(crate) fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    fn is_refused(&self, command: &str) -> bool {
        command.starts_with(*self.refused.lock().unwrap())
    }

    fn run(&self, program: &Program) -> Ended {
        let words: Vec<&str> = program.argv.iter().map(String::as_str).collect();
        self.ran.lock().unwrap().push(words.join(" "));
        let mut ended = Ended {
            code: Some(i32::from(self.is_refused(&words.join(" ")))),
            ..Ended::default()
        };
        match words[..] {
            ["ip", .., "-batch", "-"] => {
                for line in program.stdin.lines() {
                    if !self.carry_out(line) {
                        ended.code = Some(1);
                        ended.stderr += &format!("refused: {line}\n");
                        if words[1] != "-force" {
                            break;
                        }
                    }
                }
            }
            ["rm", "-f", file] => drop(self.present.lock().unwrap().remove(file)),
            ["wg", "genkey" | "pubkey"] => ended.stdout = "key=\n".to_owned(),
            ["wg", "setconf", ..] => self.settings.lock().unwrap().clone_from(&program.stdin),
            ["wg", "showconf", ..] => ended.stdout.clone_from(&self.settings.lock().unwrap()),
            _ => {}
        }
        ended
    }

    /// Whether a command of `ip` succeeds.
    fn carry_out(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split(' ').collect();
        let mut present = self.present.lock().unwrap();
        let (["default", "via", name, ..] | ["blackhole", name, ..] | [name, ..]) = words[2..]
        else {
            return false;
        };
        let known = format!("{} {name}", words[0]);
        !self.is_refused(line)
            && match words[1] {
                "replace" | "add" => present.insert(known) || words[1] == "replace",
                "del" => present.remove(&known),
                _ => true,
            }
    }
}

impl Node for FakeNode {
    fn id(&self) -> NodeId {
        self.id
    }

    fn call(&self, request: Request) -> Result<Response> {
        Ok(match request {
            Request::Start { program, .. } => {
                *self.last.lock().unwrap() = self.run(&program);
                Response::Started {
                    process: 1,
                    pid: 1,
                    stdout: String::new(),
                }
            }
            Request::Wait { .. } => Response::Ended(self.last.lock().unwrap().clone()),
            Request::InterfaceCounters => {
                let left = self.left();
                let links = left.iter().filter_map(|what| what.strip_prefix("link "));
                let counted = |name: &str| (name.to_owned(), InterfaceCounters::default());
                Response::InterfaceCounters(links.map(counted).collect())
            }
            Request::WriteFile { name, .. } => {
                let path = format!("/run/{name}");
                self.add(&path);
                Response::Written { path }
            }
            other => panic!("{other:?}"),
        })
    }
}

/// The four nodes of a lab.
pub(crate) struct FakeLab {
    pub(crate) gateways: [FakeNode; 2],
    stations: [FakeNode; 2],
    software: Software,
    map: Map,
}

impl FakeLab {
    pub(crate) fn new() -> Self {
        Self {
            gateways: [NodeId::Gw1, NodeId::Gw2].map(FakeNode::new),
            stations: [NodeId::A, NodeId::B].map(FakeNode::new),
            software: Software::default(),
            map: Map::new(&LabPlan::named("test"), true),
        }
    }

    pub(crate) fn site(&self, direction: Direction) -> Site<'_> {
        Site {
            dut: "dut",
            software: &self.software,
            links: Links {
                mtu: 1400,
                cipher_mtu: 1500,
                offloads: true,
                rate_bps: None,
            },
            direction,
            gateways: self.gateways.each_ref().map(|node| node as &dyn Node),
            elements: &[],
            stations: self.stations.each_ref().map(|node| node as &dyn Node),
            map: &self.map,
            outside: None,
            tap: None,
        }
    }
}

fn wireguard() -> Box<dyn Adapter> {
    let program = WireGuardProgram::Kernel;
    let dut = Dut::new("dut", plan::Adapter::WireGuard(WireGuard { program }));
    adapter(&dut).unwrap()
}

#[test]
fn a_link_that_cannot_be_removed_does_not_keep_the_routes() {
    let lab = FakeLab::new();
    let gw1 = &lab.gateways[0];
    for what in ["link w0", "link stuck0", "link vpn0", "route 10.2.0.0/24"] {
        gw1.add(what);
    }
    gw1.refuse("link del stuck0");
    let error = lab.site(Direction::Both).clear().unwrap_err().to_string();
    assert!(error.contains("stuck0"), "{error}");
    let left = gw1.left();
    let links: Vec<_> = left.iter().filter(|it| it.starts_with("link")).collect();
    assert_eq!(links, ["link stuck0", "link w0"]);
    assert!(!left.contains(&"route 10.2.0.0/24".to_owned()), "{left:?}");
}

#[test]
fn wireguard_leaves_no_file_with_keys() {
    for direction in [Direction::Both, Direction::Encrypt] {
        for refused in ["nothing", "wg show wg0"] {
            let lab = FakeLab::new();
            let site = lab.site(direction);
            lab.gateways[0].refuse(refused);
            let mut wireguard = wireguard();
            let started = wireguard.start(&site);
            assert_eq!(started.is_ok(), refused == "nothing");
            if let Ok(dut) = started {
                wireguard.stop(&site, dut).unwrap();
            }
            for node in &lab.gateways {
                let left = node.left();
                assert!(!left.iter().any(|it| it.starts_with('/')), "{left:?}");
            }
        }
    }
}
