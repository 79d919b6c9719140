//! The journals of runs under way, as a stream of the server: one message per line, one subject per
//! job. They are copies for watchers: the journal on the agent's disk is authoritative, and is
//! archived at the end.
//!
//! A message has the id `JOB/RUN-LINE`, so that the server drops duplicates within two minutes.
//! After a longer time the agent asks for the last line that the server has. A job that begins
//! again in another lab has another run.

use crate::error::{FleetError, refused};
use crate::lease::BEAT;
use crate::message::is_id;
use crate::progress::{Count, Find, Progress, Tail};
use crate::store::Fleet;
use crate::streams::{RECORDS, RECORDS_SUBJECT};
use async_nats::header::{HeaderMap, NATS_MESSAGE_ID};
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::stream::{self, DirectGetErrorKind};
use futures_util::StreamExt;
use std::cell::RefCell;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The subject of requests for the last line.
const LAST: &str = "$JS.API.DIRECT.GET.fleet-records";
/// The subject of a reader's first request.
const CONSUMER: &str = "$JS.API.CONSUMER.CREATE.fleet-records";
/// Bytes of a message that are reserved for its headers.
const HEADERS_BYTES: usize = 1024;
/// How long a job waits at its end until the server has its records.
const FINISH_LIMIT: Duration = Duration::from_secs(60);
/// Interval between reads of a journal.
const LOOK: Duration = Duration::from_millis(100);

/// A line of a job's journal, as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Name of the run's folder.
    pub run: String,
    /// From 1.
    pub line: u64,
    /// The line without its newline; empty if it is too long for a message.
    pub text: String,
}

impl Record {
    /// Returns the run and the number of a line, from the id of its message (`JOB/RUN-LINE`).
    #[must_use]
    pub fn place(id: &str) -> Option<(String, u64)> {
        let (of, line) = id.rsplit_once('-')?;
        let (_, run) = of.split_once('/')?;
        Some((run.to_owned(), line.parse().ok()?))
    }
}

/// The agent's side: follows a journal, counts its trials and sends its lines.
pub(crate) struct Sender<'a> {
    fleet: &'a Fleet,
    job: &'a str,
    find: Find<'a>,
    tail: Tail<'a>,
    /// The last line that the server has; `None` until it was asked.
    sent: Option<u64>,
    /// The line that is to be sent next.
    next: Option<(u64, Vec<u8>)>,
}

impl<'a> Sender<'a> {
    pub(crate) fn new(fleet: &'a Fleet, job: &'a str, find: Find<'a>) -> Self {
        Self {
            fleet,
            job,
            find,
            tail: Tail::new(find),
            sent: None,
            next: None,
        }
    }

    /// Follows the journal without end. Trials are counted whether the server takes lines or not.
    pub(crate) async fn follow(&mut self, progress: &RefCell<Option<Progress>>) {
        let (mut counted, mut count) = (Tail::new(self.find), Count::default());
        let count = async {
            loop {
                // A journal that cannot be read now is read at the next look.
                while let Ok(Some((_, line))) = counted.next() {
                    count.add(&line);
                    progress.replace(count.progress());
                }
                sleep(LOOK).await;
            }
        };
        let fleet = self.fleet;
        let send = async {
            loop {
                // A server that takes none is asked again after a while.
                let is_sent = self.advance().await;
                sleep(if is_sent { LOOK } else { BEAT }).await;
            }
        };
        let send = async {
            tokio::select! {
                () = send => {}
                // Watchers then see only the counts.
                () = denied(fleet) => {}
            }
        };
        tokio::join!(count, send);
    }

    /// Sends the remaining lines of a run that has ended, within `FINISH_LIMIT`.
    pub(crate) async fn finish(mut self) {
        let fleet = self.fleet;
        tokio::select! {
            _ = timeout(FINISH_LIMIT, self.advance()) => {}
            () = denied(fleet) => {}
        }
    }

    /// Sends every line that is complete. Returns whether the server has all of them.
    async fn advance(&mut self) -> bool {
        loop {
            if self.next.is_none() {
                self.next = self.tail.next().unwrap_or_default();
            }
            if self.next.is_none() {
                return true;
            }
            // The line stays in `next`: it is sent again after a reconnect.
            if !self.send().await {
                return false;
            }
            self.next = None;
        }
    }

    /// Sends the next line, unless the server has it. Returns whether it has it now.
    async fn send(&mut self) -> bool {
        let Some((line, text)) = &self.next else {
            return true;
        };
        let Some(run) = (self.find)().and_then(|journal| {
            let run = journal.parent()?.file_name()?;
            Some(run.to_string_lossy().into_owned())
        }) else {
            return false;
        };
        let sent = match self.sent {
            Some(sent) => sent,
            None => match self.fleet.last_record(self.job).await {
                // If the last line is of an earlier run, the server has none of this run.
                Ok(last) => {
                    let last = last.filter(|(of, _)| *of == run);
                    *self.sent.insert(last.map_or(0, |(_, line)| line))
                }
                Err(_) => return false,
            },
        };
        if *line <= sent {
            return true;
        }
        let mut headers = HeaderMap::new();
        // The server drops a second message with this id, as after a lost answer.
        headers.insert(NATS_MESSAGE_ID, format!("{}/{run}-{line}", self.job));
        // The server would close the connection for a longer one.
        let most = self.fleet.context.client().server_info().max_payload;
        let text = if text.len() + HEADERS_BYTES > most {
            Vec::new()
        } else {
            text.clone()
        };
        let subject = format!("{RECORDS_SUBJECT}.{}", self.job);
        let publish = async {
            let context = &self.fleet.context;
            let published = context.publish_with_headers(subject, headers, text.into());
            published.await?.await
        };
        let is_kept = matches!(timeout(BEAT, publish).await, Ok(Ok(_)));
        if is_kept {
            self.sent = Some(*line);
        }
        is_kept
    }
}

impl Fleet {
    /// Returns the run and the number of the last line that the server has of a job's journal.
    async fn last_record(&self, job: &str) -> Result<Option<(String, u64)>, FleetError> {
        let stream = self.records().await?;
        let last = stream
            .direct_get_last_for_subject(format!("{RECORDS_SUBJECT}.{job}"))
            .await;
        match last {
            Ok(message) => Ok(line_of(&message.headers)),
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(format!("return records of {job}"), &error)),
        }
    }

    async fn records(&self) -> Result<stream::Stream<()>, FleetError> {
        let stream = self.context.get_stream_no_info(RECORDS).await;
        stream.map_err(|error| refused(format!("open stream {RECORDS}"), &error))
    }

    /// Calls `see` with each line of a job's journal that the server has, then with each new one,
    /// until the job has ended. Returns whether the job exists.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn follow_records(
        &self,
        job: &str,
        mut see: impl FnMut(Record),
    ) -> Result<bool, FleetError> {
        if !is_id(job) || self.state(job).await?.is_none() {
            return Ok(false);
        }
        let mut last = (String::new(), 0);
        let report = async {
            // It ends early if the server is unreachable; missed lines are reported later.
            while self.report_records(job, &mut last, &mut see).await.is_err() {
                sleep(BEAT).await;
            }
        };
        tokio::select! {
            () = report => Ok(true),
            subject = self.denials.under(CONSUMER) => Err(FleetError::Denied {
                what: format!("read records of {job}"),
                subject,
            }),
        }
    }

    async fn report_records(
        &self,
        job: &str,
        last: &mut (String, u64),
        see: &mut impl FnMut(Record),
    ) -> Result<(), FleetError> {
        let failed =
            |error: &dyn std::error::Error| refused(format!("report records of {job}"), error);
        let stream = self.records().await?;
        let consumer = stream.create_consumer(OrderedConfig {
            deliver_subject: self.context.client().new_inbox(),
            filter_subject: format!("{RECORDS_SUBJECT}.{job}"),
            // From the first line, also for a watcher that comes late.
            deliver_policy: DeliverPolicy::All,
            ..OrderedConfig::default()
        });
        let consumer = consumer.await.map_err(|error| failed(&error))?;
        let mut messages = consumer.messages().await.map_err(|error| failed(&error))?;
        let mut has_ended = false;
        loop {
            match timeout(BEAT, messages.next()).await {
                Ok(Some(message)) => {
                    let message = message.map_err(|error| failed(&error))?;
                    let Some((run, line)) = message.headers.as_ref().and_then(line_of) else {
                        continue;
                    };
                    // It was reported before, or is a duplicate that came after the server's
                    // window.
                    if run == last.0 && line <= last.1 {
                        continue;
                    }
                    *last = (run.clone(), line);
                    let text = String::from_utf8_lossy(&message.payload).into_owned();
                    see(Record { run, line, text });
                }
                Ok(None) => break,
                // Lines that are in flight when the job ends arrive within a beat.
                Err(_) if has_ended => return Ok(()),
                Err(_) => {
                    let state = self.state(job).await?;
                    has_ended = state.is_none_or(|state| state.is_final());
                }
            }
        }
        Err(FleetError::Refused {
            what: format!("report records of {job}"),
            reason: "it ended the stream".to_owned(),
        })
    }
}

/// Waits until the server reports that this user may not send records.
async fn denied(fleet: &Fleet) {
    tokio::select! {
        _ = fleet.denials.under(RECORDS_SUBJECT) => {}
        _ = fleet.denials.under(LAST) => {}
    }
}

fn line_of(headers: &HeaderMap) -> Option<(String, u64)> {
    Record::place(headers.get(NATS_MESSAGE_ID)?.as_str())
}
