//! One of its stations.

use super::{DUT_PROCESS, FRAME_BYTES, Running, World};
use crate::bench::MS;
use journal::record::{CipherWatch, InterfaceCounters, PathSettings};
use port::{FramePortKind, FramePortStats};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testbed::protocol::{CpuTime, Ended, NodeReading, Program, Request, Response, Sample};
use testbed::{LabError, Node, NodeId};
use traffic_spec::{Received, Report, Role, Sent, Spec};

const FCS_BYTES: u64 = 4;

pub(super) struct StationNode {
    pub(super) id: NodeId,
    pub(super) world: Arc<Mutex<World>>,
}

fn frames(rate: u64, ns: u64) -> u64 {
    (u128::from(rate) * u128::from(ns) / 1_000_000_000) as u64
}

fn counter(world: &mut World, node: NodeId) -> &mut InterfaceCounters {
    world.counters.entry(node).or_default()
}

impl StationNode {
    fn is_on_b(&self) -> bool {
        matches!(self.id, NodeId::Gw2 | NodeId::B)
    }

    fn error(&self, reason: &str) -> LabError {
        LabError::Node {
            node: self.id.name(),
            reason: reason.to_owned(),
        }
    }

    fn start(&self, world: &mut World, program: &Program) -> Result<Response, LabError> {
        let spec: Option<Spec> = serde_json::from_str(&program.stdin).ok();
        if let Some(spec) = &spec {
            if world.script.no_receiver && matches!(spec.role, Role::Receive(_)) {
                return Err(self.error("`cipherbench` was not ready within 5 s"));
            }
            assert_eq!(program.argv[1..], ["frames"]);
            let place = (self.id, program.cores.clone(), spec.clone());
            world.started.push(place);
            // All of a sender's frames are on the path when it starts: nothing here takes the time
            // of a trial.
            self.carry(world, spec);
        }
        world.handles += 1;
        let running = Running {
            node: self.id,
            spec,
            since: Instant::now(),
            stopping: false,
        };
        let process = world.handles;
        world.running.insert(process, running);
        Ok(Response::Started {
            process,
            pid: 1,
            stdout: String::new(),
        })
    }

    /// What a sender puts on the path at once, as far as counters go.
    fn carry(&self, world: &mut World, spec: &Spec) {
        let Role::Send(send) = &spec.role else {
            return;
        };
        let rate = send.frames_per_s.unwrap_or(1_000_000);
        let sent = frames(rate, send.duration_ns) / if world.script.slow_sender { 2 } else { 1 };
        let carried = sent.min(frames(world.script.capacity, send.duration_ns));
        world.sent.insert((spec.tag, self.id), (sent, carried));
        counter(world, self.id).tx_packets += sent;
        let receiver = world.running.values().find(|running| {
            let tag = running.spec.as_ref().map(|spec| spec.tag);
            running.node != self.id && tag == Some(spec.tag)
        });
        // A receiver is there before the sender is.
        let sink = if world.script.reflects {
            self.id
        } else {
            receiver.unwrap().node
        };
        let unseen = world.script.unseen;
        counter(world, sink).rx_packets += carried + unseen;
        self.cross(world, sink, sent);
    }

    /// Frames that cross the cipher link, unless they take another way.
    fn cross(&self, world: &mut World, sink: NodeId, sent: u64) {
        world.trials += 1;
        if world.script.past_the_link_in == Some(world.trials) {
            return;
        }
        world.unread += sent;
        let bytes = sent * (FRAME_BYTES - FCS_BYTES);
        // One way leaves by the ends nearest to A's side, the other one comes there.
        for (node, leaves) in [(NodeId::Gw1, true), (NodeId::Gw2, false)] {
            let from_b = matches!(self.id, NodeId::Gw2 | NodeId::B);
            // The counters of a station in a gateway's place are its own.
            if node == self.id {
                continue;
            }
            let counter = counter(world, node);
            if leaves != from_b {
                counter.tx_bytes += bytes;
                counter.tx_packets += sent;
            } else {
                counter.rx_bytes += bytes;
                // What a receiver there gets has been counted.
                counter.rx_packets += if node == sink { 0 } else { sent };
            }
        }
    }

    /// Frames sent and carried towards a receiver.
    fn towards(&self, world: &World, tag: u16) -> (u64, u64) {
        let comes_back = world.script.reflects;
        let source = world
            .sent
            .iter()
            .find(|((of, node), _)| *of == tag && (*node == self.id) == comes_back);
        source.map_or((0, 0), |(_, &counts)| counts)
    }

    fn status(&self, world: &World, process: u64) -> Option<Ended> {
        if process >= DUT_PROCESS {
            let dead = Ended {
                signal: Some(9),
                ..Ended::default()
            };
            return world.script.dut_dead.then_some(dead);
        }
        let running = &world.running[&process];
        let over = match &running.spec.as_ref()?.role {
            Role::Send(send) => running.since.elapsed() >= Duration::from_nanos(send.duration_ns),
            Role::Receive(_) | Role::Reflect(_) | Role::Attack(_) => running.stopping,
        };
        over.then(Ended::default)
    }

    /// Removes a program, whether or not it has reported.
    fn end(&self, world: &mut World, process: u64) -> Result<Ended, LabError> {
        let running = world.running.remove(&process);
        let running = running.ok_or_else(|| self.error("no such process"))?;
        // Only programs of frames fail so, not the tools that read the kernel.
        let says = world.script.says.filter(|_| running.spec.is_some());
        Ok(Ended {
            code: Some(says.map_or(0, |(_, code)| code)),
            stderr: says.map_or("", |_| "what went wrong\n").to_owned(),
            ..Ended::default()
        })
    }

    /// The report of a program: a sender's after its time, a receiver's when it has all frames or
    /// was stopped.
    fn line(&self, world: &World, process: u64) -> Option<String> {
        let running = &world.running[&process];
        let spec = running.spec.clone()?;
        if let Some((words, _)) = world.script.says {
            return (!words.is_empty()).then(|| words.to_owned());
        }
        let ready = match &spec.role {
            Role::Send(_) => !world.script.slow_sender || running.stopping,
            Role::Receive(receive) => {
                let all = receive.expected == Some(self.towards(world, spec.tag).1);
                all || running.stopping
            }
            Role::Reflect(_) | Role::Attack(_) => running.stopping,
        };
        if !ready {
            return None;
        }
        let report = Report {
            port: Some(FramePortKind::Packet),
            passed_over: vec![(FramePortKind::Xdp, "the fake has none".to_owned())],
            threads: spec.threads,
            port_stats: FramePortStats::default(),
            engine: None,
            ..self.report(world, &spec)
        };
        Some(serde_json::to_string(&report).unwrap())
    }

    fn report(&self, world: &World, spec: &Spec) -> Report {
        match &spec.role {
            Role::Send(send) => {
                let (frames, _) = world.sent[&(spec.tag, self.id)];
                let sent = Sent {
                    intended: frames * if world.script.slow_sender { 2 } else { 1 },
                    frames,
                    frame_bytes: frames * FRAME_BYTES,
                    elapsed_ns: send.duration_ns,
                    ..Sent::default()
                };
                Report {
                    sent: Some(sent),
                    ..Report::default()
                }
            }
            Role::Receive(_) => {
                let (_, frames) = self.towards(world, spec.tag);
                let received = Received {
                    frames,
                    frame_bytes: frames * FRAME_BYTES,
                    latency: vec![(1000, frames)],
                    ..Received::default()
                };
                Report {
                    received: Some(received),
                    ..Report::default()
                }
            }
            // No trial here is there and back.
            Role::Reflect(_) | Role::Attack(_) => Report::default(),
        }
    }
}

impl Node for StationNode {
    fn id(&self) -> NodeId {
        self.id
    }

    fn call(&self, request: Request) -> Result<Response, LabError> {
        let mut world = self.world.lock().unwrap();
        let interface = match self.id {
            NodeId::A => "a0",
            NodeId::Gw1 => "w0",
            NodeId::Gw2 => "w1",
            NodeId::B => "b0",
            NodeId::Element(_) | NodeId::Tap => "p0",
            NodeId::Host => "lo",
        };
        let interface = interface.to_owned();
        Ok(match request {
            Request::Hello { protocol } => Response::Hello {
                protocol,
                program: "fake".to_owned(),
                pid: 1,
                boot_id: if world.script.two_machines && self.is_on_b() {
                    "another".to_owned()
                } else {
                    "fake".to_owned()
                },
                clock: String::new(),
                cores: 2,
                cpus: Vec::new(),
                rmem_max_bytes: None,
                wmem_max_bytes: None,
            },
            Request::Start { program, .. } => self.start(&mut world, &program)?,
            Request::Wait { process, .. } | Request::Stop { process, .. } => {
                Response::Ended(self.end(&mut world, process)?)
            }
            Request::Status { process } => Response::Status(self.status(&world, process)),
            Request::AwaitLine { process, .. } => Response::Line(self.line(&world, process)),
            Request::Terminate { process } => {
                world.running.get_mut(&process).unwrap().stopping = true;
                Response::Terminated
            }
            Request::CpuTime { .. } => Response::CpuTime(CpuTime {
                user_ns: MS,
                ..CpuTime::default()
            }),
            Request::CountersStart { .. } => Response::Counting(false),
            Request::Resident { .. } => Response::Resident(1 << 20),
            Request::InterfaceCounters => {
                let found = *counter(&mut world, self.id);
                Response::InterfaceCounters([(interface, found)].into())
            }
            Request::Offloads => {
                let features = [
                    "tcp-segmentation-offload",
                    "generic-segmentation-offload",
                    "tx-udp-segmentation",
                    "generic-receive-offload",
                ];
                let off = features.map(|name| (name.to_owned(), "off".to_owned()));
                Response::Offloads([(interface, off.into())].into())
            }
            Request::Watch { interface: at, .. } => {
                assert_eq!(at, interface);
                world.watching += 1;
                world.watches.push(self.id);
                Response::Watching { watch: 7 }
            }
            Request::WatchEnd { .. } => {
                world.watching -= 1;
                Response::Watched(CipherWatch::default())
            }
            Request::WatchRead { .. } => {
                // A reading begins a new count, as the station's does.
                let foreign_frames = std::mem::take(&mut world.unread);
                Response::Watched(CipherWatch {
                    foreign_frames,
                    ..CipherWatch::default()
                })
            }
            Request::Readings { processes } => {
                let found = *counter(&mut world, self.id);
                Response::Readings(NodeReading {
                    interfaces: [(interface, found)].into(),
                    backlog_drops: if world.script.two_machines && !self.is_on_b() {
                        0
                    } else {
                        world.trials * world.script.backlog_drops
                    },
                    processes: vec![CpuTime::default(); processes.len()],
                    ..NodeReading::default()
                })
            }

            Request::SettingsWatch { .. } => {
                world.settings_watched += 1;
                Response::Watching { watch: 8 }
            }
            Request::SettingsWatchEnd { .. } => {
                world.settings_watched -= 1;
                Response::SettingsWatched(PathSettings::default())
            }
            Request::Sample { .. } => Response::Sample(Sample {
                link: world.script.cipher_link.clone(),
                ..Sample::default()
            }),
            other => return Err(self.error(&format!("the fake cannot do {other:?}"))),
        })
    }
}
