//! Hosts: other machines that have stations of a lab.
//!
//! ```text
//!  run ── ssh host cipherbench station --host ──┬── station --node a
//!                                               └── station --node gw1
//! ```
//!
//! 1. A shell on the host reports its machine, and whether this very program is installed;
//!    otherwise the program is uploaded ([`reach`]).
//! 2. The program takes the lab's name on the host, removes leftovers of a killed run, and starts
//!    the host's stations, as a run does on its machine ([`part`]). It passes requests on to them
//!    over the one connection.
//! 3. Every second the run sends a keepalive, which the host answers. After [`SILENCE`] without a
//!    message the host takes all of it down, and the run fails with that reason. So a cut cable, a
//!    killed `ssh` and a machine that sleeps leave nothing behind.

pub(crate) mod attentive;
mod dialogue;
pub(crate) mod part;
mod reach;

use crate::caller::Station;
use plan::{Host, HostName};
use reach::Reach;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;
use testbed::protocol::{Ended, PROTOCOL_VERSION, Program, Request, Response, THIS_PROGRAM};
use testbed::{Interrupt, LabError, Node, NodeId, Result};

/// Interval of a run's keepalives to its hosts.
const BEAT: Duration = Duration::from_secs(1);
/// How long the other side may be silent. With what ending takes, a host is free after 5 s.
pub(crate) const SILENCE: Duration = Duration::from_secs(4);

/// A station of a lab, on this machine or another host.
#[derive(Debug)]
pub(crate) enum Seat {
    /// A child of this process.
    Here(Station),
    /// On another host.
    There(RemoteStation),
}

/// A station on another host.
#[derive(Debug)]
pub(crate) struct RemoteStation {
    id: NodeId,
    /// On its host.
    pid: u32,
    host: Arc<RemoteHost>,
    interrupt: Interrupt,
}

/// A host, reached to look at it or to tune it: no lab's name is taken there.
#[derive(Debug)]
pub struct Visit(RemoteHost);

impl Visit {
    /// Reaches the host.
    ///
    /// # Errors
    /// [`LabError::CannotBuild`] with the host, the problem and its fix.
    pub fn open(name: HostName, host: &Host, interrupt: &Interrupt) -> Result<Self> {
        let (name, agent) = start_agent(name, host, interrupt, interrupt)?;
        greet(&agent, interrupt)
            .map_err(|error| error.into_cannot_build(|_| name.clone(), HELP))?;
        Ok(Self(RemoteHost::beating(name, agent)?))
    }

    /// Its name, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The node for programs there. They end when this is dropped.
    #[must_use]
    pub fn node(&self) -> &dyn Node {
        self.0.node()
    }

    /// Runs this program there.
    ///
    /// # Errors
    /// When the host goes away, or the program cannot be started.
    pub fn run(&self, words: &[String], limit: Duration) -> Result<Ended> {
        let argv = [THIS_PROGRAM.to_owned()]
            .into_iter()
            .chain(words.iter().cloned());
        self.0.node().run(Program::new(argv), limit)
    }
}

/// Help for a host that answers but cannot take part.
const HELP: &str = "`cipherbench doctor` on that host lists what it lacks";

/// Has an agent identify itself: it must be of this version.
fn greet(agent: &Station, interrupt: &Interrupt) -> Result<()> {
    let hello = Request::Hello {
        protocol: PROTOCOL_VERSION,
    };
    match agent.call_unless(hello, interrupt)? {
        Response::Hello { program, .. } if program == VERSION => Ok(()),
        Response::Hello { program, .. } => Err((agent as &dyn Node).error(format!(
            "its program is cipherbench {program}, and this one {VERSION}\n\
             help: use the same version of cipherbench on both sides"
        ))),
        other => Err((agent as &dyn Node).unexpected(&other)),
    }
}

/// The version of this program, in the form that agents report.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Starts this program's agent on a host; `of_calls` interrupts its calls. Returns the agent and
/// the host's name for messages.
fn start_agent(
    name: HostName,
    host: &Host,
    interrupt: &Interrupt,
    of_calls: &Interrupt,
) -> Result<(String, Station)> {
    let name = format!("host `{}` ({})", name.name(), host.describe());
    let agent = Reach::new(&name, host, interrupt).agent(of_calls)?;
    Ok((name, agent))
}

/// Another host, reached.
#[derive(Debug)]
pub(crate) struct RemoteHost {
    /// For messages: `host a (ssh root@left)`.
    name: String,
    agent: Arc<Station>,
    /// Ends the thread that beats.
    stop: Option<Sender<()>>,
    beats: Option<JoinHandle<()>>,
}

impl Seat {
    /// Its process id on its host.
    pub(crate) const fn pid(&self) -> u32 {
        match self {
            Self::Here(station) => station.pid(),
            Self::There(station) => station.pid,
        }
    }

    /// Ends its input, upon which it ends; does not wait for that.
    pub(crate) fn hang_up(&self) {
        match self {
            Self::Here(station) => station.hang_up(),
            // The stations of a host have one input in common, the connection to its agent: all of
            // them end.
            Self::There(station) => station.host.agent.hang_up(),
        }
    }
}

impl Node for Seat {
    fn id(&self) -> NodeId {
        match self {
            Self::Here(station) => station.id(),
            Self::There(station) => station.id,
        }
    }

    fn call(&self, request: Request) -> Result<Response> {
        match self {
            Self::Here(station) => station.call(request),
            Self::There(station) => station.call(request),
        }
    }
}

impl RemoteStation {
    fn call(&self, request: Request) -> Result<Response> {
        let node = self.id.name();
        let request = Request::On {
            node: node.to_owned(),
            request: Box::new(request),
        };
        // The agent's calls have no interrupt, so that all can be ended in order; this one has the
        // run's.
        let answer = self.host.agent.call_unless(request, &self.interrupt);
        answer.map_err(|error| match error {
            // The agent's error names the host; the message is for the station.
            LabError::Node { reason, .. } => LabError::Node { node, reason },
            other => other,
        })
    }
}

impl RemoteHost {
    /// Reaches a host and has it take the lab's name and start these nodes, its stations' tools on
    /// the CPUs that the lab gives. Returns its stations, and a sentence for all that an earlier
    /// run had left there.
    ///
    /// # Errors
    /// [`LabError::CannotBuild`] with the host, the problem and its fix. The host is left clean.
    pub(crate) fn open(
        name: HostName,
        host: &Host,
        (lab, nodes): (&str, &[NodeId]),
        interrupt: &Interrupt,
    ) -> Result<(Arc<Self>, Vec<Seat>, Vec<String>)> {
        // For the tools of its stations; the agent itself is not assigned to any.
        let cpus = host.cpus.clone();
        // Ctrl-C does not silence the beats: stations are ended in order.
        let (name, agent) = start_agent(name, host, interrupt, &Interrupt::new())?;
        // An error drops the agent, which ends all that it has started there.
        let opened = (|| {
            greet(&agent, interrupt)?;
            let names = nodes.iter().map(|node| node.name().to_owned());
            let take = Request::TakePart {
                lab: lab.to_owned(),
                nodes: names.collect(),
                cpus,
            };
            agent.call_unless(take, interrupt)
        })();
        let opened = opened.map_err(|error| error.into_cannot_build(|_| name.clone(), HELP))?;
        let Response::PartTaken { swept, pids } = opened else {
            return Err((&agent as &dyn Node).unexpected(&opened));
        };
        let host = Arc::new(Self::beating(name, agent)?);
        let seat = |&id: &NodeId| {
            Seat::There(RemoteStation {
                id,
                pid: pids.get(id.name()).copied().unwrap_or(0),
                host: Arc::clone(&host),
                interrupt: interrupt.clone(),
            })
        };
        let seats = nodes.iter().map(seat).collect();
        let swept = swept
            .into_iter()
            .map(|what| format!("{}: {what}", host.name));
        Ok((Arc::clone(&host), seats, swept.collect()))
    }

    fn beating(name: String, agent: Station) -> Result<Self> {
        let agent = Arc::new(agent);
        let (stop, stopped) = mpsc::channel();
        let (beating, whose) = (Arc::clone(&agent), name.clone());
        let thread = std::thread::Builder::new().name(format!("beats of {name}"));
        let beats = thread.spawn(move || {
            // The sender is dropped to end the loop.
            // Waits on the channel and does not sleep, so that the end of a lab need not await a
            // beat.
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                if beating
                    .call_within(Request::Alive, SILENCE, &Interrupt::new())
                    .is_err()
                {
                    let limit = SILENCE.as_secs();
                    // Calls in progress may have long limits: this fails them all.
                    beating.lose(&format!(
                        "{whose} went away: it did not answer within {limit} s"
                    ));
                    return;
                }
            }
        });
        let beats = beats.map_err(|error| {
            let what = format!("cannot start a thread for {name}: {error}");
            LabError::cannot_build(what, "see whether this machine has processes left")
        })?;
        Ok(Self {
            name,
            agent,
            stop: Some(stop),
            beats: Some(beats),
        })
    }

    /// The node for programs on the host itself, outside of the stations' namespaces.
    pub(crate) fn node(&self) -> &dyn Node {
        &*self.agent
    }
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        // First, so that a pending beat ends with the agent and the thread can be awaited.
        self.agent.hang_up();
        drop(self.stop.take());
        if let Some(beats) = self.beats.take() {
            // A panic there is no reason for another here.
            let _ = beats.join();
        }
        // The agent is this one's alone now: it is awaited as it is dropped.
    }
}
