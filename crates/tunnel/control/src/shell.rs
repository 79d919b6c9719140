//! The control thread: one loop that owns all tunnels' state machines, and one task per connection.
//!
//! Only the loop drives a state machine, in the order of events, and executes its outputs
//! immediately: messages go to the queues of connection tasks, keys go to the lanes, and slow work
//! (connecting, calling a KME) becomes a task that reports later. So the loop never waits for a
//! peer.

mod admission;
mod certificate;
mod connection;
mod quantum;
mod requests;
mod timers;

pub use admission::{PENDING_MAX, PENDING_PER_ADDRESS_MAX};
pub use connection::OPEN_LIMIT;
pub(crate) use requests::Requests;

use crate::clock::Clock;
use crate::validity::Watch;
use crate::{Identity, Lanes, Setup, Tunnel};
use admission::Admission;
use connection::{Ends, ORDERS_MAX, Report, Target};
use keying::message::{Cause, Message, Refusal};
use keying::rollover::{Attempt, Input, Output, QkdRequest, Role, Rollover};
use quantum::{Quantum, Reply};
use requests::Wanted;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use timers::Timers;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;
use tokio::time;

/// Maximum connections of one tunnel. It needs two: the standing one and its replacement.
pub const LINKS_PER_TUNNEL_MAX: usize = 8;
/// Maximum unanswered outbound connections to one address; fewer than
/// [`PENDING_PER_ADDRESS_MAX`], which the peer accepts.
const UNDER_WAY_PER_ADDRESS_MAX: usize = 64;
/// Capacity of the report queue; tasks wait when it is full.
const REPORTS_MAX: usize = 1024;
/// Maximum refused connections reported per second; the rest are counted.
const REFUSED_PER_SECOND_MAX: u32 = 20;
/// Pause before the next accept when the operating system is out of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Minimum time between wake-ups of one state machine, so that a wake-up time in the past cannot
/// monopolize the thread.
const WAKE_PAUSE: Duration = Duration::from_millis(1);

/// ID of an inbound or outbound connection; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LinkId(u64);

/// The loop's state of a connection.
struct Link {
    owner: Owner,
    orders: mpsc::Sender<Message>,
    task: AbortHandle,
}

/// The owner of a connection.
#[derive(Clone, Copy)]
enum Owner {
    /// None yet: an inbound connection from this address that has not named its tunnel.
    Pending(IpAddr),
    /// A tunnel; `up` once the TLS handshake is complete.
    Tunnel {
        tunnel: usize,
        attempt: Attempt,
        up: bool,
    },
}

/// The loop's state of a tunnel.
struct Driven {
    rollover: Rollover,
    settings: Tunnel,
    gate: Arc<Semaphore>,
    links: Vec<(Attempt, LinkId)>,
}

/// The loop's state.
pub(crate) struct Shell<L> {
    lanes: L,
    identity: Identity,
    certificate: Watch,
    quantum: Option<Quantum>,
    clock: Clock,
    tunnels: Vec<Driven>,
    /// Tunnels with this side as listener, by their number on the wire.
    by_number: HashMap<u16, Vec<usize>>,
    /// The addresses of their peers.
    sources: HashSet<IpAddr>,
    timers: Timers,
    admission: Admission,
    links: HashMap<LinkId, Link>,
    next_link: u64,
    /// Inputs that arise while the loop executes outputs; handled afterwards.
    found: VecDeque<(usize, Input)>,
    outputs: Vec<Output>,
    refused: Refused,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    replies: (mpsc::Sender<Reply>, mpsc::Receiver<Reply>),
}

/// Rate limit of reports about refused connections.
struct Refused {
    /// Start of the current interval of one second.
    since: Instant,
    reported: u32,
    suppressed: u32,
}

impl<L: Lanes> Shell<L> {
    pub(crate) fn new(setup: Setup, lanes: L) -> Self {
        let mut gates: HashMap<IpAddr, Arc<Semaphore>> = HashMap::new();
        let mut by_number: HashMap<u16, Vec<usize>> = HashMap::new();
        let mut sources = HashSet::new();
        let (mut slaves, mut of_kme) = (Vec::new(), 0);
        let mut tunnels = Vec::with_capacity(setup.tunnels.len());
        for (index, tunnel) in setup.tunnels.into_iter().enumerate() {
            let address = tunnel.remote.ip().to_canonical();
            if tunnel.settings.role == Role::Listener {
                by_number
                    .entry(tunnel.settings.tunnel)
                    .or_default()
                    .push(index);
                sources.insert(address);
            } else if tunnel.settings.policy.asks_qkd() {
                slaves.extend(tunnel.peer_sae.clone());
                of_kme += 1;
            }
            let gate = gates
                .entry(address)
                .or_insert_with(|| Arc::new(Semaphore::new(UNDER_WAY_PER_ADDRESS_MAX)));
            tunnels.push(Driven {
                rollover: Rollover::new(tunnel.settings.clone()),
                settings: tunnel,
                gate: Arc::clone(gate),
                links: Vec::new(),
            });
        }
        Self {
            lanes,
            certificate: Watch::new(setup.identity.valid()),
            identity: setup.identity,
            quantum: setup.qkd.map(|kme| Quantum::new(kme, slaves, of_kme)),
            clock: Clock::start(),
            timers: Timers::new(tunnels.len()),
            tunnels,
            by_number,
            sources,
            admission: Admission::default(),
            links: HashMap::new(),
            // A new `Rollover` starts with attempt 0 as the newest seen.
            next_link: 1,
            found: VecDeque::new(),
            outputs: Vec::new(),
            refused: Refused {
                since: Instant::now(),
                reported: 0,
                suppressed: 0,
            },
            reports: mpsc::channel(REPORTS_MAX),
            replies: mpsc::channel(REPORTS_MAX),
        }
    }

    /// Runs the loop until a request to stop.
    pub(crate) async fn run(mut self, listener: TcpListener, requests: &Requests) {
        self.use_certificate();
        for tunnel in 0..self.tunnels.len() {
            self.drive(tunnel, Input::Tick);
        }
        let mut pause_until: Option<time::Instant> = None;
        loop {
            let wake = self.timers.next().map(|at| self.clock.wakes(at));
            let certificate_due = self.certificate_due();
            tokio::select! {
                wanted = requests.next() => {
                    if wanted.stop {
                        return;
                    }
                    self.serve(&wanted);
                }
                Some(report) = self.reports.1.recv() => self.take_report(report),
                Some(reply) = self.replies.1.recv() => {
                    let (tunnel, attempt, keys) = (reply.tunnel, reply.attempt, reply.keys);
                    self.drive(tunnel, Input::Qkd { attempt, keys });
                }
                () = sleep_until(wake.map(Into::into)) => self.wake(),
                () = sleep_until(certificate_due) => self.look_at_certificate(),
                () = sleep_until(pause_until), if pause_until.is_some() => pause_until = None,
                accepted = listener.accept(), if pause_until.is_none() => match accepted {
                    Ok((stream, from)) => self.admit(stream, from),
                    Err(error) if is_of_one_connection(&error) => {}
                    // Out of descriptors or memory: without a pause the loop would spin.
                    Err(_) => pause_until = Some(time::Instant::now() + ACCEPT_PAUSE),
                },
            }
        }
    }

    fn serve(&mut self, wanted: &Wanted) {
        for (tunnel, cause) in &wanted.tunnels {
            if *tunnel < self.tunnels.len() {
                self.drive(*tunnel, Input::Rekey(*cause));
            }
        }
        if let Some(cause) = wanted.all {
            self.rekey_all(cause);
        }
        if wanted.reload {
            self.reload();
        }
    }

    fn rekey_all(&mut self, cause: Cause) {
        for tunnel in 0..self.tunnels.len() {
            self.drive(tunnel, Input::Rekey(cause));
        }
    }

    fn wake(&mut self) {
        let now = self.clock.now();
        while let Some(tunnel) = self.timers.take(now) {
            self.drive(tunnel, Input::Tick);
            let wakes_at = self.tunnels[tunnel].rollover.wakes_at();
            self.timers
                .set(tunnel, wakes_at.map(|at| at.max(now + WAKE_PAUSE)));
        }
    }

    /// Handles one input of a tunnel, and all inputs that follow from it.
    fn drive(&mut self, tunnel: usize, input: Input) {
        self.found.push_back((tunnel, input));
        while let Some((tunnel, input)) = self.found.pop_front() {
            let now = self.clock.now();
            let mut outputs = mem::take(&mut self.outputs);
            let rollover = &mut self.tunnels[tunnel].rollover;
            rollover.handle(now, input, &mut outputs);
            self.timers.set(tunnel, rollover.wakes_at());
            for output in outputs.drain(..) {
                self.act(tunnel, output);
            }
            self.outputs = outputs;
        }
    }

    fn act(&mut self, tunnel: usize, output: Output) {
        match output {
            Output::Connect(attempt) => self.connect(tunnel, attempt),
            Output::Send(attempt, message) => self.send(tunnel, attempt, message),
            Output::Close(attempt) => {
                if let Some(link) = self.take_link(tunnel, attempt) {
                    link.close();
                }
            }
            Output::FetchQkd(attempt, request) => self.fetch(tunnel, attempt, request),
            Output::InstallInbound(secret) => self.lanes.install_inbound(tunnel, &secret),
            Output::SwitchOutbound(secret) => self.lanes.switch_outbound(tunnel, &secret),
            Output::RetireInbound(epoch) => self.lanes.retire_inbound(tunnel, epoch),
            Output::ExpireOutbound(epoch) => self.lanes.expire_outbound(tunnel, epoch),
            Output::Event(event) => self.lanes.event(tunnel, &event),
        }
    }

    fn connect(&mut self, tunnel: usize, attempt: Attempt) {
        let driven = &self.tunnels[tunnel];
        let target = Target {
            local: driven.settings.local,
            remote: driven.settings.remote,
            peer: driven.settings.settings.peer_name.clone(),
            config: Arc::clone(&self.identity.client),
            not_after: self.identity.valid().end,
            gate: Arc::clone(&driven.gate),
        };
        let owner = Owner::Tunnel {
            tunnel,
            attempt,
            up: false,
        };
        let link = self.spawn(owner, |ends| connection::connect(target, ends));
        self.tunnels[tunnel].links.push((attempt, link));
    }

    fn send(&mut self, tunnel: usize, attempt: Attempt, message: Message) {
        let Some(link) = self.tunnels[tunnel].link(attempt) else {
            return;
        };
        match self.links[&link].orders.try_send(message) {
            // A task that has ended has already reported the reason.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                if let Some(link) = self.take_link(tunnel, attempt) {
                    link.task.abort();
                }
                let reason = "the peer does not read what is sent to it".to_owned();
                self.found
                    .push_back((tunnel, Input::Disconnected { attempt, reason }));
            }
        }
    }

    fn fetch(&mut self, tunnel: usize, attempt: Attempt, request: QkdRequest) {
        let now = self.clock.now();
        let sae = self.tunnels[tunnel].settings.peer_sae.as_deref();
        let refusal = match (&mut self.quantum, sae) {
            (Some(quantum), Some(sae)) => match quantum.may_fetch(&request, now) {
                Ok(()) => {
                    let replies = self.replies.0.clone();
                    return quantum.fetch(tunnel, attempt, sae, request, replies);
                }
                Err(refusal) => refusal,
            },
            _ => "there is no KME here".to_owned(),
        };
        let keys = Err(refusal);
        self.found.push_back((tunnel, Input::Qkd { attempt, keys }));
    }

    fn admit(&mut self, stream: TcpStream, from: SocketAddr) {
        let address = from.ip().to_canonical();
        if !self.sources.contains(&address) {
            return self.refuse(from, "no peer connects from there");
        }
        let identity = self.identity.clone();
        let link = self.spawn(Owner::Pending(address), |ends| {
            connection::accept(stream, from, identity, ends)
        });
        if let Some(leaver) = self.admission.enter(address, link)
            && let Some(link) = self.links.remove(&leaver)
        {
            link.task.abort();
            self.refuse(
                from,
                "too many connections are in the handshake: the oldest was closed for this one",
            );
        }
    }

    fn take_report(&mut self, report: Report) {
        match report {
            Report::Up {
                link,
                secret,
                valid_for,
            } => {
                let Some(Owner::Tunnel {
                    tunnel,
                    attempt,
                    up,
                }) = self.links.get_mut(&link).map(|link| &mut link.owner)
                else {
                    return;
                };
                *up = true;
                let (tunnel, attempt) = (*tunnel, *attempt);
                let connected = Input::Connected {
                    attempt,
                    exporter: secret,
                    valid_for,
                };
                self.drive(tunnel, connected);
            }
            Report::Opened {
                link,
                from,
                session,
                message,
                valid_for,
            } => {
                let Some(taken) = self.take_pending(link) else {
                    return;
                };
                match self.opened(link, taken, from, &session.peer, &message) {
                    Ok(tunnel) => {
                        let attempt = Attempt(link.0);
                        let connected = Input::Connected {
                            attempt,
                            exporter: session.secret,
                            valid_for,
                        };
                        self.drive(tunnel, connected);
                        self.drive(tunnel, Input::Received { attempt, message });
                    }
                    Err(detail) => {
                        self.refuse(from, &format!("{}: {detail}", session.peer));
                    }
                }
            }
            Report::Received { link, message } => {
                if let Some((tunnel, attempt)) = self.owner(link) {
                    self.drive(tunnel, Input::Received { attempt, message });
                }
            }
            Report::Garbled { link, detail } => {
                if let Some((tunnel, attempt)) = self.owner(link) {
                    self.drive(tunnel, Input::Garbled { attempt, detail });
                }
            }
            Report::Refused { link, from, reason } => {
                if self.take_pending(link).is_some() {
                    self.refuse(from, &reason);
                }
            }
            Report::Ended { link, reason } => {
                if let Some((tunnel, attempt)) = self.owner(link) {
                    self.take_link(tunnel, attempt);
                    self.drive(tunnel, Input::Disconnected { attempt, reason });
                }
            }
        }
    }

    /// Assigns an inbound connection to the tunnel that its first message names, if it is a tunnel
    /// with that peer. Otherwise sends the reason to the peer and returns it.
    fn opened(
        &mut self,
        id: LinkId,
        mut link: Link,
        from: SocketAddr,
        peer: &str,
        message: &Message,
    ) -> Result<usize, String> {
        let found = self.tunnel_of(from.ip().to_canonical(), peer, message);
        let tunnel = match found {
            Ok(tunnel) => tunnel,
            Err((why, detail)) => {
                let refuse = Message::Refuse {
                    why,
                    detail: detail.clone(),
                };
                // The queue has room: nothing was sent yet.
                let _ = link.orders.try_send(refuse);
                link.close();
                return Err(detail);
            }
        };
        let attempt = Attempt(id.0);
        link.owner = Owner::Tunnel {
            tunnel,
            attempt,
            up: true,
        };
        self.links.insert(id, link);
        self.tunnels[tunnel].links.push((attempt, id));
        Ok(tunnel)
    }

    fn tunnel_of(
        &self,
        from: IpAddr,
        peer: &str,
        message: &Message,
    ) -> Result<usize, (Refusal, String)> {
        let Message::Open { offer, .. } = message else {
            let detail = "the first message has to be `open`".to_owned();
            return Err((Refusal::Protocol, detail));
        };
        let number = offer.tunnel;
        let refuse = |detail: String| Err((Refusal::Tunnel, detail));
        let Some(candidates) = self.by_number.get(&number) else {
            return refuse(format!("no tunnel {number} is configured to listen here"));
        };
        let of_peer = candidates
            .iter()
            .find(|index| self.tunnels[**index].settings.settings.peer_name == peer);
        let Some(&tunnel) = of_peer else {
            return refuse(format!("tunnel {number} is not with {peer}"));
        };
        let driven = &self.tunnels[tunnel];
        if driven.settings.remote.ip().to_canonical() != from {
            return refuse(format!(
                "tunnel {number} with {peer} is not with the address {from}"
            ));
        }
        if driven.links.len() >= LINKS_PER_TUNNEL_MAX {
            let detail = format!("tunnel {number} has too many connections");
            return Err((Refusal::Protocol, detail));
        }
        Ok(tunnel)
    }

    /// Spawns a connection's task and adds the connection to the table.
    fn spawn<F>(&mut self, owner: Owner, task: impl FnOnce(Ends) -> F) -> LinkId
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        let (orders, of_task) = mpsc::channel(ORDERS_MAX);
        let task = tokio::spawn(task(Ends {
            link: id,
            orders: of_task,
            reports: self.reports.0.clone(),
        }));
        let link = Link {
            owner,
            orders,
            task: task.abort_handle(),
        };
        self.links.insert(id, link);
        id
    }

    fn owner(&self, link: LinkId) -> Option<(usize, Attempt)> {
        match self.links.get(&link)?.owner {
            Owner::Tunnel {
                tunnel, attempt, ..
            } => Some((tunnel, attempt)),
            Owner::Pending(_) => None,
        }
    }

    /// Removes a tunnel's connection from the tables.
    fn take_link(&mut self, tunnel: usize, attempt: Attempt) -> Option<Link> {
        let id = self.tunnels[tunnel].link(attempt)?;
        self.tunnels[tunnel].links.retain(|(_, other)| *other != id);
        self.links.remove(&id)
    }

    /// Removes a pending connection from the tables.
    fn take_pending(&mut self, id: LinkId) -> Option<Link> {
        let Owner::Pending(from) = self.links.get(&id)?.owner else {
            return None;
        };
        self.admission.leave(from, id);
        self.links.remove(&id)
    }

    /// Counts a refused connection, and reports it, subject to the rate limit.
    fn refuse(&mut self, from: SocketAddr, reason: &str) {
        self.lanes.count_refused();
        let refused = &mut self.refused;
        if refused.since.elapsed() >= Duration::from_secs(1) {
            let suppressed = mem::take(&mut refused.suppressed);
            refused.since = Instant::now();
            refused.reported = 0;
            if suppressed > 0 {
                let more = format!("{suppressed} earlier refusals were not logged");
                self.lanes.refused(from, &more);
            }
        }
        if refused.reported < REFUSED_PER_SECOND_MAX {
            refused.reported += 1;
            self.lanes.refused(from, reason);
        } else {
            refused.suppressed += 1;
        }
    }
}

impl Link {
    /// Closes the connection after its queued messages are sent. A connection that is not up has
    /// nothing to send, and may take long to notice, so its task is aborted.
    fn close(self) {
        if let Owner::Tunnel { up: false, .. } = self.owner {
            self.task.abort();
        }
    }
}

impl Driven {
    fn link(&self, attempt: Attempt) -> Option<LinkId> {
        let mut links = self.links.iter();
        links
            .find(|(other, _)| *other == attempt)
            .map(|(_, link)| *link)
    }
}

/// Whether an accept error concerns only that connection, so the next can be accepted immediately.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Sleeps until `at`; for ever if `None`.
async fn sleep_until(at: Option<time::Instant>) {
    match at {
        Some(at) => time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
