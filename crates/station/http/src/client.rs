//! The open-loop client: each thread has a runtime and a share of connections and schedule.

use crate::certificate::client_config;
use crate::error::HttpError;
use crate::schedule::{Arrivals, Phases, Schedule};
use crate::shared::Client;
use crate::spec::Fetch;
use crate::tally::Tally;
use crate::{flow, http1, http2, limits, wget2};
use journal::record::HttpResult;
use plan::{HttpClient, HttpServer, HttpVersion};
use std::rc::Rc;
use std::time::Instant;
use tokio::task::{JoinSet, LocalSet};

/// Fetches as specified and returns the counts, including failed transactions.
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
    // One start for all threads, since the schedule of each begins with it.
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
            // A thread without its counts would make the sum look like a slow server.
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        ended.collect::<Result<Vec<Tally>, HttpError>>()
    })?;
    let planned = arrivals.map(|arrivals| arrivals.count());
    Ok(Tally::result(tallies, planned))
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
    // HTTP/2 connections may still be closing.
    drop(local);
    let client = Rc::into_inner(client).expect("all tasks that share it are gone");
    let mut tally = client.tally.into_inner();
    tally.received_bytes = client.received.get();
    Ok(tally)
}

async fn connections(client: &Rc<Client>, (thread, threads): (u16, u16)) -> std::io::Result<()> {
    let all = client.spec.test.connections;
    let mut tasks = JoinSet::new();
    // Every `threads`-th connection, so that each thread has early and late ones of a ramp.
    for number in (u32::from(thread)..all).step_by(threads.into()) {
        let share = f64::from(number) / f64::from(all);
        let client = Rc::clone(client);
        match (client.spec.test.server, client.spec.test.version) {
            (HttpServer::Plain, _) => {
                tasks.spawn_local(flow::run(client, share));
            }
            (_, HttpVersion::Http1) => {
                tasks.spawn_local(http1::run(client, share));
            }
            (_, HttpVersion::Http2) => http2::spawn(&mut tasks, &client, share),
        }
    }
    // Returns when the last transaction of an open loop has begun.
    client.schedule.pace().await?;
    while let Some(ended) = tasks.join_next().await {
        // Tasks are never cancelled here, so the only other error is a panic.
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    Ok(())
}
