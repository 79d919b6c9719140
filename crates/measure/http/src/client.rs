//! The open-loop client: each thread has a runtime, a share of the connections and of the schedule.

use crate::certificate::client_config;
use crate::error::HttpError;
use crate::object::Object;
use crate::schedule::{Arrivals, Phases, Schedule};
use crate::spec::Fetch;
use crate::tally::Tally;
use crate::{http1, http2, limits, wget2};
use campaign::plan::{HttpClient, HttpVersion};
use journal::record::{HttpFailure, HttpResult};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, LocalSet};

/// How long a connection in a closed loop pauses after a failure: a server that refuses each would
/// otherwise take all of the client's time.
const PAUSE: Duration = Duration::from_millis(10);

/// Fetches as specified, and returns what was counted: failed transactions are part of it.
pub(crate) fn fetch(spec: &Fetch) -> Result<HttpResult, HttpError> {
    match spec.test.client {
        HttpClient::Wget2 => wget2::fetch(spec),
        HttpClient::OpenLoop => open_loop(spec),
    }
}

fn open_loop(spec: &Fetch) -> Result<HttpResult, HttpError> {
    limits::prepare(spec.test.connections)?;
    let protocol: &[u8] = match spec.test.version {
        HttpVersion::Http1 => b"http/1.1",
        HttpVersion::Http2 => b"h2",
    };
    let tls = spec.authority.as_deref();
    let tls = tls
        .map(|authority| client_config(authority, protocol))
        .transpose()?;
    let phases = Phases::of(&spec.test);
    let arrivals = spec.test.transactions_per_s;
    let arrivals = arrivals.map(|per_s| Arrivals::new(phases, per_s));
    let started = Instant::now();
    let threads = spec.threads.max(1);
    let tallies = std::thread::scope(|scope| {
        let running = (0..threads).map(|thread| {
            let (tls, part) = (tls.clone(), (thread, threads));
            scope.spawn(move || {
                let schedule = Schedule::new(started, phases, arrivals, part);
                run(Client::new(spec, schedule, tls, phases), part)
            })
        });
        let running: Vec<_> = running.collect();
        let ended = running.into_iter().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect::<Result<Vec<Tally>, HttpError>>()
    })?;
    let planned = arrivals.map(|arrivals| arrivals.count());
    Ok(Tally::result(tallies, planned))
}

/// What the connections of one thread share.
pub(crate) struct Client {
    pub(crate) spec: Fetch,
    pub(crate) schedule: Schedule,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) objects: Vec<Object>,
    pub(crate) tally: RefCell<Tally>,
    pub(crate) received: Rc<Cell<u64>>,
    /// The number of the transaction that begins next.
    number: Cell<usize>,
}

impl Client {
    fn new(
        spec: &Fetch,
        schedule: Schedule,
        tls: Option<Arc<rustls::ClientConfig>>,
        phases: Phases,
    ) -> Self {
        let sizes = spec.test.objects();
        let objects = (0..).zip(&sizes);
        Self {
            spec: spec.clone(),
            schedule,
            tls,
            objects: objects
                .map(|(number, &bytes)| Object::new(number, bytes))
                .collect(),
            tally: RefCell::new(Tally::new(phases, &sizes)),
            received: Rc::default(),
            number: Cell::new(0),
        }
    }

    /// The next transaction of a connection: when it should begin, and the number of its object.
    pub(crate) async fn next(&self, share: f64) -> Option<(u64, usize)> {
        let begin_ns = self.schedule.next(share).await?;
        let number = self.number.get();
        self.number.set(number.wrapping_add(1));
        self.tally.borrow_mut().attempted += 1;
        Some((begin_ns, number % self.objects.len()))
    }

    /// Counts a failed transaction.
    pub(crate) async fn failed(&self, why: HttpFailure) {
        self.tally.borrow_mut().failed(why);
        if !self.schedule.is_open() {
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether a connection is to be closed after this many transactions.
    pub(crate) fn is_used_up(&self, transactions: u32) -> bool {
        let most = self.spec.test.transactions_per_connection;
        most.is_some_and(|most| transactions >= most)
    }
}

fn run(client: Client, (thread, threads): (u16, u16)) -> Result<Tally, HttpError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(HttpError::system("start a runtime"))?;
    let client = Rc::new(client);
    let local = LocalSet::new();
    local
        .block_on(&runtime, connections(&client, (thread, threads)))
        .map_err(HttpError::system("wait for a timer"))?;
    // Connections of HTTP/2 may still be closing.
    drop(local);
    let client = Rc::into_inner(client).expect("all tasks that share it are gone");
    let mut tally = client.tally.into_inner();
    tally.received_bytes = client.received.get();
    Ok(tally)
}

async fn connections(client: &Rc<Client>, (thread, threads): (u16, u16)) -> std::io::Result<()> {
    let all = client.spec.test.connections;
    let mut tasks = JoinSet::new();
    for number in (u32::from(thread)..all).step_by(threads.into()) {
        let share = f64::from(number) / f64::from(all);
        let client = Rc::clone(client);
        match client.spec.test.version {
            HttpVersion::Http1 => {
                tasks.spawn_local(http1::run(client, share));
            }
            HttpVersion::Http2 => http2::spawn(&mut tasks, &client, share),
        }
    }
    client.schedule.pace().await?;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    Ok(())
}
