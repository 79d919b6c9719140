//! The control thread: one loop that owns all tunnels' machines, and one task for each connection.
//!
//! A machine is only ever handled here, in the order in which things happened. What it puts out is done at once: orders to
//! connections are left in their queues, keys are told to the lanes, and what takes time (connecting, asking a KME) becomes a
//! task that reports later. So nothing in the loop waits for a peer.

mod admission;
mod connection;
mod quantum;
mod requests;
mod timers;

pub use admission::{PENDING_MAX, PENDING_PER_ADDRESS_MAX};
pub use connection::OPEN_LIMIT;
pub(crate) use requests::Requests;

use crate::{Identity, Lanes, Setup, Tunnel};
use admission::Admission;
use connection::{Ends, ORDERS_MAX, Report, Target};
use keying::message::{Message, Refusal};
use keying::rollover::{Attempt, Input, Output, Role, Rollover};
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

/// Connections of one tunnel. It needs two: the one that stands, and the one that takes its place.
pub const LINKS_PER_TUNNEL_MAX: usize = 8;
/// Connections that go out to one address at once and are not yet answered; fewer than it lets in.
const UNDER_WAY_PER_ADDRESS_MAX: usize = 64;
/// Reports that wait for the loop; tasks that have more wait themselves.
const REPORTS_MAX: usize = 1024;
/// Refused connections that are told in a second; the rest are counted.
const REFUSED_PER_SECOND_MAX: u32 = 20;
/// How long no connection is taken when the operating system has no room for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// A machine is not woken again before that: one that asks to be woken in the past must not take the thread for itself.
const WAKE_PAUSE: Duration = Duration::from_millis(1);

/// A connection, in or out; numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LinkId(u64);

/// A connection, as the loop sees it.
struct Link {
    owner: Owner,
    orders: mpsc::Sender<Message>,
    task: AbortHandle,
}

/// Whose a connection is.
#[derive(Clone, Copy)]
enum Owner {
    /// It came in from there, and has not said which tunnel it is for.
    Nobody(IpAddr),
    /// A tunnel's; `up` once TLS is through.
    Tunnel {
        tunnel: usize,
        attempt: Attempt,
        up: bool,
    },
}

/// A tunnel, as the loop sees it.
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
    quantum: Option<Quantum>,
    started: Instant,
    tunnels: Vec<Driven>,
    /// Tunnels of which this side listens, by their number on the wire.
    by_number: HashMap<u16, Vec<usize>>,
    /// Where their peers are.
    sources: HashSet<IpAddr>,
    timers: Timers,
    admission: Admission,
    links: HashMap<LinkId, Link>,
    next_link: u64,
    /// What the loop itself found out while it did what a machine wants; handled after that.
    found: VecDeque<(usize, Input)>,
    outputs: Vec<Output>,
    refused: Refused,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    replies: (mpsc::Sender<Reply>, mpsc::Receiver<Reply>),
}

/// Of refused connections, how many were told in the second that began then.
struct Refused {
    since: Instant,
    told: u32,
    untold: u32,
}

impl<L: Lanes> Shell<L> {
    pub(crate) fn new(setup: Setup, lanes: L) -> Self {
        let mut gates: HashMap<IpAddr, Arc<Semaphore>> = HashMap::new();
        let mut by_number: HashMap<u16, Vec<usize>> = HashMap::new();
        let mut sources = HashSet::new();
        let mut slaves = Vec::new();
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
        let started = Instant::now();
        Self {
            lanes,
            identity: setup.identity,
            quantum: setup.qkd.map(|kme| Quantum::new(kme, slaves)),
            started,
            timers: Timers::new(tunnels.len()),
            tunnels,
            by_number,
            sources,
            admission: Admission::default(),
            links: HashMap::new(),
            // A machine has seen attempt 0 when it has seen none.
            next_link: 1,
            found: VecDeque::new(),
            outputs: Vec::new(),
            refused: Refused {
                since: started,
                told: 0,
                untold: 0,
            },
            reports: mpsc::channel(REPORTS_MAX),
            replies: mpsc::channel(REPORTS_MAX),
        }
    }

    /// Until it is told to stop.
    pub(crate) async fn run(mut self, listener: TcpListener, requests: &Requests) {
        for tunnel in 0..self.tunnels.len() {
            self.drive(tunnel, Input::Tick);
        }
        let mut pause_until: Option<time::Instant> = None;
        loop {
            let wake = self.timers.next().map(|at| self.started + at);
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
                () = sleep_until(pause_until), if pause_until.is_some() => pause_until = None,
                accepted = listener.accept(), if pause_until.is_none() => match accepted {
                    Ok((stream, from)) => self.admit(stream, from),
                    Err(error) if is_of_one_connection(&error) => {}
                    // No descriptor or no memory is left: without a pause this would be asked for ever.
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
            for tunnel in 0..self.tunnels.len() {
                if !wanted.tunnels.contains_key(&tunnel) {
                    self.drive(tunnel, Input::Rekey(cause));
                }
            }
        }
    }

    fn wake(&mut self) {
        let now = self.started.elapsed();
        while let Some(tunnel) = self.timers.take(now) {
            self.drive(tunnel, Input::Tick);
            let wakes_at = self.tunnels[tunnel].rollover.wakes_at();
            self.timers
                .set(tunnel, wakes_at.map(|at| at.max(now + WAKE_PAUSE)));
        }
    }

    /// Handles one thing that happened to a tunnel, and what follows from it.
    fn drive(&mut self, tunnel: usize, input: Input) {
        self.found.push_back((tunnel, input));
        while let Some((tunnel, input)) = self.found.pop_front() {
            let now = self.started.elapsed();
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
            Output::FetchQkd(attempt, ids) => self.fetch(tunnel, attempt, ids),
            Output::InstallInbound(secret) => self.lanes.install_inbound(tunnel, &secret),
            Output::SwitchOutbound(secret) => self.lanes.switch_outbound(tunnel, &secret),
            Output::RetireInbound(epoch) => self.lanes.retire_inbound(tunnel, epoch),
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
            // A task that has ended has reported why.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                if let Some(link) = self.take_link(tunnel, attempt) {
                    link.task.abort();
                }
                let reason = "the peer does not take what is sent to it".to_owned();
                self.found
                    .push_back((tunnel, Input::Disconnected { attempt, reason }));
            }
        }
    }

    fn fetch(&mut self, tunnel: usize, attempt: Attempt, ids: Option<Vec<String>>) {
        let sae = self.tunnels[tunnel].settings.peer_sae.as_deref();
        match (&self.quantum, sae) {
            (Some(quantum), Some(sae)) => {
                quantum.fetch(tunnel, attempt, sae, ids, self.replies.0.clone());
            }
            _ => {
                let keys = Err("there is no KME here".to_owned());
                self.found.push_back((tunnel, Input::Qkd { attempt, keys }));
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, from: SocketAddr) {
        let address = from.ip().to_canonical();
        if !self.sources.contains(&address) {
            return self.refuse(from, "no peer connects from there");
        }
        let config = Arc::clone(&self.identity.server);
        let link = self.spawn(Owner::Nobody(address), |ends| {
            connection::accept(stream, from, config, ends)
        });
        if let Some(leaver) = self.admission.enter(address, link)
            && let Some(link) = self.links.remove(&leaver)
        {
            link.task.abort();
            self.refuse(
                from,
                "too many connections are on their way: the oldest had to go for this one",
            );
        }
    }

    fn take_report(&mut self, report: Report) {
        match report {
            Report::Up { link, secret } => {
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
                let exporter = secret;
                self.drive(tunnel, Input::Connected { attempt, exporter });
            }
            Report::Opened {
                link,
                from,
                session,
                message,
            } => {
                let Some(taken) = self.take_pending(link) else {
                    return;
                };
                match self.opened(link, taken, from, &session.peer, &message) {
                    Ok(tunnel) => {
                        let attempt = Attempt(link.0);
                        let exporter = session.secret;
                        self.drive(tunnel, Input::Connected { attempt, exporter });
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

    /// Gives a connection that came in to the tunnel that its first message names, if it is one of that peer's. Otherwise
    /// the peer is told what is wrong, and so is the caller.
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
                // There is room: nothing was sent yet.
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
            return refuse(format!("there is no tunnel {number} that connects to here"));
        };
        let of_peer = candidates
            .iter()
            .find(|index| self.tunnels[**index].settings.settings.peer_name == peer);
        let Some(&tunnel) = of_peer else {
            return refuse(format!("tunnel {number} is none with {peer}"));
        };
        let driven = &self.tunnels[tunnel];
        if driven.settings.remote.ip().to_canonical() != from {
            return refuse(format!(
                "tunnel {number} with {peer} is none with the address {from}"
            ));
        }
        if driven.links.len() >= LINKS_PER_TUNNEL_MAX {
            let detail = format!("tunnel {number} has too many connections");
            return Err((Refusal::Protocol, detail));
        }
        Ok(tunnel)
    }

    /// A new connection's task, with its place in the table.
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
            Owner::Nobody(_) => None,
        }
    }

    /// Takes a tunnel's connection out of the tables.
    fn take_link(&mut self, tunnel: usize, attempt: Attempt) -> Option<Link> {
        let id = self.tunnels[tunnel].link(attempt)?;
        self.tunnels[tunnel].links.retain(|(_, other)| *other != id);
        self.links.remove(&id)
    }

    /// Takes a connection that is no tunnel's yet out of the tables.
    fn take_pending(&mut self, id: LinkId) -> Option<Link> {
        let Owner::Nobody(from) = self.links.get(&id)?.owner else {
            return None;
        };
        self.admission.leave(from, id);
        self.links.remove(&id)
    }

    /// Tells of a refused connection, unless there are too many.
    fn refuse(&mut self, from: SocketAddr, reason: &str) {
        let refused = &mut self.refused;
        if refused.since.elapsed() >= Duration::from_secs(1) {
            let untold = mem::take(&mut refused.untold);
            refused.since = Instant::now();
            refused.told = 0;
            if untold > 0 {
                let more = format!("so were {untold} more before");
                self.lanes.refused(from, &more);
            }
        }
        if refused.told < REFUSED_PER_SECOND_MAX {
            refused.told += 1;
            self.lanes.refused(from, reason);
        } else {
            refused.untold += 1;
        }
    }
}

impl Link {
    /// What is in its queue is sent; then it closes. One that is not up has nothing to send, and may take long to notice.
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

/// Whether the error is of the connection that was to be taken, and the next may be taken at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// For ever, where there is no such time.
async fn sleep_until(at: Option<time::Instant>) {
    match at {
        Some(at) => time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
